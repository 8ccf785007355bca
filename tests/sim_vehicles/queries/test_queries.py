"""The queries that come with the vehicles: what the cluster says is installed is what is installed here."""

import json
from dataclasses import replace
from pathlib import Path

from coordinator.model.choices import Choices
from coordinator.solve import planner
from coordinator.spec import input_files
from node_agent.operators.registry import Registry
from protos import records
from protos.segments import records_in
from sim_vehicles.closed_loop.in_virtual_time import replay_virtual
from sim_vehicles.encounter.brake import AUTO
from sim_vehicles.replay.preparation import Options, prepare

QUERIES = Path(__file__).resolve().parents[3] / "sim_vehicles" / "queries"


def test_the_clusters_operators_are_those_installed_here() -> None:
    written = json.loads((QUERIES / "operators.json").read_text())
    mend = "make it again: node-agent operators --json > sim_vehicles/queries/operators.json"
    assert written == Registry().describe(), mend


def test_all_21_operators_of_the_query_have_a_manual() -> None:
    registry = Registry()
    installed = registry.describe()["operators"]
    vehicles = [name for name in installed if name.startswith("vehicle.")]
    assert len(vehicles) == 21
    for name in vehicles:
        assert registry.signature(name).implementation.__doc__, f"{name} says neither unit nor source"


def test_every_shipped_query_is_valid_on_the_shipped_cluster() -> None:
    found = sorted(path for path in QUERIES.glob("*.yaml") if not path.name.startswith("cluster"))
    names = ["collision_guaranteed", "collision_paper", "collision_streets", "collision_warning", "fleet_monitor"]
    assert [path.stem for path in found] == names
    for path in found:
        query, _, _ = input_files.read_files(path, QUERIES / "cluster_paper.yaml")
        assert query.name == path.stem


def test_the_guaranteed_query_is_the_warnings_with_other_promises() -> None:
    """Same operators, O3 with another threshold; every source says how old its tuples may be, every selective operator
    what its worst case is."""
    warning, _, _ = input_files.read_files(QUERIES / "collision_warning.yaml", None)
    sure, _, _ = input_files.read_files(QUERIES / "collision_guaranteed.yaml", None)
    for ours, theirs in zip(sure.operators, warning.operators, strict=True):
        parameters = {**ours.parameters, "min_closing_mps": 0.5} if ours.name == "O3" else ours.parameters
        assert replace(ours, selectivity=None, keys=(), parameters=parameters) == replace(
            theirs, selectivity=None, keys=()
        )
    assert [(each.name, each.origin, each.at, each.deadline_ns) for each in sure.outputs] == [
        (each.name, each.origin, each.at, each.deadline_ns) for each in warning.outputs
    ]
    assert all(source.max_age_ns for source in sure.sources)
    assert all(each.selectivity is None or each.selectivity.at_most for each in sure.operators)
    deadlines = {output.name: output.deadline_ns for output in sure.outputs}
    ages = {source.name: source.max_age_ns for source in sure.sources}
    assert ages["sensor"] < deadlines["control"] and ages["v2v"] < deadlines["warning"]
    assert ages["centre"] < deadlines["advisory"]
    assert ages["v2v"] > 100_000_000, "a replay's measurements are up to 100 ms old when they are sent"


def test_a_replay_keeps_what_the_guaranteed_query_declares(tmp_path: Path) -> None:
    """No more of any inputs in a row pass O3 than declared, in the recorded motion with the ego braking. With O3 beside
    O2 they are one unit, whose records say what passed."""
    query, cluster = QUERIES / "collision_guaranteed.yaml", QUERIES / "cluster_paper.yaml"
    plan = planner.make_plan(query, cluster, Choices(model="paper", place={"O3": "a"}))
    (unit,) = [task.id for task in plan.tasks["a"] if task.operators == ("O2", "O3")]
    (tmp_path / "plan.json").write_text(plan.text())
    prepared = prepare(Options("crossing_50", virtual=tmp_path / "plan.json"))
    laps = replay_virtual(
        plan, prepared.scenario, prepared.feeds, prepared.inputs.options, AUTO, 4, 1, Registry(), tmp_path / "run"
    ).laps
    assert len(laps) == 4
    (trace,) = (tmp_path / "run" / "trace" / "raw" / "a").glob("*/*.trace")
    passed: dict[int, list[tuple[int, int]]] = {}
    for fact in records.unpack_records(records_in(trace.read_bytes())):
        if fact.kind == records.RAN and fact.ref == unit:
            passed.setdefault(fact.epoch, []).append((fact.seq, fact.last & 0xFF))
        assert fact.kind != records.SHED
    selectivity = plan.graph.operators["O3"].selectivity
    assert selectivity is not None
    for k, m in selectivity.at_most:
        most = 0
        for each in passed.values():
            row = [count for _, count in sorted(each)]
            most = max(most, *(sum(row[i : i + k]) for i in range(len(row) - k + 1)))
        assert 0 < most <= m, f"{most} of {k} in a row, {m} are declared"
