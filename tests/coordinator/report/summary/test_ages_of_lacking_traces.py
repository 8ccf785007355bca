"""Ages of data and reactions where traces lack records: what was read there is open, and is said to be."""

import random
from pathlib import Path

import pytest

from coordinator.report.facts.reader import read_run
from coordinator.report.report_document import DataAge, Freshness
from coordinator.report.verdict import verdict
from protos import records as rec
from tests.coordinator.report.aged_worlds import LIMIT, Delivered, World
from tests.coordinator.report.ledger.test_report_ages import reactions
from tests.seeds import seeds


def ran(seed: int, nodes: list[str]) -> World:
    made = World(seed, nodes)
    made.run()
    return made


def measured(made: World, path: Path) -> dict[str, Freshness]:
    return dict(verdict(read_run(made.save(path))).freshness)


def is_old(result: Delivered) -> bool:
    return bool(result.behind) and result.at_ns - min(datum.origin_ns for datum in result.behind) > LIMIT


def assert_sound(made: World, output: str, found: Freshness) -> None:
    """What is certain is true, and what is true is possible."""
    age, old = found.age, sum(is_old(each) for each in made.delivered if each.output == output)
    assert isinstance(age, DataAge)
    assert age.above <= old <= age.above + age.undecidable, output
    for source, reaction in found.reactions.items():
        answers, unanswered, _ = reactions(made, output, source)
        above = sum(each > LIMIT for each in answers) + unanswered
        most = reaction.above + reaction.undecidable + reaction.undecided + reaction.unanswered
        assert reaction.above + reaction.unanswered <= above <= most, (output, source)


@pytest.mark.parametrize("seed", seeds(range(6)))
def test_records_that_were_dropped_leave_all_open(seed: int, tmp_path: Path) -> None:
    made, dice = ran(seed, ["a"]), random.Random(seed)
    (node,) = made.all
    before = len(node.records)
    node.records = [
        each for each in node.records if each[0] not in {rec.ABSORBED, rec.MERGED} or dice.random() < 0.7
    ]  # fmt: skip
    node.write(rec.GAP, 0, 0, None, 0, before - len(node.records))
    for output, found in measured(made, tmp_path / "run").items():
        assert_sound(made, output, found)
        assert found.age is not None and found.age.age_ns.max is None
        assert found.untold == ("a has no whole trace: what results rest on there is not known",)
        assert found.unread == 0


def test_a_node_without_a_trace_leaves_all_open(tmp_path: Path) -> None:
    made = ran(3, ["a", "b"])
    made.all = [each for each in made.all if each.name == "a"]
    for found in measured(made, tmp_path / "run").values():
        assert "b has no whole trace: what results rest on there is not known" in found.untold
        assert found.age is not None and found.age.age_ns.max is None


def test_a_trace_of_a_node_that_goes_on_is_known_up_to_its_end(tmp_path: Path) -> None:
    certain = 0
    for seed in range(4):
        made = ran(seed, ["a", "b"])
        node = next(each for each in made.all if each.name == "b")
        whole = measured(made, tmp_path / f"whole-{seed}")
        node.ended, node.records = False, node.records[: len(node.records) // 2]
        for output, found in measured(made, tmp_path / f"run-{seed}").items():
            age, before = found.age, whole[output].age
            assert age is not None and before is not None
            assert age.above <= before.above + before.undecidable, (seed, output)
            if any(each.startswith("the trace of b was collected before ") for each in found.untold):
                certain += age.results - age.above - age.undecidable
    assert certain


def test_a_trace_that_was_collected_early_but_holds_all_leaves_nothing_open(tmp_path: Path) -> None:
    made = ran(3, ["a"])
    whole = measured(made, tmp_path / "whole")
    for node in made.all:
        node.ended = False
    for output, found in measured(made, tmp_path / "run").items():
        assert (found.age, found.untold) == (whole[output].age, ())
