"""Calls that were refused: a line in the log for each kind now and then, and counts for the status.

Who called, by address and certificate, is told where it is known; what was sent is not.
"""

import asyncio
from collections import Counter
from typing import NamedTuple, Self

from google.protobuf.message import Message

from node_agent.control.calls.call_errors import CallError, Code
from node_agent.host.log import WARNING, Log

MOST_CHARS = 300  # of a reason, or of the name of a method
REFUSED, UNAUTHORISED = "calls_refused", "calls_unauthorised"


class Caller(NamedTuple):
    """The other end of a connection. names: all in its certificate; speaks_http2: nothing else was agreed on."""

    address: str
    names: tuple[str, ...] = ()
    speaks_http2: bool = True

    @classmethod
    def of(cls, transport: asyncio.BaseTransport) -> Self:
        """As the handshake has shown it."""
        host, port, *_ = transport.get_extra_info("peername") or ("?", 0)
        session = transport.get_extra_info("ssl_object")
        certificate = transport.get_extra_info("peercert") or {}
        return cls(
            f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}",
            tuple(value for _, value in certificate.get("subjectAltName", ())),
            session is None or session.selected_alpn_protocol() == "h2",
        )

    def __str__(self) -> str:
        return " ".join([self.address, *self.names[:1]])[:MOST_CHARS]


class RefusedCalls:
    """Hears how every call ends. counters: where they are counted."""

    def __init__(self, log: Log, counters: Counter[str]) -> None:
        self._log, self.counters = log, counters

    def look_at(self, method: str, caller: Caller, reply: Message) -> None:
        """A reply may say that nothing was done."""
        if not getattr(reply, "accepted", True):
            self._note(REFUSED, method, f"{method.lower()}_refused", getattr(reply, "why", ""), caller)

    def ended(self, method: str, caller: Caller, error: CallError) -> None:
        """The call was given up."""
        counter = UNAUTHORISED if error.code is Code.PERMISSION_DENIED else REFUSED
        self._note(counter, method, error.code.name.lower(), error.details, caller)

    def _note(self, counter: str, method: str, code: str, why: str, caller: Caller) -> None:
        self.counters[counter] += 1
        text = f"{method[:MOST_CHARS]} of {caller} was refused ({code}): {why[:MOST_CHARS]}"
        self._log.say("call_refused", text, WARNING, f"call_refused.{code}", code=code, who=str(caller))
