"""The listening data socket, and the accepted connections until and while they have a role."""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator

from node_agent.host.log import WARNING
from node_agent.host.trace_ring import MOST_TAKEN_OVER, Inherited, Row, peer_key
from node_agent.link.clock_offset import Question
from node_agent.link.fence import AWAY_NS
from node_agent.link.limits import LinkError
from node_agent.link.outcomes import Outcome, OutcomeLog
from node_agent.link.receiver import Inbox, Receiver
from node_agent.ports import READABLE, WRITABLE, Listener
from node_agent.runtime.links.roles import Context, NodeRole, Role, write_clock
from node_agent.runtime.links.sink_role import SinkRole
from node_agent.runtime.links.socket_connection import Connection, Security
from node_agent.runtime.links.source_role import SourceRole
from node_agent.wire import frames
from node_agent.wire.frames import Batch
from protos.records import RECORD_BYTES

MOST_CONNECTIONS = 256
MOST_STRANGERS = 32  # of them that have not said hello
MOST_ANSWERS = 256  # incarnations of sources whose outcomes are remembered
MOST_OUTCOMES = 65_536  # of all of them; those that came first are forgotten
DRAIN_TUPLES = 256  # and other frames, that one drain takes in, of all connections; what is beyond waits for the next
HELLO_NS = 5_000_000_000  # a connection that has not said hello by then is closed


