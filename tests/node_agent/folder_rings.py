"""Trace rings in a folder of their own, without an agent around them."""

from pathlib import Path

from node_agent.host.trace_ring import Ring


class FolderRings:
    """The part of `ports.Rings` that the spool uses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def paths(self) -> list[Path]:
        return sorted(self.folder.glob("*.ring"))

    def open(self, path: Path) -> Ring:
        return Ring.open(path)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)


NO_RINGS = FolderRings(Path("/nowhere"))
