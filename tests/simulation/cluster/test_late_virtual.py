"""In virtual time: tuples that can meet no deadline any more are dropped, or a cheaper operator runs on them."""

from pathlib import Path
from typing import Any

import pytest

from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from node_agent.virtual.run import Simulation, simulate, write_run
from node_agent.virtual.scenario import Scenario
from protos import records
from tests.simulation.planned_queries import MS, planned
from tests.simulation.random_plans import registry

QUERY = """
shimekiri: 1
query: late
sources:
  s: {at: a, type: json, arrival: {burst: 20, period: 1000 ms}}
operators:
  first: {run: pass, in: s, cost: 4 ms}
  dear:  {run: pass, in: first, cost: 16 ms, on_late: LATE}
outputs:
  out: {from: dear, at: a, deadline: 100 ms}
"""
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", memory: 64 MiB, cap: 1}
links: []
operators: operators.json
security: insecure-loopback
"""


def ran(late: str, units: Any = "path") -> Simulation:
    made = planned(QUERY.replace("LATE", late), CLUSTER, registry=registry(), units=units)
    return simulate(made, Scenario(policy="fifo"), registry())


def kinds(done: Simulation, kind: int) -> int:
    facts = records.unpack_records(done.traces[0].records)
    return sum(fact.kind == kind for fact in facts)


@pytest.mark.parametrize("units", ["path", "operator"])
def test_what_is_late_is_dropped_before_it_costs_more(units: str, tmp_path: Path) -> None:
    done = ran("drop", units)
    free = ran("deliver", units)
    assert len(free.outputs["out"].latencies_ns) == 20
    assert done.outputs["out"].met >= free.outputs["out"].met > 0
    shed = kinds(done, records.SHED)
    assert shed > 0 and len(done.outputs["out"].latencies_ns) == 20 - shed
    assert max(done.outputs["out"].latencies_ns) <= 100 * MS, "nothing late is given"
    write_run(done, tmp_path / "run")
    books = verdict(read_run(tmp_path / "run")).document()["conservation"]
    assert books["balanced"] and sum(books["by_cause"].values()) == shed


@pytest.mark.parametrize("units", ["path", "operator"])
def test_nothing_late_is_given_where_operators_cost_more_than_declared(units: str, tmp_path: Path) -> None:
    made = planned(QUERY.replace("LATE", "drop"), CLUSTER, registry=registry(), units=units)
    done = simulate(made, Scenario(policy="fifo", cost_scale=2.5, burst={"s": 4}), registry())
    given = done.outputs["out"].latencies_ns
    assert 0 < len(given) < 4 and max(given) <= 100 * MS
    write_run(done, tmp_path / "run")
    told = verdict(read_run(tmp_path / "run")).document()
    assert told["conservation"]["balanced"] and told["outputs"]["out"]["late"] == 0
    assert told["outputs"]["out"]["shed"] == 4 - len(given)


def test_a_cheaper_operator_runs_on_what_is_late_at_its_own_cost(tmp_path: Path) -> None:
    done = ran("{degrade: {run: pass, cost: 1 ms}}", "operator")
    degraded = kinds(done, records.DEGRADED)
    assert 0 < degraded < 20 and len(done.outputs["out"].latencies_ns) == 20
    # 20 tuples of 4 ms, and 16 ms for each that was in time.
    assert max(done.outputs["out"].latencies_ns) == (20 * 4 + 16 * (20 - degraded) + degraded) * MS
    write_run(done, tmp_path / "run")
    assert verdict(read_run(tmp_path / "run")).document()["conservation"]["balanced"]
