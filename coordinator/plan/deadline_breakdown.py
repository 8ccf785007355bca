"""Breakdown of an output's deadline, from plan.json alone: parts that sum up to the deadline.

The stretches of the longest way, as the guarantee found them, each split into the tuple's own work, waiting behind
others (the queueing bound), blocking by an instance that cannot be stopped, sockets, links and age; then the slack.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from coordinator.plan import confidence_lines, freshness_lines
from coordinator.spec.sharing.owners import whose
from coordinator.units import counted, show_bytes, show_ns
from protos import json_shape
from protos.plan.analysis import Tightest
from protos.plan.guarantee import Claim, SizeCheck, Step
from protos.plan_document import Plan

GUARANTEED = "guaranteed"
MISSED = "NOT guaranteed"
ADMITTED = "guaranteed from admission on only"
SAID = {
    "window": "until a window's end",
    "age": "age on admission",
    "beat": "heartbeats and clocks",
    "partner": "waiting for other inputs",
    "work": "own work",
    "waiting": "waiting behind others",
    "blocking": "blocking",
    "socket": "sockets",
    "link": "links",
    "slack": "slack",
}
SHED_NOTHING = frozenset({"edf", "fifo"})  # policies under which everything runs that no operator drops
SELDOM = frozenset({"window", "beat", "partner"})  # of windows and fusions


@dataclass(frozen=True)
class Share:
    """A part of a deadline. `kind`: one of SAID; `step`: the stretch that it is of, None: the slack."""

    kind: str
    what: str
    ns: int
    step: Step | None = None


def shares(plan: Plan, output: str) -> list[Share]:
    """In the order of the way; they sum up to the deadline. The slack is last, and below 0 where the bound exceeds the
    deadline. Empty: there is no bound, not even from admission on."""
    claim = plan.guarantee[output]
    bound_ns = _bound_ns(claim)
    if bound_ns is None:
        return []
    found: list[Share] = []
    for step in claim.trail:
        if step.kind == "unit":
            split = (("work", step.work_ns), ("waiting", step.waiting_ns), ("blocking", step.blocking_ns))
            found += [Share(kind, step.what, ns, step) for kind, ns in split if ns]
        else:
            found.append(Share(step.kind, step.what, step.ns, step))
    return [*found, Share("slack", "slack", claim.deadline_ns - bound_ns)]


def _bound_ns(claim: Claim) -> int | None:
    """The bound, or that from admission on."""
    return claim.from_admission_ns if claim.bound_ns is None else claim.bound_ns


def totals(plan: Plan, output: str) -> dict[str, int]:
    """ns per kind, in SAID's order, those of windows and fusions only where there are; they sum up to the deadline."""
    found = shares(plan, output)
    sums = {kind: sum(part.ns for part in found if part.kind == kind) for kind in SAID} if found else {}
    return {kind: ns for kind, ns in sums.items() if ns or kind not in SELDOM}


def document(plan: Plan, output: str) -> dict[str, Any]:
    """For --json: the claim, the parts and their totals."""
    claim = plan.guarantee[output]
    return {
        **status_values(claim),
        **({"qos": json_shape.write(claim.qos)} if claim.qos else {}),
        **_freshness(claim),
        **({"confident": json_shape.write(claim.confident)} if claim.confident else {}),
        "parts": [{"kind": part.kind, "what": part.what, "ns": part.ns} for part in shares(plan, output)],
        "totals_ns": totals(plan, output),
    }


def _freshness(claim: Claim) -> dict[str, Any]:
    """The age and the reaction where they are asked, and the paths of data."""
    limits = {"age": (claim.age_ns, claim.age_bound_ns), "reaction": (claim.reaction_ns, claim.reaction_bound_ns)}
    asked = {
        name: {"limit_ns": limit, "bound_ns": bound} for name, (limit, bound) in limits.items() if limit is not None
    }
    return {**asked, "data_paths": [json_shape.write(path) for path in claim.data_paths]} if asked else {}


def status_values(claim: Claim) -> dict[str, Any]:
    """A claim for --json: deadline, bounds, whether it is guaranteed and why."""
    return {
        "deadline_ns": claim.deadline_ns,
        "bound_ns": claim.bound_ns,
        "from_admission_ns": claim.from_admission_ns,
        "guaranteed": claim.guaranteed,
        "why": claim.why,
    }


