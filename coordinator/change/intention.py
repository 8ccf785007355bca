"""A change that was begun, on disk until the plan files are in step with what runs.

It is written before the first agent is asked to commit. Where the coordinator is killed before it has put the files in
order, the next command finds it, asks the agents which of the two plans they have committed, and does the rest. A
command that is still at it holds a lock, which ends with its process.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from coordinator import durable_files
from coordinator.errors import BadInputError, unwritable
from coordinator.fleet.deployment import deployed_plans
from coordinator.plan import plan_file
from protos import agent_pb2
from protos.plan_document import Plan

MOST_BYTES = 65_536


@dataclass(frozen=True)
class Intention:
    """The plan `before`, of the file `path`, gives way to `after`, which is to be in `target`. Hashes, and paths."""

    path: str
    target: str
    before: str
    after: str

    @property
    def waiting(self) -> Path:
        """Where the next plan is until it is decided. A plan that ran before and is kept has another name: it may be
        the same plan, as where a query is removed that was added, and stays where this is given up."""
        return deployed_plans.waiting(Path(self.target), self.after)

    @property
    def old(self) -> Path:
        """Where the plan of before is kept."""
        path = Path(self.path)
        return path if self.target != self.path else deployed_plans.beside(path, self.before)

    def put_in_step(self) -> None:
        """The next plan takes its place, and the one before is kept; what is done already is not done again."""
        path, target = Path(self.path), Path(self.target)
        if self.old != path and plan_file.read(path).hash == self.before:
            plan_file.write(plan_file.read(path), self.old)
        if self.waiting.exists():
            durable_files.rename(self.waiting, target)


def file_of(path: Path) -> Path:
    """Where the intention to change the plan of that file is."""
    return path.with_name(f"{path.name}.changing")


@dataclass
class Begun:
    """A change that is being made. left: what another command, which was killed meanwhile, has left of its own."""

    left: Intention | None
    decided: bool = False


@contextmanager
def written(intention: Intention) -> Iterator[Begun]:
    """While the change is made. It stays where this process is killed. Unless this change is decided, what a killed
    command has left stays, for the next command to settle. Raises BadInputError where it cannot be written, as where
    another command changes the same plan."""
    path = file_of(Path(intention.path))
    with ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("a+", encoding="utf-8"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            begun = Begun(_parsed(file))
            _write(intention, file)
            durable_files.sync(path.parent)
        except OSError as error:
            raise unwritable(path, error) from error
        try:
            yield begun
        finally:
            if begun.left is not None and not begun.decided:
                _write(begun.left, file)
            elif not intention.waiting.exists():  # else it was decided and not put in step, as on a full disk
                path.unlink(missing_ok=True)
                if begun.left is not None:  # nobody decides that one any more
                    begun.left.waiting.unlink(missing_ok=True)


def _write(intention: Intention, file: TextIO) -> None:
    file.truncate(0)
    json.dump(asdict(intention), file)
    file.flush()
    os.fsync(file.fileno())


def _parsed(file: TextIO) -> Intention | None:
    """None where there is nothing, or it was cut off while it was written."""
    file.seek(0)
    try:
        values = json.loads(file.read(MOST_BYTES))
        return Intention(*(str(values[key]) for key in ("path", "target", "before", "after")))
    except (ValueError, KeyError, TypeError):
        return None


def left(path: Path) -> Intention | None:
    """What a command that was killed has left of a change of that plan file; None: nothing, or it is still at it."""
    try:
        with file_of(path).open(encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return _parsed(file)
    except OSError:
        return None


def forget(path: Path) -> None:
    """All of it is done."""
    file_of(path).unlink(missing_ok=True)


def settle(path: Path, statuses: deployed_plans.Statuses) -> Plan | None:
    """Put the files in step with what a killed command has left. Returns the plan that they have now where it had been
    decided; what was meant stays until `forget`, since nodes may not have heard of it. None: there was nothing, or
    nothing had been decided."""
    found = left(path)
    if found is None:
        return None
    wanted = bytes.fromhex(found.after)
    states = {each.state for status in statuses.values() for each in status.plans if each.hash == wanted}
    if not states & {agent_pb2.COMMITTED, agent_pb2.DRAINING}:
        if agent_pb2.PREPARED not in states:  # else it is given up, or repeated, first
            found.waiting.unlink(missing_ok=True)
            forget(path)
        return None
    found.put_in_step()
    try:
        return plan_file.read(Path(found.target))
    except BadInputError:
        forget(path)
        return None
