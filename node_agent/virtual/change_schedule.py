"""Change schedule: the plans that a simulation runs one after the other. There is one, or several with `--then`.

It checks that the plans fit together. A change adds and removes queries on a cluster that stays the same, so nodes,
their policies, and sources and outputs of the same name must be alike in all plans.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from node_agent.core import plan as core
from node_agent.virtual import random_draws
from node_agent.virtual.cost_model import Numbers
from node_agent.virtual.errors import bad_input
from node_agent.virtual.scenario import Scenario, Source, VirtualPlan, as_run, check, virtual_plan
from protos.plan_document import Plan

MOST_PLANS = 15  # that a report can tell apart
_COMMIT, _WINDOWS = 4, 5  # what a draw is for


@dataclass(frozen=True)
class Change:
    """A plan that is committed in place of the one before. at_ns: from each trial's start on."""

    plan: Plan
    at_ns: int


@dataclass(frozen=True)
class ChangeSchedule:
    """Plans in the order of their epochs, 1, 2, ...; `at_ns[i]`: when plan i is committed, the first at the start.

    sources, outputs: of all plans, one per name, with ids of the schedule; a single plan has ids of its own. operators:
    such an id by name. Draws are made by these ids, so that a change draws nothing anew.
    """

    plans: tuple[VirtualPlan, ...]
    at_ns: tuple[int, ...]
    sources: tuple[Source, ...]
    outputs: tuple[core.Output, ...]
    operators: dict[str, int]

    @property
    def last(self) -> VirtualPlan:
        """What runs at the end."""
        return self.plans[-1]

    def nodes(self, scenario: Scenario) -> dict[str, tuple[core.Plan, ...]]:
        """Per node its part of every plan, under the scenario's policy."""
        names = [local.node for local in self.plans[0].nodes]
        parts = [{local.node: as_run(local, scenario) for local in plan.nodes} for plan in self.plans]
        return {name: tuple(part[name] for part in parts) for name in names}

    def numbers(self, epoch: int) -> Numbers:
        """What stands for the operators and sources of a plan in draws."""
        known, plan = {source.name: source.id for source in self.sources}, self.plans[epoch - 1]
        sources = {source.id: known[source.name] for source in plan.sources}
        windows = {number: random_draws.key(_WINDOWS, self.operators[name]) for number, name in plan.windows.items()}
        return Numbers(self.operators, sources | windows)

    def commit_ns(self, scenario: Scenario, trial: int, epoch: int, node: int) -> int:
        """When that node commits that plan in that trial, if no tuple tells it earlier."""
        spread_ns = scenario.spread_ns
        drawn = random_draws.uniform(random_draws.key(_COMMIT, scenario.seed, trial, epoch, node)) if spread_ns else 0.0
        return self.at_ns[epoch - 1] + round(drawn * spread_ns)

    def document(self) -> list[dict[str, Any]]:
        """For run.json: what came after the first plan."""
        return [{"plan": plan.hash, "at_ns": at} for plan, at in zip(self.plans[1:], self.at_ns[1:], strict=True)]


def schedule_of(first: Plan, then: Sequence[Change], scenario: Scenario) -> ChangeSchedule:
    """The plans as they are simulated, checked. Raises BadInputError."""
    plans = [virtual_plan(each, epoch) for epoch, each in enumerate([first, *(c.plan for c in then)], start=1)]
    sources = [source for plan in plans for source in plan.sources]
    for plan in plans:
        check(plan, scenario, sources)
    at_ns = [0, *(change.at_ns for change in then)]
    _check_instants(at_ns, scenario)
    for plan in plans[1:]:
        _check_nodes(plans[0], plan, scenario)
    return _schedule(plans, at_ns)


def alone(plan: VirtualPlan) -> ChangeSchedule:
    """One plan that runs from the start to the end."""
    return _schedule([plan], [0])


def _schedule(plans: Sequence[VirtualPlan], at_ns: Sequence[int]) -> ChangeSchedule:
    return ChangeSchedule(
        plans=tuple(plans),
        at_ns=tuple(at_ns),
        sources=_sources(plans),
        outputs=_outputs(plans),
        operators=_numbered([{op.name: op.id for local in plan.nodes for op in local.operators} for plan in plans]),
    )


def _numbered(known: Sequence[dict[str, int]]) -> dict[str, int]:
    """A number for every name: the first plan's, then new ones beyond."""
    found: dict[str, int] = {}
    for names in known:
        if not found:
            found.update(names)
        for name in names:
            found.setdefault(name, max(found.values(), default=0) + 1)
    return found


def _check_instants(at_ns: Sequence[int], scenario: Scenario) -> None:
    if len(at_ns) > MOST_PLANS:
        raise bad_input(
            "too_many_plans",
            f"--then: {len(at_ns)} plans in one run, at most {MOST_PLANS} can be told apart",
            subject="--then",
        )
    if scenario.spread_ns < 0:
        raise bad_input("negative", "--spread: must not be negative", subject="--spread")
    if any(instant < 0 for instant in at_ns):
        raise bad_input("negative", "--at: must not be negative", subject="--at")
    for before, after in pairwise(at_ns[1:]):
        if after <= before + scenario.spread_ns:
            raise bad_input(
                "changes_too_close",
                f"--at: a change after {after} ns begins before all nodes have made the one after {before} ns",
                "give later changes later, by more than --spread",
                subject="--at",
            )


def _check_nodes(first: VirtualPlan, plan: VirtualPlan, scenario: Scenario) -> None:
    known, now = ({local.node: local for local in each.nodes} for each in (first, plan))
    which = f"--then: plan {plan.hash[:8]}"
    if {name: local.index for name, local in known.items()} != {name: local.index for name, local in now.items()}:
        raise bad_input(
            "other_nodes",
            f"{which} is for other nodes than plan {first.hash[:8]}",
            "make both for one cluster",
            subject="--then",
        )
    for name, local in now.items():
        parts = [as_run(each, scenario) for each in (known[name], local)]
        if parts[0].policy != parts[1].policy or parts[0].largest_batch != parts[1].largest_batch:
            raise bad_input(
                "other_policy",
                f"{which} has another policy on node {name}",
                "simulate under one with --policy",
                subject="--then",
            )


def _sources(plans: Sequence[VirtualPlan]) -> tuple[Source, ...]:
    numbers = _numbered([{source.name: source.id for source in plan.sources} for plan in plans])
    found: dict[str, Source] = {}
    for plan in plans:
        for source in plan.sources:
            known = found.setdefault(source.name, source)
            if (known.node, known.codec, known.arrival, known.pull) != (
                source.node,
                source.codec,
                source.arrival,
                source.pull,
            ):
                raise bad_input(
                    "other_source",
                    f"--then: plan {plan.hash[:8]} has source {source.name} at another node, of another type or "
                    "with other arrivals than the plans before it; one stream cannot be both",
                    subject="--then",
                )
    return tuple(replace(source, id=numbers[name]) for name, source in found.items())


def _outputs(plans: Sequence[VirtualPlan]) -> tuple[core.Output, ...]:
    found: dict[str, core.Output] = {}
    for plan in plans:
        for output in plan.outputs:
            known = found.setdefault(output.name, output)
            if known.deadline_ns != output.deadline_ns:
                raise bad_input(
                    "other_deadline",
                    f"--then: plan {plan.hash[:8]} has another deadline for output {output.name} than the plans "
                    "before it; its results could not be counted together",
                    subject="--then",
                )
    return tuple(found.values())


__all__ = ["Change", "ChangeSchedule", "alone", "schedule_of"]