def sentences(plan: Plan, output: str) -> list[str]:
    """One output: its bound, each stretch with what it is made of, and what binds."""
    claim = plan.guarantee[output]
    deadline = show_ns(claim.deadline_ns)
    said, bound_ns = guarantee_status(claim), _bound_ns(claim)
    if bound_ns is None:
        lines = [f"{output}{whose(plan, output)}: deadline {deadline}, {said}, and no bound: {claim.why}"]
        told = (*asked(claim), *confidence_lines.lines(claim), *freshness_lines.hops(claim))
        return lines + [f"  {line}" for line in told]
    slack_ns = claim.deadline_ns - bound_ns
    left = f"{show_ns(slack_ns)} to spare" if slack_ns >= 0 else f"{show_ns(-slack_ns)} too late"
    since = " from admission on" if claim.bound_ns is None else ""
    named = f"{output}{whose(plan, output)}"
    lines = [f"{named}: takes at most {show_ns(bound_ns)}{since} of its {deadline}, {left}; {said}"]
    if not claim.holds:
        lines.append(f"  because {claim.why}")
    lines += [f"  {show_ns(part.ns):>12}  {_stretch(part)}" for part in claim.trail]
    lines.append(f"  {show_ns(slack_ns):>12}  slack: the parts above and this are the deadline")
    lines.append(
        "  in all: " + ", ".join(f"{SAID[kind]} {show_ns(ns)}" for kind, ns in totals(plan, output).items() if ns)
    )
    without = left_out(claim, left_out_of_several(plan.guarantee))
    told = (
        *confidence_lines.lines(claim), *without, *asked(claim), *freshness_lines.hops(claim), *binding(plan, output),
    )  # fmt: skip
    return lines + [f"  {line}" for line in told]


def left_out(claim: Claim, told: Container[str] = ()) -> list[str]:
    """Why what is in time may not be all there is, a sentence each; told: what is said elsewhere."""
    return [f"what comes is in time, but not all may come: {why}" for why in claim.missing if why not in told]


def left_out_of_several(claims: Mapping[str, Claim]) -> dict[str, str]:
    """The same where it is true of more than one output: the sentence, by why."""
    outputs: dict[str, list[str]] = {}
    for name, claim in claims.items():
        for why in claim.missing:
            outputs.setdefault(why, []).append(name)
    return {
        why: f"what comes of {', '.join(names[:-1])} and {names[-1]} is in time, but not all may come: {why}"
        for why, names in outputs.items()
        if len(names) > 1
    }


def asked(claim: Claim) -> list[str]:
    """What the output asks beyond its deadline, a sentence each."""
    found = []
    for name, each in claim.qos.asked.items() if claim.qos else ():
        if isinstance(each, SizeCheck):
            limit, bound = (
                show_bytes(each.limit_bytes),
                None if each.bound_bytes is None else show_bytes(each.bound_bytes),
            )
        else:
            limit, bound = show_ns(each.limit_ns), None if each.bound_ns is None else show_ns(each.bound_ns)
        said = "guaranteed" if each.guaranteed else "not guaranteed"
        told = each.why if bound is None else f"at most {bound}, {said}: {each.why}"
        of = ", the first within" if name == "throughput" else " of"
        found.append(f"{name}{of} {limit}: {told}")
    return found + freshness_lines.judged(claim)


def guarantee_status(claim: Claim) -> str:
    """Guaranteed, with the confidence that is asked, from admission on only, or not."""
    if claim.confident is not None and claim.confident.guaranteed:
        return confidence_lines.status(claim.confident)
    if claim.guaranteed:
        return GUARANTEED
    admitted = claim.from_admission_ns
    if claim.bound_ns is None and admitted is not None and admitted < claim.deadline_ns:
        return ADMITTED if (claim.qos is None or claim.qos.hold) and claim.is_fresh else MISSED
    return MISSED


def verdict(claims: Mapping[str, Claim]) -> str:
    """How many outputs are guaranteed, and which are not."""
    others: dict[str, list[str]] = {}
    for name, claim in claims.items():
        if not claim.holds:
            others.setdefault(guarantee_status(claim), []).append(name)
    holding = sum(claim.holds for claim in claims.values())
    said = "".join(f"; {how}: {', '.join(names)}" for how, names in sorted(others.items()))
    return f"{holding} of {counted(len(claims), 'output')} guaranteed{confidence_lines.with_less(claims)}{said}"


def unproven(plan: Plan) -> str:
    """What a plan of model `sound` leaves open, in a sentence; empty: every output is guaranteed, or nothing is claimed
    since the model is another."""
    open_ = [name for name, claim in plan.guarantee.items() if not claim.holds]
    if plan.model != "sound" or not open_:
        return ""
    names = f"{', '.join(open_[:4])}{f' and {len(open_) - 4} more' if len(open_) > 4 else ''}"
    return f"neither guaranteed nor disproven: {names}; '--best-effort' takes such a plan for done (exit code 0)"


def beyond_caps(plan: Plan) -> list[str]:
    """Nodes that `--best-effort` uses beyond their caps, a sentence each."""
    nodes, over = plan.cluster.nodes, (plan.solver.over_caps or {})
    return [
        f"node {node} is beyond its cap: its operators use {used:.1%} of it on average, its cap is "
        f"{nodes[node].cap:.1%}; what is guaranteed there holds only if nothing else needs what the cap leaves"
        for node, used in over.items()
    ]


