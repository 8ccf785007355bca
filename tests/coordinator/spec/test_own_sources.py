"""Sources that nodes make themselves, from the query file to the local plan: what is read, what is derived of it, what
is refused, and that it comes back from a plan as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coordinator.errors import BadInputError, CoordinatorError
from coordinator.model.choices import Choices
from coordinator.plan import running_plan
from coordinator.solve import planner
from coordinator.solve.audit.audit import audit
from coordinator.spec import input_files, query_reader
from coordinator.spec.query import GUESS_NS
from coordinator.spec.sharing import compose
from protos import plan_document
from protos.plan.arrivals import BurstArrival, RateArrival
from protos.plan.sources import Pull
from protos.plan_document import Plan
from tests.coordinator.wording import Wording, facts, mended, printed

MS = 10**6
CLUSTER = """shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", speed: 0.5}
  b: {address: "127.0.0.1:7710"}
links: [{between: [a, b], latency: 1 ms}]
operators: operators.json
security: insecure-loopback
"""
CODE = "0" * 64
INSTALLED: dict[str, Any] = {
    "my.camera": {"kind": "source", "output": "my.Frame", "with": {"gain": {"type": "integer", "required": True}}},
    "my.imu": {"kind": "source", "output": "json", "with": {}},
    "my.lidar": {"kind": "iterator", "output": "json", "with": {}},
    "my.see": {"kind": "map", "inputs": {"frame": "my.Frame"}, "output": "json", "with": {}},
}
QUERY = """shimekiri: 1
query: robot
sources:
  beat: {at: a, every: 100 ms, offset: 3 ms}
  camera: {at: a, run: my.camera, with: {gain: 2}, every: 50 ms, max_age: 40 ms, cost: 2 ms}
  imu: {at: b, run: my.imu, every: 5 ms, tolerance: 1 ms, max_age: 4 ms}
  lidar: {at: b, run: my.lidar, arrival: {rate: 20, burst: 2}, max_age: 20 ms}
operators:
  see: {run: my.see, in: camera, cost: 2 ms, nodes: [a]}
  fast: {run: pass, in: imu, cost: 100 us, nodes: [b]}
  all: {run: union, in: [see, lidar, beat], cost: 200 us, nodes: [b]}
outputs:
  seen: {from: all, at: b, deadline: 200 ms}
  moved: {from: fast, at: b, deadline: 50 ms}
