"""The collision query guaranteed: the figures of theory 3, and the query that is shipped. In the virtual cluster no
output exceeds its bound, for all arrivals, phases, ages and selectivities that the declarations allow.

    .venv/bin/python -m pytest -s -m '' tests/simulation/guarantees/test_guaranteed_query.py

prints how near the worst comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random

import pytest

from coordinator.calculus.curves import Spanned
from coordinator.guarantee.bounds import bounds
from coordinator.guarantee.system import arrival_curve
from coordinator.model.choices import Choices
from coordinator.solve import planner
from coordinator.spec.runtime_charges import MEASURED, NOTHING
from node_agent.operators.registry import Registry
from node_agent.virtual.run import simulate
from node_agent.virtual.scenario import Scenario
from node_agent.virtual.world import Admission, Delivery, Offer
from protos import plan_document
from protos.plan.arrivals import BurstArrival, JcpArrival
from protos.plan_document import Plan
from tests.coordinator.guarantee.written_plans import FREE, written
from tests.sampling import sample
from tests.simulation.guarantees.edf_node import instants
from tests.simulation.guarantees.operators_for_guarantees import __file__ as operators_file
from tests.simulation.planned_queries import MS, QUERIES

TRIALS = (60, 300)  # 60: some of each kind, see `Allowed.begin`
SEED = 20261122
PERIODS = 2


@cache
def shipped() -> Plan:
    """The plan of the shipped query on the paper's nodes, as anyone gets it."""
    query, cluster = QUERIES / "collision_guaranteed.yaml", QUERIES / "cluster_paper.yaml"
    return planner.make_plan(query, cluster, Choices(model="sound"))


@cache
def theory() -> Plan:
    """n = 15 once a second, O3 on b, no age, no link delay, virtual time; the least bound of the warning."""
    query = (QUERIES / "collision_paper.yaml").read_text()
    query = query.replace("burst: 20", "burst: 15").replace("500 ms", "1000 ms").replace(", max_age: 1 s", "")
    cluster = (QUERIES / "cluster_paper.yaml").read_text()
    links = next(line for line in cluster.splitlines() if line.startswith("links"))
    return written(query, cluster.replace(links, FREE), model="sound", tighten="warning", place={"O3": "b"})


class Allowed:
    """A world of arrivals, ages and selectivities within what a plan declares: as dense as may be at first, with
    every source a little before the others in turn; then drawn."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self.sources = plan.graph.sources
        self.pairs = [(1, 1), *plan.graph.operators["O3"].declared.at_most]
        self.seed = seed

    def begin(self, trial: int) -> Sequence[Admission]:
        draw = Random(self.seed * 100_000 + trial)
        found: list[Admission] = []
        for number, (name, source) in enumerate(self.sources.items()):
            curve = arrival_curve(source.arrival)
            assert isinstance(curve, Spanned) and isinstance(source.arrival, BurstArrival | JcpArrival)
            period_ns, most = source.arrival.period_ns, PERIODS * source.arrival.burst
            if trial <= 4:  # all at once, and each of the three a nanosecond before the others
                phase_ns, slack = int(trial > 1 and number != trial - 2), [0]
            elif trial <= 40:
                phase_ns, slack = draw.randint(0, 60) * MS // 2, [0]
            else:
                phase_ns = draw.randint(0, period_ns)
                slack = draw.choice([[0], [0, 0, 0, MS], [0, 0, 1, 3 * MS], [0, draw.randint(0, 20 * MS)]])
            moments = self._moments(curve, PERIODS * period_ns, slack, draw)[:most]
            share = 1.0 if trial <= 20 else draw.choice([1.0, 0.9, 0.5])
            picks = self._picks(len(moments), share, draw)
            ages = [self._age(source.max_age_ns, trial, draw) for _ in moments]
            found += [
                Admission(phase_ns + at, name, (Offer({"passes": passes}, age_ns),))
                for at, passes, age_ns in zip(moments, picks, ages, strict=True)
            ]
        return sorted(found, key=lambda each: each.at_ns)  # stable: sources of one instant in the query's order

    def _moments(self, curve: Spanned, until_ns: int, slack: Sequence[int], draw: Random) -> list[int]:
        return instants(lambda n: int(curve.span(n)), until_ns, lambda: draw.choice(slack))

    def _picks(self, length: int, share: float, draw: Random) -> list[bool]:
        """Which V2V tuples pass O3: never more of any k in a row than declared."""
        picks: list[bool] = []
        for _ in range(length):
            room = min(m - sum(picks[max(0, len(picks) - k + 1) :]) for k, m in self.pairs)
            picks.append(room > 0 and draw.random() < share)
        return picks

    def _age(self, most_ns: int, trial: int, draw: Random) -> int:
        return most_ns if trial <= 20 else draw.choice([most_ns, draw.randint(0, most_ns)])

    def offer(self, source: str, seq: int, at_ns: int) -> Offer | None:
        raise AssertionError("everything was said in begin")

    def deliver(self, delivery: Delivery) -> None:
        """Nothing changes."""


def played(made: Plan) -> Plan:
    """The plan with operators that pass what the world says: same graph, units, costs and side inputs."""
    plan = made.to_json()
    for source in plan["graph"]["sources"].values():
        source["type"] = "json"
    for local in plan["nodes"].values():
        for stream in local["streams"]:
            stream["codec"] = "json"
        for each in local["operators"]:
            each["run"] = "guaranteed.pick" if each["name"] == "O3" else "guaranteed.through"
            each.pop("with_json", None)
    return plan_document.shaped(plan)


def worst_of(plan: Plan, trials: int) -> dict[str, int]:
    """The longest latency of each output, over all trials."""
    registry = Registry([operators_file])
    world = Allowed(plan, SEED)
    done = simulate(played(plan), Scenario(trials=trials), registry, world, trace=False)
    assert not done.failures, done.failures
    return {name: max(output.latencies_ns) for name, output in done.outputs.items()}


def test_theory_3_is_147_and_343_and_control_holds_30() -> None:
    claims = bounds(theory(), NOTHING)
    found = {name: (claim.from_admission_ns or 0) / MS for name, claim in claims.items()}
    assert (found["warning"], found["advisory"]) == (147, 343)
    assert found["control"] <= 30


def test_the_shipped_query_is_guaranteed_with_every_charge_and_age() -> None:
    plan = shipped()
    claims = bounds(plan, MEASURED)
    assert all(claim.guaranteed for claim in claims.values()), claims
    assert all(source.max_age_ns > 0 for source in plan.graph.sources.values())
    assert plan.cluster.links[0].latency_ns == MS


@pytest.mark.parametrize("trials", sample(TRIALS, len(TRIALS)))
@pytest.mark.parametrize("name", ["theory", "shipped"])
def test_no_output_exceeds_its_bound_in_virtual_time(name: str, trials: int) -> None:
    """Charges are not part of virtual time, so the bound without them has to hold."""
    plan = {"theory": theory, "shipped": shipped}[name]()
    claims = bounds(plan, NOTHING)
    aged = {each: claim.bound_ns or claim.from_admission_ns or 0 for each, claim in claims.items()}
    worst = worst_of(plan, trials)
    told = ", ".join(f"{each} {worst[each] / MS:g} of {aged[each] / MS:g} ms" for each in worst)
    print(f"\n{name}, {trials} trials, seed {SEED}: {told}")
    for each, latency_ns in worst.items():
        assert latency_ns <= aged[each], f"{each}, seed {SEED}: {told}"
        assert latency_ns > 0.9 * aged[each], f"bounds this loose say little: {each}, {told}"
