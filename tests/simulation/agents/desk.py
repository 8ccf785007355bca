"""The folder of somebody who gives commands: plan files on a real file system, and what a killed command leaves there.

A process of a simulation that is killed still runs its `finally`; here its files are put back as they were at that
instant, since a killed command does nothing more.
"""

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from greenlet import GreenletExit

STEPS = frozenset({"open", "os.rename", "os.remove", "os.truncate"})


class Desk:
    """One folder, with all that is below it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self._left = -1  # steps until the command is killed; less than none: it is not
        self._runs: Callable[[], bool] = bool
        self._first = ""
        self._broken_off: dict[Path, bytes] | None = None

    def files(self) -> dict[Path, bytes]:
        """All there is."""
        return {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    def put_back(self, files: dict[Path, bytes]) -> None:
        """As it was. What is as it was is not written: another command may have it open."""
        now = self.files()
        for path in now.keys() - files.keys():
            path.unlink()
        for path, data in files.items():
            if now.get(path) != data:
                path.write_bytes(data)

    def kill_at_step(self, steps: int, runs: Callable[[], bool], first: str = "") -> None:
        """So many steps on its files from now the command is killed, in the middle of what it does. runs: whether it
        is the one that runs now; first: it is counted from the first step on a file whose name ends so."""
        _listen().add(self)
        self._left, self._runs, self._first = steps, runs, first

    def forget_step(self) -> None:
        """It is not killed there any more."""
        self._left = -1
        _listen().discard(self)

    def after_kill(self) -> bool:
        """The command has been killed at its step, and is gone: whether it was."""
        if self._broken_off is None:
            return False
        self.put_back(self._broken_off)
        self._broken_off = None
        return True

    def step(self, path: object) -> None:
        """Before each one. Raises GreenletExit."""
        if not isinstance(path, str | Path) or not Path(path).is_relative_to(self.folder) or not self._runs():
            return
        if not str(path).endswith(self._first):
            return
        self._first = ""
        self._left -= 1
        if self._left < 0:
            self.forget_step()
            self._broken_off = self.files()
            raise GreenletExit


@cache
def _listen() -> set[Desk]:
    """Those that wait for a step. What listens cannot be taken back, so there is one for all."""
    desks: set[Desk] = set()

    def hear(event: str, given: tuple[object, ...]) -> None:
        if desks and event in STEPS:
            for desk in list(desks):
                desk.step(given[0])

    sys.addaudithook(hear)
    return desks
