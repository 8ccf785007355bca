"""Zenoh: a client of one router, `zenoh: tcp/host:port` or `tls/host:port`, and a key as the topic.

It finds nobody by itself: no multicast, no gossip, no listening, no shared memory, and no endpoint but the one named.

A subscriber has a short queue. While it is full, the session reads nothing more, the router's queue for this client
fills, and publishers that block wait, those that drop lose. A router that cannot send for some seconds closes the
connection. A publisher blocks as well, and each message is followed by a question on the same way, which a second
session answers: so the router has the message. Zenoh itself acknowledges none.

Lost, when the router goes: what is published until this end is there again. Nobody knows how much it was.
"""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import zenoh

from node_agent.connectors.connector_ports import (
    ConnectionLostError,
    Connector,
    Credentials,
    Message,
    NotConnectableError,
)
from node_agent.connectors.credentials import FILE
from node_agent.link.limits import MOST_PAYLOAD_BYTES
from protos.connectors import is_router, wrong_key

QUEUE = 16  # messages
OPEN_S = 3.0
TAKEN_S = 5.0  # within which the router answers
_ASKED_AGAIN_S = 0.01


class ZenohSession:
    """A session with one router. It ends with the connection: zenoh would connect again by itself and tell nobody."""

    def __init__(self, connector: Connector, credentials: Credentials) -> None:
        self._url = connector.url
        self.key = zenoh.KeyExpr(connector.topic)
        try:
            self.session = zenoh.open(_config(connector, credentials))
        except zenoh.ZError:
            raise ConnectionLostError(f"no router answers at {self._url} within {OPEN_S:g} s") from None
        self._closing = threading.Lock()
        events = self.session.info.declare_transport_events_listener(zenoh.handlers.FifoChannel(QUEUE))
        self._events = events.handler
        self._listener = events
        if not self.session.info.routers_zid():
            self.close()
            raise self.lost()
        threading.Thread(target=self._end_with_connection, name=f"zenoh {self._url}", daemon=True).start()

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return bool(self.session.is_closed())

    def lost(self) -> ConnectionLostError:
        """What to raise where the connection is gone."""
        return ConnectionLostError(f"the router at {self._url} has gone")

    def close(self) -> None:
        """The session ends, and those who wait for it are woken; from any thread, twice is allowed."""
        with self._closing:
            if not self.session.is_closed():
                self.session.close()  # type: ignore[no-untyped-call]

    def _end_with_connection(self) -> None:
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


class ZenohEcho:
    """A second session, which answers the first one's questions by way of the router.

    An answer is the only sign of life that cannot be mistaken: a question whose connection ends has no answer and no
    error either, as one that nobody answers.
    """

    def __init__(self, connector: Connector, credentials: Credentials) -> None:
        self._session = ZenohSession(connector, credentials)
        self.key = f"_shimekiri/{self._session.session.zid()}"
        try:
            self._questions = self._session.session.declare_queryable(self.key, zenoh.handlers.FifoChannel(QUEUE))
        except zenoh.ZError:
            self.close()
            raise self._session.lost() from None
        self._handler = self._questions.handler
        threading.Thread(target=self._answer, name=f"echo {self.key}", daemon=True).start()

    @property
    def is_over(self) -> bool:
        """Whether nobody answers any more."""
        return self._session.is_over

    def close(self) -> None:
        """From any thread; twice is allowed."""
        self._session.close()

    def _answer(self) -> None:
        with suppress(zenoh.ZError):  # the session has ended
            while True:
                with self._handler.recv() as question:
                    question.reply(self.key, b"")


class ZenohWriter:
    """Messages to one key."""

    def __init__(self, connector: Connector, credentials: Credentials) -> None:
        self._session = ZenohSession(connector, credentials)
        self._echo: ZenohEcho | None = None
        try:
            self._echo = ZenohEcho(connector, credentials)
            self._publisher = self._session.session.declare_publisher(
                self._session.key, congestion_control=zenoh.CongestionControl.BLOCK
            )
            self._wait_for_echo(self._echo)
        except zenoh.ZError:
            self.close()
            raise self._session.lost() from None
        except ConnectionLostError:
            self.close()
            raise

    def put(self, message: Message) -> None:
        """Returns when the router has it. Raises ConnectionLostError."""
        assert self._echo is not None
        try:
            self._publisher.put(message.payload)
            taken = self._answered(self._echo)
        except zenoh.ZError:
            taken = False
        if not taken:
            raise self._session.lost()

    def look(self) -> None:
        """Both sessions end with their connections."""
        assert self._echo is not None
        if self._session.is_over or self._echo.is_over:
            raise self._session.lost()

    def close(self) -> None:
        """From any thread; twice is allowed."""
        self._session.close()
        if self._echo is not None:
            self._echo.close()

    def _answered(self, echo: ZenohEcho) -> bool:
        return any(each.ok is not None for each in self._session.session.get(echo.key, timeout=TAKEN_S))

    def _wait_for_echo(self, echo: ZenohEcho) -> None:
        """Until the router knows of it. Raises ConnectionLostError."""
        until_s = time.monotonic() + OPEN_S
        while not self._answered(echo):
            if time.monotonic() > until_s:
                raise ConnectionLostError(f"the router passes on no question about {echo.key}")
            time.sleep(_ASKED_AGAIN_S)


def reader(connector: Connector, credentials: Credentials) -> ZenohReader:
    """Of a source."""
    _check_key(connector, reads=True)
    return ZenohReader(connector, credentials)


def writer(connector: Connector, credentials: Credentials) -> ZenohWriter:
    """Of an output."""
    _check_key(connector, reads=False)
    return ZenohWriter(connector, credentials)


def _check_key(connector: Connector, reads: bool) -> None:
    """Raises NotConnectableError."""
    if why := wrong_key(connector.topic, reads):
        text, mend = f"topic {connector.topic!r} {why}", "write it like robot/camera"
        raise NotConnectableError("unknown_topic", text, mend, subject="topic")


def _config(connector: Connector, credentials: Credentials) -> zenoh.Config:
    """Raises NotConnectableError."""
    if not is_router(connector.url):
        text, mend = f"zenoh: {connector.url} is no place of a router", "write it like tcp/127.0.0.1:7447"
        raise NotConnectableError("not_an_address", text, mend, subject="zenoh")
    for file in (credentials.ca, credentials.certificate, credentials.key):
        if file is not None and not file.is_file():
            raise NotConnectableError("unreadable", "is no file that can be read", f"see {FILE}", file=file)
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


__all__ = ["ZenohEcho", "ZenohReader", "ZenohSession", "ZenohWriter", "reader", "writer"]
