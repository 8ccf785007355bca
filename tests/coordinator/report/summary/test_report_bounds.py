"""Results beyond their plan's bound, and tuples lost in units: counted as the records say, and told with the reason."""

import json
from pathlib import Path
from typing import Any

from coordinator.report.command import judge
from coordinator.report.facts.reader import Run, read_run, records_of
from coordinator.report.page import bound_violation
from coordinator.report.page.page import page
from coordinator.report.report_document import LostInUnit, Report
from coordinator.report.spark.spark_choice import SparkChoice
from coordinator.report.summary import lost
from protos import records as rec
from tests.coordinator.report.synthetic import MS, Cluster, Lineage, everything, hashed, plan_document, play

BOUND_NS = 7 * MS


def bounded(bound_ns: int | None) -> dict[str, Any]:
    """The bound is that of all outputs; operators run longer than they cost."""
    document = everything()
    for local in document["nodes"].values():
        for operator in local.get("operators", ()):
            operator["cost_ns"] = 1
    return hashed(document | {"guarantee": {name: {"bound_ns": bound_ns} for name in document["guarantee"]}})


def judged(run: Run) -> Report:
    (report,) = judge([run], "python", SparkChoice(), lambda text: None)
    return report


def above(run: Run) -> dict[str, list[int]]:
    """By output: by how much each result was above the bound, read from the records."""
    found: dict[str, list[int]] = {output.name: [] for output in run.plan.outputs.values()}
    for incarnation in run.incarnations:
        for _, r in records_of(incarnation):
            if isinstance(r, rec.Output) and r.at_ns - r.origin_hi_ns > BOUND_NS:
                found[run.plan.outputs[r.output].name].append(r.at_ns - r.origin_hi_ns - BOUND_NS)
    return found


def test_results_beyond_the_bound_are_counted_and_never_silent(tmp_path: Path) -> None:
    run = read_run(play(bounded(BOUND_NS), 3, tuples=40, mishaps=0, many=0).save(tmp_path / "run"))
    report, expected = judged(run), above(run)
    assert any(expected.values())
    for name, over in expected.items():
        found = report.outputs[name]
        assert (found.bound_ns, found.above_bound) == (BOUND_NS, len(over))
        assert found.above_bound_by_ns == (max(over) if over else None)
    lines = bound_violation.sentences(report)
    assert len(lines) == sum(map(bool, expected.values())) + 1
    assert "longer than the plan's bound, 7 ms, by up to" in lines[0]
    assert "does not cover operators that run longer than their cost (here: " in lines[-1]
    shown = page([(run, report)])
    assert "longer than the plan&#x27;s bound, 7 ms" in shown and '<th scope="col">bound</th>' in shown
    assert "Longer than planned" in shown and "instances ran a tenth longer" in shown


def test_each_result_is_held_against_its_own_plans_bound(tmp_path: Path) -> None:
    """The last plan has a bound that all keep; the results are of the one before."""
    cluster = play(bounded(BOUND_NS), 3, tuples=40, mishaps=0, many=0)
    path = cluster.save(tmp_path / "run")
    expected = above(read_run(path))
    last = bounded(10**12)
    (path / "earlier").mkdir()
    (path / "plan.json").rename(path / "earlier" / f"{cluster.plan.hash}.json")
    (path / "plan.json").write_text(json.dumps(last))
    said = json.loads((path / "run.json").read_text())
    said |= {"plan_hash": last["hash"], "earlier": [cluster.plan.hash]}
    (path / "run.json").write_text(json.dumps(said))
    outputs = judged(read_run(path)).outputs
    assert {name: found.above_bound for name, found in outputs.items()} == {n: len(o) for n, o in expected.items()}
    assert {found.bound_ns for found in outputs.values()} == {10**12}


def test_without_a_bound_there_is_nothing_to_hold_results_against(tmp_path: Path) -> None:
    report = judged(read_run(play(bounded(None), 3, tuples=40).save(tmp_path / "run")))
    assert {(one.bound_ns, one.above_bound) for one in report.outputs.values()} == {(None, None)}
    assert bound_violation.sentences(report) == []


def failing(path: Path) -> Path:
    """Two tuples, of which `second` on b.1 raised for both."""
    document = plan_document(
        ["a", "b.1"],
        {"car": "a"},
        [{"name": "first", "at": "a", "in": ["car"]}, {"name": "second", "at": "b.1", "in": ["first"]}],
        {"out": ("second", "b.1", 20 * MS)},
    )
    cluster = Cluster(document, 1, mishaps=0)
    for node in cluster.all:
        node.ended = True
    for seq in (1, 2):
        one = Lineage(1, 1, seq, 0, 0, 0)
        cluster.all[1].write(rec.LOST, 3, 2, one, 5 * MS, rec.CAUSE_OPERATOR_ERROR, 0, 0, 4 * MS)
    saved = cluster.save(path)
    said = json.loads((saved / "run.json").read_text())
    (saved / "run.json").write_text(json.dumps(said | {"virtual": False}))
    return saved


def test_a_lost_tuple_is_told_with_its_unit_and_where_the_reason_stands(tmp_path: Path) -> None:
    path = failing(tmp_path / "run")
    (row,) = judged(read_run(path)).lost_in_units
    service = "the log of b's agent (as a service: journalctl -u shimekiri-agent@b)"
    assert row == LostInUnit("b.1", 2, ("second",), "operator_error", 2, service)
    addresses = {name: {"control": "10.0.0.2:7700", "data": "10.0.0.2:7701"} for name in ("a", "b", "b.1")}
    (path / "addresses.json").write_text(json.dumps({"nodes": addresses}))
    (row,) = judged(read_run(path)).lost_in_units
    assert row.log == service
    (path / "addresses.json").write_text(
        json.dumps({"nodes": {name: one | {"state": "/state/b"} for name, one in addresses.items()}})
    )
    (row,) = judged(read_run(path)).lost_in_units
    assert row.log == "/state/b/agent.log"
    (path / "logs").mkdir()
    (path / "logs" / "b.log").write_text("")
    run = read_run(path)
    report = judged(run)
    told = "2 tuples lost in second (unit 2) on b.1: an operator raised an exception; the reason stands in "
    told += f"{path}/logs/b.log"
    assert lost.sentences(report.lost_in_units) == [told]
    assert told in page([(run, report)])
