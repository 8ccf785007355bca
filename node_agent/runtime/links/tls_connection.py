"""A connection under TLS, and how handshakes share the scheduling thread.

A handshake is a millisecond of arithmetic that cannot be cut (ten on a small machine), it is asked for by strangers,
and it happens on the thread that schedules. So handshakes wait in a line: one step at a time (each end takes two), then
a pause that leaves at least nine tenths of the thread to everything else. Peers that this node dials, and addresses
from which a peer has been let in before, come first.
"""

from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from node_agent.link.limits import LinkError
from node_agent.ports import GONE, READABLE, WRITABLE, Handler, Stream
from node_agent.runtime.context import Shared
from node_agent.runtime.links.socket_connection import READ_BYTES, Connection
from node_agent.tls import identity
from node_agent.tls.names import certificate_name, why_not
from node_agent.tls.session import PlainError, Session, SessionError
from node_agent.wire import frames

SHARE = 10  # a handshake's step is followed by a pause, together so many times as long as the step
MOST_PAUSE_NS = 500_000_000
MOST_KNOWN = 256  # addresses from which a peer was let in
SPEAKS_TLS = "this agent speaks TLS: give the client an identity (tls=DIR, --tls DIR), start other agents with --tls"
NO_TLS = "it does not speak TLS: start that agent with --tls"


class TlsSecurity:
    """The identity of this agent as contexts, and the line of handshakes. Raises TlsError."""

    def __init__(self, shared: Shared, folder: Path) -> None:
        self.shared, self.folder = shared, folder
        self._server = identity.server_context(folder)
        self._client = identity.client_context(folder, named=True)
        self._first: OrderedDict[TlsConnection, None] = OrderedDict()  # dialled, or from a known address
        self._others: OrderedDict[TlsConnection, None] = OrderedDict()
        self._next_ns = 0  # no step before that
        self.known: OrderedDict[str, None] = OrderedDict()

    def accepted(self, end: Stream, host: str) -> "TlsConnection":
        """A peer has connected from there."""
        session = Session(self._server, self.folder, server_side=True)
        return TlsConnection(self, end, session, host, whom=host)

    def dialled(self, end: Stream, host: str, place: str, owner: Handler) -> "TlsConnection":
        """This node connects to that place. Raises ValueError for a name that no certificate can have."""
        session = Session(self._client, self.folder, server_side=False, name=certificate_name(place))
        connection = TlsConnection(self, end, session, host, whom=f"node {place} at {host}", connecting=True)
        connection.give_to(owner)
        return connection

    def may(self, connection: "TlsConnection", at_ns: int) -> bool:
        """Whether it is its turn; else it waits in the line."""
        if at_ns >= self._next_ns and (connection.permitted or not (self._first or self._others)):
            return True
        connection.permitted = False
        line = self._first if connection.connecting or connection.host in self.known else self._others
        line[connection] = None
        return False

    def record_step(self, took_ns: int) -> None:
        """A step was taken. took_ns: of the processor, as an interruption says nothing about the next step."""
        self._next_ns = self.shared.now_ns() + min(took_ns * (SHARE - 1), MOST_PAUSE_NS)

    def tick(self, at_ns: int) -> None:
        """The next in the line may go on, in the next drain."""
        line = self._first or self._others
        if line and at_ns >= self._next_ns:
            line.popitem(last=False)[0].permit()

    @property
    def due_ns(self) -> int:
        """When to call `tick`."""
        return self._next_ns if self._first or self._others else 1 << 62

    def leave(self, connection: "TlsConnection") -> None:
        """It is closed, or has had its turn."""
        self._first.pop(connection, None)
        self._others.pop(connection, None)

    def let_in(self, host: str) -> None:
        """A peer from there has shown its identity, and is authorised."""
        self.known[host] = None
        self.known.move_to_end(host)
        while len(self.known) > MOST_KNOWN:
            self.known.popitem(last=False)


