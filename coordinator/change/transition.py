"""Transition of a change: its cost while tuples of both plans are there. docs/explanation/change.md has the argument:
where what stays is as it was, in the larger of the two plans, everything that happens during the change is a run of
the larger plan in which some tuples do not reach some operators; so the larger plan's analysis bounds it, with what
loading the other plan adds.

What "as it was" means is checked here on the two plans alone, so a mistake of the planner is found before it is
deployed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from coordinator.errors import AuditError
from coordinator.guarantee import bounds
from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.system import System, read
from coordinator.model.incumbent import hops
from coordinator.spec.runtime_charges import NOTHING, RuntimeOverhead
from protos.plan.guarantee import Claim
from protos.plan_document import Plan

LOADING_NS = 10**6  # assumed: the longest stretch for which a runtime loads a plan without looking up
SOURCE = {
    key: key for key in ("at", "type", "max_age_ns", "arrival", "limit", "on_full", "max_bytes")
}  # by what people call it
OUTPUT = {"from": "origin", "at": "at", "deadline_ns": "deadline_ns", "qos": "qos"} | {
    key: key for key in ("age_ns", "age_without", "reaction_ns", "reaction_without", "confidence")
}
OPERATOR = {"run": "run", "in": "inputs", "side": "side", "cost_ns": "cost_ns", "selectivity": "selectivity"} | {
    "with": "parameters", "kind": "kind", "join": "join", "window": "window", "closes": "closes", "on_late": "on_late",
    "queue": "queue", "sync": "sync", "side_rules": "side_rules", "max_bytes": "max_bytes",
}  # fmt: skip


@dataclass(frozen=True)
class During:
    """`claims`: per output of the larger plan; `loading_ns`: what was assumed."""

    claims: Mapping[str, Claim]
    loading_ns: int


def charged_ns(plan: Plan, loading_ns: int) -> int:
    """What a change of this plan is charged for loading: nothing where nothing of the runtime costs anything."""
    return 0 if _charges(plan) == NOTHING else loading_ns


def _charges(plan: Plan) -> RuntimeOverhead:
    return RuntimeOverhead.read(plan.analysis.charges)


def during(before: Plan, after: Plan, loading_ns: int = LOADING_NS) -> During:
    """The bounds that hold from the moment when `after` is prepared until `before` has drained. Raises AuditError where
    neither plan is the other with more in it."""
    larger, smaller = (after, before) if len(after.queries) >= len(before.queries) else (before, after)
    if violations := differences(larger, smaller):
        raise AuditError(violations)
    charges = replace(_charges(larger), loading_ns=charged_ns(larger, loading_ns))
    both = _beating_apart(_queued_apart(read(larger)), read(smaller))
    claims = bounds.claims(analyse(both, charges))
    return During({name: claim.document() for name, claim in claims.items()}, charges.loading_ns)


def _queued_apart(system: System) -> System:
    """Tuples of the two plans wait in queues of their own. Where these come from several nodes, which change one after
    the other, each queue may have a last batch with jobs that are due later: twice b - 1 of them, and not once."""
    nodes = {
        name: replace(node, batch=2 * node.batch - 1) if node.batch > 1 else node for name, node in system.nodes.items()
    }
    return replace(system, nodes=nodes)


def _beating_apart(system: System, smaller: System) -> System:
    """A source's node says how far it is as often as its plan asks, and the one plan may ask for it more rarely."""
    rarely_ns = {name: source.beat_ns for name, source in smaller.sources.items()}
    sources = {name: replace(source, rarely_ns=rarely_ns.get(name, 0)) for name, source in system.sources.items()}
    return replace(system, sources=sources)


def differences(larger: Plan, smaller: Plan) -> list[str]:
    """Where the smaller plan is not a part of the larger one, one sentence each; empty: it is."""
    found = []
    if _machines(larger) != _machines(smaller):
        found.append("the two plans are for different clusters")
    wide, narrow = larger.graph, smaller.graph
    found += _unlike("source", SOURCE, wide.sources, narrow.sources)
    found += _unlike("output", OUTPUT, wide.outputs, narrow.outputs)
    found += _unlike("operator", OPERATOR, wide.operators, narrow.operators)
    for name, place in smaller.placement.items():
        if larger.placement.get(name) != place:
            found.append(f"operator {name} is on {place} in one plan, on {larger.placement.get(name)} in the other")
    found += _units(larger, smaller)
    larger_hops = hops(larger)
    for stream, pairs in hops(smaller).items():
        if not set(pairs) <= set(larger_hops.get(stream, ())):
            found.append(f"stream {stream} takes another way in the one plan than in the other")
    return found + _policing(larger, smaller)


def _unlike(
    what: str, fields: Mapping[str, str], larger: Mapping[str, object], smaller: Mapping[str, object]
) -> list[str]:
    """Where something of the smaller plan is not as in the larger one. fields: what is compared, by its key."""
    found = []
    for name, one in smaller.items():
        other = larger.get(name)
        unlike = [key for key, field in fields.items() if other is None or getattr(one, field) != getattr(other, field)]
        if unlike:
            found.append(f"{what} {name} differs between the plans: {', '.join(unlike)}")
    return found


def _machines(plan: Plan) -> tuple[object, ...]:
    """What bounds know of a cluster."""
    links = sorted((sorted(link.between), link.latency_ns, link.bandwidth_bps) for link in plan.cluster.links)
    nodes = {name: replace(node, policy_by_default=False) for name, node in plan.cluster.nodes.items()}
    return nodes, links, plan.model, plan.analysis.charges


def _units(larger: Plan, smaller: Plan) -> list[str]:
    """A unit of the smaller plan is one of the larger, or the beginning of one, with the same place in EDF's order."""
    found = []
    # an operator is in one unit only
    first = {task.operators[0]: (node, task) for node, tasks in larger.tasks.items() for task in tasks}
    for node, tasks in smaller.tasks.items():
        for task in tasks:
            members = task.operators
            at, other = first.get(members[0], (None, task))
            if at != node or other.operators[: len(members)] != members:
                found.append(f"the task unit {', '.join(members)} of {node} is cut otherwise in the other plan")
            elif other.sub_deadline_ns != task.sub_deadline_ns:
                found.append(f"the task unit {', '.join(members)} of {node} has two different sub-deadlines")
    return found


def _policing(larger: Plan, smaller: Plan) -> list[str]:
    """What the smaller plan admits the larger one would admit, too. Of windows the bounds of the change say how they
    come: they count the slower heartbeats of the two plans."""
    wide, narrow = (plan.analysis.policing or {} for plan in (larger, smaller))
    windows = {one.add for one in larger.graph.windows.values()}
    return [
        f"source {name} may come less regularly in the plan with less in it"
        for name, policed in narrow.items()
        if name not in windows and not policed.why and not wide[name].why and policed.jitter_ns > wide[name].jitter_ns
    ]
