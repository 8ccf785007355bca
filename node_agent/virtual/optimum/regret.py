"""`simulate --regret`: how far each policy is from what no schedule can beat, on the same trials.

Counted are the results that a run under `edf` gives: a result that comes late or never is missed.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from node_agent.core.policies import POLICIES
from node_agent.operators.registry import Registry
from node_agent.runtime.executor import Operate
from node_agent.virtual.change_schedule import alone
from node_agent.virtual.errors import bad_input
from node_agent.virtual.optimum.miss_bound import STATES, by_output, least_missed
from node_agent.virtual.optimum.schedule import fewest_missed
from node_agent.virtual.optimum.workload import Graph, Recorded, Replayed, Seen, unpoliced
from node_agent.virtual.run import cluster_of, operators_here
from node_agent.virtual.scenario import Scenario, VirtualPlan, check, virtual_plan
from node_agent.virtual.world import Stub
from protos.plan_document import Plan

REFERENCE = "edf"


@dataclass(frozen=True)
class Regret:
    """Missed results of all trials. found: the least that a policy or a schedule that knows all costs misses, trial by
    trial: the optimum is not above it, and not below the bound. closed: trials in which both are equal, so that the
    optimum is known. searched: trials in which every part was searched exactly."""

    scenario: Scenario
    results: int
    bound: int
    found: int
    missed: dict[str, int]
    closed: int
    searched: int

    @property
    def bound_ratio(self) -> float | None:
        """No schedule has a lower miss ratio; None: there is no result."""
        return self.bound / self.results if self.results else None

    @property
    def found_ratio(self) -> float | None:
        """Some schedule has this miss ratio; None: there is no result."""
        return self.found / self.results if self.results else None

    def ratio(self, policy: str) -> float | None:
        """Its miss ratio."""
        return self.missed[policy] / self.results if self.results else None

    def points(self, policy: str) -> float | None:
        """Its distance to the bound in percentage points."""
        return 100 * (self.missed[policy] - self.bound) / self.results if self.results else None

    def document(self) -> dict[str, Any]:
        """For machines: `simulate --regret --json`."""
        return {
            "scenario": self.scenario.document(),
            "results": self.results,
            "bound": {"missed": self.bound, "miss_ratio": self.bound_ratio},
            "found": {"missed": self.found, "miss_ratio": self.found_ratio},
            "policies": {
                name: {"missed": missed, "miss_ratio": self.ratio(name), "points_above_bound": self.points(name)}
                for name, missed in self.missed.items()
            },
            "closed_trials": self.closed,
            "searched_trials": self.searched,
        }


def regret(
    made: Plan,
    scenario: Scenario | None = None,
    registry: Registry | None = None,
    policies: Iterable[str] | None = None,
    outputs: Iterable[str] | None = None,
    progress: Callable[[], None] | None = None,
    states: int = STATES,
) -> Regret:
    """Run all trials under each of the policies (None: all there are; `edf` is always one of them) and bound them.

    outputs: count only these (None: all). states: as for `least_missed`. progress is called after each trial. Raises
    BadInputError.
    """
    scenario, registry = scenario or Scenario(), registry or operators_here()
    if scenario.batch is not None:
        raise bad_input(
            "regret_in_batches", "--regret: compares policies tuple by tuple", "leave --batch out", subject="--regret"
        )
    plan = unpoliced(virtual_plan(made))
    check(plan, scenario)
    if made_here := [source.name for source in plan.sources if source.pull is not None]:
        raise bad_input(
            "regret_of_sources",
            f"--regret: source {made_here[0]} is made by its node, and no schedule is told of its ticks",
            "simulate without --regret",
            subject="--regret",
        )
    if plan.windows:
        raise bad_input(
            "regret_of_windows",
            "--regret: windows depend on what is shed, so their work is not the same under every policy",
            "leave it out",
            subject="--regret",
        )
    names = list(dict.fromkeys([REFERENCE, *(POLICIES if policies is None else policies)]))
    counted = {output.name for output in plan.outputs} if outputs is None else set(outputs)
    recorded = Recorded()
    reference = _Run(plan, scenario, registry, REFERENCE, recorded.record)
    others = {name: _Replay(plan, scenario, registry, name, recorded) for name in names if name != REFERENCE}
    graph = Graph(plan, scenario)
    results = bound = best = closed = searched = 0
    missed = dict.fromkeys(names, 0)
    for trial in range(1, scenario.trials + 1):
        recorded.made.clear()
        reference.run(trial)
        expected = {each for each in reference.seen.due_ns if each[0] in counted}
        workload = by_output(graph.workload(trial, recorded, reference.seen), counted)
        found = least_missed(workload, states)
        late = {REFERENCE: len(expected - reference.seen.met)}
        for name, other in others.items():
            other.run(trial)
            late[name] = len(expected - other.seen.met)
        for name, number in late.items():
            missed[name] += number
        results += len(expected)
        bound += found.missed
        scheduled = fewest_missed(workload) if min(late.values()) > found.missed else None
        least = min(late.values()) if scheduled is None else min(scheduled, *late.values())
        best += least
        closed += least == found.missed
        searched += found.exact
        if progress is not None:
            progress()
    return Regret(scenario, results, bound, best, missed, closed, searched)


class _Run:
    """One policy's cluster, trial by trial."""

    def __init__(
        self, plan: VirtualPlan, scenario: Scenario, registry: Registry, policy: str, operate: Operate
    ) -> None:
        self.seen = Seen(Stub(plan, scenario.ages_ns, registry.codecs, scenario.tuples), plan)
        self._cluster = cluster_of(alone(plan), replace(scenario, policy=policy), registry, self.seen, False, operate)

    def run(self, trial: int) -> None:
        """One trial."""
        self._cluster.run(trial)


class _Replay(_Run):
    def __init__(
        self, plan: VirtualPlan, scenario: Scenario, registry: Registry, policy: str, recorded: Recorded
    ) -> None:
        self._replayed = Replayed(recorded)
        super().__init__(plan, scenario, registry, policy, self._replayed.replay)

    def run(self, trial: int) -> None:
        self._replayed.begin()
        super().run(trial)


__all__: Sequence[str] = ["Regret", "regret"]
