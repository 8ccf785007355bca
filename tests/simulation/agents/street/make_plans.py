"""Makes the stored plans of the street: `python -m tests.simulation.agents.street.make_plans`."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from coordinator.model.choices import Choices
from coordinator.plan import plan_file
from coordinator.solve import planner
from node_agent.operators.registry import Registry
from protos.plan_document import Plan
from tests.simulation.agents.street import street_operators

QUERY = """shimekiri: 1
query: street
sources:
  s: {at: a, type: json, max_age: 400 ms, arrival: {burst: 60, period: 500 ms}}
  t: {at: b, type: json, max_age: 300 ms, arrival: {burst: 8, period: 500 ms}}
operators:
  kept:   {run: street.keep, in: s, cost: 50 us, nodes: [a]}
  counts: {run: street.numbers, in: kept, cost: 50 us, WINDOWED
           window: {time: 300 ms, hop: 150 ms, lateness: 20 ms, wait: 500 ms, close: 50 us, shed: none}}
  fast:   {run: street.mark, in: kept, with: {by: fast}, cost: 100 us, nodes: [b], on_late: drop}
  lean:   {run: street.mark, in: t, with: {by: left}, cost: 50 us, LEFT}
  rest:   {run: street.mark, in: t, with: {by: right}, cost: 50 us, RIGHT}
  both:   {run: street.pair, in: {left: lean, right: rest}, cost: 50 us, JOINED}
  beside: {run: street.mark, in: s, with: {by: beside}, cost: 50 us, nodes: [a]}
  near:   {run: street.attach, in: t, side: {beside: beside}, cost: 200 us, nodes: [b]}
outputs:
  counted: {from: counts, at: c, deadline: 900 ms}
  fast:    {from: fast, at: b, deadline: 600 ms}
  pair:    {from: both, at: c, deadline: 600 ms}
  near:    {from: near, at: b, deadline: 500 ms}
"""
CLUSTER = """shimekiri: 1
operators: operators.json
nodes:
  a: {address: "127.0.0.1:7700", policy: edf}
  b: {address: "127.0.0.2:7700", policy: edf}
  c: {address: "127.0.0.3:7700", policy: edf}
links:
  - {between: [a, b], latency: 1 ms, bandwidth: 100 Mbit/s}
  - {between: [b, c], latency: 1 ms, bandwidth: 100 Mbit/s}
  - {between: [a, c], latency: 1 ms, bandwidth: 100 Mbit/s}
"""
PLACES = {
    "street_first": {"WINDOWED": "nodes: [c],", "LEFT": "nodes: [b]", "RIGHT": "nodes: [c]", "JOINED": "nodes: [c]"},
    "street_second": {"WINDOWED": "nodes: [c],", "LEFT": "nodes: [a]", "RIGHT": "nodes: [b]", "JOINED": "nodes: [b]"},
}  # fmt: skip


def planned(query: str, registry: Registry) -> Plan:
    """Guaranteed, so that nodes police what comes."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "query.yaml").write_text(query)
        (folder / "cluster.yaml").write_text(CLUSTER)
        (folder / "operators.json").write_text(json.dumps(registry.describe()))
        choices = Choices(allocator="deadline", model="sound")
        return planner.make_plan(folder / "query.yaml", folder / "cluster.yaml", choices)


def main() -> None:
    """Beside the other plans of whole agents."""
    registry = Registry([Path(street_operators.__file__)])
    for name, places in PLACES.items():
        query = QUERY
        for word, held in places.items():
            query = query.replace(word, held)
        plan = planned(query, registry)
        plan_file.write(plan, Path(__file__).parents[1] / "plans" / f"{name}.json")
        print(name, plan.hash[:8], dict(plan.placement))


if __name__ == "__main__":
    main()
