"""Copies what a simulation needs into a folder, plants a bug there, and runs seeds in a process of its own."""

import json
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.simulation.planted.bug import Bug
from tests.simulation.planted.run_seeds import has_kind

PROJECT = Path(__file__).parents[3]
PARTS = ("protos", "node_agent", "coordinator", "tests/simulation/agents", "tests/simulation/faults",
         "tests/simulation/planted")  # fmt: skip
CAMPAIGNS = ("faults", "street", "agents", "changing")
MOST_STEPS = 20_000_000  # of one seed: many times what any needs
LIMIT = Bug(
    "limit", "A seed with more steps than that never ends.", "node_agent/virtual/simulated/virtual_time.py",
    "            self.now_ns, _, call = heappop(heap)\n",
    "            self.now_ns, _, call = heappop(heap)\n"
    f'            assert self._count < {MOST_STEPS}, "it never ends"\n',
)  # fmt: skip


class PlantError(Exception):
    """The table and the product differ."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One seed. problems: empty, where it holds; seconds: of CPU time; simulated_ns: that went by."""

    campaign: str
    seed: int
    problems: tuple[str, ...]
    seconds: float = 0.0
    simulated_ns: int = 0


def copy(folder: Path) -> None:
    """The product as it is, but for the limit of steps."""
    for part in PARTS:
        shutil.copytree(PROJECT / part, folder / part, ignore=shutil.ignore_patterns("test_*"))
    plant(folder, LIMIT)


def plant(folder: Path, bug: Bug) -> None:
    """Make the product wrong. Raises PlantError."""
    path = folder / bug.file
    text = path.read_text()
    if text.count(bug.old) != 1:
        raise PlantError(f"{bug.name}: its old text stands {text.count(bug.old)} times in {bug.file}, not once")
    path.write_text(text.replace(bug.old, bug.new))


def uproot(folder: Path, bug: Bug) -> None:
    """As it was."""
    shutil.copy2(PROJECT / bug.file, folder / bug.file)
    if bug.file == LIMIT.file:
        plant(folder, LIMIT)


def seeds(folder: Path, campaigns: Iterable[str], numbers: Iterable[int], kinds: Collection[str] = ()) -> Iterator[Ran]:
    """Runs them one after the other, of each number all campaigns, until nobody asks for more or one fails.

    kinds: only seeds that have a fault of one of these kinds; none: all seeds."""
    wanted = [
        f"{campaign}:{number}"
        for number in numbers
        for campaign in campaigns
        if not kinds or has_kind(campaign, number, kinds)
    ]
    command = [sys.executable, "-m", "tests.simulation.planted.run_seeds", *wanted]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        done = 0
        try:
            for line in process.stdout:
                told = json.loads(line)
                ran = Ran(
                    told["campaign"], told["seed"], tuple(told["problems"]), told["seconds"], told["simulated_ns"]
                )
                done += 1
                yield ran
                if ran.problems:
                    return
        finally:
            process.kill()
            why = process.stderr.read()
        if done < len(wanted):  # it was ended by its own limit, or does not even begin
            campaign, _, number = wanted[done].partition(":")
            yield Ran(campaign, int(number), (why.strip().splitlines()[-1] if why.strip() else "it never ends",))
