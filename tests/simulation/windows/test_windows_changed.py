"""Windows that stay while a query with windows of its own over the same source is added, and removed again: none is
lost by that, and none is later than the bounds of the plans and of the change allow."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from coordinator.change import next_plan
from coordinator.change.next_plan import Wish
from coordinator.model.choices import Choices
from coordinator.model.limits import Limits
from coordinator.solve import planner
from coordinator.spec.runtime_charges import NOTHING
from node_agent.virtual.change_schedule import Change
from node_agent.virtual.run import simulate
from node_agent.virtual.scenario import Scenario
from protos import records
from protos.plan.guarantee import Claim
from protos.plan_document import Plan
from tests.simulation.windows.test_windows_guaranteed import facts
from tests.simulation.windows.window_queries import registry
from tests.simulation.windows.window_worlds import MS, Dense

LIMITS = Limits(seconds=60.0)
SOURCE = "  s: {at: a, type: json, max_age: 20 ms, arrival: {burst: 2, period: 20 ms}}\n"
FIRST = f"""\
shimekiri: 1
query: first
sources:
{SOURCE}operators:
  F: {{run: pass, in: s, cost: 400 us}}
  W: {{run: aggregate, with: {{n: count}}, in: F, cost: 200 us,
      window: {{time: 240 ms, hop: 120 ms, close: 2 ms, shed: none}}}}
outputs:
  out: {{from: W, at: a, deadline: 300 ms}}
"""
SECOND = f"""\
shimekiri: 1
query: second
sources:
{SOURCE}operators:
  F: {{run: pass, in: s, cost: 400 us}}
  V: {{run: aggregate, with: {{v: sum}}, in: F, cost: 300 us, window: {{time: 40 ms, close: 1 ms, shed: none}}}}
outputs:
  fast: {{from: V, at: b, deadline: 250 ms}}
"""
CLUSTER = """\
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", memory: 64 MiB, cap: 1}
  b: {address: "127.0.0.1:7710", memory: 64 MiB, cap: 1}
links: [{between: [a, b], latency: 2 ms, bandwidth: 20 Mbit/s}]
operators: operators.json
security: insecure-loopback
"""


Plans = tuple[Plan, next_plan.Change, next_plan.Change]


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Plans:
    """The first query's, the second one added, and removed again."""
    folder: Path = tmp_path_factory.mktemp("plans")
    for name, text in (("first.yaml", FIRST), ("second.yaml", SECOND), ("cluster.yaml", CLUSTER)):
        (folder / name).write_text(text)
    (folder / "operators.json").write_text(json.dumps(registry().describe()))
    choices = Choices(quick=True, charges=NOTHING, limits=LIMITS)
    one = planner.make_plan([folder / "first.yaml"], folder / "cluster.yaml", choices)
    both = next_plan.added(one, folder / "plan.json", folder / "second.yaml", Wish(LIMITS))
    assert both.after is not None, both.verdict.reasons
    return one, both, next_plan.removed(both.after, folder / "plan.json", ["second"])


@pytest.mark.parametrize(("seed", "spread_ms"), [(1, 0), (2, 40), (3, 150)])
def test_windows_that_stay_are_given_and_in_time(plans: Plans, seed: int, spread_ms: int) -> None:
    one, added, removed = plans
    assert added.verdict.admitted, added.verdict.reasons
    assert added.after is not None
    assert removed.after is not None
    assert removed.verdict.admitted, removed.verdict.reasons
    claims: list[Claim | None] = [
        plan.guarantee["first.out" if "first.out" in plan.guarantee else "out"] for plan in (one, added.after)
    ]
    claims += [row.during for step in (added, removed) for row in step.verdict.rows if row.output.endswith("out")]
    limit_ns = max(claim.bound_ns for claim in claims if claim is not None and claim.bound_ns is not None)
    at = (600 + 37 * seed) * MS, (1000 + 41 * seed) * MS
    then = [Change(added.after, at[0]), Change(removed.after, at[1])]
    scenario = Scenario(seed=seed, spread_ns=spread_ms * MS)
    done = simulate(one, scenario, registry(), Dense(one, seed), then=then)
    given = [fact for fact in facts(done) if isinstance(fact, records.Window) and fact.state == records.WINDOW_CLOSED]
    assert {fact.end - fact.start for fact in given} == {240 * MS, 40 * MS}
    ends = sorted(fact.end for fact in given if fact.end - fact.start == 240 * MS)
    assert [later - end for end, later in pairwise(ends)] == [120 * MS] * (len(ends) - 1)
    shed = {fact.policy for fact in facts(done) if isinstance(fact, records.Shed)}
    assert shed <= {records.POLICY_WINDOW}, "windows of the removed query end with it, and nothing is policed"
    for name, output in done.outputs.items():
        if name.endswith("out"):
            assert 0 < max(output.latencies_ns) <= limit_ns
