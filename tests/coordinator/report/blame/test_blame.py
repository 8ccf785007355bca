"""Every missed result has a cause, the right one, and nobody is accused for nothing."""

from __future__ import annotations

import random
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from coordinator.report.blame import misses as blame
from coordinator.report.blame.misses import misses
from coordinator.report.command import judge
from coordinator.report.facts.reader import Run, read_run
from coordinator.report.landing import landed_run
from coordinator.report.page import miss_sentences
from coordinator.report.report_document import Misses, Report
from coordinator.report.spark.spark_choice import SparkChoice
from coordinator.report.verdict import verdict
from protos import json_shape
from protos import records as rec
from tests import traces
from tests.coordinator.report.blame import constructed, faulty, struck_agents
from tests.coordinator.report.blame.score import drawn, score
from tests.coordinator.report.synthetic import Cluster, everything, play, random_document
from tests.coordinator.report.synthetic_windows import overloaded, play_windows
from tests.coordinator.report.test_report_changes import changed
from tests.sampling import sample

GOAL = 0.9


def judged(path: Path) -> tuple[Run, Report, Misses]:
    """A run with its verdict and its misses, which are what report.json can hold."""
    run = read_run(path)
    report = verdict(run)
    found = misses(run, report)
    assert json_shape.read(Misses, json_shape.write(found)) == found
    return run, report, found


def quiet(text: str) -> None:
    del text


@pytest.mark.parametrize(
    ("cause", "seed"), sample([(cause, seed) for seed in range(8) for cause in constructed.VIRTUAL], of=8)
)
def test_simulated_runs_have_the_cause_that_was_drawn(cause: str, seed: int) -> None:
    found = score(cause, seed)
    assert found.right and not found.wrong, found


@pytest.mark.parametrize(
    ("cause", "seed"), sample([(cause, seed) for cause in faulty.FAULTY for seed in range(4)], of=8)
)
def test_agents_in_virtual_time_have_the_cause_that_was_drawn(cause: str, seed: int) -> None:
    found = score(cause, seed)
    assert found.right and not found.wrong, found


@pytest.mark.soak
def test_real_agents_have_the_cause_that_was_drawn() -> None:
    scored = [score(cause, seed) for cause, seed in drawn(1) if cause in struck_agents.LIVE]
    assert sum(each.right for each in scored) >= GOAL * len(scored), scored
    assert not any(each.wrong for each in scored), scored


def test_all_causes_are_drawn_forty_eight_times() -> None:
    causes = [cause for cause, _ in drawn(3)]
    assert len(causes) == 48 and {*constructed.VIRTUAL, *faulty.FAULTY, *struck_agents.LIVE} == set(causes)


@pytest.mark.parametrize("seed", sample(range(48), of=4))
def test_as_many_as_the_verdict_counts_and_none_twice(seed: int, tmp_path: Path) -> None:
    made = play(random_document(seed), seed, tuples=20, policed=0.2 * (seed % 2))
    _, report, found = judged(made.save(tmp_path / "run"))
    for name, output in report.outputs.items():
        missed, told = output.late + output.shed + output.lost, sum(found.by_cause.get(name, {}).values())
        assert missed <= told <= missed + output.undecidable, name
    keys = [(each.output, each.source, each.epoch, each.seq, each.ordinal) for each in found.worst]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("seed", sample(range(32), of=8))