def giving_way(plan: Plan) -> list[str]:
    """What share of which output can at most be served where a plan is for more than its nodes have time for, and what
    comes first; a sentence each."""
    shares = plan.solver.served or {}
    alike: dict[str, list[str]] = {}
    for name, share in shares.items():
        alike.setdefault(f"{share:.1%}", []).append(name)
    first = [name for name in plan.graph.outputs if name not in shares]
    told = []
    if shares and first:
        told.append(f"{', '.join(first)}: placed and ordered before what gives way, nothing of it has to be shed")
    told += [
        f"{', '.join(names)}: at most {share} of the results can be served, there is no time for more once what is "
        "more urgent is served"
        for share, names in alike.items()
    ]
    return told + [
        f"node {node} runs {facts.policy}, which sheds nothing: what gives way there comes late, nearly all of it, "
        f"unless its operators say 'on_late: drop' ({', '.join(names[:4])}{' and more' if len(names) > 4 else ''})"
        for node, facts in plan.cluster.nodes.items()
        if facts.policy in SHED_NOTHING and (names := _undropped(plan, node))
    ]


def _undropped(plan: Plan, node: str) -> list[str]:
    """First operators of a node's units that lead to nothing but what gives way, and do not drop what is late."""
    shares, operators = plan.solver.served or {}, plan.graph.operators
    full = {one.origin for name, one in plan.graph.outputs.items() if name not in shares}
    needed, waiting = set[str](), list(full)
    while waiting:
        name = waiting.pop()
        if name in operators and name not in needed:
            needed.add(name)
            waiting += [*operators[name].inputs, *operators[name].side.values()]
    firsts = (
        [task.operators[0] for task in plan.tasks.get(node, ()) if task.operators[0] not in needed] if shares else []
    )
    return [name for name in firsts if operators[name].on_late is None]


def _stretch(part: Step) -> str:
    """A stretch and what it is made of."""
    if part.kind != "unit":
        queue = f" ({show_ns(part.waiting_ns)} of it waiting)" if part.kind == "link" and part.waiting_ns else ""
        return f"{part.what}{queue}"
    told = [f"own work {show_ns(part.work_ns)}"]
    if part.waiting_ns:
        told.append(f"waiting {show_ns(part.waiting_ns)}{_behind(part)}")
    if part.blocking_ns:
        told.append(f"blocked for {show_ns(part.blocking_ns)} by an instance that cannot be stopped")
    return f"{part.what}: {', '.join(told)}"


def _behind(part: Step) -> str:
    """Who is waited for; what had run before the tuple came is taken off."""
    if not part.ahead:
        return ""
    own = part.what.rpartition(" on ")[0]
    told = [
        f"{counted(one.jobs, 'tuple')} before it {show_ns(one.ns)}"
        if one.what == own
        else f"{one.what} {one.jobs} times {show_ns(one.ns)}"
        for one in sorted(part.ahead, key=lambda one: -one.ns)
    ]
    done_ns = part.done_before_ns
    since = f"; of this {show_ns(done_ns)} were over when it came" if done_ns else ""
    return f" (behind {', '.join(told)}{since})"


def binding(plan: Plan, output: str) -> list[str]:
    """What binds: the longest single part, and of the nodes on the way the one whose test has the least room."""
    found = [part for part in shares(plan, output) if part.kind != "slack"]
    if not found:
        return []
    longest = max(found, key=lambda part: part.ns)
    inside = longest.kind in ("work", "waiting", "blocking")
    what = f"{SAID[longest.kind]} at {longest.what}" if inside else longest.what
    lines = [f"what binds: {what}, {show_ns(longest.ns)}"]
    nodes = {part.step.node for part in found if part.step is not None and part.step.kind == "unit"}
    tests = {node: test for node in nodes if (test := plan.analysis.nodes[node].tightest) is not None}
    if tests:
        node = min(tests, key=lambda one: (_room_ns(tests[one]), one))
        lines.append(_tightest(node, tests[node]))
    return lines


def _room_ns(test: Tightest) -> int:
    return test.u_ns - test.demand_ns


def _tightest(node: str, found: Tightest) -> str:
    """A node's tightest demand inequality, in words."""
    room_ns = _room_ns(found)
    terms = [f"{one.what} {one.jobs} times {show_ns(one.ns)}" for one in found.of]
    if found.blocker is not None:
        terms.append(f"{found.blocker.what} blocking {show_ns(found.blocker.ns)}")
    left = f"{show_ns(room_ns)} left" if room_ns >= 0 else f"{show_ns(-room_ns)} too much"
    return (
        f"node {node} has the least room {show_ns(found.u_ns)} after a burst: work due by then is at most "
        f"{show_ns(found.demand_ns)}, {left} ({', '.join(terms)})"
    )
