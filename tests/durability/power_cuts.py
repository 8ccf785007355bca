"""A simulated machine whose power goes before every step that its disk takes, on a copy of it each time."""

from collections.abc import Callable
from pathlib import Path

from node_agent.control.plan_store import PlanStore
from node_agent.control.spool.spool_files import SpoolFiles
from node_agent.host.files.state_dir import StateDir
from node_agent.host.trace_ring import STATE, Ring, RingFacts
from node_agent.virtual.random_draws import Draws, key
from node_agent.virtual.simulated.simulated_disk import SimulatedDisk
from node_agent.virtual.simulated.simulated_rings import SimulatedRings
from node_agent.virtual.simulated.simulated_runtime import Silent
from node_agent.virtual.simulated.unsynced import Fate
from protos.records import LOAD, NO_REF, Header, unpack_records
from protos.segments import records_in

ROOT = Path("/var/lib/agent")
FATES = [(content, entries) for content in (Fate.LOST, Fate.KEPT) for entries in (Fate.LOST, Fate.KEPT)]
FATES += [(Fate.KEPT, Fate.REORDERED)] * 2 + [(Fate.TORN, Fate.KEPT), (Fate.REORDERED, Fate.KEPT)]
Fates = tuple[Fate | None, Fate | None] | None  # None: the power stays, and the processes are killed
DRAWN = 4  # cuts with a fate of its own for each file and folder


class PowerCuts:
    """disk: the machine's. check: called with each copy of it that has lost its power; count: how many there were."""

    def __init__(self, check: Callable[[SimulatedDisk], None], drawn: int = DRAWN) -> None:
        self.check, self.disk = check, SimulatedDisk(Draws(1))
        self.fates: list[Fates] = [*FATES, *[(None, None)] * drawn]
        self.count = 0
        self.attach()

    def attach(self) -> None:
        """To the disk."""
        self.disk.before_step = self._before

    def cut(self, where: str = "at the end") -> None:
        """Now."""
        for number, fates in enumerate(self.fates):
            copy = self.disk.copy(Draws(key(self.count, number)))
            if fates is not None:
                copy.lose_power(*fates)
            try:
                self.check(copy)
            except BaseException as error:
                error.add_note(f"the power went {where} (cut {self.count}.{number}, {fates!r})")
                error.add_note(f"left: {[str(path) for path in files(copy, Path('/'))]}")
                raise
        self.count += 1

    def _before(self, step: str, path: Path) -> None:
        self.cut(f"before {step} {path}")


def files(disk: SimulatedDisk, folder: Path) -> list[Path]:
    """All of them, in it and below."""
    found = []
    for each in disk.entries(folder):
        try:
            found += files(disk, each)
        except NotADirectoryError:
            found.append(each)
    return found


def copied(rings: SimulatedRings) -> SimulatedRings:
    """As they are when an agent is killed."""
    other = SimulatedRings(rings.capacity_records)
    for path in rings.paths():
        ring = rings.open(path)
        other.create(ring.header).memory[:] = ring.memory[:]
    return other


class Node:
    """An agent without its processes, as it starts: state directory, count of starts, spool, plans."""

    def __init__(self, disk: SimulatedDisk, rings: SimulatedRings | None = None) -> None:
        self.disk, self.rings = disk, rings or SimulatedRings(64)
        self.state = StateDir(ROOT, disk, self.rings)
        self.state.starts.random_bytes = bytes
        self.state.lock()
        self.rings.mark_abandoned()
        headers = self.state.starts.headers
        self.spool = SpoolFiles(self.state.spool, self.rings, headers=headers, disk=disk, log=Silent("a", "control"))
        self.spool.drain()
        self.plans = PlanStore(self.state.plans, cores=2, epochs_in_spool=self.spool.plans, disk=disk)
        self.durable = self.plans.load()
        self.written: dict[int, int] = {}  # by incarnation: what its runtime has published
        self.started: int | None = None  # the incarnation that runs, or has ended

    @property
    def problems(self) -> list[str]:
        return [*self.state.starts.problems, *self.plans.problems]

    def start(self) -> Ring:
        """A runtime, as the supervisor does."""
        count = self.state.starts.count + 1
        header = Header("a", 0, 100 + count, "clock", 50, count, 2, 0, count)
        self.ring = self.rings.create(header)
        try:
            self.state.starts.add(header)
        except OSError:
            self.rings.remove(self.ring.path)
            raise
        self.facts = RingFacts(self.ring)
        self.written[header.boot], self.started = 0, header.boot
        return self.ring

    def write(self, count: int) -> None:
        """By the runtime, into its ring; control drains it."""
        boot = self.ring.header.boot
        for at in range(0, count, 32):
            for number in range(at, min(at + 32, count)):
                self.facts.write(LOAD, 0, NO_REF, 0, 0, self.written[boot] + number - at)
            self.facts.publish()
            self.written[boot] += min(32, count - at)
            self.spool.drain()
        self.spool.drain()

    def end(self, state: int) -> None:
        """Of the runtime."""
        self.ring.cells[STATE] = state
        self.spool.drain()

    def sync(self) -> None:
        """As control does once a second."""
        self.disk.sync(self.spool.unsynced())

    def numbers(self, boot: int) -> list[int]:
        """Of an incarnation's records that are here."""
        folder = self.state.spool / f"{boot:016x}"
        if not self.disk.exists(folder):
            return []
        paths = [path for path in self.disk.entries(folder) if path.suffix == ".rec"]
        found = b"".join(records_in(self.disk.read(path)) for path in paths)
        return [each.seq for each in unpack_records(found) if each.kind == LOAD]
