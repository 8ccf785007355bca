"""The page: what it says first, how hops are held against the plan, how sure a comparison is, what it never does."""

import json
import random
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from coordinator.report.facts.reader import Run, read_run
from coordinator.report.page.page import page
from coordinator.report.page.sections.hop_budgets import hop_budgets
from coordinator.report.page.sections.latency_intervals import quantile_interval, share_interval
from coordinator.report.page.verdict_sentences import CAUSES, because, overall, sentence, state
from coordinator.report.report_document import CauseKind, HopTime, LatencyBreakdown, Report
from coordinator.report.verdict import verdict
from protos.plan.guarantee import Claim, Step
from tests import traces
from tests.coordinator.report.page.report_pages import EVIL, judged, misses
from tests.coordinator.report.synthetic import MS, everything, play, random_document
from tests.sampling import sample


def with_output(report: Report, name: str, **changes: object) -> Report:
    outputs = dict(report.outputs)
    outputs[name] = replace(outputs[name], **changes)  # type: ignore[arg-type]
    return replace(report, outputs=outputs)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Report]:
    return judged(tmp_path_factory.mktemp("page") / "run")


NOTHING = {"refused": 0, "policed": 0, "shed_before_filter": 0, "lost_before_filter": 0, "undecidable": 0}


def test_an_output_is_judged_in_a_sentence_with_its_cause(found: tuple[Run, Report]) -> None:
    missed = with_output(
        found[1], "near", met=388, late=12, shed=0, lost=0, missed=12, between=NOTHING, missed_of_offered=(0.03, 0.03),
        deadline_ns=300 * MS,
    )  # fmt: skip
    told = sentence(missed, "near")
    assert told.startswith("12 of 400 results (3 %) missed the deadline of 300 ms")
    assert told.endswith(", mostly (1 of 2) because they waited for other work (split on a)")
    open_ = with_output(
        missed, "near", lost=2, late=10, between=NOTHING | {"refused": 100}, missed_of_offered=(0.024, 0.224)
    )
    assert "12 of 400 results (2.4 to 22.4 %)" in sentence(open_, "near")
    assert sentence(open_, "near").endswith("; 100 more may have")
    assert "(10 late, 2 lost)" in sentence(open_, "near")


@pytest.mark.parametrize(
    ("share", "state_", "begins"),
    [
        (None, "nothing", "nothing was offered"),
        ((0.0, 0.0), "met", "all 7 results met the deadline of 15 ms"),
        ((0.0, 0.3), "perhaps", "3 results may have missed the deadline of 15 ms (0 to 30 %); 7 met it"),
    ],
)
def test_every_state_has_its_sentence(found: tuple[Run, Report], share: object, state_: str, begins: str) -> None:
    between = NOTHING | {"undecidable": 3 if state_ == "perhaps" else 0}
    report = with_output(found[1], "near", met=7, late=0, missed=0, between=between, missed_of_offered=share)
    assert state(report.outputs["near"]) == state_
    assert sentence(report, "near").startswith(begins)


def test_all_outputs_are_summed_up(found: tuple[Run, Report]) -> None:
    report = found[1]
    for name in report.outputs:
        report = with_output(report, name, missed_of_offered=(0.0, 0.0))
    assert overall(report) == "All 3 outputs met every deadline."
    assert overall(with_output(report, "near", missed_of_offered=(0.1, 0.1))) == (
        "1 of 3 outputs missed deadlines, 2 met all of theirs."
    )


def test_without_causes_the_slowest_hop_is_named_but_for_what_never_came(found: tuple[Run, Report]) -> None:
    hops = (HopTime("queued for split at a", "queue", MS, 9 * MS, 0.3, 0.9), HopTime("rest", "rest", 0, MS, 0.0, 0.1))
    report = replace(found[1], misses=None, latency_breakdowns={"near": LatencyBreakdown(9, 1, hops)})
    late = with_output(report, "near", late=5, missed=5)
    assert because(late, "near") == "; the slowest spent 90 % of their time queued for split at a"
    assert because(with_output(report, "near", late=1, missed=5), "near") == ""


def test_hops_are_predicted_beside_what_was_measured(found: tuple[Run, Report]) -> None:
    run = found[0]
    split, both = (next(u for u in run.plan.units.values() if name in u.operators) for name in ("split", "both"))

    def step(kind: str, node: str, ns: int, unit: int | None = None, what: str = "") -> Step:
        return Step(what=what, ns=ns, kind=kind, node=node, work_ns=0, waiting_ns=ns, blocking_ns=0, unit=unit)

    trail = (
        step("age", "a", 1), step("unit", "a", 20, split.id), step("socket", "a", 300),
        step("link", "a", 4000, what="link a to b"), step("socket", "b", 50000), step("unit", "b", 600000, both.id),
        step("link", "b", 7, what="link b to c"),
    )  # fmt: skip
    claim = Claim(deadline_ns=MS, bound_ns=None, guaranteed=False, why="", from_admission_ns=None, trail=trail)
    made = replace(run.plan.made, guarantee={"far": claim})
    run = replace(run, plan=replace(run.plan, made=made))
    split_at, both_at = (f"{unit.label} at {run.plan.nodes[unit.node]}" for unit in (split, both))
    measured = LatencyBreakdown(
        5, 1,
        (
            HopTime(f"queued for {split_at}", "queue", 6, 60, 0, 0),
            HopTime(f"running {split_at}", "run", 2, 3, 0, 0),
            HopTime("link to b", "link", 9, 10, 0, 0),
            HopTime("running other at a", "run", 1, 1, 0, 0),
            HopTime("rest", "rest", 0, 0, 0, 0),
        ),
    )  # fmt: skip
    hops = {
        hop.hop: (hop.predicted_ns, hop.mean_ns, hop.tail_ns, hop.is_above) for hop in hop_budgets(run, "far", measured)
    }
    assert hops == {
        "age before admission": (1, None, None, False),
        split_at: (20, 8, 63, True),
        "link to b": (54300, 9, 10, False),
        both_at: (600000, None, None, False),
        "link to c": (7, None, None, False),
        "other at a": (None, 1, 1, False),
    }


