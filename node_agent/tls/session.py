"""One TLS connection without its socket: bytes of the wire in, bytes for the wire out.

The caller owns the socket, so plain and TLS connections share all that reads, writes, waits and keeps what a socket
does not take. What is kept there is encrypted already: nothing has to be offered to OpenSSL twice. Reading through
memory takes one system call for all records that have come; OpenSSL on a socket takes two for each.
"""

import ssl
from pathlib import Path

from node_agent.error_codes import Code
from node_agent.link.limits import LinkError
from node_agent.tls.diagnosis import alert_text, not_verified
from node_agent.tls.identity import name_in
from node_agent.tls.names import told

RECORD_BYTES = 1 << 14  # plain bytes of a record at most
# Of the other end's half of a handshake; with identities of `coordinator certs` it has 1.1 KB. A list of certificates
# is read, and joined to a chain, before anybody knows whose it is: 100 KB took 90 ms.
HANDSHAKE_BYTES = 1 << 12
TLS_TYPES = range(0x14, 0x18)  # the first byte of all TLS


class SessionError(LinkError):
    """The handshake failed, or bytes came that are none of this session. `code`: of what is wrong, of which `counter`
    counts several; `subject`: the name it is about; `alert`: to be sent before closing."""

    def __init__(self, counter: str, code: Code, why: str, alert: bytes = b"", subject: str = "") -> None:
        super().__init__(counter, why)
        self.code, self.subject, self.alert = code, subject, alert


class PlainError(SessionError):
    """The other end does not speak TLS."""


class Session:
    """The machine. `name`: of the other end's certificate, when `done`."""

    __slots__ = (
        "_broken", "_context", "_expected", "_folder", "_from", "_heard", "_object", "_server_side", "_to", "done",
        "ended", "name",
    )  # fmt: skip

    def __init__(self, context: ssl.SSLContext, folder: Path, server_side: bool, name: str | None = None) -> None:
        """folder: of this end's identity, for messages; name: that the other end's certificate must have. Raises
        ValueError for a name that none can have."""
        self._context, self._server_side = context, server_side
        self._folder, self._expected = folder, name
        self._heard, self._broken = 0, False  # bytes of the handshake; the session
        self._from, self._to = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object: ssl.SSLObject | None = None
        if not server_side:
            self._begin()
        self.done = self.ended = False
        self.name = ""

    def handshake(self, data: bytes) -> bytes:
        """Take what came (nothing: begin) and return what is to be sent. Raises SessionError."""
        began = self._object or self._begin()
        if data and not self._heard and data[0] not in TLS_TYPES:
            raise PlainError("tls_plain", "not_tls", "the other end does not speak TLS")
        rest = data[HANDSHAKE_BYTES - self._heard :]
        self._heard += self._from.write(data[: HANDSHAKE_BYTES - self._heard])
        try:
            began.do_handshake()
        except ssl.SSLWantReadError:
            if rest or self._heard == HANDSHAKE_BYTES:
                why = (
                    f"its handshake has more than {HANDSHAKE_BYTES} bytes: show a certificate with few others above it"
                )
                raise SessionError("tls_refused", "too_large", why) from None
            return self._to.read()
        except ssl.SSLError as error:
            raise SessionError("tls_refused", *self._why(error), self._to.read()) from None
        try:
            self.name = name_in(began.getpeercert())
        except UnicodeDecodeError:  # some name in it is no text: it is nobody's
            self.name = ""
        if self._expected not in {None, self.name}:  # OpenSSL compares without regard to case
            why = f"its certificate is of {told(self.name)}, not of {self._expected}"
            raise SessionError("tls_refused", "other_name", why, subject=self.name)
        self.done = True
        self._from.write(rest)
        return self._to.read()

    def _begin(self) -> ssl.SSLObject:
        """Begins with the first byte where it accepts: a connection that stays silent takes no memory of OpenSSL."""
        name = None if self._server_side else self._expected
        self._object = self._context.wrap_bio(self._from, self._to, self._server_side, name)
        return self._object

    @property
    def waiting(self) -> bool:
        """Whether more came with the end of the handshake."""
        return self._from.pending > 0

    def open(self, data: bytes) -> bytes:
        """What the bytes mean; empty: no whole record yet, or `ended`. Raises SessionError."""
        assert self._object is not None
        source, read = self._from, self._object.read
        source.write(data)
        parts = []
        try:
            while source.pending:
                part = read(RECORD_BYTES)
                if not part:
                    self.ended = True
                    break
                parts.append(part)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.ended = True
        except ssl.SSLError as error:
            self._broken = True
            raise SessionError("tls_broken", *self._why(error)) from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def seal(self, data: bytes | bytearray) -> bytes:
        """The bytes for the wire; a record at a time, else memory of the largest frame stays with the connection.

        Once the session is broken: what says so to the other end, and nothing else. Raises SessionError where the other
        end has sent part of a message of TLS, a new key for instance: OpenSSL writes nothing before it has the rest.
        """
        if self._broken:
            return self._to.read()
        assert self._object is not None
        try:
            if len(data) <= RECORD_BYTES:
                self._object.write(data)
                return self._to.read()
            parts, view = [], memoryview(data)
            for at in range(0, len(view), RECORD_BYTES):
                self._object.write(view[at : at + RECORD_BYTES])
                parts.append(self._to.read())
            return b"".join(parts)
        except ssl.SSLError:
            self._broken = True
            why = "the other end has begun a message of TLS and not finished it"
            raise SessionError("tls_broken", "cut_off", why, self._to.read()) from None

    def _why(self, error: ssl.SSLError) -> tuple[Code, str]:
        if getattr(error, "verify_code", 0):
            code, *said = not_verified(error, self._folder)
            return code, f"the other end's certificate {'; '.join(said)}"
        alert = alert_text(error, str(self._folder / "cert.pem"))
        if alert:
            return "refused", f"the other end refuses this one's certificate: {alert}"
        if error.reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
            return "no_certificate", "the other end has shown no certificate"
        return (
            "not_tls13",
            f"what came is no TLS 1.3 of this cluster ({(error.reason or str(error)).lower().replace('_', ' ')})",
        )
