"""The agent's state directory: what survives a restart, and where each file is.

    lock           held by the supervisor as long as the agent runs
    starts         how often a runtime was started here, and once more in starts.copy (starts.py)
    plans/         plan files and their states (plan_files.py); written by control
    spool/         drained trace records until the coordinator holds them; control's
    connectors.json  passwords and certificates for other systems; the owner's, if any (connectors/credentials.py)
    recordings/      the files that plans may read and write; its owner makes it, if any (connectors/recordings)
    rings/         the trace rings, where there is no memory file system; else they are there (ring_directory.py)

Each of these files has a checksum. One that is damaged is set aside as *.damaged, and the agent goes on with the rest.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from node_agent.host.files.reserve import Reserve
from node_agent.host.files.starts import Starts
from node_agent.host.files.state_lock import LOCK_FILE, OPTION, StateError, StateLock
from node_agent.host.ring_directory import RingDirectory
from node_agent.host.system_disk import SYSTEM_DISK
from node_agent.host.trace_ring import Ring
from node_agent.ports import Disk, Rings
from protos.records import HEADER_BYTES, unpack_header

__all__ = ["StateDir", "StateError"]


class StateDir:
    """Paths below one state directory. Creating it makes the directories, nothing else."""

    rings: Rings[Ring]

    def __init__(self, root: Path, disk: Disk = SYSTEM_DISK, rings: Rings[Ring] | None = None) -> None:
        """disk, rings: of a simulated machine; by default this computer's. There no other agent can be, and nothing is
        locked."""
        live = disk is SYSTEM_DISK
        self.root = root = root.resolve() if live else root
        self.disk = disk
        self.plans, self.spool = root / "plans", root / "spool"
        self.reserve = Reserve(self.plans, disk)
        self.rings, self.starts = rings or RingDirectory(root), Starts(root, self.reserve, disk)
        self._lock = StateLock(root) if live else None
        try:
            for directory in (root, self.plans, self.spool):
                disk.make_folder(directory)
        except OSError as error:
            why = "it is a file" if isinstance(error, FileExistsError) else error.strerror
            text = f"cannot use the state directory {root}: {why}"
            raise StateError("not_usable", text, f"give another with {OPTION}", subject=OPTION) from None

    def lock(self) -> None:
        """Take the lock for the life of this process. Raises StateError where another agent holds it, OSError where the
        disk or the memory is full."""
        used = self._lock.take() if self._lock is not None else self.disk.exists(self._marked)
        if not used:  # the folders may be new, and are to be there as long as what is synced in them
            self._sync_folders()
        self.rings.hold()
        self.starts.load(max(self._starts_told(), default=0), not used)
        if self._lock is not None:
            self._lock.write_owner(self.reserve)
        else:
            self.reserve.write(lambda: self.disk.write(self._marked, b"0\n", 0))

    @property
    def _marked(self) -> Path:
        return self.root / LOCK_FILE

    def _sync_folders(self) -> None:
        for folder in (self.root, *self.root.parents):
            with contextlib.suppress(OSError):  # one that this user may not read is not new
                self.disk.sync((folder,))

    def _starts_told(self) -> Iterator[int]:
        """The start counts in the headers of traces that are here, in the spool and in memory."""
        for path in self._spooled():
            with contextlib.suppress(OSError, ValueError):
                yield unpack_header(self.disk.read(path, HEADER_BYTES)).starts
        for path in self.rings.paths():
            with contextlib.suppress(OSError, ValueError):
                ring = self.rings.open(path)
                yield ring.header.starts
                ring.close()

    def _spooled(self) -> Iterator[Path]:
        for folder in self.disk.entries(self.spool):
            with contextlib.suppress(OSError):
                yield from self.disk.entries(folder)

    def unlock(self) -> None:
        """For a child that was forked with the locks: drop its copies, so that only the supervisor's life counts."""
        self.rings.release()
        if self._lock is not None:
            self._lock.release()
