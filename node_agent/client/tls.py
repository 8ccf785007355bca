"""A client's connection under TLS: the handshake, who answers, and then the same as without."""

import contextlib
import socket
from pathlib import Path

from node_agent.client.connection import SECOND, Connection, Greet, LostError, NotTrustedError, PlainTransport
from node_agent.host.clock import now_ns
from node_agent.tls import identity
from node_agent.tls.names import holder, node_name, node_of
from node_agent.tls.session import PlainError, Session, SessionError
from node_agent.wire import frames

_CHUNK = 1 << 16
_LEAST_S = 0.001


def greeter(folder: Path) -> Greet:
    """For `dial`, with the identity in that folder, which is checked and read now. Raises TlsError."""
    identity.load(folder)
    context = identity.client_context(folder, named=False)  # which node answers is seen when it has

    def greet(sock: socket.socket, hello: frames.Hello, until_ns: int) -> Connection:
        session = Session(context, folder, server_side=False)
        _shake(sock, session, until_ns)
        transport = SealedTransport(PlainTransport(sock), session)
        connection = Connection(transport, hello, until_ns)
        transport.greeted = True
        place = connection.hello.peer.removeprefix("node:")
        if node_of(place) != node_name(session.name):
            why = f"it says that it is node {place}, and its certificate is of {holder(session.name)}"
            raise NotTrustedError("other_node", why, subject=place)
        return connection

    return greet


class SealedTransport:
    """A transport under TLS, after the handshake. greeted: the agent has said Hello. Raises NotTrustedError where the
    agent does not trust this end, which it says before it greets."""

    def __init__(self, plain: PlainTransport, session: Session) -> None:
        self._plain, self._session = plain, session
        self.greeted = False

    def send(self, data: bytes, until_ns: int) -> None:
        """Raises LostError."""
        try:
            sealed = self._session.seal(data)
        except SessionError as error:
            raise LostError(str(error)) from None
        try:
            self._plain.send(sealed, until_ns)
        except LostError:
            while self.receive(until_ns):  # what it has against this end may have come before it closed
                pass
            raise

    def receive(self, until_ns: int) -> bytes:
        """What has come, in plain."""
        data = self._plain.receive(until_ns)
        if not data:
            return b""
        try:
            plain = self._session.open(data)
        except SessionError as error:
            if self.greeted:
                raise LostError(str(error)) from None
            raise NotTrustedError(error.code, str(error), subject=error.subject) from None
        if self._session.ended and not plain:
            raise LostError("the agent closed the connection")
        return plain

    def close(self) -> None:
        """Close the socket; twice is allowed."""
        self._plain.close()


def _shake(sock: socket.socket, session: Session, until_ns: int) -> None:
    """Raises NotTrustedError, LostError."""
    data = b""
    try:
        while True:
            sock.settimeout(max((until_ns - now_ns()) / SECOND, _LEAST_S))
            sock.sendall(session.handshake(data))
            if session.done:
                break
            data = sock.recv(_CHUNK)
            if now_ns() >= until_ns:
                raise LostError("no end of the TLS handshake")
            if not data:
                raise LostError("the agent closed the connection during the TLS handshake")
    except PlainError:
        mend = "leave the identity out, or start the agent with --tls"
        raise NotTrustedError("not_tls", "it does not speak TLS", mend) from None
    except SessionError as error:
        if error.alert:
            with contextlib.suppress(OSError):  # it may be gone: why this end would not have it is what matters
                sock.sendall(error.alert)
        raise NotTrustedError(error.code, str(error), subject=error.subject) from None
    except TimeoutError:
        raise LostError("no answer to the TLS handshake") from None
    except OSError as error:
        raise LostError(str(error)) from error
    if not node_name(session.name):
        raise NotTrustedError("no_node", f"its certificate is of {holder(session.name)}, not of a node")
