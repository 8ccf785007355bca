"""Operators whose state went with their runtime are told of, with where and from when on."""

from __future__ import annotations

from pathlib import Path

from coordinator.report.facts.began_anew import began_anew, sentences
from coordinator.report.facts.reader import read_run
from protos import records as rec
from tests.coordinator.report.ledger.test_report_missing_windows import Run, S


def test_operators_that_began_without_their_state_are_named(tmp_path: Path) -> None:
    run = Run()
    run.tuples(10, 12)
    run.crash(run.there(10, 11))
    node = run.node(1)
    before = node.now
    for operator in (1, 2):
        node.write(rec.RESET, run.flags, operator, None, before + 5 * S)
    run.over(node)
    run.over(run.source)
    (row,) = began_anew(read_run(run.save(tmp_path / "run")))
    assert (row.node, row.boot, row.operators) == ("b", f"{node.boot:016x}", ("mean.add", "mean"))
    (line,) = sentences([row])
    assert line.startswith("node b: operators mean.add, mean began anew without the state that went with the runtime, ")
    assert row.after_ns > 0


def test_where_no_state_was_lost_nothing_is_said(tmp_path: Path) -> None:
    run = Run()
    run.over(run.there(10, 11))
    run.over(run.source)
    assert began_anew(read_run(run.save(tmp_path / "run"))) == ()
