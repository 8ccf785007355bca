"""The outsider's runs: the right cause is named, and without what strikes them nothing is missed."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from tests.coordinator.report.blame import outsider, outsider_agents, outsider_live
from tests.coordinator.report.blame.outsider_world import Strike, play
from tests.coordinator.report.blame.score import OUTSIDERS, drawn_outsiders, score
from tests.sampling import sample

# What blame cannot always tell, as docs/explanation/blame.md says: who made a window's shedder act, and a pause of a
# node that hears of one other only.
UNTOLD = {"adding", "first pauses", "last pauses"}
TWO = {"link beats cost", "cost beats link", "burst beats link", "urgent beside flood", "flood elsewhere", "both links"}
CASES = [(cause, seed) for seed in range(4) for cause in outsider.RUNS]


@pytest.mark.parametrize(("cause", "seed"), sample([each for each in CASES if each[0] not in UNTOLD], of=24))
def test_the_larger_cause_is_named_and_no_bystander(cause: str, seed: int) -> None:
    found = score(cause, seed, OUTSIDERS)
    assert found.right and not found.wrong, found


@pytest.mark.parametrize("cause", sample(sorted(outsider_agents.HAPPENS.keys() - UNTOLD), of=6))
def test_what_happens_to_whole_agents_is_named(cause: str) -> None:
    found = score(cause, 1, OUTSIDERS)
    assert found.right and not found.wrong, found


@pytest.mark.soak
def test_what_happens_to_real_agents_is_named() -> None:
    scored = [score(cause, seed, OUTSIDERS) for cause, seed in drawn_outsiders(1) if cause in outsider_live.HAPPENS]
    assert sum(each.right for each in scored) >= len(scored) - 1, scored
    assert not any(each.wrong for each in scored), scored


def missed(case: outsider.Case, strike: Strike, folder: Path) -> dict[str, int]:
    """Results of each output that were not in time."""
    outputs = verdict(read_run(play(case.setting, strike, folder))).outputs
    return {name: each.late + each.shed + each.lost for name, each in outputs.items()}


@pytest.mark.parametrize(("cause", "seed"), sample(CASES, of=24))
def test_without_its_strikes_a_run_misses_nothing(cause: str, seed: int, tmp_path: Path) -> None:
    case = outsider.drawn_case(cause, seed)
    assert case.planned or not any(missed(case, Strike(), tmp_path).values())


@pytest.mark.parametrize(("cause", "seed"), sample([each for each in CASES if each[0] in TWO], of=6))
def test_of_two_strikes_the_first_is_the_larger(cause: str, seed: int, tmp_path: Path) -> None:
    case = outsider.drawn_case(cause, seed)
    larger, smaller = (missed(case, each, tmp_path / str(n)) for n, each in enumerate(case.strikes))
    assert larger["out"] and not smaller["out"]
