"""Declarations that contradict, or promise what no plan can hold: exit code 2 with file, line, what is wrong and the
mend, or 3 with the reason; nothing is written."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.__main__ import main

Run = Callable[..., tuple[int, list[str]]]
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
    """`coordinator plan` on the two files with one thing changed: exit code and lines on stderr."""

    def run(old: str, new: str, *options: str) -> tuple[int, list[str]]:
        assert (QUERY + CLUSTER).count(old) == 1, old
        (tmp_path / "query.yaml").write_text(QUERY.replace(old, new))
        (tmp_path / "cluster.yaml").write_text(CLUSTER.replace(old, new))
        for name, text in FILES.items():
            (tmp_path / name).write_text(text)
        monkeypatch.chdir(tmp_path)
        before = sorted(tmp_path.iterdir())
        monkeypatch.setattr(sys, "argv", ["coordinator", "plan", "query.yaml", "cluster.yaml", *options])
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        if code:
            assert sorted(tmp_path.iterdir()) == before, "something was written"
        return code, capsys.readouterr().err.splitlines()

    return run


def test_as_it_is_it_is_planned(plan: Run) -> None:
    assert plan("query: sorting", "query: sorting")[0] == 0


@pytest.mark.parametrize(
    ("old", "new", "where", "said", "mend"),
    [
        (BELT, "{jcp: {period: 10 ms, min_gap: 11 ms}}", "query.yaml:4", "'min_gap' that is not below", "shorter"),
        (BELT, "{jcp: {period: 10 ms, min_gap: 10 ms}}", "query.yaml:4", "'min_gap' that is not below", "shorter"),
        (BELT, "{jcp: {period: 0 ms}}", "query.yaml:4", "longer than 0", "30 ms"),
        (BELT, "{jcp: {period: 10 ms, late: -1 ms}}", "query.yaml:4", "cannot be negative", ""),
        (BELT, "{burst: 0, period: 100 ms}", "query.yaml:4", "greater than or equal to 1", "correct it"),
        (BELT, "{burst: 2, period: 0 ms}", "query.yaml:4", "longer than 0", "30 ms"),
        (BELT, "{burst: 2, period: -1 s}", "query.yaml:4", "longer than 0", "30 ms"),
        (BELT, "{rate: 0}", "query.yaml:4", "greater than or equal to 0.000001", "correct it"),
        (BELT, "{rate: 1e-300}", "query.yaml:4", "greater than or equal to 0.000001", "correct it"),
        (BELT, "{rate: 1e300}", "query.yaml:4", "less than or equal to 1000000000", "correct it"),
        (BELT, "{rate: .inf}", "query.yaml:4", "not a finite number", "write one"),
        (BELT, "{rate: 5, burst: 0}", "query.yaml:4", "greater than or equal to 1", "correct it"),
        (BELT, "{rate: 5, period: 1 s}", "query.yaml:4", "has the keys period, rate", "write one of"),
        (BELT, "{trace: none.txt}", "query.yaml:4", "'none.txt' cannot be read", "one instant in ns per line"),
        (BELT, "{trace: empty.txt}", "query.yaml:4", "needs at least two instants", "correct the file"),
        (BELT, "{trace: comments.txt}", "query.yaml:4", "needs at least two instants", "correct the file"),
        (BELT, "{trace: one.txt}", "query.yaml:4", "needs at least two instants", "correct the file"),
        (BELT, "{trace: still.txt}", "query.yaml:4", "needs at least two instants", "correct the file"),
        (BELT, "{trace: backwards.txt}", "query.yaml:4", "in ascending order", "correct the file"),
        (BELT, "{trace: words.txt}", "query.yaml:4", "cannot be read", "one instant in ns per line"),
        (BELT, "{trace: broken.txt.gz}", "query.yaml:4", "cannot be read", "one instant in ns per line"),
        (BELT + ", max_age: 5 ms", BELT + ", max_age: 0 ms", "query.yaml:4", "longer than 0", "30 ms"),
        ("in: belt, cost: 1 ms", "in: belt, cost: 0 ms", "query.yaml:7", "longer than 0", "30 ms"),
        ("in: belt, cost: 1 ms", "in: belt, cost: -3 ms", "query.yaml:7", "longer than 0", "30 ms"),
        ("deadline: 50 ms", "deadline: 0 ms", "query.yaml:10", "longer than 0", "30 ms"),
        (LIGHT, LIGHT + ", selectivity: {mean: 0.6, at_most: [[20, 10]]}", "query.yaml:8",
         "a mean of 0.6 is above its worst case, at most 10 of any 20", "correct one"),
        (LIGHT, LIGHT + ", selectivity: {mean: 0.2, at_most: [[10, 3]]}", "query.yaml:8",
         "a filter that keeps 1 of 2 is above its worst case", "correct one"),
        (LIGHT, LIGHT + ", selectivity: {mean: 0.1, at_most: [[10, 6], [20, 5]]}", "query.yaml:8",
         "at most 6 of any 10 contradicts at most 5 of any 20", "correct one"),
        (LIGHT, LIGHT + ", selectivity: {mean: 0.1, at_most: [[10, 6], [10, 7]]}", "query.yaml:8",
         "at most 7 of any 10 contradicts at most 6 of any 10", "correct one"),
        (LIGHT, LIGHT + ", selectivity: {mean: 0.5, at_most: [[0, 1]]}", "query.yaml:8", "greater than or equal to 1",
         "correct it"),
        (LIGHT, LIGHT + ", selectivity: {mean: 0.5, at_most: [[4, -1]]}", "query.yaml:8", "greater than or equal to 0",
         "correct it"),
        (LIGHT, LIGHT + ", selectivity: {mean: -0.5}", "query.yaml:8", "greater than or equal to 0", "correct it"),
        ("latency: 1 ms", "latency: -1 ms", "cluster.yaml:5", "cannot be negative", ""),
        ("latency: 1 ms", "bandwidth: 0 Mbit/s", "cluster.yaml:5", "above 0", "like '100 Mbit/s'"),
        ("cap: 0.9", "cap: 0", "cluster.yaml:3", "greater than 0", "correct it"),
        ("cap: 0.9", "charges: {decision: 0 us, drain: 1 us, side: 1 us}", "cluster.yaml:3", "longer than 0", "30 ms"),
    ],
)  # fmt: skip
def test_what_contradicts_itself(plan: Run, old: str, new: str, where: str, said: str, mend: str) -> None:
    code, lines = plan(old, new)
    hits = [line for line in lines if line.startswith(f"{where}: ") and said in line]
    assert code == 2 and hits, lines
    assert mend in hits[0]


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
    code, lines = plan(old, new, "--model", model)
    assert code == 3, lines
    assert any(line.startswith("infeasible: ") and said in line for line in lines), lines


@pytest.mark.parametrize("age", ["50 ms", "60 ms", "48 ms"])
def test_tuples_that_may_be_admitted_beyond_their_deadline(plan: Run, age: str) -> None:
    """1 ms of cost and 1 ms of link leave no 48 ms for the age, on no placement."""
    code, lines = plan(BELT + ", max_age: 5 ms", BELT + f", max_age: {age}", "--model", "sound")
    assert code == 3 and any(line.startswith("infeasible: output sorted: ") for line in lines), lines


def test_a_link_that_takes_longer_than_the_deadline(plan: Run) -> None:
    code, lines = plan("latency: 1 ms", "latency: 60 ms", "--model", "sound")
    assert code == 3 and any(line.startswith("infeasible: output sorted: ") for line in lines), lines


def test_outputs_without_a_worst_case(plan: Run) -> None:
    code, lines = plan("run: pass, in: belt", "run: pass, selectivity: {mean: 2}, in: belt", "--model", "sound")
    assert code == 3 and any("sort" in line and "at_most" in line for line in lines), lines
