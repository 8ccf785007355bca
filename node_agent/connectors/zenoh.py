"""Zenoh: a client of one router, `zenoh: tcp/host:port` or `tls/host:port`, and a key as the topic.

It finds nobody by itself: no multicast, no gossip, no listening, no shared memory, and no endpoint but the one named.

A subscriber has a short queue. While it is full, the session reads nothing more, the router's queue for this client
fills, and publishers that block wait, those that drop lose. A router that cannot send for some seconds closes the
connection. A publisher blocks as well, and each message is followed by a question to the router on the same way, whose
answer says that the router has the message: zenoh itself acknowledges none.

Lost, when the router goes: what is published until this end is there again. Nobody knows how much it was.
"""

import json
import re
import threading
from collections.abc import Iterator

import zenoh

from node_agent.connectors.ports import ConnectionLostError, Connector, Credentials, Message, NotConnectableError
from node_agent.link.limits import MOST_PAYLOAD_BYTES

QUEUE = 16  # messages
OPEN_S = 3.0
TAKEN_S = 5.0  # within which the router answers
_ENDPOINT = re.compile(r"(tcp|tls)/([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:]+\]):[0-9]{1,5}").fullmatch
_NOBODY = "_shimekiri/taken"  # a key that no one answers for


class ZenohSession:
    """A session with one router. It ends with the connection: zenoh would connect again by itself and tell nobody."""

    def __init__(self, connector: Connector, credentials: Credentials) -> None:
        self._url = connector.url
        self.key = _key(connector)
        try:
            self.session = zenoh.open(_config(connector, credentials))
        except zenoh.ZError:
            raise ConnectionLostError(f"no router answers at {self._url} within {OPEN_S:g} s") from None
        self._closing = threading.Lock()
        events = self.session.info.declare_transport_events_listener(zenoh.handlers.FifoChannel(QUEUE))
        self._events = events.handler
        self._listener = events
        self._routers = self._connected()
        if not self._routers:
            self.close()
            raise self.lost()
        threading.Thread(target=self._watch, name=f"zenoh {self._url}", daemon=True).start()

    @property
    def is_connected(self) -> bool:
        """Still to the router of the beginning."""
        return not self.session.is_closed() and self._connected() == self._routers

    def lost(self) -> ConnectionLostError:
        """For whoever finds that the connection is gone."""
        return ConnectionLostError(f"the router at {self._url} has gone")

    def close(self) -> None:
        """The session ends, and those who wait for it are woken; from any thread, twice is allowed."""
        with self._closing:
            if not self.session.is_closed():
                self.session.close()  # type: ignore[no-untyped-call]

    def _connected(self) -> list[str]:
        return [str(each) for each in self.session.info.routers_zid()]

    def _watch(self) -> None:
        """Until the connection, or the session, has ended."""
        try:
            while self._events.recv().kind != zenoh.SampleKind.DELETE:
                pass
        except zenoh.ZError:
            pass  # the session was closed
        self.close()


class ZenohReader:
    """Messages of a key expression."""

    resumed = False

    def __init__(self, connector: Connector, credentials: Credentials) -> None:
        self._session = ZenohSession(connector, credentials)
        self._ended = False
        try:
            subscriber = self._session.session.declare_subscriber(
                self._session.key, zenoh.handlers.FifoChannel(QUEUE)
            )  # fmt: skip
        except zenoh.ZError:
            self._session.close()
            raise self._session.lost() from None
        self._subscriber, self._samples = subscriber, subscriber.handler

    def messages(self) -> Iterator[Message]:
        """A deletion of a key is no message. What has arrived before the connection ends is still given."""
        while True:
            try:
                sample = self._samples.recv()
            except zenoh.ZError:
                break
            if self._ended:
                break
            if sample.kind == zenoh.SampleKind.PUT:
                yield Message(sample.payload.to_bytes(), str(sample.key_expr), _stamp_ns(sample.timestamp))
        if not self._ended:
            raise self._session.lost()

    def close(self) -> None:
        """From any thread; twice is allowed."""
        self._ended = True
        self._session.close()


class ZenohWriter:
    """Messages to one key."""

    def __init__(self, connector: Connector, credentials: Credentials) -> None:
        self._session = ZenohSession(connector, credentials)
        try:
            self._publisher = self._session.session.declare_publisher(
                self._session.key, congestion_control=zenoh.CongestionControl.BLOCK
            )  # fmt: skip
        except zenoh.ZError:
            self._session.close()
            raise self._session.lost() from None

    def put(self, message: Message) -> None:
        """Returns when the router has it. Raises ConnectionLostError."""
        try:
            self._publisher.put(message.payload)
            errors = [each for each in self._session.session.get(_NOBODY, timeout=TAKEN_S) if each.err is not None]
        except zenoh.ZError:
            raise self._session.lost() from None
        if errors or not self._session.is_connected:
            raise self._session.lost()

    def close(self) -> None:
        """From any thread; twice is allowed."""
        self._session.close()


def reader(connector: Connector, credentials: Credentials) -> ZenohReader:
    """Of a source."""
    return ZenohReader(connector, credentials)


def writer(connector: Connector, credentials: Credentials) -> ZenohWriter:
    """Of an output."""
    if "*" in connector.topic:
        text, mend = f"topic {connector.topic} has a '*'", "results go to one key"
        raise NotConnectableError("unknown_topic", text, mend, subject="topic")
    return ZenohWriter(connector, credentials)


def _key(connector: Connector) -> zenoh.KeyExpr:
    try:
        return zenoh.KeyExpr(connector.topic)
    except zenoh.ZError:
        text = f"topic {connector.topic!r} is no key of zenoh"
        mend = "write it like robot/camera, without a slash at its ends"
        raise NotConnectableError("unknown_topic", text, mend, subject="topic") from None


def _config(connector: Connector, credentials: Credentials) -> zenoh.Config:
    """Raises NotConnectableError."""
    if not _ENDPOINT(connector.url):
        text, mend = f"zenoh: {connector.url} is no place of a router", "write it like tcp/127.0.0.1:7447"
        raise NotConnectableError("not_an_address", text, mend, subject="zenoh")
    given: dict[str, object] = {
        "mode": "client",
        "connect/endpoints": [connector.url],
        "connect/timeout_ms": round(OPEN_S * 1000),
        "connect/exit_on_failure": True,
        "listen/endpoints": [],
        "scouting/multicast/enabled": False,
        "scouting/gossip/enabled": False,
        "transport/shared_memory/enabled": False,
        "transport/link/rx/max_message_size": 2 * MOST_PAYLOAD_BYTES,
    }
    if credentials.username:
        given["transport/auth/usrpwd/user"] = credentials.username
        given["transport/auth/usrpwd/password"] = credentials.password
    if credentials.ca:
        given["transport/link/tls/root_ca_certificate"] = str(credentials.ca)
    if credentials.certificate and credentials.key:
        given["transport/link/tls/enable_mtls"] = True
        given["transport/link/tls/connect_certificate"] = str(credentials.certificate)
        given["transport/link/tls/connect_private_key"] = str(credentials.key)
    config = zenoh.Config()
    for key, value in given.items():
        config.insert_json5(key, json.dumps(value))
    return config


def _stamp_ns(stamp: zenoh.Timestamp | None) -> int | None:
    """Of zenoh's clock, nanoseconds since 1970: of the publisher where it stamps, else of the first router."""
    return None if stamp is None else int(stamp.get_time_as_ntp64().as_nanos())


__all__ = ["ZenohReader", "ZenohSession", "ZenohWriter", "reader", "writer"]
