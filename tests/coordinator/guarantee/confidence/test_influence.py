"""A result that is late has an instance within reach that took longer than was counted on: random plans, run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import pytest

from coordinator.calculus.curves import Time
from coordinator.guarantee.analysis import Analysis, analyse, lessened
from coordinator.guarantee.bounds import deadline_claim
from coordinator.guarantee.confidence.influence import Influence
from coordinator.guarantee.confidence.operator_costs import with_costs
from coordinator.guarantee.propagate import propagate
from coordinator.guarantee.streams import Reuse
from coordinator.guarantee.system import Stage, System, read
from coordinator.spec.runtime_charges import NOTHING
from infra.bench.tightness.attack import Attack
from infra.bench.tightness.drawn_queries import case
from infra.bench.tightness.edf_cluster import EdfCluster, Execution, Token

RUNS = 12
UNTIL_NS = 400_000_000


@dataclass
class _Result:
    output: str
    at_ns: int
    took_ns: int


class _Seldom(Execution):
    """Instances take what is counted on, and now and then as long as is certain."""

    def __init__(self, cluster: EdfCluster, attack: Attack, certain: System, dice: Random, often: float) -> None:
        super().__init__(cluster, attack)
        stages = (stage for unit in certain.units.values() for stage in unit.stages)
        self.certain_ns = {stage.operator: stage.cost_ns for stage in stages}
        self.dice, self.often = dice, often
        self.longer: set[tuple[str, Token]] = set()
        self.results: list[_Result] = []

    def cost_ns(self, stage: Stage, token: Token) -> int:
        if self.dice.random() >= self.often:
            return stage.cost_ns
        self.longer.add((stage.operator, token))
        return self.certain_ns[stage.operator]

    def result(self, output: str, at_ns: int, token: Token) -> None:
        self.results.append(_Result(output, at_ns, at_ns - self.seen.admitted_ns[token]))


def _bounds(certain: Analysis, system: System, passes: int) -> dict[str, Time]:
    state = replace(certain.delays, reuse=Reuse())
    for _ in range(passes):
        state = lessened(system, state, certain.charges)
    one = Analysis(system, certain.charges, state, propagate(system, state, certain.charges), {}, {})
    found = {name: deadline_claim(one, name).from_admission_ns for name in system.outputs}
    return {name: bound for name, bound in found.items() if bound is not None}


@pytest.mark.parametrize(("kind", "load"), [("chain", 0.85), ("union", 0.6), ("join", 0.85), ("mixed", 0.85)])
def test_what_is_late_was_within_reach_of_an_instance_that_took_longer(kind: str, load: float, seed: int) -> None:
    dice, late = Random(seed), 0
    certain = analyse(read(case(kind, load, seed % 1000).plan()), NOTHING)
    stages = [stage for unit in certain.system.units.values() for stage in unit.stages]
    share = dice.choice([0.2, 0.5])
    counted = {stage.operator: max(stage.best_ns, 1, int(share * stage.cost_ns)) for stage in stages}
    system = with_costs(certain.system, counted)
    influence, cluster = Influence(certain), EdfCluster(system, UNTIL_NS)
    bounds = {passes: _bounds(certain, system, passes) for passes in (1, 2, 4)}
    reaches = {passes: {name: influence.reaches(name, passes) for name in bounds[passes]} for passes in bounds}
    for passes in (2, 4):
        assert all(bounds[passes][name] <= bound for name, bound in bounds[1].items())
    for _ in range(RUNS):
        phases = {name: dice.choice([0, dice.randrange(20_000_000)]) for name in system.sources}
        run = _Seldom(cluster, Attack(phase_ns=phases), certain.system, dice, dice.choice([0.0, 0.02, 0.2]))
        seen = run.go()
        units = {stage.operator: unit for unit in system.units.values() for stage in unit.stages}
        longer = [
            (units[operator].node, each.release_ns)
            for each in seen.ran
            for operator, token in run.longer
            if token == each.token and units[operator].id == each.unit
        ]
        for one in run.results:
            for passes, found in bounds.items():
                if one.output in found and one.took_ns > found[one.output]:
                    late += 1
                    reach = reaches[passes][one.output]
                    assert any(one.at_ns - reach.get(node, -1) <= at_ns <= one.at_ns for node, at_ns in longer), (
                        f"{one} of {passes} passes"
                    )
    print(f"{late} late")
