"""A node or a plan that ran and has no records: it is said first, nothing of it is absent, and the exit code is 3."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coordinator.cli.commands.report import UnbalancedError
from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from protos import records as rec
from tests.coordinator.report.ledger.test_report_missing_windows import Run, S, away
from tests.coordinator.report.synthetic import MS, Lineage, plan_document
from tests.coordinator.report.synthetic_windows import with_windows
from tests.coordinator.report.test_report_command import report


def there_and_back(deadline_ns: int = 300 * MS) -> dict[str, Any]:
    """As of the missing windows, with the output where the source is."""
    made = plan_document(
        ["a", "b"],
        {"s": "a"},
        [{"name": "mean.add", "at": "b", "in": ["s"]}, {"name": "mean", "at": "b", "in": ["mean.add"]}],
        {"out": ("mean", "a", deadline_ns)},
    )
    feeds = [{"source": 1, "name": "s@a"}]
    return with_windows(made, {"mean": {"length": str(S), "hop": str(S), "feeds": feeds}})


def without_b(run: Run) -> Run:
    """b's trace is gone with its machine."""
    run.cluster.all[:] = [node for node in run.cluster.all if node.index == 0]
    return run


def delivered(run: Run, *numbers: int) -> None:
    """Results of b's windows, as a has them."""
    stream = next(iter(run.cluster.plan.outputs.values())).stream
    for link_seq, number in enumerate(numbers, start=1):
        end = (number + 1) * S
        lineage = Lineage(2, 9, number, 0, end, end)
        run.source.write(rec.RECEIVED, run.flags, 1, lineage, end + 8, link_seq, end + 7, stream, 0)
        run.source.write(rec.OUTPUT, run.flags, 1, lineage, end + 9, end, end, 300 * MS, 0)


def dead() -> Run:
    """b gives 10 to 14, without 12, and is never seen again; a goes on feeding until 24."""
    run = Run(there_and_back())
    run.tuples(10, 24)
    delivered(run, 10, 11, 13, 14)
    run.over(run.source)
    return without_b(run)


CASES = {"calendar": lambda: without_b(away()), "witnesses": dead}


def test_windows_of_a_node_without_a_trace_were_due_by_the_calendar_of_the_plan(tmp_path: Path) -> None:
    told = verdict(read_run(without_b(away()).save(tmp_path / "run"))).document()
    out = told["outputs"]["out"]
    assert (out["met"], out["undecidable"]) == (0, 13), "14 s of tuples hold 13 windows at least"
    assert out["miss_ratio_hi"] == 1 and out["windows"]["mean"]["unknown"] == 13
    (line,) = [line for line in told["lacking"] if "node b" in line]
    assert line.endswith("ran on node b, which has no trace: what it did is not known")


def test_windows_that_no_other_node_saw_are_undecidable_and_shares_stay_below_one(tmp_path: Path) -> None:
    told = verdict(read_run(dead().save(tmp_path / "run"))).document()
    out = told["outputs"]["out"]
    assert (out["met"], out["undecidable"]) == (4, 10), "10 to 23 were due"
    windows = out["windows"]["mean"]
    assert (windows["all"], windows["unknown"], windows["on_time"]) == (14, 10, 4)
    assert windows["share"] == pytest.approx(4 / 14)


def strip(path: Path) -> None:
    """The run's plan becomes another one, so that its records are of a plan that the run does not have."""
    document = json.loads((path / "plan.json").read_text())
    document["hash"] = "ab" * 32
    (path / "plan.json").write_text(json.dumps(document))
    values = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**values, "plan_hash": document["hash"]}))


def test_records_of_a_plan_that_the_run_does_not_have_are_said_first(tmp_path: Path) -> None:
    path = away().save(tmp_path / "run")
    stamp = json.loads((path / "plan.json").read_text())["hash"][:8]
    strip(path)
    told = verdict(read_run(path)).document()
    assert told["lacking"][0].startswith(f"plan {stamp} ran as well and is not in the run: its ")
    done = report(path)
    assert isinstance(done.exception, UnbalancedError) and done.exception.exit_code == 3
    assert done.stdout.startswith(told["lacking"][0][:40])
    values = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**values, "going_on": [f"{stamp}{'0' * 8}"]}))
    assert verdict(read_run(path)).document()["lacking"], "another one"


def test_an_empty_run_has_no_verdict(tmp_path: Path) -> None:
    run = Run()
    run.over(run.source)
    run.over(run.there(10, 11))
    path = run.save(tmp_path / "run")
    done = report(path)
    assert isinstance(done.exception, UnbalancedError) and "no tuple was admitted" in str(done.exception)
    assert "nothing admitted" in done.output and "balanced" not in done.output
