"""Counts the starts of a runtime, and keeps the last ones: no lineage may ever repeat.

The count, modulo 65536, is the epoch of all lineages of an incarnation; source, epoch and seq name a tuple for ever. So
it is kept twice, in the files `starts` and `starts.copy`, each with a checksum, and once more in the header of every
incarnation's trace, of which the spool always has the last ones. The highest that is sound anywhere counts.

Assumed: not all of these are lost at once. Where both files are, and only the spool's headers are left, the count goes
on MARGIN above them, since the last start may have left none. Where nothing is left, in a state directory that has been
used, it goes on at random from 32768 to 49151: far from where a count begins, and unlike another such time but for one
in 16384. A state directory that never was used begins at 1; one that was removed is a new node's.

The files also have the headers of the last starts, so that an incarnation's header can be damaged and its folder in the
spool can be missing without anybody taking the rest for everything.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from node_agent.host.files.durable_files import checked, set_aside, with_check
from node_agent.host.files.reserve import Reserve
from node_agent.host.system_disk import SYSTEM_DISK
from node_agent.ports import Disk
from protos.records import Header, pack_header, unpack_header

FILES = ("starts", "starts.copy")
MOST_HEADERS = 32
MARGIN = 64
FRESH = 0x8000


@dataclass(slots=True)
class Starts:
    """The count, and the packed headers of the last starts, by incarnation. problems: a sentence per damaged file;
    reserve: the room that is kept for it on a full disk."""

    root: Path
    reserve: Reserve
    disk: Disk = SYSTEM_DISK
    random_bytes: Callable[[int], bytes] = os.urandom
    count: int = 0
    headers: dict[int, bytes] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def load(self, evidence: int, new: bool) -> None:
        """What the files have, and at least `evidence`, the highest count elsewhere. new: the state directory has never
        been used. Raises OSError where the files cannot be written again."""
        sound = [found for name in FILES if (found := self._read(self.root / name, new)) is not None]
        for count, headers in sound:
            if count >= self.count:
                self.count, self.headers = count, headers
        if not sound and not new:
            fresh = FRESH | int.from_bytes(self.random_bytes(2), "big") >> 2
            self.count = evidence + MARGIN if evidence else fresh
            self.problems.append(
                f"{self.root / FILES[0]}: no copy of the count of starts is left; on from {self.count}"
            )
        elif evidence > self.count:
            if evidence > self.count + 1:  # an agent that is killed may have made a ring for a start not counted yet
                self.problems.append(
                    f"{self.root / FILES[0]} has start {self.count}, the spool start {evidence}: on from there"
                )
            self.count = evidence
        if len(sound) < len(FILES) or self.problems:
            self._write()

    def add(self, header: Header) -> None:
        """Count a start, durably, before it admits anything. header: with the next count. Raises OSError."""
        self.count, before = header.starts, self.headers  # a number that may be on the disk is not given out again
        kept = list(before.items())[1 - MOST_HEADERS :]
        self.headers = {**dict(kept), header.boot: pack_header(header)}
        try:
            self._write()
        except OSError:
            self.headers = before  # it has not started, and nobody is to look for its trace
            raise

    def _read(self, path: Path, new: bool) -> tuple[int, dict[int, bytes]] | None:
        try:
            return _parse(self.disk.read(path))
        except FileNotFoundError:
            if not new:
                self.problems.append(f"{path} is missing")
        except (OSError, ValueError) as error:
            self.problems.append(f"{path} is damaged ({error}); it was set aside as {set_aside(path, self.disk)}")
        return None

    def _write(self) -> None:
        values = {"starts": self.count, "headers": [each.hex() for each in self.headers.values()]}
        self.reserve.write(lambda: self._replace(with_check(values)))

    def _replace(self, data: bytes) -> None:
        for name in FILES:
            self.disk.replace(self.root / name, data)


def _parse(data: bytes) -> tuple[int, dict[int, bytes]]:
    """Raises ValueError."""
    values = checked(data)
    headers = [bytes.fromhex(each) for each in values["headers"]]
    return int(values["starts"]), {unpack_header(each).boot: each for each in headers}