class TlsConnection(Connection):
    """Drives its handshake as the poller's handler, then hands over to `owner`, which is called with

    WRITABLE when it may write its Hello (dialled), READABLE where more has come already, 0 when it was closed.
    """

    __slots__ = ("connecting", "early", "host", "owner", "permitted", "security", "session", "silent", "whom")

    def __init__(
        self,
        security: TlsSecurity,
        end: Stream,
        session: Session,
        host: str,
        whom: str,
        connecting: bool = False,
    ) -> None:
        """whom: the other end, for people."""
        self.security, self.session, self.connecting = security, session, connecting
        self.host, self.whom = host, whom
        self.owner: Handler | None = None
        self.permitted = False  # its turn has come
        self.early = False  # data came with the end of the handshake
        self.silent = True  # waits for the other end, not for its turn
        super().__init__(security.shared, end, self, connecting)

    def give_to(self, owner: Handler) -> None:
        """That handler is told of what follows the handshake."""
        self.owner = owner

    # -- the handshake

    def on_ready(self, at_ns: int, mask: int) -> None:
        """While the handshake lasts."""
        if mask & WRITABLE and not mask & GONE:
            self._writable()
        elif mask & GONE and not self.silent:
            self._fail("it went away during the handshake")  # this mask cannot be switched off: it would be told again
        elif self.security.may(self, at_ns):
            self._step()
        else:
            self.silent = False
            self.shared.network.change(self.descriptor, 0)

    def permit(self) -> None:
        """Its turn: the poller tells again what has come."""
        self.permitted, self.silent = True, True
        self.shared.network.change(self.descriptor, READABLE)

    def _writable(self) -> None:
        if self.unwritten:
            self.flush()
        else:
            self.shared.network.change(self.descriptor, READABLE)
            Connection.write(self, self.session.handshake(b""))
        self._go_on()

    def _step(self) -> None:
        self.permitted = False
        try:
            data = self.stream.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._fail("" if self.connecting else "it went away during the handshake")
            return
        began_ns = self.shared.clock.cpu_ns()
        try:
            try:
                answer = self.session.handshake(data)
            finally:
                self.security.record_step(self.shared.clock.cpu_ns() - began_ns)
        except SessionError as error:
            self._refuse(error)
        else:
            Connection.write(self, answer)
            self._go_on()

    def _go_on(self) -> None:
        """Hand over where the handshake is done and all of it has left."""
        if self.closed:
            self._fail("")
        elif self.session.done and not self.unwritten:
            assert self.owner is not None
            self.security.leave(self)
            self.shared.network.give(self.descriptor, self.owner)
            self.silent = False
            if self.connecting:
                self.owner.on_ready(self.shared.now_ns(), WRITABLE)
            if self.session.waiting and not self.closed:
                self.early = True
                self.owner.on_ready(self.shared.now_ns(), READABLE)

    def _refuse(self, error: SessionError) -> None:
        if isinstance(error, PlainError) and not self.connecting:
            Connection.write(self, frames.encode_refused(SPEAKS_TLS))
        elif error.alert:
            Connection.write(self, error.alert)
        self.shared.counters["connections_refused"] += 1
        why = NO_TLS if isinstance(error, PlainError) and self.connecting else str(error)
        self.shared.note(error.counter, f"no connection with {self.whom}: {why}")
        self.finish()
        self._fail("")

    def _fail(self, why: str) -> None:
        if why:
            self.shared.note("tls_unfinished", f"no connection with {self.whom}: {why}")
        self.close()
        if self.owner is not None:
            self.owner.on_ready(self.shared.now_ns(), 0)

    # -- after it

    def read(self) -> Iterator[frames.Frame]:
        """The frames that have arrived."""
        if self.early:
            self.early, data = False, b""
        else:
            try:
                data = self.stream.recv(READ_BYTES)
            except BlockingIOError:
                return iter(())
            except OSError:
                data = b""
            if not data:
                self.close()
                return iter(())
        plain = self.session.open(data)
        if self.session.ended:
            self.close()
        return self.reader.feed(plain) if plain else iter(())

    def write(self, data: bytes) -> None:
        """Encrypt and send; what the socket does not take is kept encrypted. Closes where nothing can be sent."""
        if self.closed:
            return
        try:
            sealed = self.session.seal(data)
        except SessionError as error:
            self.shared.note(error.counter, f"a connection with {self.whom} was closed: {error}")
            self.close()
        else:
            Connection.write(self, sealed)

    def authorise(self, peer: str) -> None:
        """By its certificate. Raises LinkError."""
        if why := why_not(peer, self.session.name):
            raise LinkError("not_authorised", why)
        self.security.let_in(self.host)

    def refuse(self, error: LinkError) -> None:
        """As with a plain connection; a peer that has not shown a certificate is told nothing."""
        if self.session.done:
            super().refuse(error)
            return
        self.shared.note(error.counter, f"a connection with {self.whom} was closed: {error}")
        self.shared.counters["connections_refused"] += 1
        self.close()

    def close(self) -> None:
        """Close; once."""
        if not self.closed:
            self.security.leave(self)
        super().close()
