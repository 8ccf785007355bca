"""Runs by an outsider, who had not read the rules of blame: two causes at once, bystanders that look guilty.

A run tells what is struck, and by what. Where it has two strikes, the first is the larger one. What the strikes do is
tried by leaving them out: `test_outsider.py` has that the run misses nothing without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

from tests.coordinator.report.blame.constructed import Constructed
from tests.coordinator.report.blame.outsider_cases import bursts_and_ages, costs, links, pairs, plans
from tests.coordinator.report.blame.outsider_cases.case import Case
from tests.coordinator.report.blame.outsider_world import drawn_phases, play

RUNS: Mapping[str, Callable[[Random], Case]] = {
    **costs.RUNS, **links.RUNS, **bursts_and_ages.RUNS, **plans.RUNS, **pairs.RUNS,
}  # fmt: skip


def drawn_case(cause: str, seed: int) -> Case:
    """Its intensity drawn from the seed."""
    random = Random(f"{cause} {seed}")
    case = RUNS[cause](random)
    setting = replace(drawn_phases(case.setting, random), trials=random.choice([1, 1, 2]))
    return replace(case, setting=setting)


def construct(cause: str, seed: int, folder: Path) -> Constructed:
    """A run in which that happens."""
    case = drawn_case(cause, seed)
    return Constructed(cause, case.said, case.expected, play(case.setting, case.strike, folder, seed))
