"""Hunts one planted bug: seed after seed, until one fails that holds without the bug."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.simulation.planted.bug import Bug
from tests.simulation.planted.planting import Ran, plant, seeds, uproot


@dataclass(frozen=True, slots=True)
class Found:
    """by: the seed that found it; None: none did. tried: how many seeds were run; seconds: of CPU time, all of them."""

    bug: Bug
    by: Ran | None
    tried: int
    seconds: float

    @property
    def told(self) -> str:
        """One line."""
        if self.by is None:
            return f"{self.bug.name}: not found by {self.tried} runs, {self.seconds:.0f} s"
        check = self.by.problems[0].strip().splitlines()[-1]
        return f"{self.bug.name}: seed {self.by.seed} of {self.by.campaign}, {self.seconds:.0f} s: {check}"


def hunt(
    clean: Path, folder: Path, bug: Bug, campaigns: Sequence[str], numbers: range, kinds: Collection[str] = ()
) -> Found:
    """clean, folder: two copies of the product; the bug is planted in the second one, and is gone again afterwards."""
    plant(folder, bug)
    try:
        return _hunt(clean, folder, bug, campaigns, numbers, kinds)
    finally:
        uproot(folder, bug)


def _hunt(
    clean: Path, folder: Path, bug: Bug, campaigns: Sequence[str], numbers: range, kinds: Collection[str]
) -> Found:
    tried, spent = 0, 0.0
    while numbers:
        last = None
        for ran in seeds(folder, campaigns, numbers, kinds):
            tried, spent, last = tried + 1, spent + ran.seconds, ran
        if last is None or not last.problems:
            break
        if not any(each.problems for each in seeds(clean, [last.campaign], [last.seed])):
            return Found(bug, last, tried, spent)
        numbers = range(last.seed + 1, numbers.stop)  # that one fails without the bug as well
    return Found(bug, None, tried, spent)
