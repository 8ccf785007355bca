"""Cores and speeds in virtual time: what plan, bound and simulated node make of the same cluster file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coordinator.errors import InfeasibleError
from coordinator.guarantee.bounds import bounds
from coordinator.model import problem
from coordinator.model.choices import Choices
from coordinator.solve import planner
from coordinator.spec import input_files
from coordinator.spec.runtime_charges import NOTHING
from node_agent.virtual.run import simulate
from node_agent.virtual.scenario import Scenario
from protos.plan_document import Plan
from tests.coordinator.wording import named

MS = 10**6
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", cores: 2}
  b: {address: "127.0.0.1:7710", speed: 2, cap: 0.5}
"""
QUERY = """
shimekiri: 1
query: q
sources:
  s: {at: a, type: json, arrival: {burst: 5, period: 100 ms}, max_age: 1 ms}
operators:
  one: {run: pass, in: s, cost: 4 ms}
outputs:
  out: {from: one, at: a, deadline: 60 ms}
"""


def _files(folder: Path, query: str = QUERY) -> tuple[Path, Path]:
    (folder / "query.yaml").write_text(query)
    (folder / "cluster.yaml").write_text(CLUSTER)
    return folder / "query.yaml", folder / "cluster.yaml"


def _plan(folder: Path, query: str = QUERY, **choices: Any) -> Plan:
    return planner.make_plan(*_files(folder, query), Choices(charges=NOTHING, **choices))


@pytest.mark.parametrize(("place", "took_ns"), [("a.0", 20 * MS), ("a.1", 20 * MS + 1_000_000), ("b", 10 * MS)])
def test_speed_and_cores_in_the_plan_the_bound_and_virtual_time(tmp_path: Path, place: str, took_ns: int) -> None:
    """Five tuples of 4 ms: 20 ms on a core of a, to and fro between its cores 500 us each, 10 ms on b."""
    query, cluster, _ = input_files.read_files(*_files(tmp_path))
    assert cluster is not None
    built = problem.build(query, cluster, {})
    assert built.items[0].cost_ns == {0: 20 * MS, 1: 20 * MS, 2: 10 * MS}  # (6), per burst
    plan = _plan(tmp_path, place={"one": place})
    claim = bounds(plan, NOTHING)["out"]
    done = simulate(plan, Scenario(bursts=3))
    assert claim.from_admission_ns == took_ns == max(done.outputs["out"].latencies_ns)
    assert done.failures == ()


def test_two_cores_serve_side_by_side(tmp_path: Path) -> None:
    """Both operators of a burst need 20 ms; on one core one of them would take 40 of the 30 there are."""
    query = QUERY.replace("60 ms", "30 ms").replace("outputs:", "  two: {run: pass, in: s, cost: 4 ms}\noutputs:")
    query += "  other: {from: two, at: a, deadline: 30 ms}\n"
    query = query.replace("cost: 4 ms}", "cost: 4 ms, nodes: [a]}")
    for model in ("paper", "sound"):
        plan = _plan(tmp_path, query, model=model)
        assert sorted(plan.placement.values()) == ["a", "a.1"]
        done = simulate(plan, Scenario(bursts=3))
        for name, claim in bounds(plan, NOTHING).items():
            assert claim.guaranteed and max(done.outputs[name].latencies_ns) <= (claim.bound_ns or 0)
        with pytest.raises(InfeasibleError):
            _plan(tmp_path, query.replace("nodes: [a]", "nodes: [a.1]"), model=model)


def test_a_cap_is_of_what_the_speed_makes_of_costs(tmp_path: Path) -> None:
    """5 x 20 ms / 2 every 100 ms are 50 % of b, its cap; a little more has no room there."""
    query = QUERY.replace("60 ms", "1 s").replace("4 ms}", "20 ms, nodes: [b]}")
    assert _plan(tmp_path, query, model="paper").placement["one"] == "b"
    with pytest.raises(InfeasibleError) as raised:
        _plan(tmp_path, query.replace("20 ms", "20.1 ms"), model="paper")
    assert named(raised.value.mistakes) == [("cap_exceeded", "b")]
