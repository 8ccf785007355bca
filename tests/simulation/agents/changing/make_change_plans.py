"""Makes the stored plans of changes: `python -m tests.simulation.agents.changing.make_change_plans`.

changes_base       s -> a: x -> b: y -> c: z -> out      b: y -> mid        t -> b: w -> c: v -> (b) side
changes_grown      the same, and what `add` makes of it  a: x -> c: q -> (a) more
changes_reduced    what `remove` makes of that: base again, as a plan that keeps what runs
changes_spare      s -> a: x -> c: y -> c: z -> out      c: y -> (b) mid    t -> b: w -> c: v -> (b) side
changes_survivors  its fail-over plan without c          a: x -> .: y -> mid        t -> b: w -> .: v -> side
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from coordinator.change import next_plan
from coordinator.change.next_plan import Wish
from coordinator.model.choices import Choices
from coordinator.model.limits import Limits
from coordinator.plan import plan_file
from coordinator.solve import planner
from node_agent.operators.registry import Registry
from protos.plan_document import Plan
from tests.simulation.agents.changing import changing_operators

QUERY = """shimekiri: 1
query: line
sources:
  s: {at: a, type: json, arrival: {burst: 30, period: 500 ms}}
  t: {at: b, type: json, arrival: {burst: 30, period: 500 ms}}
operators:
  x: {run: pass, in: s, cost: 500 us, nodes: [a]}
  y: {run: changing.count, in: x, cost: 500 us, COUNTED}
  z: {run: pass, in: y, cost: 500 us, nodes: [c]}
  w: {run: pass, in: t, cost: 500 us, nodes: [b]}
  v: {run: pass, in: w, cost: 500 us, VIEWED}
outputs:
  out:  {from: z, at: c, deadline: 300 ms}
  mid:  {from: y, at: b, deadline: 200 ms}
  side: {from: v, at: b, deadline: 250 ms}
"""
MORE = """shimekiri: 1
query: more
sources:
  s: {at: a, type: json, arrival: {burst: 30, period: 500 ms}}
operators:
  first: {run: pass, in: s, cost: 500 us, nodes: [a]}
  q: {run: pass, in: first, cost: 500 us, nodes: [c]}
outputs:
  more: {from: q, at: a, deadline: 250 ms}
"""
CLUSTER = """shimekiri: 1
operators: operators.json
nodes:
  a: {address: "127.0.0.1:7700"}
  b: {address: "127.0.0.2:7700"}
  c: {address: "127.0.0.3:7700", speed: 8}
links:
  - {between: [a, b], latency: 1 ms, bandwidth: 100 Mbit/s}
  - {between: [b, c], latency: 1 ms, bandwidth: 100 Mbit/s}
  - {between: [a, c], latency: 1 ms, bandwidth: 100 Mbit/s}
"""
CHOICES = Choices(allocator="sqpr", sub_deadlines="proportional")


def _planned(folder: Path, words: Mapping[str, str], choices: Choices) -> Plan:
    query = QUERY
    for word, held in words.items():
        query = query.replace(word, held)
    (folder / "query.yaml").write_text(query)
    return planner.make_plan(folder / "query.yaml", folder / "cluster.yaml", choices)


def made() -> dict[str, Plan]:
    """By name."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cluster.yaml").write_text(CLUSTER)
        (folder / "more.yaml").write_text(MORE)
        registry = Registry([Path(changing_operators.__file__)])
        (folder / "operators.json").write_text(json.dumps(registry.describe()))
        base = _planned(folder, {"COUNTED": "nodes: [b]", "VIEWED": "nodes: [c]"}, CHOICES)
        added = next_plan.added(base, folder / "base.json", folder / "more.yaml", Wish(Limits(), best_effort=True))
        assert added.after is not None and added.verdict.admitted and added.shared, added.verdict
        reduced = next_plan.removed(added.after, folder / "grown.json", ["more"]).after
        assert reduced is not None
        spare = _planned(
            folder, {"COUNTED": "nodes: [b, c]", "VIEWED": "nodes: [a, b, c]"}, replace(CHOICES, survive=1)
        )
        assert spare.failover is not None
        survivors = spare.failover["c"].plan
        assert survivors is not None
        return {"base": base, "grown": added.after, "reduced": reduced, "spare": spare, "survivors": survivors}


def main() -> None:
    """Beside the other plans of whole agents."""
    for name, plan in made().items():
        plan_file.write(plan, Path(__file__).parents[1] / "plans" / f"changes_{name}.json")
        print(name, plan.hash[:8], dict(plan.placement))


if __name__ == "__main__":
    main()
