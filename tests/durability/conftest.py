"""What tests of durability share."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.durability.forgetful_disk import Disk


@pytest.fixture
def powered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Disk]]:
    """A disk of `tmp_path/agent` as that is now, in place of the one before."""
    root, disks = tmp_path / "agent", list[Disk]()
    root.mkdir()

    def begin() -> Disk:
        places = disks[-1].places if disks else count()
        disks.append(Disk(root, places=places))
        disks[-1].begin()
        monkeypatch.setattr("os.fsync", disks[-1].fsync)
        return disks[-1]

    yield begin
    for disk in disks:
        disk.close()
