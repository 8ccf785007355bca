"""Replaces a file so that a crash leaves the old or the new one: the steps that real and simulated disks share.

The new content is on the disk before it has the name, and the name is there on return. What a crash leaves over has a
name of its own, which the next attempt takes again: a file of the state directory has one writer.
"""

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

TEMPORARY = ".new"


class Steps(Protocol):
    """What replacing is made of."""

    def write_new(self, path: Path, data: bytes) -> None:
        """A file of this content, in place of one that may be there. It is not synced."""

    def sync(self, paths: Iterable[Path]) -> None:
        """As `ports.Disk`."""

    def rename(self, old: Path, new: Path) -> None:
        """As `ports.Disk`."""

    def remove(self, path: Path) -> None:
        """As `ports.Disk`."""


def replace(disk: Steps, path: Path, data: bytes) -> None:
    """Give a file this content, durably. Raises OSError; the old content is there then."""
    temporary = path.with_name(f".{path.name}{TEMPORARY}")
    try:
        disk.write_new(temporary, data)
        disk.sync((temporary,))
        disk.rename(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            disk.remove(temporary)
        raise
    disk.sync((path.parent,))
