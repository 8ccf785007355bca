"""Ages of data and reactions as plain Python measures them, against worlds that know what is behind each result."""

from pathlib import Path

import pytest

from coordinator.report.counts import nearest_rank
from coordinator.report.facts.reader import read_run
from coordinator.report.report_document import DataAge, Reaction, Report
from coordinator.report.verdict import verdict
from tests.coordinator.report.aged_worlds import LIMIT, Tuple, World, world
from tests.seeds import seeds


def measured(path: Path) -> Report:
    report = verdict(read_run(path))
    assert report.conservation.balanced, report.conservation.problems
    return report


def ages(made: World, output: str) -> list[int]:
    """Of the results behind which there is anything."""
    found = [each for each in made.delivered if each.output == output and each.behind]
    return sorted(each.at_ns - min(datum.origin_ns for datum in each.behind) for each in found)


def reactions(made: World, output: str, source: str) -> tuple[list[int], int, int]:
    """Reactions to a source's tuples, and how many are unanswered and undecided."""
    found, unanswered, undecided = [], 0, 0
    for each in made.tuples:
        if each.source == source:
            answers = [
                result.at_ns - each.origin_ns
                for result in made.delivered
                if result.output == output and (latest := latest_of(result.behind, source)) is not None
                if latest.seq >= each.seq or latest.origin_ns >= each.origin_ns
            ]
            passed = made.end_ns - each.origin_ns > LIMIT
            found += [min(answers)] if answers else []
            unanswered += not answers and passed
            undecided += not answers and not passed
    return sorted(found), unanswered, undecided


def latest_of(behind: frozenset[Tuple], source: str) -> Tuple | None:
    return max((datum for datum in behind if datum.source == source), key=lambda datum: datum.seq, default=None)


def quantile(values: list[int], percent: int) -> int | None:
    return values[nearest_rank(len(values), percent, 100) - 1] if values else None


@pytest.mark.parametrize("seed", seeds(range(12)))
def test_on_one_clock_all_is_exact(seed: int, tmp_path: Path) -> None:
    made = world(seed, ["a"], tmp_path / "run")
    report = measured(tmp_path / "run")
    assert report.freshness.keys() == {"fused", "means", "seen"}, seed
    for output, found in report.freshness.items():
        assert not found.untold
        age, true = found.age, ages(made, output)
        assert isinstance(age, DataAge)
        assert (age.results, age.above, age.undecidable) == (len(true), sum(each > LIMIT for each in true), 0), seed
        spread = (age.age_ns.p50, age.age_ns.p99, age.age_ns.max)
        assert spread == (quantile(true, 50), quantile(true, 99), quantile(true, 100)), seed
        assert [each.age_ns for each in age.worst] == true[: -len(age.worst) - 1 : -1], seed
        for source, reaction in found.reactions.items():
            assert_exact(reaction, *reactions(made, output, source), seed)


def assert_exact(reaction: Reaction, true: list[int], unanswered: int, undecided: int, seed: int) -> None:
    counted = (reaction.answered, reaction.unanswered, reaction.undecided)
    assert counted == (len(true), unanswered, undecided), seed
    assert (reaction.above, reaction.undecidable) == (sum(each > LIMIT for each in true), 0), seed
    spread = (reaction.reaction_ns.p50, reaction.reaction_ns.p99, reaction.reaction_ns.max)
    assert spread == (quantile(true, 50), quantile(true, 99), quantile(true, 100)), seed


@pytest.mark.parametrize("seed", seeds(range(12)))
def test_between_clocks_the_intervals_hold_what_is_true(seed: int, tmp_path: Path) -> None:
    made = world(seed, ["a", "b"], tmp_path / "run")
    report = measured(tmp_path / "run")
    for output, found in report.freshness.items():
        assert not found.untold
        age, true = found.age, ages(made, output)
        assert isinstance(age, DataAge)
        above = sum(each > LIMIT for each in true)
        assert age.above <= above <= age.above + age.undecidable, seed
        assert (age.age_ns.max or 0) >= max(true, default=0), seed
        for source, reaction in found.reactions.items():
            answers, unanswered, _ = reactions(made, output, source)
            above = sum(each > LIMIT for each in answers) + unanswered
            most = reaction.above + reaction.undecidable + reaction.undecided + reaction.unanswered
            assert reaction.above + reaction.unanswered <= above <= most, seed
