"""One core's runtime as the supervisor sees it: what outlives its incarnations, and the incarnation that runs."""

import socket
import time

from node_agent.host import ipc
from node_agent.host.clock import new_boot, now_ns
from node_agent.host.settings import Settings, place_name
from node_agent.host.trace_ring import STATE, Inherited, Ring, inherited
from node_agent.supervisor.child_process import Child, StartError
from node_agent.supervisor.watchdog import hung, write_hung
from protos import records

BACKLOG = 128


class Worker:
    """A listening data socket, the runtime process behind it, its trace ring and what it has promised."""

    def __init__(self, settings: Settings, core: int) -> None:
        self.core, self.name = core, place_name(settings.name, core)
        host, port = settings.data
        self.settings = settings  # those of the place once all places listen
        self.child = Child("runtime" if settings.cores == 1 else f"runtime of {self.name}")
        self.listener = _listen(host, port + core if port else 0)
        self.ring: Ring | None = None
        self.count = 0  # of the agent's runtime starts, at the start of this incarnation
        self.rt = False
        self.taken_over: list[Inherited] = []  # by dead incarnations: none of it is to be taken again
        self.pending: tuple[ipc.RuntimeStarted, ipc.Channel] | None = None  # control is not there to be told

    @property
    def address(self) -> tuple[str, int]:
        """Where the data socket listens."""
        host, port = self.listener.getsockname()[:2]
        return host, port

    def begin(self) -> Ring:
        """The number and the ring of a new incarnation. Raises OSError where there is no room for them."""
        state = self.settings.state
        header = records.Header(
            node=self.name, node_index=records.NO_REF, boot=new_boot(), clock=self.settings.clock,
            drift_ppm=self.settings.drift_ppm, started_ns=now_ns(), wall_ns=time.time_ns(),
            starts=state.starts.count + 1,
        )  # fmt: skip
        ring = state.rings.create(header)
        try:
            state.starts.add(header)
        except OSError:
            ring.close()
            state.rings.remove(ring.path)
            raise
        self.ring, self.count = ring, header.starts
        return ring

    def started(self) -> ipc.RuntimeStarted | None:
        """What control is told of the incarnation; None: there is none."""
        if self.ring is None:
            return None
        return ipc.RuntimeStarted(self.ring.header.boot, self.count, str(self.ring.path), self.core)

    def kill_if_hung(self) -> str:
        """Kill an operator that hangs, and write its LOST. Returns what happened, or nothing."""
        ring = self.ring
        if ring is None or not self.child.pid:
            return ""
        running = hung(ring, now_ns())
        if running is None:
            return ""
        self.child.kill()
        ring.note_dropped()
        write_hung(ring, running, now_ns())
        return f"operator hung: unit {running.unit} was killed after {running.hang_ns / 1e9:g} s"

    def mark_crashed(self) -> None:
        """The runtime is gone; where it has not closed its ring itself, it crashed, and what it took over is kept."""
        ring = self.ring
        if ring is not None and ring.cells[STATE] == 0:
            self.taken_over = inherited(self.taken_over, self.count & 0xFFFF, ring)
            ring.note_dropped()
            ring.cells[STATE] = records.STATE_CRASHED

    def tell(self, control: Child, message: ipc.RuntimeStarted, end: ipc.Channel) -> None:
        """To control, now or when it is there again; the latest counts."""
        channel = control.channel
        if not control.pid or channel is None or not channel.send(message, end.fileno()):
            if self.pending is not None:
                self.pending[1].close()
            self.pending = (message, end)
            return
        end.close()

    def tell_of_control(self, control: Child) -> None:
        """Control is new: a channel between it and the runtime that is there already."""
        pending, self.pending = self.pending, None
        if pending is not None:
            self.tell(control, *pending)
        elif (message := self.started()) is not None:
            runtime_end, control_end = ipc.Channel.pair()
            if self.child.pid and self.child.channel is not None:
                self.child.channel.send(ipc.NewChannel(), runtime_end.fileno())
            runtime_end.close()
            self.tell(control, message, control_end)

    def give_up(self, own: bool) -> None:
        """In a child that was just forked: drop the supervisor's ends. own: it is this place's runtime."""
        if self.child.channel is not None:
            self.child.channel.close()
        if self.pending is not None:
            self.pending[1].close()
        if not own:
            self.listener.close()
            if self.ring is not None:  # else its memory would stay after it was drained and removed
                self.ring.close()


def _listen(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        low = ", since ports below 1024 are root's" if isinstance(error, PermissionError) and port < 1024 else ""
        why = f"cannot listen on {host}:{port} for data: {error.strerror}{low}; give another with --data"
        raise StartError(why) from None
    return listener
