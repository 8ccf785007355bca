"""Queries that guarantee more apart than sharing are kept apart, and the plan says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from coordinator.errors import InfeasibleError
from coordinator.explain import sharing_lines
from coordinator.model.choices import Choices
from coordinator.solve import sharing_choice
from coordinator.solve.audit.audit import audit
from coordinator.solve.sharing_choice import Asked
from coordinator.spec import input_files
from protos.plan_document import Plan

CLUSTER = 'shimekiri: 1\nnodes: {a: {address: "127.0.0.1:7700"}}\n'
READS = """\
shimekiri: 1
query: NAME
sources: {s: {at: a, type: json, max_age: 1 ms, arrival: {burst: 1, period: 100 ms}}}
operators:
  pNAME: {run: pass, in: s, cost: 1 ms}
  xNAME: {run: pass, in: pNAME, cost: COST ms}
outputs: {oNAME: {from: xNAME, at: a, deadline: DUE ms}}
"""
BULK = """\
shimekiri: 1
query: bulk
sources: {z: {at: a, type: json, max_age: 1 ms, arrival: {burst: 1, period: 20 ms}}}
operators: {y: {run: pass, in: z, cost: 11 ms}}
outputs: {oz: {from: y, at: a, deadline: 30 ms}}
"""


class Files:
    """Two queries that begin alike, beside one with long instances."""

    def __init__(self, folder: Path, first_ms: int, second_ms: int) -> None:
        self.asked = 0
        self._paths = [folder / name for name in ("one.yaml", "two.yaml", "bulk.yaml")]
        for path, cost, due in zip(self._paths, ("4", "3"), (first_ms, second_ms), strict=False):
            path.write_text(READS.replace("NAME", path.stem).replace("COST", cost).replace("DUE", str(due)))
        self._paths[2].write_text(BULK)
        self._cluster = folder / "cluster.yaml"
        self._cluster.write_text(CLUSTER)

    def read(self, share: bool) -> Asked:
        self.asked += 1
        query, cluster, types = input_files.read_files(self._paths, self._cluster, share=share)
        assert cluster is not None
        return Asked(query, cluster, types)

    def plan(self, choices: Choices | None = None) -> Plan:
        return sharing_choice.planned(self.read(True), lambda: self.read(False), choices or Choices())


def test_kept_apart_where_sharing_leaves_no_guarantee(tmp_path: Path) -> None:
    """What is behind the shared operator is released anew, and a long instance that came meanwhile may go first."""
    files = Files(tmp_path, 28, 26)
    together = sharing_choice.planned(files.read(True), lambda: files.read(True), Choices())
    assert not all(claim.guaranteed for claim in together.guarantee.values())
    made = files.plan()
    assert all(claim.guaranteed for claim in made.guarantee.values())
    assert {"pone", "ptwo"} <= made.placement.keys()
    assert "kept apart, as with '--no-sharing'" in sharing_lines.sentences(made)[0]
    assert sharing_lines.sentences(made)[0].endswith("apart 3 of 3 are")
    assert made.intact and audit(made) == []
    assert made.hash != replace(made, apart_why="").sealed().hash


def test_with_best_effort_the_one_that_guarantees_more_is_taken(tmp_path: Path) -> None:
    made = Files(tmp_path, 28, 26).plan(Choices(best_effort=True))
    assert made.apart_why and sum(claim.guaranteed for claim in made.guarantee.values()) == 3


def test_what_holds_together_is_shared_and_not_planned_twice(tmp_path: Path) -> None:
    files = Files(tmp_path, 60, 60)
    made = files.plan()
    assert files.asked == 1 and not made.apart_why
    assert "ptwo" not in made.placement


def test_where_neither_holds_the_reasons_are_those_of_sharing(tmp_path: Path) -> None:
    with pytest.raises(InfeasibleError):
        Files(tmp_path, 5, 4).plan()
