"""Hosts that are joined by wires, and streams over them: what the runtime knows of TCP, in virtual time.

A stream keeps its order and loses nothing: a loss is a delay here, as it is for those who use TCP. What sockets show of
trouble is there: refusals, resets, silence, half-open connections to a host that lost its power, full buffers.
"""

import errno
from collections import deque
from collections.abc import Callable
from math import ceil
from typing import Protocol

from node_agent.ports import FAILED, HUNG_UP, READABLE, WRITABLE, Handler
from node_agent.virtual.random_draws import Draws
from node_agent.virtual.simulated.virtual_time import Process, VirtualTime

MOST_EVENTS = 64  # streams served in one drain
WINDOW_BYTES = 1 << 18  # that are under way or unread
AGAIN_NS = 200_000_000  # after a loss, until a segment is sent again
MOST_LOSSES = 6  # of one segment in a row
LATE_NS = 1_000_000_000  # after a cut has healed, until everything is sent again at the latest

_SYN, _ACCEPTED, _DATA, _FINISHED, _RESET = range(5)


class Way:
    """From one host to another. latency_ns, jitter_ns: of a segment, and at most so much more. loss: its share.
    passing: what becomes of the bytes that a connection of that number puts on it."""

    def __init__(self, time: VirtualTime, draws: Draws, latency_ns: int, jitter_ns: int = 0) -> None:
        self._time, self._draws = time, draws
        self.latency_ns, self.jitter_ns, self.loss = latency_ns, jitter_ns, 0.0
        self.passing: Callable[[int, bytes], bytes] | None = None
        self._cut = 0
        self._healed_ns = 0
        self._waiting: list[_Pipe] = []

    @property
    def cut_off(self) -> bool:
        """Whether nothing passes."""
        return self._cut > 0

    def cut(self) -> None:
        """Nothing passes, until as many calls of `heal`."""
        self._cut += 1

    def heal(self) -> None:
        """What could not pass is sent again, a while later."""
        self._cut -= 1
        if not self._cut:
            self._healed_ns = self._time.now_ns
            waiting, self._waiting = self._waiting, []
            for pipe in waiting:
                pipe.retry(self._time.now_ns + self._draws.below(LATE_NS))

    def arrival_ns(self) -> int:
        """Of a segment that is sent now."""
        ns = self.latency_ns + (self._draws.below(self.jitter_ns) if self.jitter_ns else 0)
        losses = 0
        while self.loss and losses < MOST_LOSSES and self._draws.share() < self.loss:
            ns += AGAIN_NS << losses
            losses += 1
        return self._time.now_ns + ns

    def hold(self, pipe: "_Pipe") -> None:
        """What it carries waits for the end of the cut."""
        self._waiting.append(pipe)


class _Pipe:
    """One direction of a connection: segments in order."""

    def __init__(self, time: VirtualTime, way: Way, deliver: Callable[[int, bytes], None]) -> None:
        self._time, self._way, self._deliver = time, way, deliver
        self._segments: deque[tuple[int, int, bytes]] = deque()
        self._last_ns = 0
        self._held = self._forgotten = False

    def forget(self) -> None:
        """Nothing that it carries arrives any more."""
        self._forgotten = True

    def passing(self, descriptor: int, data: bytes) -> bytes:
        """What its way makes of these bytes."""
        return data if self._way.passing is None else self._way.passing(descriptor, data)

    def put(self, kind: int, data: bytes = b"") -> None:
        self._last_ns = max(self._last_ns, self._way.arrival_ns())
        self._segments.append((self._last_ns, kind, data))
        if not self._held:
            self._time.at(self._last_ns, self._pump)

    def retry(self, at_ns: int) -> None:
        self._held = False
        self._last_ns = max(self._last_ns, at_ns)
        self._segments = deque((max(at_ns, due_ns), kind, data) for due_ns, kind, data in self._segments)
        for due_ns, _, _ in self._segments:
            self._time.at(due_ns, self._pump)

    def _pump(self) -> None:
        if self._held or not self._segments or self._segments[0][0] > self._time.now_ns:
            return
        if self._way.cut_off:
            self._held = True
            self._way.hold(self)
            return
        _, kind, data = self._segments.popleft()
        if not self._forgotten:
            self._deliver(kind, data)


