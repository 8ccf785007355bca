"""Trace rings in the memory of a simulated machine: they outlive its processes and are gone with the power."""

import errno
import mmap
from collections.abc import Sequence
from pathlib import Path

from node_agent.host.ring_directory import MOST_RINGS, RING_SUFFIX
from node_agent.host.trace_ring import CAPACITY_RECORDS, Ring
from protos.records import Header, pack_header

MEMORY = Path("/memory")


class SimulatedRings:
    """`ports.Rings` of one simulated machine with one agent. full: there is no memory for another ring."""

    parent = MEMORY

    def __init__(self, capacity_records: int = CAPACITY_RECORDS) -> None:
        """capacity_records: of each ring."""
        self.capacity_records, self.full = capacity_records, False
        self._memory: dict[Path, mmap.mmap] = {}  # the oldest first

    def lose_power(self) -> None:
        """Of all rings nothing is left."""
        self._memory.clear()

    def hold(self) -> None:
        """There is one agent."""

    def release(self) -> None:
        """As `hold`."""

    def create(self, header: Header) -> Ring:
        """A new ring. Raises FileExistsError, OSError where there is no memory."""
        path = MEMORY / f"{header.boot:016x}{RING_SUFFIX}"
        if path in self._memory:
            raise OSError(errno.EEXIST, "File exists", str(path))
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        memory = self._memory[path] = mmap.mmap(-1, Ring.size_bytes(self.capacity_records))
        packed = pack_header(header)
        memory[: len(packed)] = packed
        return Ring(path, memory, lent=True)

    def open(self, path: Path) -> Ring:
        """A ring that is there. Raises FileNotFoundError."""
        if path not in self._memory:
            raise OSError(errno.ENOENT, "No such file or directory", str(path))
        return Ring(path, self._memory[path], lent=True)

    def remove(self, path: Path) -> None:
        """It is not found any more; a process that has it open keeps it."""
        self._memory.pop(path, None)

    def paths(self) -> list[Path]:
        """Sorted."""
        return sorted(self._memory)

    def make_room(self, live: Sequence[Path] = ()) -> int:
        """The oldest go where they are too many. How many went."""
        paths = [path for path in self._memory if path not in live]
        excess = paths[: max(0, len(paths) + 1 - MOST_RINGS)]
        for path in excess:
            self.remove(path)
        return len(excess)

    def mark_abandoned(self) -> int:
        """Rings that still say `live` are those of an agent that was killed. How many there were."""
        return sum([self.open(path).mark_crashed() for path in self.paths()])

    def tidy(self) -> None:
        """Nothing but rings is here."""

    def sweep(self) -> int:
        """No other agent has been here."""
        return 0
