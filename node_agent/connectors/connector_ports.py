"""What a connector needs of another system: messages to read, and a place to put messages.

A kind is a module with the functions of `Kind`, loaded when a plan names it. A kind knows one system and nothing of the
agent: after `ConnectionLostError` the agent opens another reader or writer, with growing pauses.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from node_agent.problems import ProblemError


class ConnectionLostError(Exception):
    """The other system is not there, or not any more; the text is why: "connection refused". lost: messages that are
    known to be gone with it; taken: it has the message under way."""

    def __init__(self, why: str, lost: int = 0, taken: bool = False) -> None:
        super().__init__(why)
        self.lost, self.taken = lost, taken


class NotConnectableError(ProblemError):
    """No further attempt helps: no such file, no such topic in it, a package that is not installed."""


@dataclass(frozen=True, slots=True)
class Connector:
    """One `from:` of a source or `to:` of an output, as the plan has it."""

    stream: str  # name of the source or of the output
    kind: str  # mqtt, zenoh, rosbag, mcap
    url: str  # of the kind's own form
    topic: str  # "": the url names it
    codec: str  # of the stream
    encoding: str  # of the messages: "" as the stream's type, json, cdr
    schema: str  # of the messages, where the encoding needs one: a ROS type
    stamp: str  # where a message says when it originated; "": it originates as it arrives
    qos: int
    client: str  # what this end calls itself: the same after each restart, and unlike any other one's


@dataclass(frozen=True, slots=True)
class Credentials:
    """How this node proves to the other system who it is. Empty: not at all."""

    username: str = ""
    password: str = field(default="", repr=False)
    ca: Path | None = None  # certificates that the other end's is checked by; None: the machine's
    certificate: Path | None = None
    key: Path | None = None
    recordings: Path | None = None  # the one directory whose files are opened; None: none


@dataclass(frozen=True, slots=True)
class Message:
    """One message. stamp_ns: when it originated, nanoseconds since 1970, where the transport says so. seen_ns: of a
    recording, the instant at which its stamp had the age that counts; None: now."""

    payload: bytes
    topic: str
    stamp_ns: int | None = None
    seen_ns: int | None = None


class Reader(Protocol):
    """Reads one connector's messages, by one thread. resumed: what came while this end was away is still to come; else
    it is lost, and nobody knows how much it was."""

    @property
    def resumed(self) -> bool:
        """As the other system said when it was connected."""

    def messages(self) -> Iterator[Message]:
        """Each message as it comes. Asking for the next one says that the one before is taken over; nothing is read
        much further ahead, which is the back-pressure. The end: there will be no more, as of a recording. Raises
        ConnectionLostError."""

    def close(self) -> None:
        """End `messages`, from any thread; twice is allowed."""


class Writer(Protocol):
    """Puts messages, by one thread."""

    def put(self, message: Message) -> None:
        """Returns when the other system has taken it over, as far as it says so; that is the back-pressure. Raises
        ConnectionLostError: unless that says `taken`, the message is put again."""

    def look(self) -> None:
        """Call it now and then while there is nothing to put. Raises ConnectionLostError where it shows without a
        message that the other system has gone."""

    def close(self) -> None:
        """From any thread; twice is allowed."""


class Kind(Protocol):
    """A module for one kind of system. Opening connects, or raises ConnectionLostError or NotConnectableError."""

    def reader(self, connector: Connector, credentials: Credentials) -> Reader:
        """Of a source."""

    def writer(self, connector: Connector, credentials: Credentials) -> Writer:
        """Of an output."""