class Wires:
    """The hosts by name, and the ways between each two of them."""

    def __init__(self, time: VirtualTime, draws: Draws, latency_ns: int = 100_000, jitter_ns: int = 50_000) -> None:
        """latency_ns, jitter_ns: of every way, unless it is changed. Within a host there is next to none."""
        self.time, self.draws = time, draws
        self._latency_ns, self._jitter_ns = latency_ns, jitter_ns
        self.hosts: dict[str, SimulatedHost] = {}
        self._ways: dict[tuple[str, str], Way] = {}
        self._streams: dict[SimulatedStream, None] = {}
        self._descriptors = 2

    def way(self, from_: str, to: str) -> Way:
        """From one host to another."""
        way = self._ways.get((from_, to))
        if way is None:
            latency_ns, jitter_ns = (10_000, 0) if from_ == to else (self._latency_ns, self._jitter_ns)
            way = self._ways[from_, to] = Way(self.time, self.draws, latency_ns, jitter_ns)
        return way

    def reset(self, from_: str, to: str) -> int:
        """End every connection between the two hosts, as a firewall does that forgets them. How many there were."""
        found = [each for each in self._streams if {each.host.name, each.far} == {from_, to}]
        for stream in found:
            stream.on_segment(_RESET, b"")
        return len(found)

    def forget(self, from_: str, to: str) -> int:
        """As a firewall that forgets every connection between the two hosts and tells neither: what they carry does not
        arrive any more. How many ends there were."""
        found = [each for each in self._streams if {each.host.name, each.far} == {from_, to}]
        for stream in found:
            stream.forget()
        return len(found)

    def streams_of(self, host: "SimulatedHost") -> list["SimulatedStream"]:
        """Its ends of connections."""
        return [each for each in self._streams if each.host is host]

    def descriptor(self) -> int:
        """A number that no stream has had."""
        self._descriptors += 1
        return self._descriptors

    def opened(self, stream: "SimulatedStream") -> None:
        """Keep track of it."""
        self._streams[stream] = None

    def closed(self, stream: "SimulatedStream") -> None:
        """It is no more."""
        self._streams.pop(stream, None)


class SimulatedHost:
    """A machine on the wires: its listeners outlive the processes that accept, and nothing outlives its power."""

    def __init__(self, wires: Wires, name: str) -> None:
        self.wires, self.name = wires, name
        self.on = True
        self._listeners: dict[int, SimulatedListener] = {}
        self._on_send: Callable[[], None] | None = None
        wires.hosts[name] = self

    def listen(self, port: int) -> "SimulatedListener":
        """Accept at that port from now on."""
        listener = self._listeners[port] = SimulatedListener(self, port)
        return listener

    def listener(self, port: int) -> "SimulatedListener | None":
        """Who accepts there; None: nobody, or the host is off."""
        return self._listeners.get(port) if self.on else None

    def forget(self, port: int) -> None:
        """Nobody accepts there any more."""
        self._listeners.pop(port, None)

    def on_send(self, call: Callable[[], None] | None) -> None:
        """Call this, in the process that sends, whenever something was sent from here; None: nothing."""
        self._on_send = call

    def sent(self) -> None:
        """A stream of this host has sent something."""
        if self._on_send is not None:
            self._on_send()

    def power_off(self) -> None:
        """Every stream is gone, and nobody is told."""
        self.on = False
        self._listeners.clear()
        for stream in self.wires.streams_of(self):
            stream.orphan()

    def power_on(self) -> None:
        """It can listen again."""
        self.on = True


class SimulatedListener:
    """`ports.Listener`. Connections wait in it while no process accepts."""

    def __init__(self, host: SimulatedHost, port: int) -> None:
        self._host, self._port = host, port
        self._backlog: deque[SimulatedStream] = deque()
        self.network: SimulatedNetwork | None = None  # of the process that accepts
        self._descriptor = host.wires.descriptor()

    def fileno(self) -> int:
        """As of a stream."""
        return self._descriptor

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return self._host.name, self._port

    @property
    def ready(self) -> int:
        """READABLE while a connection waits."""
        return READABLE if self._backlog else 0

    def accept(self) -> tuple["SimulatedStream", tuple[str, int]]:
        """The connection that has waited longest. Raises BlockingIOError."""
        if not self._backlog:
            raise BlockingIOError(errno.EAGAIN, "no connection waits")
        stream = self._backlog.popleft()
        assert self.network is not None
        self.network.adopt(stream)
        return stream, (stream.far, self._port)

    def close(self) -> None:
        """Its process listens no more: those that wait are turned away."""
        self._host.forget(self._port)
        while self._backlog:
            self._backlog.popleft().close()

    def queue(self, stream: "SimulatedStream") -> None:
        """A connection stands."""
        self._backlog.append(stream)
        if self.network is not None:
            self.network.notify(self._descriptor)


