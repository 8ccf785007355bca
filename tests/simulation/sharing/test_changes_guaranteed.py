"""What a change admits stays in time while it is made, for all conforming arrivals, phases, costs, instants of commits.

Random queries are planned with a guarantee, a second one is added to a random first one and removed again, as the
coordinator would. In virtual time no output may exceed its bound, before, during or after. `make test` takes a few
cases; more:

    SHIMEKIRI_CASES=1000 .venv/bin/python -m pytest -s tests/simulation/sharing/test_changes_guaranteed.py
"""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator.change import next_plan
from coordinator.change.next_plan import Change as Next
from coordinator.change.next_plan import Wish
from coordinator.errors import InfeasibleError, OutOfTimeError
from coordinator.guarantee.system import arrival_curve
from coordinator.model.choices import Choices
from coordinator.model.limits import Limits
from coordinator.spec.runtime_charges import NOTHING
from node_agent.virtual.change_schedule import Change, schedule_of
from node_agent.virtual.cost_model import parse_jitter
from node_agent.virtual.run import simulate
from node_agent.virtual.scenario import Scenario
from node_agent.virtual.world import Admission, Delivery, Offer, Stub
from protos.plan_document import Plan
from tests.simulation.guarantees.edf_node import instants
from tests.simulation.sharing.random_queries_virtual import MS, Load, Two, pairs, registry
from tests.simulation.sharing.test_changes_virtual import judged

CASES = int(os.environ.get("SHIMEKIRI_CASES", "8"))
LIMITS = Limits(seconds=5.0)
LAST_NS = 900 * MS
ARRIVALS = st.one_of(
    st.tuples(st.integers(1, 4), st.sampled_from([60, 100, 170])).map(
        lambda each: f"{{burst: {each[0]}, period: {each[1]} ms}}"
    ),
    st.tuples(st.sampled_from([30, 50]), st.integers(1, 29), st.integers(0, 60)).map(
        lambda each: f"{{jcp: {{period: {each[0]} ms, min_gap: {each[1]} ms, early: 0 ms, late: {each[2]} ms}}}}"
    ),
)
TIGHT = Load(ARRIVALS, dearest_ms=7, deadlines_ms=(40, 70, 120, 250))


class Conforming(Stub):
    """Every source admits as densely as its curve allows, or now and then later; results are kept."""

    def __init__(self, plan: Plan, then: Sequence[Change], seed: int, lazy: int) -> None:
        schedule = schedule_of(plan, then, Scenario())
        super().__init__(schedule, {}, registry().codecs)
        self.results: Counter[tuple[str, str, int, int, str]] = Counter()
        self.longest_ns: dict[str, int] = {}
        self._arrivals = {source.name: source.arrival for source in schedule.sources}
        self._seed, self._lazy = seed, lazy

    def begin(self, trial: int) -> list[Admission]:  # type: ignore[override]
        found = []
        for name, arrival in self._arrivals.items():
            dice = Random(f"{self._seed} {name}")
            span = arrival_curve(arrival).span  # type: ignore[union-attr]
            lazy = self._lazy
            slack = (lambda dice=dice: dice.choice([0, 0, 0, dice.randint(0, 40 * MS)])) if lazy else (lambda: 0)
            first_ns = dice.randint(0, 120 * MS)
            for number, at_ns in enumerate(instants(span, LAST_NS, slack)):
                found.append(Admission(first_ns + at_ns, name, (Offer({"seq": number, "source": name}),)))
        return sorted(found, key=lambda each: each.at_ns)

    def deliver(self, delivery: Delivery) -> None:
        d = delivery
        self.results[d.output, d.source, d.seq, d.ordinal, repr(d.payload)] += 1
        self.longest_ns[d.output] = max(d.latency_ns, self.longest_ns.get(d.output, 0))


def changes(two: Two) -> tuple[Plan, Next, Next] | None:
    """The first query's plan, the second one added, and removed again. None: the first has no plan."""
    with TemporaryDirectory() as folder:
        _, second, _ = two.write(Path(folder))
        try:
            one = two.plan("first", choices=Choices(quick=True, charges=NOTHING, limits=LIMITS))
        except (InfeasibleError, OutOfTimeError):
            return None
        path = Path(folder) / "plan.json"
        both = next_plan.added(one, path, second, Wish(LIMITS))
        if both.after is None:
            return None
        return one, both, next_plan.removed(both.after, path, ["second"])


def bound_ns(output: str, plans: Sequence[Plan], steps: Sequence[Next]) -> int | None:
    """The longest that any plan or change allows; None: something gives no bound."""
    claims = [plan.guarantee[output] for plan in plans if output in plan.guarantee]
    claims += [row.during for step in steps for row in step.verdict.rows if row.output == output and row.during]
    found = [claim.from_admission_ns for claim in claims]
    return None if None in found else max(ns for ns in found if ns is not None)


def test_no_guaranteed_output_is_late_during_an_admitted_change() -> None:
    seen: Counter[str] = Counter()
    ratios: list[float] = []

    @settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
    @given(
        pairs(TIGHT),
        st.integers(0, 2**32),
        st.sampled_from([0, 0, 3, 40, 150]),
        st.integers(0, 900),
        st.integers(1, 300),
        st.booleans(),
    )
    def check(two: Two, seed: int, spread_ms: int, add_ms: int, remove_ms: int, lazy: bool) -> None:
        found = changes(two)
        if found is None or not found[1].verdict.admitted:
            seen["refused"] += 1
            return
        one, added, removed = found
        assert added.after is not None and removed.after is not None
        assert removed.verdict.admitted, removed.verdict.reasons
        scenario = Scenario(
            seed=seed, spread_ns=spread_ms * MS, jitter=parse_jitter("uniform:0.3,1" if lazy else "none")
        )
        back_ns = (add_ms + spread_ms + remove_ms) * MS
        then = [Change(added.after, add_ms * MS), Change(removed.after, back_ns)]
        world, still = Conforming(one, then, seed, lazy), Conforming(one, (), seed, lazy)
        simulate(one, scenario, registry(), still, trace=False)
        done = simulate(one, scenario, registry(), world, then=then)
        books = judged(done)
        assert books["conservation"]["balanced"], books["conservation"]["problems"]
        assert not any("shed" in cause for cause in books["conservation"]["by_cause"]), "conforming tuples were policed"
        mine = {result: n for result, n in world.results.items() if result[0].startswith("first")}
        assert mine == still.results
        for output, took_ns in world.longest_ns.items():
            limit_ns = bound_ns(output, [one, added.after, removed.after], [added, removed])
            row = next(row for row in added.verdict.rows if row.output == output)
            assert limit_ns is None or took_ns <= limit_ns, f"{output}: {took_ns} > {limit_ns}"
            if row.wanted:
                assert limit_ns is not None and took_ns <= row.deadline_ns, output
                ratios.append(took_ns / limit_ns)
        seen.update(changes=1, second=any(result[0].startswith("second") for result in world.results))

    check()
    print(
        f"\n{seen['changes']} admitted changes, {seen['refused']} refused; the added query gave results in "
        f"{seen['second']}; worst result / bound: mean {sum(ratios) / len(ratios):.3f}, most {max(ratios):.3f}"
    )
    assert seen["changes"] >= CASES // 4