def test_intervals_shrink_with_the_number_of_results() -> None:
    ranks = [k * MS for k in range(1, 201)]
    few, many = quantile_interval(ranks, 100, 0.5), quantile_interval(ranks, 10_000, 0.5)
    assert few is not None and many is not None
    assert few[0] < many[0] <= 100 * MS <= many[1] < few[1]
    assert quantile_interval([None, *ranks], 100, 0.5) is None
    low, high = share_interval((0.1, 0.2), 100)
    assert low < 0.1 and high > 0.2
    assert share_interval((0.0, 0.0), 400)[0] == 0.0
    assert share_interval((0.0, 0.0), 400)[1] == pytest.approx(0.0095, abs=0.0005)  # Wilson, 95 %


def test_runs_side_by_side_say_whether_chance_explains_it(found: tuple[Run, Report]) -> None:
    run, report = found
    good = with_output(report, "near", met=1000, missed=0, between=NOTHING, missed_of_offered=(0.0, 0.0))
    bad = with_output(report, "near", met=900, missed=100, between=NOTHING, missed_of_offered=(0.1, 0.1))
    shown = page([(run, good), (replace(run, name="other"), bad)])
    assert "missed less, 0 % against 10 %; chance alone does not explain it." in shown
    unsure = with_output(report, "near", missed=0, between=NOTHING, missed_of_offered=(0.0, 0.3))
    assert "Cannot be told apart: 10 % against 0 to 30 %." in page([(run, unsure), (replace(run, name="other"), bad)])
    same = page([(run, good), (replace(run, name="other"), good)])
    assert "All missed the same: 0 %." in same


def test_a_miss_says_which_node_was_away_meanwhile(tmp_path: Path) -> None:
    cluster = play(everything(), 3, tuples=30, mishaps=0, many=0)
    cluster.crash(cluster.nodes[1])
    cluster.nodes[1].now += 5 * MS
    cluster.finish()
    run = read_run(cluster.save(tmp_path / "run"))
    found = misses(run)
    long = replace(found.worst[0], at_ns=10**9, latency_ns=10**9)
    missed = with_output(verdict(run), "near", late=1, missed=1, missed_of_offered=(0.1, 0.1), between=NOTHING)
    shown = page([(run, replace(missed, misses=replace(found, worst=(long,))))])
    assert "1 of 10 results (10 %) missed the deadline of 15 ms, all of them while b was away." in shown
    assert "Meanwhile: b: its runtime crashed and was started again." in shown
    assert "Meanwhile" not in page([judged(tmp_path / "other", mishaps=0)])


def test_two_hundred_misses_of_many_hops_fit(found: tuple[Run, Report]) -> None:
    run, report = found
    missed = misses(run)
    late = missed.worst[0]
    queued = replace(late.hops[1], waited_for=late.hops[1].waited_for * 5)
    many = replace(missed, worst=(replace(late, hops=(queued,) * 12),) * 200)
    assert len(page([(run, replace(report, misses=many))]).encode()) < 1_200_000


def test_every_cause_has_words() -> None:
    assert set(CAUSES) == set(get_args(CauseKind))


def test_names_and_sentences_cannot_become_markup(found: tuple[Run, Report]) -> None:
    run, report = found
    shown = page([(replace(run, name=EVIL), replace(report, misses=misses(run, EVIL), run=EVIL))])
    assert EVIL not in shown and "<img" not in shown


def test_nothing_is_loaded_and_no_other_script_may_run(found: tuple[Run, Report]) -> None:
    shown = page([found])
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-" in shown
    assert not re.search(r"""(src|href|action)=["']?(?!["']?[#d])""", shown.split("<script>")[0])
    assert not re.search(r"\son\w+=", shown)
    for text in re.findall(r'<script type="application/json">(.*?)</script>', shown):
        json.loads(text)


@pytest.mark.parametrize("seed", sample(range(60), 12))
def test_no_record_however_damaged_keeps_a_page_from_being_made(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)

    def damaged(records: list[bytes]) -> list[bytes]:
        return [_flipped(each, dice) if dice.random() < 0.1 else each for each in records]

    path = play(random_document(seed), seed, tuples=20, mishaps=0.2, policed=0.1).save(tmp_path / "run")
    for folder in sorted((path / "trace" / "raw").glob("*/*")):
        traces.change(folder, damaged)
    run = read_run(path)
    report = verdict(run)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert page([(run, report)]).endswith("</html>")
        assert page([(run, report), (run, report)]).endswith("</html>")


def _flipped(record: bytes, dice: random.Random) -> bytes:
    changed = bytearray(record)
    for _ in range(dice.randrange(1, 9)):
        changed[dice.randrange(len(changed))] = dice.randrange(256)
    return bytes(changed)


def test_a_run_without_a_tuple_has_a_page(tmp_path: Path) -> None:
    run = read_run(play(everything(), 1, tuples=0, mishaps=0).save(tmp_path / "run"))
    shown = page([(run, verdict(run))])
    assert "Nothing was offered, so there is nothing to judge." in shown
    assert "Nothing was delivered" in shown
