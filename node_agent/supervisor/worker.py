"""One core's runtime as the supervisor sees it: what outlives its incarnations, and the incarnation that runs."""

from node_agent.host import ipc
from node_agent.host.channel_end import ChannelEnd
from node_agent.host.files.place_names import place_name
from node_agent.host.settings import Settings
from node_agent.host.trace_ring import BEAT, STATE, Inherited, Ring, inherited
from node_agent.supervisor.child_process import SupervisedProcess
from node_agent.supervisor.process_host import DataListener, ProcessHost
from node_agent.supervisor.watchdog import hung, write_hung
from protos import records


class Worker:
    """A listening data socket, the runtime process behind it, its trace ring and what it has promised."""

    def __init__(self, settings: Settings, core: int, host: ProcessHost) -> None:
        self.core, self.name, self._host = core, place_name(settings.name, core), host
        address, port = settings.data
        self.settings = settings  # those of the place once all places listen
        self.child = SupervisedProcess("runtime" if settings.cores == 1 else f"runtime of {self.name}")
        self.listener: DataListener = host.listen(address, port + core if port else 0, near=settings.cores > 1)
        self.ring: Ring | None = None
        self.count = 0  # of the agent's runtime starts, at the start of this incarnation
        self.rt = False
        self.taken_over: list[Inherited] = []  # by dead incarnations: none of it is to be taken again
        self.pending: tuple[ipc.RuntimeStarted, ChannelEnd] | None = None  # control is not there to be told

    @property
    def address(self) -> tuple[str, int]:
        """Where the data socket listens."""
        return self.listener.address

    def begin(self) -> Ring:
        """The number and the ring of a new incarnation. Raises OSError where there is no room for them."""
        state = self.settings.state
        header = records.Header(
            node=self.name, node_index=records.NO_REF, boot=self._host.new_boot(), clock=self.settings.clock,
            drift_ppm=self.settings.drift_ppm, started_ns=self._host.now_ns(), wall_ns=self._host.wall_ns(),
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

    def kill_if_hung(self, at_ns: int) -> str:
        """Kill an operator that hangs, and write its LOST. Returns what happened, or nothing."""
        ring = self.ring
        if ring is None or self.child.process is None:
            return ""
        running = hung(ring, at_ns)
        if running is None:
            return ""
        self.child.kill()
        ring.note_dropped()
        write_hung(ring, running, self._host.now_ns())
        return f"operator hung: unit {running.unit} was killed after {running.hang_ns / 1e9:g} s"

    def due_ns(self) -> int:
        """When the runtime is to be heard of at the latest: it says so itself. An instance that runs is the hang cell's
        to judge, and a runtime that loads what is on its disk takes its time."""
        ring = self.ring
        if ring is None or not self.child.ready:
            return 1 << 62
        running = ring.running_instance()
        return max(ring.cells[BEAT], running.start_ns + running.hang_ns if running is not None else 0)

    def mark_crashed(self) -> None:
        """The runtime is gone; where it has not closed its ring itself, it crashed, and what it took over is kept."""
        ring = self.ring
        if ring is not None and ring.cells[STATE] == 0:
            self.taken_over = inherited(self.taken_over, self.count & 0xFFFF, ring)
            ring.mark_crashed()

    def tell(self, control: SupervisedProcess, message: ipc.RuntimeStarted, end: ChannelEnd) -> None:
        """To control, now or when it is there again; the latest counts."""
        if not control.say(message, end.fileno()):
            if self.pending is not None:
                self.pending[1].close()
            self.pending = (message, end)
            return
        end.close()

    def tell_of_control(self, control: SupervisedProcess) -> None:
        """Control is new: a channel between it and the runtime that is there already."""
        pending, self.pending = self.pending, None
        if pending is not None:
            self.tell(control, *pending)
        elif (message := self.started()) is not None:
            runtime_end, control_end = self._host.pair()
            self.child.say(ipc.NewChannel(), runtime_end.fileno())
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
