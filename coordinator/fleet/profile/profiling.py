"""Measured costs of a running plan's operators, and of calls that make its sources' tuples: figures by name and node.

Agents count calls in buckets; a quantile is the upper end of its bucket, so it is never too small, and at most a
sixteenth too large. Two profiles subtract: what is left is what was measured between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isfinite, sqrt
from typing import Any

from coordinator.fleet.addresses import host_of
from coordinator.spec.costs import FEW, waiting
from coordinator.spec.files.costs_file import DEGRADED
from coordinator.units import LARGEST, counted, show_ns
from protos import agent_pb2
from protos.plan.cluster import Node
from protos.plan_document import Plan

RAISED = "operator_errors."
RESOLUTION = "at most 6.25 % above the true one"


@dataclass(frozen=True)
class Profiled:
    """Calls of one operator on one node: `samples` of them were measured. ns of CPU time in the node's own time;
    `elapsed_ns`: mean by the clock; `later_ns`: the worst without the first calls, 0: there were no others; `calls`: of
    each bucket, by its upper end, ascending; none where they are not all of the samples."""

    samples: int
    mean_ns: int
    p99_ns: int
    worst_ns: int
    later_ns: int
    elapsed_ns: int
    cv: float
    calls: tuple[tuple[int, int], ...] = ()

    def document(self) -> dict[str, Any]:
        """For --json."""
        return {
            "samples": self.samples,
            "mean_ns": self.mean_ns,
            "p99_ns": self.p99_ns,
            "worst_ns": self.worst_ns,
            "worst_without_first_calls_ns": self.later_ns,
            "elapsed_mean_ns": self.elapsed_ns,
            "cv": self.cv,
        }


Counts = Mapping[tuple[str, str], agent_pb2.OperatorCost]  # by operator, as costs.yaml calls it, and node
ThenAndNow = tuple[agent_pb2.OperatorCost, agent_pb2.OperatorCost]


def counts(plan: Plan, replies: Mapping[str, agent_pb2.ProfileReply]) -> Counts:
    """What was told of a plan's operators and of its sources that nodes call, by name and node. What is no measurement
    is left out."""
    operators, sources = plan.graph.operators, plan.graph.sources
    return {
        (f"{cost.name}{DEGRADED}" if cost.degraded else cost.name, node): cost
        for node, reply in replies.items()
        for cost in reply.costs
        if sane(cost)
        and (
            (cost.name in operators and (not cost.degraded or operators[cost.name].on_late))
            if cost.of == agent_pb2.MEASURED_OPERATOR
            else cost.of == agent_pb2.MEASURED_CALL and cost.name in sources and sources[cost.name].pull is not None
        )
    }


def sane(cost: agent_pb2.OperatorCost) -> bool:
    largest = max(cost.total_ns, cost.elapsed_ns, cost.worst_ns, *cost.bucket_ns, 0)
    return isfinite(cost.squares_ns2) and largest <= LARGEST and len(cost.bucket_ns) == len(cost.bucket_calls)


def since(before: Counts, after: Counts) -> dict[tuple[str, str], Profiled]:
    """What was measured from `before` on; all of `after` where an agent has begun again. Without what was not run."""
    return {key: _figures(then, now) for key, (then, now) in both(before, after).items()}


def both(before: Counts, after: Counts) -> dict[tuple[str, str], ThenAndNow]:
    """What was there before, nothing where an agent has begun again, and what is now. Without what was not run."""
    found = {}
    for key, now in after.items():
        then = before.get(key)
        if then is None or not _goes_on(then, now):
            then = agent_pb2.OperatorCost()
        if now.tuples > then.tuples:
            found[key] = then, now
    return found


def _goes_on(then: agent_pb2.OperatorCost, now: agent_pb2.OperatorCost) -> bool:
    """Whether nothing has become less: the runtime has not begun again."""
    calls = dict(zip(now.bucket_ns, now.bucket_calls, strict=False))
    had = zip(then.bucket_ns, then.bucket_calls, strict=False)
    return then.tuples <= now.tuples and all(calls.get(ns, 0) >= n for ns, n in had)


def _figures(then: agent_pb2.OperatorCost, now: agent_pb2.OperatorCost) -> Profiled:
    samples = now.tuples - then.tuples
    mean = (now.total_ns - then.total_ns) / samples
    variance = max(0.0, (now.squares_ns2 - then.squares_ns2) / samples - mean * mean)
    left = buckets(then, now)
    worst = min(now.worst_ns, max(left, default=now.worst_ns))  # of a part: the upper end of its last bucket
    mean_ns = max(1, ceil(mean))
    worst = max(worst, mean_ns)
    return Profiled(
        samples,
        mean_ns,
        min(worst, quantile_ns(left, 99) or worst),
        worst,
        now.later_worst_ns if not then.tuples else worst,
        max(1, ceil((now.elapsed_ns - then.elapsed_ns) / samples)),
        round(sqrt(variance) / mean, 4) if mean else 0.0,
        tuple(left.items()) if sum(left.values()) == samples and min(left, default=0) > 0 else (),
    )


def buckets(then: agent_pb2.OperatorCost, now: agent_pb2.OperatorCost) -> dict[int, int]:
    """What has come to them, by their upper end, ascending."""
    had = dict(zip(then.bucket_ns, then.bucket_calls, strict=False))
    left = {ns: calls - had.get(ns, 0) for ns, calls in zip(now.bucket_ns, now.bucket_calls, strict=False)}
    return {ns: calls for ns, calls in sorted(left.items()) if calls > 0}


def quantile_ns(buckets: Mapping[int, int], hundredth: int | Fraction) -> int:
    """The least upper end of a bucket that so many hundredths of the calls do not exceed; `buckets`: calls by upper
    end, ascending. 0: there are none."""
    rank, seen = ceil(sum(buckets.values()) * hundredth / 100), 0
    for ns, calls in buckets.items():
        seen += calls
        if seen >= rank:
            return ns
    return 0


Raised = dict[tuple[str, str], int]  # calls by operator and node; what raises has no result and is not measured


def raised(plan: Plan, statuses: Mapping[str, agent_pb2.StatusReply]) -> Raised:
    """How often operators of a plan have raised, by node, since its runtimes began."""
    told = (
        (counter.name.removeprefix(RAISED), node, int(counter.value))
        for node, status in statuses.items()
        for counter in status.counters
        if counter.name.startswith(RAISED)
    )
    return {(name, node): n for name, node, n in told if n and name in plan.graph.operators}


def raised_since(before: Raised, after: Raised) -> Raised:
    """From `before` on; all of `after` where a runtime has begun again."""
    left = {key: n - before.get(key, 0) if n >= before.get(key, 0) else n for key, n in after.items()}
    return {key: n for key, n in left.items() if n}


def raising(found: Raised) -> list[str]:
    """A sentence for each operator and node."""
    return [
        f"{name} on {node}: {counted(n, 'call')} raised; they are not in these figures, which are of calls that "
        "return; 'coordinator status' names the log with the trace back"
        for (name, node), n in found.items()
    ]


def unmeasured(plan: Plan, found: Iterable[tuple[str, str]]) -> list[str]:
    """Operators of a plan without any measured call."""
    there = {name for name, _ in found}
    return [name for name in plan.graph.operators if name not in there]


def declared_ns(plan: Plan, name: str) -> int:
    """What a plan takes for the cost of an operator, or of a call of a source, at speed 1."""
    source = plan.graph.sources.get(name)
    if source is not None and source.pull is not None:
        return source.pull.cost_ns
    operator = plan.graph.operators[name.removesuffix(DEGRADED)]
    if not name.endswith(DEGRADED):
        return operator.cost_ns
    assert operator.on_late is not None  # else it has no cheaper variant
    return operator.on_late.cost_ns


def speed(plan: Plan, node: str) -> float:
    """A node's, as the plan has it; of its places they are the same."""
    return float(_node(plan, node).speed)