class Acceptor:
    """Accepts, greets, and lets roles acknowledge after a drain."""

    def __init__(
        self, context: Context, listener: Listener, security: Security | None = None,
        taken_over: Iterable[Inherited] = (),
    ) -> None:  # fmt: skip
        """taken_over: with its lineage epoch each, what earlier incarnations promised."""
        self.context, self._security = context, security
        self._ring = context.shared.facts.ring
        self._promised: dict[tuple[int, int], list[Outcome]] = {}
        remembered = 0
        for epoch, (peer, boot, link_seq, seq) in taken_over:
            self._promised.setdefault((peer, boot), []).append((link_seq, epoch, seq, None))
            remembered += 1
        self._forgotten = remembered >= MOST_TAKEN_OVER  # what was promised before these
        self._listener = listener
        self._inbox = Inbox()
        self._outcome_logs: OrderedDict[tuple[str, int], OutcomeLog] = OrderedDict()
        self._accepted: dict[Accepted, None] = {}  # not by descriptor: that of a closed one is given out again
        self._strangers: dict[Accepted, None] = {}  # of them, those that have not said hello, the oldest first
        self.sinks: dict[str, list[SinkRole]] = {}  # by output
        self.touched: dict[Accepted, None] = {}  # to acknowledge
        self._closed: list[Role] = []  # of connections that closed when tuples had come: these are to be promised
        self.waiting: dict[Accepted, None] = {}  # whose tuples this drain has no more room for
        self.room = DRAIN_TUPLES
        self.unflushed = False  # sinks have more to write, and may
        context.shared.network.add(listener.fileno(), self)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens: host, port."""
        return self._listener.address

    def on_ready(self, at_ns: int, mask: int) -> None:
        """Accept one: the listener stays ready while there are more."""
        try:
            end, address = self._listener.accept()
        except OSError:
            return
        security, host = self._security, address[0]
        if security is None:
            connection = Connection(self.context.shared, end, _Unowned())
        else:
            connection = security.accepted(end, host)
        accepted = Accepted(self, connection, at_ns, host)
        connection.give_to(accepted)
        self._accepted[accepted] = self._strangers[accepted] = None
        self._make_room(accepted)

    def _make_room(self, newcomer: "Accepted") -> None:
        """Many that connect and say no hello must not lock out those who would, whether they come from one address or
        from one each. Of the addresses that have most of them, known ones left aside, one goes: the oldest that is
        silent; else the newcomer, if it is from there, too; else the oldest."""
        if len(self._accepted) <= MOST_CONNECTIONS and len(self._strangers) <= MOST_STRANGERS:
            return
        known = self._security.known if self._security is not None else ()
        strangers = [each for each in self._strangers if each.host not in known] or list(self._strangers)
        counts = Counter(each.host for each in strangers)
        most = max(counts.values())
        there = [each for each in strangers if counts[each.host] == most and each is not newcomer]
        goes = next((each for each in there if each.connection.silent), None)
        if goes is None:
            goes = newcomer if counts[newcomer.host] == most else there[0]
        if len(self._accepted) > MOST_CONNECTIONS:
            goes.refuse(LinkError("connections_full", f"{MOST_CONNECTIONS} connections are open here"))
        else:
            goes.refuse(LinkError("strangers_crowded", "too many connect here and have not said hello"))

    def role(self, accepted: "Accepted", hello: frames.Hello) -> Role:
        """Reads the peer's Hello and returns its role. Raises LinkError if the role is not served."""
        self._strangers.pop(accepted, None)
        accepted.connection.authorise(hello.peer)
        kind = hello.peer.partition(":")[0]
        if kind == "sink":
            self._close_others(hello.peer, hello.boot)  # one that was cut off may seem to be there for long
            sink = SinkRole(self.context, accepted.connection, hello)
            self.sinks.setdefault(sink.output_name, []).append(sink)
            return sink
        if kind not in {"node", "source"}:
            raise LinkError("hello_fields", f"{hello.peer!r} is neither node:NAME nor source:NAME nor sink:NAME")
        if kind == "node":
            receiver = self._node(hello)
        else:
            self._close_others(hello.peer, hello.boot)
            receiver = self._inbox.hello(hello.peer, hello.boot, alone=False)
        promised = self._promised.get((peer_key(hello.peer), hello.boot), ())
        self.context.senders += 1
        accepted.counted = True
        if kind == "node":
            receiver.resume(max((link_seq for link_seq, _, _, _ in promised), default=0))
            return NodeRole(self.context, accepted.connection, hello, receiver)
        outcome_log = self._outcome_logs.get((hello.peer, hello.boot))
        if outcome_log is None:
            outcome_log = OutcomeLog()
            outcome_log.recall(promised, self._forgotten)
        self._keep(hello.peer, hello.boot, outcome_log)
        return SourceRole(self.context, accepted.connection, hello, receiver, outcome_log)

    def _node(self, hello: frames.Hello) -> Receiver:
        """The receiver of a node's incarnation that is let in; its name has no other connection then."""
        at_ns = self.context.shared.now_ns()
        present = any(
            other.role.name == hello.peer and (other.role.clock.same or at_ns - other.heard_ns < AWAY_NS)
            for other in self._accepted
            if other.role is not None
        )
        receiver = self._inbox.hello(hello.peer, hello.boot, True, hello.incarnation, at_ns, present)
        self._close_others(hello.peer)
        if receiver.began_anew:
            receiver.began_anew = False
            message = (
                f"{hello.peer} counts its starts anew: the one of before, which had counted on, has long been gone"
            )
            self.context.shared.note("peers_began_anew", message, peer=hello.peer)
        return receiver

    def _keep(self, peer: str, boot: int, outcome_log: OutcomeLog) -> None:
        self._outcome_logs[peer, boot] = outcome_log
        self._outcome_logs.move_to_end((peer, boot))
        held = sum(len(each) for each in self._outcome_logs.values())
        while len(self._outcome_logs) > MOST_ANSWERS or (held > MOST_OUTCOMES and len(self._outcome_logs) > 1):
            held -= len(self._outcome_logs.popitem(last=False)[1])

    def _close_others(self, peer: str, boot: int | None = None) -> None:
        """Earlier connections of that peer, or only of that incarnation."""
        for other in list(self._accepted):
            role = other.role
            if role is not None and role.name == peer and boot in {None, role.boot}:
                other.close()

    def forget(self, accepted: "Accepted") -> None:
        """The connection is closed."""
        if accepted not in self._accepted:
            return
        del self._accepted[accepted]
        accepted.connection.reader.assembly.drop()
        self._strangers.pop(accepted, None)
        self.waiting.pop(accepted, None)
        accepted.rest = None
        if accepted.counted:
            self.context.senders -= 1
        role = accepted.role
        if role is not None and accepted in self.touched:
            self._closed.append(role)
        self.touched.pop(accepted, None)
        if isinstance(role, SinkRole):
            sinks = self.sinks[role.output_name]
            sinks.remove(role)
            role.close()
            if not sinks:
                del self.sinks[role.output_name]
        elif isinstance(role, SourceRole):  # many may have come and gone while it was connected
            self._inbox.keep(role.name, role.boot, role.receiver)
            self._keep(role.name, role.boot, role.outcome_log)
        elif isinstance(role, NodeRole):
            self._inbox.gone(role.name, role.boot, self.context.shared.now_ns())

    def begin_drain(self) -> None:
        """Call before the sockets are looked at: there is room again, first for what had to wait."""
        self.room = DRAIN_TUPLES
        if self.waiting:
            waiting, self.waiting = self.waiting, {}
            for accepted in waiting:
                accepted.on_ready(self.context.shared.now_ns(), READABLE)

    def promise_acknowledgements(self) -> bool:
        """Before the facts of what has arrived are published: in shared memory, where it outlives this process.

        If it is killed, the next incarnation says that these tuples have been taken over: none is admitted again, nor
        sent again to hang its operator once more. Acknowledgements can leave later. False: there are too many, or some
        are refused, acknowledge at once.
        """
        taken: list[Row] = []
        promised = True
        for role in self._closed:
            taken += role.taken_over()
        self._closed.clear()
        for accepted in self.touched:
            if accepted.role is not None:
                taken += accepted.role.taken_over()
                promised = promised and accepted.role.promised
        written = self.context.shared.facts.written_records
        return self._ring.promise_acknowledgements(taken, written * RECORD_BYTES) and promised

    def flush(self, at_ns: int) -> None:
        """What was taken over is acknowledged, results go to sinks. Call when the facts have been published."""
        if self.touched:
            for accepted in list(self.touched):
                if accepted.role is None or accepted.role.acknowledge(drained=True):
                    self.touched.pop(accepted, None)
                accepted.close_if_gone()
        self.unflushed = False
        for sinks in self.sinks.values():
            for sink in sinks:
                if sink.flush(at_ns):
                    self.unflushed = True

    def tick(self, at_ns: int) -> None:
        """Probes that are due, credit that has changed, connections that never spoke."""
        for accepted in list(self._accepted):
            accepted.tick(at_ns)

    def suspended(self, at_ns: int) -> None:
        """This machine was suspended: what was known of others' clocks holds no more."""
        for clock in self.context.clocks.values():
            clock.suspended(at_ns)

    def close_all(self) -> None:
        """The runtime ends."""
        for accepted in list(self._accepted):
            accepted.connection.flush()
            accepted.close()