class SimulatedStream:
    """`ports.Stream`. far: the host at the other end."""

    def __init__(self, host: SimulatedHost, far: str) -> None:
        self.host, self.far = host, far
        self._descriptor = host.wires.descriptor()
        self._other: SimulatedStream | None = None
        self._out: _Pipe | None = None
        self._unread = bytearray()
        self._under_way = 0  # bytes that the other end has not read
        self._connected = self._finished = self._ended = self._reset = self._closed = self._orphan = False
        self.network: SimulatedNetwork | None = None
        host.wires.opened(self)

    def fileno(self) -> int:
        """Its number."""
        return self._descriptor

    def dial(self, port: int) -> None:
        """Begin to connect."""
        wires = self.host.wires
        there = _Knock(self, port)
        self._out = _Pipe(wires.time, wires.way(self.host.name, self.far), there.deliver)
        self._out.put(_SYN)

    def join(self, other: "SimulatedStream", out: _Pipe) -> None:
        """The connection stands at this end."""
        self._other, self._out, self._connected = other, out, True

    @property
    def ready(self) -> int:
        """What of READABLE, WRITABLE, FAILED and HUNG_UP holds now."""
        if self._reset:
            return READABLE | WRITABLE | FAILED | HUNG_UP
        mask = READABLE if self._unread or self._ended else 0
        if self._connected and self._under_way < WINDOW_BYTES:
            mask |= WRITABLE
        return mask

    def recv(self, most: int, /) -> bytes:
        """What has come."""
        if self._reset:
            raise ConnectionResetError(errno.ECONNRESET, "reset")
        if not self._unread:
            if self._ended:
                return b""
            raise BlockingIOError(errno.EAGAIN, "nothing has come")
        data = bytes(self._unread[:most])
        del self._unread[:most]
        if self._other is not None:
            self._other.taken(len(data))
        return data

    def send(self, data: bytes | bytearray, /) -> int:
        """How much was taken."""
        if self._reset or self._finished:
            raise BrokenPipeError(errno.EPIPE, "the other end is gone")
        room = WINDOW_BYTES - self._under_way
        if not self._connected or room <= 0:
            raise BlockingIOError(errno.EAGAIN, "the buffer is full")
        taken = bytes(data[:room])
        self._under_way += len(taken)
        assert self._out is not None
        self._out.put(_DATA, self._out.passing(self._descriptor, taken))
        self.host.sent()
        return len(taken)

    def taken(self, count: int) -> None:
        """The other end has read so much."""
        full = self._under_way >= WINDOW_BYTES
        self._under_way -= count
        if full:
            self._notify()

    def shutdown(self, how: int, /) -> None:
        """Nothing more is written."""
        if self._connected and not self._finished and not self._reset:
            self._finished = True
            assert self._out is not None
            self._out.put(_FINISHED)

    def close(self) -> None:
        """What was sent still arrives; what was not read makes it a reset."""
        if self._closed:
            return
        if self._connected and not self._reset and not self._orphan:
            assert self._out is not None
            if self._unread:
                self._out.put(_RESET)
            elif not self._finished:
                self._out.put(_FINISHED)
        self._closed = True
        self.host.wires.closed(self)
        if self.network is not None:
            self.network.dropped(self._descriptor)

    def forget(self) -> None:
        """Nothing that is sent from this end arrives any more."""
        if self._out is not None:
            self._out.forget()

    def orphan(self) -> None:
        """Its host lost its power: a sender hears of that when the host is on again."""
        self._orphan = self._closed = True
        self.host.wires.closed(self)

    def on_segment(self, kind: int, data: bytes) -> None:
        """From the other end."""
        if self._orphan or self._closed:
            if kind != _RESET and self.host.on and self._out is not None:
                self._out.put(_RESET)
            return
        if kind == _DATA:
            self._unread += data
        elif kind == _FINISHED:
            self._ended = True
        elif kind == _ACCEPTED:
            self._connected = True
        elif kind == _RESET:
            self._reset = True
            self._unread.clear()
        self._notify()

    def _notify(self) -> None:
        if self.network is not None:
            self.network.notify(self._descriptor)


