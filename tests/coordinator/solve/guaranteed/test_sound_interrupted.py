"""Ctrl-C while the sound model searches: the best plan so far is the result."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.model.choices import Choices
from coordinator.model.progress import Progress
from coordinator.solve import planner

QUERY = """
shimekiri: 1
query: three
sources:
  s: {at: a, type: json, arrival: {burst: 2, period: 100 ms}, max_age: 1 ms}
operators:
  one: {run: pass, in: s, cost: 2 ms}
  two: {run: pass, in: one, cost: 2 ms}
outputs:
  out: {from: two, at: b, deadline: %s}
"""
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}
  b: {address: "127.0.0.1:7710"}
security: insecure-loopback
"""


@pytest.mark.parametrize("deadline", ["60 ms", "11 ms"])
def test_the_best_so_far_is_the_plan(tmp_path: Path, deadline: str) -> None:
    (tmp_path / "query.yaml").write_text(QUERY % deadline)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    seen: list[Progress] = []

    def watch(now: Progress) -> None:
        seen.append(now)
        raise KeyboardInterrupt

    made = planner.make_plan(tmp_path / "query.yaml", tmp_path / "cluster.yaml", Choices(), watch)
    assert len(seen) == 1
    assert made.solver.placements == 1
    assert made.guarantee["out"].guaranteed == seen[0].held == (deadline == "60 ms")
    if not seen[0].held:
        assert seen[0].sentence() == "no guaranteed plan yet, 1 placement looked at"
