"""In virtual time: a node whose memory is full sheds where its source says so, and a source's limit holds."""

from collections import Counter
from pathlib import Path

import pytest

from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from node_agent.virtual.run import Simulation, simulate, write_run
from node_agent.virtual.scenario import Scenario
from protos import records
from tests.simulation.planned_queries import planned
from tests.simulation.random_plans import registry

QUERY = """
shimekiri: 1
query: full
sources:
  s: {at: a, type: json, arrival: {burst: 200, period: 1000 ms}SOURCE}
operators:
  only: {run: pass, in: s, cost: 1 msOPERATOR}
outputs:
  out: {from: only, at: a, deadline: 500 ms}
"""
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", memory: MEMORY, cap: 1}
links: []
operators: operators.json
security: insecure-loopback
"""


def ran(source: str = "", operator: str = "", memory: str = "64 MiB") -> Simulation:
    query = QUERY.replace("SOURCE", source).replace("OPERATOR", operator)
    made = planned(query, CLUSTER.replace("MEMORY", memory), registry=registry())
    return simulate(made, Scenario(policy="fifo"), registry())


def shed(done: Simulation) -> Counter[str]:
    facts = records.unpack_records(done.traces[0].records)
    return Counter(records.SHED_POLICIES[fact.policy] for fact in facts if isinstance(fact, records.Shed))


def balanced(done: Simulation, folder: Path) -> bool:
    write_run(done, folder)
    return bool(verdict(read_run(folder)).document()["conservation"]["balanced"])


@pytest.mark.parametrize("on_full", ["drop-tail", "front"])
def test_a_full_node_sheds_in_virtual_time_as_well(on_full: str, tmp_path: Path) -> None:
    """A hundred of the burst's two hundred tuples fill it."""
    done = ran(f", on_full: {on_full}", memory="64 KiB")
    assert set(shed(done)) == {"memory"} and 40 <= shed(done)["memory"] <= 160
    assert balanced(done, tmp_path / "run")
    assert not shed(ran(memory="64 KiB")), "who refuses does so before admission, which is not simulated"


def test_a_limited_queue_and_a_limited_source_shed_in_virtual_time_as_well(tmp_path: Path) -> None:
    limited = ran(", max_rate: {tuples: 50, per: 1 s}")
    assert shed(limited) == {"rate": 150} and balanced(limited, tmp_path / "limited")
    queue = ran("", ", queue: {most: 16 KiB, on_full: front}")
    assert set(shed(queue)) == {"memory"} and balanced(queue, tmp_path / "queue")