class _Knock:
    """Where a connection is asked for: at a port of a host, until a process there accepts."""

    def __init__(self, caller: SimulatedStream, port: int) -> None:
        self._caller, self._port = caller, port
        self._inside: SimulatedStream | None = None

    def deliver(self, kind: int, data: bytes) -> None:
        if self._inside is not None:
            self._inside.on_segment(kind, data)
        elif kind == _SYN:
            self._open()

    def _open(self) -> None:
        caller, wires = self._caller, self._caller.host.wires
        host = wires.hosts[caller.far]
        if not host.on:
            return  # silence
        back = _Pipe(wires.time, wires.way(host.name, caller.host.name), caller.on_segment)
        listener = host.listener(self._port)
        if listener is None:
            back.put(_RESET)
            return
        inside = self._inside = SimulatedStream(host, caller.host.name)
        assert caller._out is not None
        inside.join(caller, back)
        caller._other = inside
        back.put(_ACCEPTED)
        listener.queue(inside)


class Waited(Protocol):
    """What a process holds and waits for, and what its death closes."""

    network: "SimulatedNetwork | None"

    def fileno(self) -> int:
        """Its number."""

    @property
    def ready(self) -> int:
        """What it is ready for now."""

    def close(self) -> None:
        """The process is dead, or wants it no more."""


class SimulatedNetwork:
    """`ports.Network` of one process on a host."""

    def __init__(self, host: SimulatedHost, now: Callable[[], int], wait_until: Callable[[int], None]) -> None:
        """now: the process's clock. wait_until: sleep until that clock shows it, or `process` is woken."""
        self._host, self._now, self._wait_until = host, now, wait_until
        self.process: Process | None = None
        self._handlers: dict[int, tuple[Handler, int]] = {}
        self._ends: dict[int, Waited | SimulatedListener] = {}
        self._hot: set[int] = set()  # that may be ready

    def dial(self, host: str, port: int) -> SimulatedStream:
        """Begin to connect."""
        stream = SimulatedStream(self._host, host)
        self.adopt(stream)
        stream.dial(port)
        return stream

    def adopt(self, end: "Waited") -> None:
        """It belongs to this process."""
        end.network = self
        self._ends[end.fileno()] = end

    def listen(self, listener: SimulatedListener) -> None:
        """Accept from it."""
        listener.network = self
        self._ends[listener.fileno()] = listener
        self._hot.add(listener.fileno())

    def end(self) -> None:
        """The process is dead: the kernel closes what it had, and keeps its listeners."""
        for end in list(self._ends.values()):
            if isinstance(end, SimulatedListener):
                end.network = None
            else:
                end.close()
        self._handlers.clear()

    def dropped(self, descriptor: int) -> None:
        """It was closed."""
        self._ends.pop(descriptor, None)

    def add(self, descriptor: int, handler: Handler, mask: int = READABLE) -> None:
        """Begin to wait for it."""
        self._handlers[descriptor] = handler, mask
        self._hot.add(descriptor)

    def give(self, descriptor: int, handler: Handler) -> None:
        """Another handler is told from now on."""
        self._handlers[descriptor] = handler, self._handlers[descriptor][1]

    def change(self, descriptor: int, mask: int) -> None:
        """Wait for something else."""
        self._handlers[descriptor] = self._handlers[descriptor][0], mask
        self._hot.add(descriptor)

    def remove(self, descriptor: int) -> None:
        """Call before it is closed."""
        self._handlers.pop(descriptor, None)
        self._hot.discard(descriptor)

    def notify(self, descriptor: int) -> None:
        """Something about it has changed."""
        if descriptor in self._handlers:
            self._hot.add(descriptor)
            if self.process is not None:
                self.process.wake()

    def _ready(self) -> list[tuple[int, int]]:
        found = []
        for descriptor in sorted(self._hot):
            end, entry = self._ends.get(descriptor), self._handlers.get(descriptor)
            mask = end.ready & (entry[1] | FAILED | HUNG_UP) if end is not None and entry is not None else 0
            if mask:
                found.append((descriptor, mask))
            else:
                self._hot.discard(descriptor)
        return found[:MOST_EVENTS]

    def wait(self, seconds: float) -> int:
        """Serve what is ready, after waiting for at most that long."""
        due_ns = self._now() + ceil(seconds * 1e9)
        ready = self._ready()
        while not ready and self._now() < due_ns:
            self._wait_until(due_ns)
            ready = self._ready()
        for descriptor, mask in ready:
            entry = self._handlers.get(descriptor)
            if entry is not None:  # it may have gone while an earlier one of this drain was served
                entry[0].on_ready(self._now(), mask)
        return self._now()
