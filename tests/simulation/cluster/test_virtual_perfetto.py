"""`coordinator report --perfetto` of runs in virtual time: a core does one thing at a time, arrows reach over nodes."""

from itertools import pairwise
from pathlib import Path

import pytest

from coordinator.report.facts.reader import read_run
from coordinator.report.perfetto import chrome_file
from node_agent.virtual.run import simulate, write_run
from node_agent.virtual.scenario import Scenario
from protos.plan_document import Plan
from tests.coordinator.report.perfetto.test_report_perfetto import check_format, events
from tests.simulation.planned_queries import MS, planned

QUERY = """
shimekiri: 1
query: two
sources:
  p: {at: a, type: json, arrival: {burst: 20, period: 100 ms}}
operators:
  near: {run: pass, in: p, cost: 1 ms, nodes: [a]}
  far: {run: pass, in: near, cost: 1 ms, nodes: [b]}
  last: {run: pass, in: far, cost: 1 ms, nodes: [a]}
outputs:
  out: {from: last, at: a, deadline: 90 ms}
"""

CLUSTER = """
shimekiri: 1
nodes: {a: {address: "127.0.0.1:7700", memory: 64 MiB}, b: {address: "127.0.0.1:7710", memory: 64 MiB}}
links: [{between: [a, b], latency: 1 ms}]
operators: operators.json
security: insecure-loopback
"""


@pytest.fixture(scope="module")
def plan() -> Plan:
    return planned(QUERY, CLUSTER)


@pytest.mark.parametrize("policy", ["edf", "bts", "rr"])
def test_a_core_does_one_thing_at_a_time(plan: Plan, tmp_path: Path, policy: str) -> None:
    write_run(simulate(plan, Scenario(policy=policy, decision_ns=MS // 10, bursts=2)), tmp_path / "run")
    counts = chrome_file.write(read_run(tmp_path / "run"), tmp_path / "out.json", chrome_file.Part(), lambda _: None)
    found = events(tmp_path / "out.json")
    check_format(found)
    assert counts["ran"] == 3 * counts["result"] == 3 * 40 and counts["link"] == 2 * 40
    cores: dict[object, list[tuple[float, float]]] = {}
    for each in found:
        if each["ph"] == "X":
            cores.setdefault(each["tid"], []).append((each["ts"], -each["ts"] - each["dur"]))
    for spans in cores.values():
        for (_, before), (since, until) in pairwise(sorted(spans)):
            assert since >= -before or -until <= -before, "one after the other, or beneath each other as a batch is"
    arrows = [(each["ph"], each["pid"]) for each in found if each["ph"] in "stf"]
    assert set(arrows) == {("s", 1), ("t", 2), ("f", 1)} and len(arrows) == 3 * 40