def _node(plan: Plan, node: str) -> Node:
    return next(one for name, one in plan.cluster.nodes.items() if host_of(name) == node)


def _counted_ns(plan: Plan, name: str, node: str) -> int:
    """What a plan counts for a call of an operator on a node, or of a source."""
    of = _node(plan, node)
    at_least_ns = 0 if name in plan.graph.sources else of.emulate_cost_ns
    return max(ceil(declared_ns(plan, name) / Fraction(str(of.speed))), at_least_ns)


def doubts(plan: Plan, found: Mapping[tuple[str, str], Profiled], rt: Mapping[str, bool]) -> list[str]:
    """What to know before these figures are trusted, a sentence each."""
    lines = []
    for (name, node), one in found.items():
        if one.worst_ns > (counted_ns := _counted_ns(plan, name, node)):
            told = f"its worst call took {show_ns(one.worst_ns)}, the plan counts {show_ns(counted_ns)}"
            lines.append(f"{name} on {node}: {told}: bounds of this plan do not hold; plan again with these costs")
        if one.samples < FEW:
            lines.append(f"{name} on {node}: {counted(one.samples, 'call')} measured: too few to trust")
        if one.later_ns and one.worst_ns > 2 * one.later_ns:
            lines.append(
                f"{name} on {node}: the worst is of the first calls; since then {show_ns(one.later_ns)}: "
                "'--seconds' measures without them"
            )
        if name not in plan.graph.sources and waiting(one.mean_ns, one.elapsed_ns):  # a device may block its thread
            lines.append(waits(name, node, one, rt.get(node, False)))
    return lines


def waits(name: str, node: str, one: Profiled, rt: bool) -> str:
    """Of an operator that takes much longer by the clock than on the CPU. rt: its runtime has the real-time class."""
    why = "it waits, for a file, a socket or in a sleep"
    if not rt:
        why += ", or the runtime is preempted (it has no real-time class)"
    return (
        f"{name} on {node}: a call takes {show_ns(one.elapsed_ns)} by the clock and {show_ns(one.mean_ns)} of "
        f"CPU time: {why}; what comes behind it waits as well, so declare a cost that has it"
    )


def emulated(plan: Plan) -> list[str]:
    """Nodes that play slower ones, in a sentence."""
    found = {host_of(name): one.emulate_cost_ns for name, one in plan.cluster.nodes.items()}
    left_out = "which is not in these figures; plans count it"
    return [
        f"node {node} is emulated: a call there takes {show_ns(ns)} at least, {left_out}"
        for node, ns in found.items()
        if ns
    ]
