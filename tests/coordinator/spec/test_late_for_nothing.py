"""`on_late:` where no deadline is: what leads to side inputs only."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from coordinator.errors import BadInputError
from coordinator.model.choices import Choices
from coordinator.solve import planner
from coordinator.spec import input_files

QUERY = """\
shimekiri: 1
query: sided
sources:
  s: {at: a, type: json, arrival: {burst: 1, period: 100 ms}, max_age: 5 ms}
  map: {at: a, type: json, arrival: {burst: 1, period: 100 ms}}
operators:
  known: {run: pass, in: map, cost: 1 ms, on_late: %s}
  near: {run: pass, in: known, cost: 1 ms}
  look: {run: my.look, in: s, cost: 1 ms, side: {map: near}}
outputs: {seen: {from: look, at: a, deadline: 50 ms}%s}
"""
CLUSTER = 'shimekiri: 1\nnodes: {a: {address: "127.0.0.1:7700"}}\noperators: operators.json\n'
LOOK = {"code": "0" * 64, "kind": "map", "inputs": {"of": "json"}, "side": {"map": "json"}, "output": "json"}


def _read(folder: Path, query: str) -> list[str]:
    """The codes of what is wrong."""
    (folder / "query.yaml").write_text(query)
    (folder / "cluster.yaml").write_text(CLUSTER)
    (folder / "operators.json").write_text(json.dumps({"shimekiri": 1, "operators": {"my.look": LOOK}}))
    try:
        input_files.read_files(folder / "query.yaml", folder / "cluster.yaml")
    except BadInputError as refused:
        return [problem.mistake.code for problem in refused.problems]
    return []


@pytest.mark.parametrize("late", ["drop", "{degrade: {run: pass, cost: 1 us}}"])
def test_what_leads_to_side_inputs_only_is_late_for_nothing(tmp_path: Path, late: str) -> None:
    assert _read(tmp_path, QUERY % (late, "")) == ["no_deadline_behind"]
    assert not _read(tmp_path, QUERY % ("deliver", ""))
    assert not _read(tmp_path, QUERY % (late, ", log: {from: near, at: a, deadline: 50 ms}"))


def test_a_plan_that_has_lost_the_output_drops_nothing_for_its_age(tmp_path: Path) -> None:
    """As one for fail-over: what led to the output still feeds the side input."""
    _read(tmp_path, QUERY % ("drop", ", log: {from: near, at: a, deadline: 50 ms}"))
    query, cluster, types = input_files.read_files(tmp_path / "query.yaml", tmp_path / "cluster.yaml")
    assert cluster is not None
    for outputs, dropping in ((query.outputs, ["known"]), (query.outputs[:1], [])):
        made = planner.plan(replace(query, outputs=outputs), cluster, types, Choices(best_effort=True))
        found = [one.name for local in made.nodes.values() for one in local.operators if one.HasField("late")]
        assert found == dropping