class Accepted:
    """One accepted connection."""

    def __init__(self, acceptor: Acceptor, connection: Connection, at_ns: int, host: str) -> None:
        self.acceptor, self.connection, self.since_ns, self.host = acceptor, connection, at_ns, host
        self.role: Role | None = None
        self.counted = False  # among the senders
        self.era = 0  # of the peer's clock, as told
        self.rest: Iterator[frames.Frame] | None = None  # of what was read, and has to wait
        self.heard_ns = at_ns

    def on_ready(self, at_ns: int, mask: int) -> None:
        """Read what has come; write what was kept."""
        connection = self.connection
        if mask & WRITABLE:
            connection.flush()
        if mask & ~WRITABLE and not connection.closed:
            try:
                self._read()
            except LinkError as error:
                self.refuse(error)
                return
        self.close_if_gone()

    def _read(self) -> None:
        """Hand in what has come, as far as this drain has room; the rest waits, and nothing more is read until then."""
        acceptor = self.acceptor
        if acceptor.room <= 0:
            acceptor.waiting[self] = None
            return
        rest = self.rest
        if rest is None:
            rest = self.connection.read()
        at_ns = acceptor.context.shared.instant()  # after it was read, else it could be younger than its own arrival
        self.heard_ns = at_ns
        for frame in rest:
            self._on_frame(at_ns, frame)
            if acceptor.room <= 0:
                self.rest = rest
                acceptor.waiting[self] = None
                return
        self.rest = None

    def _on_frame(self, at_ns: int, frame: frames.Frame) -> None:
        role = self.role
        if role is not None and isinstance(frame, Batch):
            self.acceptor.touched[self] = None
            self.acceptor.room -= len(frame.tuples)
            role.on_batch(at_ns, frame)
            return
        self.acceptor.room -= 1
        if role is None:
            if isinstance(frame, frames.Refused):
                raise LinkError("frame_order", "refused before hello")
            assert isinstance(frame, frames.Hello)  # the reader lets nothing else come first
            self.role = self.acceptor.role(self, frame)
            self.era = self.role.clock.era
            self._ask(at_ns)
        elif isinstance(frame, frames.Probe):
            self._on_probe(at_ns, frame)

    def _on_probe(self, at_ns: int, probe: frames.Probe) -> None:
        role, shared = self.role, self.acceptor.context.shared
        assert role is not None
        if not (probe.t1_ns or probe.t2_ns):
            self.connection.write(frames.encode_probe(probe._replace(t1_ns=at_ns, t2_ns=at_ns)))
            return
        offset = role.clock.on_answer(at_ns, Question(probe.id, probe.t0_ns), probe.t1_ns, probe.t2_ns)
        if offset is not None:
            if isinstance(role, NodeRole):
                write_clock(self.acceptor.context, role.node, at_ns, offset)
            if offset.era != self.era:
                self.era = offset.era
                message = (
                    f"the clocks here and of {role.name} moved against each other: one was suspended; era {self.era}"
                )
                shared.log.say("clock_era", message, WARNING, f"clock.{role.name}", peer=role.name, era=self.era)
        else:
            shared.counters["probes_unmatched"] += 1

    def _ask(self, at_ns: int) -> None:
        assert self.role is not None
        question = self.role.clock.ask(at_ns)
        if question is not None:
            self.connection.write(frames.encode_probe(frames.Probe(question.id, question.t0_ns)))

    def tick(self, at_ns: int) -> None:
        """See Acceptor.tick."""
        if self.role is None:
            if at_ns - self.since_ns > HELLO_NS:
                self.refuse(LinkError("hello_late", "no hello came"))
        else:
            if self.connection.reader.assembly.still(at_ns):
                self.refuse(LinkError("chunk_late", "a tuple that came in chunks has not come to its end"))
                return
            self._ask(at_ns)
            self.role.acknowledge(drained=False)
            self.close_if_gone()

    def refuse(self, error: LinkError) -> None:
        """Close this connection, and nothing else."""
        self.connection.refuse(error)
        self.acceptor.forget(self)

    def close_if_gone(self) -> None:
        """The other end has closed, or a write has failed."""
        if self.connection.closed:
            self.acceptor.forget(self)

    def close(self) -> None:
        """Close."""
        self.connection.close()
        self.acceptor.forget(self)


class _Unowned:
    def on_ready(self, at_ns: int, mask: int) -> None:
        """Replaced before the next wait."""
