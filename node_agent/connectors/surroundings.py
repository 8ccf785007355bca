"""What the threads of all connectors share: the agent's settings and codecs, its log, and the word that ends one."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from node_agent.connectors import credentials
from node_agent.connectors.connection_state import ConnectionState
from node_agent.connectors.connector_ports import (
    ConnectionLostError,
    Connector,
    Credentials,
    NotConnectableError,
)
from node_agent.connectors.counts import Counts
from node_agent.connectors.flow import Flow
from node_agent.host.log import INFO, WARNING, Log
from node_agent.host.settings import Settings
from node_agent.operators.codecs import Codecs
from protos.connectors import broker

RECORDINGS = "recordings"  # in the agent's state directory: a directory, or a link that its owner made to one
_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Of one flow. load_codecs: may take long, or raise what an operator's file raises. stop: it is to end. connection:
    to the other system."""

    flow: Flow
    counts: Counts
    settings: Settings
    load_codecs: Callable[[], Codecs]
    log: Log
    stop: threading.Event = field(default_factory=threading.Event)
    connection: ConnectionState = field(default_factory=ConnectionState)

    def credentials(self) -> Credentials:
        """For the other system. Raises ConnectionLostError: their owner may be writing them, or will mend them."""
        root = self.settings.state.root
        try:
            found = credentials.of(root, _address(self.flow.connector))
        except NotConnectableError as error:
            raise ConnectionLostError(str(error)) from None
        return replace(found, recordings=root / RECORDINGS)

    def say(self, event: str, text: str, level: str = WARNING) -> None:
        """A line that names the connector, now and then where there are many of a kind."""
        flow = self.flow
        what = f"{'source' if flow.direction == 'from' else 'output'} {flow.connector.stream}"
        about = f"{what} {flow.direction} {flow.connector.url}: {text}"
        kind = "" if level == INFO else f"{event}.{flow.direction}.{flow.connector.stream}"
        self.log.say(event, about, level, kind, connector=flow.connector.stream, direction=flow.direction)

    def wait(self, ns: int) -> None:
        """For so long, or until it is to end."""
        self.stop.wait(max(ns, 0) / _SECOND)


def _address(connector: Connector) -> str:
    return broker(connector.url).address if connector.kind == "mqtt" else connector.url
