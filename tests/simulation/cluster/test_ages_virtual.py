"""Ages and reactions on the virtual cluster: through side inputs on another node, a timer and a fusion none is above
what the plan bounds it by."""

import json
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from coordinator.model.choices import Choices
from coordinator.report.facts.reader import read_run
from coordinator.report.report_document import Report
from coordinator.report.verdict import verdict
from coordinator.solve import planner
from coordinator.spec.runtime_charges import NOTHING
from node_agent.operators.registry import Registry
from node_agent.virtual.run import simulate, write_run
from node_agent.virtual.scenario import Scenario
from protos.plan_document import Plan
from tests.seeds import seeds

MS = 1_000_000
OPERATORS = Path(__file__).parents[1] / "operators_for_tests.py"
CLUSTER = """
shimekiri: 1
operators: operators.json
nodes: {a: {address: '127.0.0.1:1'}, b: {address: '127.0.0.1:2'}}
links: [{between: [a, b], latency: 3 ms, bandwidth: 100 Mbit/s}]
"""
QUERY = """
shimekiri: 1
query: cyclic
sources:
  camera: {at: a, type: json, arrival: {period: 30 ms}, max_age: 6 ms}
  speed: {at: b, type: json, arrival: {period: 30 ms}, max_age: 4 ms}
  map: {at: b, type: json, arrival: {period: 30 ms}, max_age: 4 ms}
  tick: {at: a, every: 25 ms}
operators:
  see: {run: test.attach, in: camera, side: {ref: speed}, cost: 2 ms, nodes: [b]}
  steer: {run: test.attach, in: tick, side: {ref: see}, cost: 1 ms, nodes: [a]}
  both: {run: join, in: [camera, speed], sync: {on: all, timeout: 40 ms}, cost: 1 ms, nodes: [b]}
  near: {run: test.attach, in: both, side: {ref: {from: map, max_age: 80 ms}}, cost: 1 ms, nodes: [b]}
outputs:
  wheel: {from: steer, at: b, deadline: 30 ms, age: 200 ms, reaction: 200 ms}
  pair: {from: near, at: a, deadline: 120 ms, age: {limit: 150 ms, without: [map]}, reaction: 300 ms}
"""


def planned() -> Plan:
    registry = Registry([OPERATORS])
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "query.yaml").write_text(QUERY)
        (folder / "cluster.yaml").write_text(CLUSTER)
        (folder / "operators.json").write_text(json.dumps(registry.describe()))
        choices = Choices(allocator="sqpr", sub_deadlines="proportional", policy="edf", charges=NOTHING)
        return planner.make_plan(folder / "query.yaml", folder / "cluster.yaml", choices)


def measured(plan: Plan, seed: int, path: Path) -> Report:
    dice = Random(seed)
    phases = {name: dice.randrange(30) * MS for name in ("camera", "speed", "map")}
    ages = {"camera": dice.randrange(6) * MS, "speed": dice.randrange(4) * MS, "map": dice.randrange(4) * MS}
    registry = Registry([OPERATORS])
    write_run(simulate(plan, Scenario(seed=seed, bursts=40, phase_ns=phases, ages_ns=ages), registry), path)
    return verdict(read_run(path))


@pytest.mark.parametrize("seed", seeds(range(4)))
def test_nothing_is_above_its_bound(seed: int, tmp_path: Path) -> None:
    report = measured(planned(), seed, tmp_path / "run")
    assert report.conservation.balanced
    wheel, pair = report.freshness["wheel"], report.freshness["pair"]
    assert set(wheel.reactions) == {"camera", "speed", "tick"}
    assert set(pair.reactions) == {"camera", "speed", "map"}
    for name, found in report.freshness.items():
        assert found.age is not None and found.age.results, name
        assert found.age.bound_ns is not None and found.age.above_bound == 0, (name, seed)
        assert found.age.age_ns.max is not None and found.age.age_ns.max <= found.age.bound_ns, (name, seed)
        for source, reaction in found.reactions.items():
            told = (name, source, reaction, seed)
            assert reaction.answered, told
            if reaction.bound_ns is not None:
                assert reaction.reaction_ns.max is not None and reaction.reaction_ns.max <= reaction.bound_ns, told
    assert wheel.age is not None and wheel.age.age_ns.max is not None and wheel.age.bound_ns is not None
    assert wheel.age.age_ns.max > wheel.age.bound_ns // 3, seed