def test_permuted_and_damaged_traces_are_judged_as_far_as_they_go(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    made = play(random_document(seed), seed, tuples=20)
    for node in made.all:
        dice.shuffle(node.records)
    judged(made.save(tmp_path / "permuted"))
    for node in made.all:
        node.records = [_flipped(each, dice) for each in node.records]
    judged(made.save(tmp_path / "flipped"))
    judged(_empty(made).save(tmp_path / "empty"))


def _flipped(record: bytes, dice: random.Random) -> bytes:
    """With some bit changed, of any field but the kind."""
    found = bytearray(record)
    found[dice.randrange(1, len(found))] ^= 1 << dice.randrange(8)
    return bytes(found)


def _empty(made: Cluster) -> Cluster:
    for node in made.all:
        node.records = []
    return made


def test_runs_of_several_plans_have_as_many_as_the_verdict_counts(tmp_path: Path) -> None:
    changed(tmp_path / "run", 2, loss=0.2)
    _, report, found = judged(tmp_path / "run")
    lost = {name: output.lost for name, output in report.outputs.items() if output.lost}
    assert lost and {name: found.by_cause[name]["link"] for name in lost} == lost


def test_windows_have_causes_too(tmp_path: Path) -> None:
    _, report, found = judged(play_windows(overloaded(), 1, tuples=40).save(tmp_path / "run"))
    assert set(found.by_cause) <= set(report.outputs)


def test_a_run_without_misses_has_no_causes_and_no_stories(tmp_path: Path) -> None:
    made = constructed.construct("nothing", 1, tmp_path / "made")
    run = read_run(made.path)
    (report,) = judge([run], "python", SparkChoice(), quiet)
    assert report.misses == Misses({}, (), ())
    assert not list(miss_sentences.sentences(report))
    assert Report.from_document(report.document()).misses == report.misses


def test_a_trace_that_is_not_whole_accuses_nobody(tmp_path: Path) -> None:
    """The node's records of what ran before the late tuples are gone, and it says so."""
    made = constructed.construct("blocked", 1, tmp_path / "made")
    (folder,) = (made.path / "trace" / "raw" / "a").iterdir()

    def holed(records: list[bytes]) -> list[bytes]:
        heavy = [each for each in records if _of_heavy(made.path, each)]
        gap = rec.Gap.pack(dropped=len(heavy))
        return [gap if each in heavy else each for each in records]

    traces.change(folder, holed)
    _, _, found = judged(made.path)
    assert found.by_cause == {"out": {"unknown": 1}}
    (cause,) = found.worst[0].causes
    assert (cause.kind, cause.node, cause.subject) == ("unknown", "a", "")
    assert "do not tell" in cause.text


def _of_heavy(path: Path, data: bytes) -> bool:
    record = rec.unpack_record(data, 0)
    units = read_run(path).plan.units
    return isinstance(record, rec.Ran) and "heavy" in units[record.unit].operators


def test_what_was_landed_gives_the_same(tmp_path: Path) -> None:
    made = constructed.construct("burst", 2, tmp_path / "made")
    run, _, found = judged(made.path)
    landed_run.land(made.path, run.firsts)
    assert landed_run.drop_raw(made.path, run.firsts)
    assert judged(made.path)[2] == found


def test_results_that_nobody_looks_at_have_the_cause_of_their_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = constructed.construct("burst", 3, tmp_path / "made")
    _, _, found = judged(made.path)
    monkeypatch.setattr(blame, "MOST_LOOKED_AT", 4)
    monkeypatch.setattr(blame, "MOST_WORST", 5)
    _, _, fewer = judged(made.path)
    assert fewer.by_cause == found.by_cause and len(fewer.worst) == 5


@pytest.mark.parametrize(("cause", "seed", "kind"), [("burst", 3, "burst"), ("overload", 12, "overloaded_core")])
def test_what_is_given_up_for_others_has_the_cause_of_there_being_too_much(
    cause: str, seed: int, kind: str, tmp_path: Path
) -> None:
    made = constructed.construct(cause, seed, tmp_path / "made")
    _, report, found = judged(made.path)
    gone = report.conservation.by_cause["shed(excess)"]
    assert gone > 10 and found.by_cause["done"][kind] >= gone


def test_the_worst_is_told_as_a_story(tmp_path: Path) -> None:
    made = constructed.construct("blocked", 0, tmp_path / "made")
    run = read_run(made.path)
    (report,) = judge([run], "python", SparkChoice(), quiet)
    first, second = list(miss_sentences.sentences(report))[:2]
    assert first == "out: missed or undecidable: 1 for waiting for others"
    assert "behind 1 instance of heavy..sum. At" in second and "Cause: it waited" in second
    (miss,) = report.misses.worst if report.misses is not None else ()
    kinds = [hop.kind for hop in miss.hops]
    assert kinds == ["admission", "queue", "run", "link", "queue", "run"]
    assert all(before.until_ns <= after.from_ns for before, after in pairwise(miss.hops)), "one clock, no overlap"
    assert miss.hops[1].waited_for[0].query == "other"


def test_nobody_is_blamed_for_a_batch_that_a_simulation_formed(tmp_path: Path) -> None:
    for seed in range(4):
        made = constructed.construct("batch", seed, tmp_path / str(seed))
        _, _, found = judged(made.path)
        assert {each.causes[0].kind for each in found.worst} == {"batch"}
        assert not any(each.subject for miss in found.worst for each in miss.causes if each.kind == "batch")
        shutil.rmtree(tmp_path / str(seed))


def test_runs_with_everything_are_judged(tmp_path: Path) -> None:
    judged(play(everything(), 5, tuples=60, policed=0.3).save(tmp_path / "run"))
