"""Declarations that contradict, or promise what no plan can hold: exit code 2 with file, line, what is wrong and the
mend, or 3 with the reason; nothing is written."""

# ruff: noqa: E501 - a table: a line per mistake

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.__main__ import main
from coordinator.errors import BadInputError
from tests.coordinator.wording import Wording, facts, mended

Run = Callable[..., tuple[int, list[str], BaseException | None]]
WORDING = Wording("plan", "declarations")
QUERY = """shimekiri: 1
query: sorting
sources:
  belt: {at: a, type: json, arrival: {burst: 2, period: 100 ms}, max_age: 5 ms}
  scale: {at: b, type: json, arrival: {burst: 1, period: 500 ms}, max_age: 5 ms}
operators:
  sort: {run: pass, in: belt, cost: 1 ms, nodes: [a]}
  light: {run: filter, in: scale, with: {keep: 1, of: 2}, cost: 1 ms, nodes: [b]}
outputs:
  sorted: {from: sort, at: b, deadline: 50 ms}
  light: {from: light, at: b, deadline: 100 ms}
"""
CLUSTER = """shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", cap: 0.9}
  b: {address: "127.0.0.1:7710"}
links: [{between: [a, b], latency: 1 ms}]
"""
BELT, SCALE = "{burst: 2, period: 100 ms}", "{burst: 1, period: 500 ms}"
LIGHT = "with: {keep: 1, of: 2}"
FILES = {
    "empty.txt": "",
    "comments.txt": "# nothing\n\n",
    "one.txt": "5\n",
    "still.txt": "5\n5\n5\n",
    "backwards.txt": "1\n3\n2\n",
    "words.txt": "1\ntwo\n",
    "broken.txt.gz": "not gzip",
}


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`coordinator plan` on the two files with one thing changed: exit code, lines on stderr, and the error behind
    them."""

    def run(old: str, new: str, *options: str) -> tuple[int, list[str], BaseException | None]:
        assert (QUERY + CLUSTER).count(old) == 1, old
        (tmp_path / "query.yaml").write_text(QUERY.replace(old, new))
        (tmp_path / "cluster.yaml").write_text(CLUSTER.replace(old, new))
        for name, text in FILES.items():
            (tmp_path / name).write_text(text)
        monkeypatch.chdir(tmp_path)
        before = sorted(tmp_path.iterdir())
        monkeypatch.setattr(sys, "argv", ["coordinator", "plan", "query.yaml", "cluster.yaml", *options])
        code, error = 0, None
        try:
            main()
        except SystemExit as ended:
            code, error = int(ended.code or 0), ended.__cause__
        if code:
            assert sorted(tmp_path.iterdir()) == before, "something was written"
        return code, capsys.readouterr().err.splitlines(), error

    return run


def test_as_it_is_it_is_planned(plan: Run) -> None:
    assert plan("query: sorting", "query: sorting")[0] == 0


@pytest.mark.parametrize(
    ("old", "new", "file", "line", "code", "subject"),
    [
        (BELT, "{jcp: {period: 10 ms, min_gap: 11 ms}}", "query.yaml", 4, "gap_above_period", "sources.belt.arrival.jcp"),
        (BELT, "{jcp: {period: 10 ms, min_gap: 10 ms}}", "query.yaml", 4, "gap_above_period", "sources.belt.arrival.jcp"),
        (BELT, "{jcp: {period: 0 ms}}", "query.yaml", 4, "not_above_zero", "sources.belt.arrival.jcp.period"),
        (BELT, "{jcp: {period: 10 ms, late: -1 ms}}", "query.yaml", 4, "negative", "sources.belt.arrival.jcp.late"),
        (BELT, "{burst: 0, period: 100 ms}", "query.yaml", 4, "out_of_range", "sources.belt.arrival.burst"),
        (BELT, "{burst: 2, period: 0 ms}", "query.yaml", 4, "not_above_zero", "sources.belt.arrival.period"),
        (BELT, "{burst: 2, period: -1 s}", "query.yaml", 4, "not_above_zero", "sources.belt.arrival.period"),
        (BELT, "{rate: 0}", "query.yaml", 4, "out_of_range", "sources.belt.arrival.rate"),
        (BELT, "{rate: 1e-300}", "query.yaml", 4, "out_of_range", "sources.belt.arrival.rate"),
        (BELT, "{rate: 1e300}", "query.yaml", 4, "out_of_range", "sources.belt.arrival.rate"),
        (BELT, "{rate: .inf}", "query.yaml", 4, "not_finite", "sources.belt.arrival.rate"),
        (BELT, "{rate: 5, burst: 0}", "query.yaml", 4, "out_of_range", "sources.belt.arrival.burst"),
        (BELT, "{rate: 5, period: 1 s}", "query.yaml", 4, "arrival_keys", "sources.belt.arrival"),
        (BELT, "{trace: none.txt}", "query.yaml", 4, "unreadable_recording", "sources.belt.arrival.trace"),
        (BELT, "{trace: empty.txt}", "query.yaml", 4, "useless_recording", "sources.belt.arrival.trace"),
        (BELT, "{trace: comments.txt}", "query.yaml", 4, "useless_recording", "sources.belt.arrival.trace"),
        (BELT, "{trace: one.txt}", "query.yaml", 4, "useless_recording", "sources.belt.arrival.trace"),
        (BELT, "{trace: still.txt}", "query.yaml", 4, "useless_recording", "sources.belt.arrival.trace"),
        (BELT, "{trace: backwards.txt}", "query.yaml", 4, "useless_recording", "sources.belt.arrival.trace"),
        (BELT, "{trace: words.txt}", "query.yaml", 4, "unreadable_recording", "sources.belt.arrival.trace"),
        (BELT, "{trace: broken.txt.gz}", "query.yaml", 4, "unreadable_recording", "sources.belt.arrival.trace"),
        (BELT + ", max_age: 5 ms", BELT + ", max_age: 0 ms", "query.yaml", 4, "not_above_zero", "sources.belt.max_age"),
        ("in: belt, cost: 1 ms", "in: belt, cost: 0 ms", "query.yaml", 7, "not_above_zero", "operators.sort.cost"),
        ("in: belt, cost: 1 ms", "in: belt, cost: -3 ms", "query.yaml", 7, "not_above_zero", "operators.sort.cost"),
        ("deadline: 50 ms", "deadline: 0 ms", "query.yaml", 10, "not_above_zero", "outputs.sorted.deadline"),
        (LIGHT, LIGHT + ", selectivity: {mean: 0.6, at_most: [[20, 10]]}", "query.yaml", 8, "mean_above_worst_case", "operators.light.selectivity"),
        (LIGHT, LIGHT + ", selectivity: {mean: 0.2, at_most: [[10, 3]]}", "query.yaml", 8, "mean_above_worst_case", "operators.light.selectivity"),
        (LIGHT, LIGHT + ", selectivity: {mean: 0.1, at_most: [[10, 6], [20, 5]]}", "query.yaml", 8, "contradicting_selectivity", "operators.light.selectivity"),
        (LIGHT, LIGHT + ", selectivity: {mean: 0.1, at_most: [[10, 6], [10, 7]]}", "query.yaml", 8, "contradicting_selectivity", "operators.light.selectivity"),
        (LIGHT, LIGHT + ", selectivity: {mean: 0.5, at_most: [[0, 1]]}", "query.yaml", 8, "out_of_range", "operators.light.selectivity.at_most.0.0"),
        (LIGHT, LIGHT + ", selectivity: {mean: 0.5, at_most: [[4, -1]]}", "query.yaml", 8, "out_of_range", "operators.light.selectivity.at_most.0.1"),
        (LIGHT, LIGHT + ", selectivity: {mean: -0.5}", "query.yaml", 8, "out_of_range", "operators.light.selectivity.mean"),
        ("latency: 1 ms", "latency: -1 ms", "cluster.yaml", 5, "negative", "links.0.latency"),
        ("latency: 1 ms", "bandwidth: 0 Mbit/s", "cluster.yaml", 5, "not_above_zero", "links.0.bandwidth"),
        ("cap: 0.9", "cap: 0", "cluster.yaml", 3, "out_of_range", "nodes.a.cap"),
        ("cap: 0.9", "charges: {decision: 0 us, drain: 1 us, side: 1 us}", "cluster.yaml", 3, "not_above_zero", "nodes.a.charges.decision"),
    ],
)  # fmt: skip
def test_what_contradicts_itself(plan: Run, old: str, new: str, file: str, line: int, code: str, subject: str) -> None:
    exit_code, lines, error = plan(old, new)
    assert exit_code == 2 and isinstance(error, BadInputError) and mended(error.problems)
    assert (file, line, code, subject) in map(facts, error.problems)
    WORDING.check(f"{old} -> {new}", lines)


@pytest.mark.parametrize("model", ["sound", "paper"])
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (BELT, "{burst: 2, period: 2 ms}", "node a"),
        (BELT, "{burst: 19, period: 20 ms}", "its cap is 90"),  # U = 0.95
        (BELT, "{rate: 1000}", "node a"),
        ("in: belt, cost: 1 ms", "in: belt, cost: 26 ms", "52 ms"),
        ("[{between: [a, b], latency: 1 ms}]", "[]", "sort"),
        ("deadline: 50 ms", "deadline: 1 ms", "1 ms"),
    ],
)
def test_what_no_plan_can_hold(plan: Run, old: str, new: str, said: str, model: str) -> None:
    code, lines, _ = plan(old, new, "--model", model)
    assert code == 3, lines
    assert any(line.startswith("infeasible: ") and said in line for line in lines), lines


@pytest.mark.parametrize("age", ["50 ms", "60 ms", "48 ms"])
def test_tuples_that_may_be_admitted_beyond_their_deadline(plan: Run, age: str) -> None:
    """1 ms of cost and 1 ms of link leave no 48 ms for the age, on no placement."""
    code, lines, _ = plan(BELT + ", max_age: 5 ms", BELT + f", max_age: {age}", "--model", "sound")
    assert code == 3 and any(line.startswith("infeasible: output sorted: ") for line in lines), lines


def test_a_link_that_takes_longer_than_the_deadline(plan: Run) -> None:
    code, lines, _ = plan("latency: 1 ms", "latency: 60 ms", "--model", "sound")
    assert code == 3 and any(line.startswith("infeasible: output sorted: ") for line in lines), lines


def test_outputs_without_a_worst_case(plan: Run) -> None:
    code, lines, _ = plan("run: pass, in: belt", "run: pass, selectivity: {mean: 2}, in: belt", "--model", "sound")
    assert code == 3 and any("sort" in line and "at_most" in line for line in lines), lines