"""
WORDING = Wording("validate", "sources of a node's own")


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    def write(old: str = "", new: str = "") -> tuple[Path, Path]:
        assert QUERY.count(old) == 1 or not old, old
        query, cluster = tmp_path / "query.yaml", tmp_path / "cluster.yaml"
        query.write_text(QUERY.replace(old, new) if old else QUERY)
        cluster.write_text(CLUSTER)
        operators = {
            name: {"version": "1", "code": CODE, "inputs": {}, "side": {}, **one} for name, one in INSTALLED.items()
        }
        listing = {"shimekiri": 1, "codecs": ["my.Frame"], "operators": operators}
        (tmp_path / "operators.json").write_text(json.dumps(listing))
        return query, cluster

    return write


Files = Callable[..., tuple[Path, Path]]


def planned(files: Files, old: str = "", new: str = "") -> Plan:
    return planner.make_plan(*files(old, new), Choices())


def test_what_a_query_says_and_what_follows(files: Files) -> None:
    query = {one.name: one for one in query_reader.load(files()[0]).sources}
    assert query["beat"].pull == Pull(every_ns=100 * MS, offset_ns=3 * MS)
    assert query["beat"].arrival.written == BurstArrival(burst=1, period_ns=100 * MS), "exact"
    assert query["camera"].pull == Pull(run="my.camera", parameters={"gain": 2}, every_ns=50 * MS, cost_ns=2 * MS)
    late = query["camera"].arrival.written
    assert late == BurstArrival(burst=1, period_ns=50 * MS, tolerance_ns=50 * MS), "one call at a time, however long"
    assert query["imu"].arrival.written.tolerance_ns == MS
    assert query["imu"].pull == Pull(run="my.imu", every_ns=5 * MS, cost_ns=MS // 2, guessed=True)
    assert query["lidar"].pull == Pull(run="my.lidar", cost_ns=GUESS_NS, guessed=True)
    assert isinstance(query["lidar"].arrival.written, RateArrival)


def test_a_plan_has_them_with_their_types_and_identities(files: Files) -> None:
    plan = planned(files)
    assert {name: one.type for name, one in plan.graph.sources.items()} == {
        "beat": "json", "camera": "my.Frame", "imu": "json", "lidar": "json",
    }  # fmt: skip
    local = {source.name: source for node in plan.nodes.values() for source in node.sources}
    assert (local["beat"].pull.every_ns, local["beat"].pull.offset_ns, local["beat"].pull.run) == (100 * MS, 3 * MS, "")
    assert (local["camera"].pull.run, local["camera"].pull.with_json) == ("my.camera", '{"gain":2}')
    assert (local["lidar"].pull.run, local["lidar"].pull.every_ns) == ("my.lidar", 0)
    assert {node: {one.run for one in local.installed} for node, local in plan.nodes.items()} == {
        "a": {"my.camera", "my.see"}, "b": {"my.imu", "my.lidar", "pass", "union"},
    }  # fmt: skip
    assert plan_document.parse(plan.text().encode()) == plan
    assert audit(plan) == []


def test_the_audit_finds_a_node_that_would_make_other_tuples(files: Files) -> None:
    plan = planned(files)
    for change in ("every_ns", "offset_ns", "run", "with_json", ""):
        spoilt = plan_document.parse(plan.text().encode())
        (camera,) = (each for each in spoilt.nodes["a"].sources if each.name == "camera")
        if change:
            setattr(camera.pull, change, {"run": "my.imu", "with_json": '{"gain":3}'}.get(change, 7))
        else:
            camera.ClearField("pull")
        assert any("source camera is made otherwise" in line for line in audit(spoilt.sealed())), change


def test_a_query_comes_back_from_its_plan(files: Files) -> None:
    paths = files()
    plan = planned(files)
    query, _, _ = input_files.read_files([paths[0]], paths[1])
    found = {one.name: one for one in running_plan.read(plan).query.sources}
    for one in query.sources:
        back = found[one.name]
        assert (back.pull, back.arrival, back.max_age_ns, back.at) == (one.pull, one.arrival, one.max_age_ns, one.at)


def test_two_queries_share_a_source_that_both_declare_alike(files: Files, tmp_path: Path) -> None:
    query, cluster = files()
    other = tmp_path / "other.yaml"
    text = "\n".join(line for line in QUERY.splitlines() if "beat:" in line or "every: 5 ms" in line)
    rest = (
        "operators:\n  one: {run: union, in: [beat, imu], cost: 1 ms}\noutputs: {o: {from: one, at: b, deadline: 1 s}}"
    )
    other.write_text(f"shimekiri: 1\nquery: other\nsources:\n{text}\n{rest}")
    composed, _, _ = input_files.read_files([query, other], cluster)
    assert [one.name for one in composed.sources] == ["beat", "camera", "imu", "lidar"]
    other.write_text(other.read_text().replace("every: 100 ms, offset: 3 ms", "every: 100 ms, offset: 4 ms"))
    with pytest.raises(BadInputError) as refused:
        input_files.read_files([query, other], cluster)
    assert [(one.mistake.code, one.line) for one in refused.value.problems] == [("source_declared_differently", 4)]
    assert "offset 3 ms there, 4 ms here" in str(refused.value)


def test_a_running_plan_takes_the_same_source_again(files: Files) -> None:
    """Its type is known in the plan, and left to the function in the file."""
    paths = files()
    there = running_plan.read(planned(files))
    query, cluster, _ = input_files.read_files([paths[0]], paths[1])
    again = replace(query, name="again", outputs=tuple(replace(one, name=f"{one.name}2") for one in query.outputs))
    assert cluster is not None
    composed = compose.extend(compose.of(there.query), again, cluster)
    assert [one.name for one in composed.query.sources] == ["beat", "camera", "imu", "lidar"]


@pytest.mark.parametrize(
    ("old", "new", "code", "subject"),
    [
        (
            "beat: {at: a, every: 100 ms, offset: 3 ms}",
            "beat: {at: a, every: 25 h}",
            "out_of_range",
            "sources.beat.every",
        ),
        (
            "beat: {at: a, every: 100 ms, offset: 3 ms}",
            "beat: {at: a, every: -1 ms}",
            "not_above_zero",
            "sources.beat.every",
        ),
        (
            "beat: {at: a, every: 100 ms, offset: 3 ms}",
            "beat: {at: a, every: 100}",
            "missing_unit",
            "sources.beat.every",
        ),
        (
            "beat: {at: a, every: 100 ms, offset: 3 ms}",
            "beat: {at: c, every: 100 ms}",
            "unknown_node",
            "sources.beat.at",
        ),
        ("offset: 3 ms", "offset: 3 ms, type: my.Frame", "type_mismatch", "sources.beat.type"),
        ("offset: 3 ms", "offset: 3 ms, with: {gain: 2}", "key_without_other", "sources.beat"),
        ("offset: 3 ms", "offset: 3 ms, cost: 1 ms", "key_without_other", "sources.beat"),
        ("offset: 3 ms", "offset: 3 ms, run: ''", "too_short", "sources.beat.run"),
        ("run: my.camera, with", "run: my.camera, type: json, with", "type_mismatch", "sources.camera.type"),
        ("with: {gain: 2}", "with: {gain: much}", "parameter_type", "sources.camera.with"),
        ("with: {gain: 2}, ", "", "missing_parameter", "sources.camera.with"),
        (
            "{run: my.see, in: camera",
            "{run: pass, in: camera, side: {x: see}",
            "unknown_side_input",
            "operators.see.side.x",
        ),
        ("in: [see, lidar, beat]", "in: [see, lidar, beat, camera]", "type_mismatch", "operators.all.in"),
        ("cost: 2 ms}\n  imu", "cost: 24 ms}\n  imu", "cost_beyond_cap", "sources.camera.cost"),
        ("arrival: {rate: 20, burst: 2}", "type: json", "no_pace", "sources.lidar.arrival"),
    ],
)
def test_what_is_refused(files: Files, old: str, new: str, code: str, subject: str) -> None:
    paths = files(old, new)
    with pytest.raises(BadInputError) as refused:
        input_files.read_files([paths[0]], paths[1])
    assert mended(refused.value.problems)
    assert (code, subject) in [facts(each)[2:] for each in refused.value.problems]
    WORDING.check(f"{old} -> {new}", printed(refused.value, paths[0].parent))


def test_calls_count_against_their_node(files: Files) -> None:
    """At speed 0.5 a call of 2 ms takes 4 ms, once in 50 ms, and the unit's tuples wait for it."""
    plan, dear = planned(files), planned(files, "cost: 2 ms}\n  imu", "cost: 6 ms}\n  imu")
    bounds = [one.guarantee["seen"].bound_ns for one in (plan, dear)]
    assert bounds[0] is not None and bounds[1] is not None and bounds[1] - bounds[0] > 8 * MS
    with pytest.raises(CoordinatorError) as refused:
        planned(files, "cost: 2 ms}\n  imu", "cost: 21 ms}\n  imu")  # of 22.5, of which the operator there needs 2
    assert refused.value.exit_code == 3 and "use 8.0%, its cap is 6.0% beside the 84.0% that calls" in str(
        refused.value
    )


def test_a_tick_s_age_is_known_and_what_a_function_gives_has_to_declare_it(files: Files) -> None:
    plan = planned(files)
    assert plan.guarantee["seen"].trail[0].what == "age of camera on admission"
    ageless = planned(files, ", max_age: 40 ms", "")
    assert (
        ageless.guarantee["seen"].bound_ns is None
        and "camera admits tuples of any age" in ageless.guarantee["seen"].why
    )
    paths = files("see, lidar, beat", "beat, see")
    text = "\n".join(line for line in paths[0].read_text().splitlines() if "lidar" not in line and "camera" not in line)
    paths[0].write_text(text.replace("run: union, in: [beat, see]", "run: pass, in: beat"))
    trail = planner.make_plan(*paths, Choices()).guarantee["seen"].trail
    assert (trail[0].what, trail[0].kind) == ("until a looks at the timer beat", "age") and trail[0].ns < 10 * MS
