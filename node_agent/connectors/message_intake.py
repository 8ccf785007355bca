"""From another system into a source: one thread reads, and waits for the agent's answer to each message.

That is the back-pressure: while the agent does not take a message, or is away, none is read, and the other system keeps
or drops what comes, as its kind says.
"""

import time
from typing import Any

from node_agent.client.client import Admitted, AgentError, NoAnswerError, Refused, Source, TlsError
from node_agent.connectors.connector_ports import ConnectionLostError, Message, NotConnectableError, Reader
from node_agent.connectors.kinds import RECORDINGS, kind
from node_agent.connectors.mapping import Mapping, mapping
from node_agent.connectors.stamps import StampError, Stamps
from node_agent.connectors.surroundings import Surroundings
from node_agent.host.clock import now_ns
from node_agent.host.log import ERROR, INFO
from node_agent.link.backoff import Backoff
from node_agent.operators.codecs import CodecError

_SEND_S = 5.0  # an operator that runs puts an answer off
_FIRST_NS, _MOST_NS = 100_000_000, 5_000_000_000
_NO_MORE = "there is no more to read"


class Intake:
    """Of one source. Call `run` in a thread of its own, and `stop` from any."""

    def __init__(self, around: Surroundings) -> None:
        self._around, self._counts, self._connector = around, around.counts, around.flow.connector
        self._connection = around.connection
        self._stamps = Stamps(self._connector.stamp)
        self._backoff, self._agent_backoff = Backoff(_FIRST_NS, _MOST_NS), Backoff(_FIRST_NS, _MOST_NS)
        self._reader: Reader | None = None
        self._source: Source | None = None

    @property
    def replayed(self) -> bool:
        """It has begun a recording, whose messages would come twice if `run` was called again."""
        return self._connection.was_up and self._connector.kind in RECORDINGS

    def run(self) -> None:
        """Until it is stopped, or there is no more to read."""
        try:
            while not self._around.stop.is_set():
                try:
                    self._feed()
                    return
                except ConnectionLostError as error:
                    self._lost(error)
        except NotConnectableError as error:
            self._connection.end(str(error))
            self._around.say("connector_not_usable", str(error), ERROR)
        finally:
            self._drop_agent()

    def stop(self) -> None:
        """`run` returns soon."""
        self._around.stop.set()
        reader = self._reader
        if reader is not None:
            reader.close()

    def _feed(self) -> None:
        """From one connection, made once the agent is there. Raises ConnectionLostError, NotConnectableError."""
        if (source := self._to_agent()) is None:
            return
        mapped = mapping(source.codec, self._connector.encoding, self._connector.schema)
        reader = self._reader = kind(self._connector.kind).reader(self._connector, self._around.credentials())
        try:
            if self._around.stop.is_set():  # while it connected, so that `stop` saw no reader
                return
            self._connected(reader)
            for message in reader.messages():
                self._take(mapped, message)
                if self._around.stop.is_set():
                    return
            self._connection.end(_NO_MORE)
            self._around.say("connector_ended", _NO_MORE, INFO)
        finally:
            reader.close()

    def _to_agent(self) -> Source | None:
        """Once the agent answers; None: this is to end."""
        flow, settings = self._around.flow, self._around.settings
        while self._source is None and not self._around.stop.is_set():
            try:
                self._source = Source(
                    flow.agent, self._connector.stream, timeout=_SEND_S, codecs=self._around.load_codecs(),
                    drift_ppm=settings.drift_ppm, tls=settings.tls,
                )  # fmt: skip
            except (AgentError, TlsError) as error:
                self._wait_for_agent(error)
        return self._source

    def _wait_for_agent(self, error: Exception) -> None:
        """A new connection knows nothing of what the one before still had to send."""
        self._drop_agent()
        if not self._connection.up:
            self._connection.end(str(error))
        self._around.say("connector_without_agent", str(error))
        self._around.wait(self._agent_backoff.failed(now_ns()) - now_ns())

    def _drop_agent(self) -> None:
        if self._source is not None:
            self._source.close()
            self._source = None

    def _connected(self, reader: Reader) -> None:
        self._backoff.succeeded()
        again, lost = self._connection.was_up, ""
        self._connection.begin()
        if again and not reader.resumed:
            self._counts.add("gaps")
            lost = "; what came meanwhile is lost, and nobody knows how much it was"
        self._around.say("connector_connected", f"connected{' again' if again else ''}{lost}", INFO)

    def _lost(self, error: ConnectionLostError) -> None:
        if self._around.stop.is_set():
            return
        if self._connection.up:
            self._counts.add("connections_lost")
        self._connection.end(str(error))
        self._counts.add("lost", error.lost)
        again_ns = self._backoff.failed(now_ns()) - now_ns()
        self._around.say("connector_lost", f"not connected ({error}); trying again")
        self._around.wait(again_ns)

    def _take(self, mapped: Mapping, message: Message) -> None:
        self._counts.add("received")
        try:
            value, stamped = mapped.stamped(message.payload)
            before_ns = now_ns()
            seen_ns = time.time_ns() if message.seen_ns is None else message.seen_ns
            age_ns = self._stamps.age_ns(stamped, message.stamp_ns, seen_ns)
            self._hand_over(message, value, (before_ns - age_ns, now_ns() - age_ns))  # the wall clock was read between
        except CodecError as error:
            self._counts.add("refused_unreadable")
            self._around.say("message_unreadable", f"a message of {message.topic} is refused: {error}")
        except StampError as error:
            self._counts.add("refused_stamp")
            self._around.say("message_without_stamp", f"a message of {message.topic} is refused: {error}")
        self._counts.set("stamps_ahead", self._stamps.ahead)
        self._counts.set("stamps_back", self._stamps.back)

    def _hand_over(self, message: Message, value: Any, origin: tuple[int, int]) -> None:
        """Until the agent has answered. One that is connected and does not answer may have it: only where the other
        system may give it twice is it asked again."""
        while (source := self._to_agent()) is not None and not self._around.stop.is_set():
            try:
                outcome = source.send_at(value, origin)
            except AgentError as error:
                if isinstance(error, NoAnswerError) and not self._connector.qos:
                    self._counts.add("refused_no_agent")
                    self._around.say("message_without_agent", f"a message of {message.topic} is lost: {error}")
                    return
                self._wait_for_agent(error)
            else:
                self._agent_backoff.succeeded()
                self._settle(message, outcome)
                return

    def _settle(self, message: Message, outcome: Admitted | Refused) -> None:
        if isinstance(outcome, Admitted):
            self._counts.add("admitted")
            return
        self._counts.add("refused_by_agent")
        self._around.say("message_refused", f"a message of {message.topic} is refused: {outcome.why}")
