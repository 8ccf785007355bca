"""Fixed priorities: rate monotonic, deadline monotonic, Audsley's, and HOPA's.

HOPA is of Gutierrez Garcia and Gonzalez Harbour (1995): virtual sub-deadlines, deadline monotonic on each node,
analysis; what is later than its sub-deadline gets more of the deadline, what is earlier less; again.
"""

from __future__ import annotations

from collections.abc import Sequence

from infra.papers.conventional.fixed_priority import FixedPriorities, response_ns
from infra.papers.conventional.holistic import bounds_ns, latest_release_ns, least_releases_ns, responses_ns
from infra.papers.conventional.node_load import NodeLoad, UnboundedError
from infra.papers.conventional.sub_deadlines import equal_flexibility, equal_slack, from_releases, ultimate
from infra.papers.conventional.transactions import Transactions

ROUNDS = 8  # of HOPA, from each start with each pair of weights
WEIGHTS = ((2.0, 2.0), (1.5, 1.5), (3.0, 3.0))  # (k_a, k_r), in that order, as the authors vary them


def by(keys: Sequence[float]) -> FixedPriorities:
    """The least key goes first; of equal ones the first."""
    order = sorted(range(len(keys)), key=lambda number: (keys[number], number))
    return FixedPriorities(tuple(order.index(number) for number in range(len(keys))))


def rate_monotonic(of: Transactions) -> FixedPriorities:
    """By the period of events."""
    return by([each.event.period_ns for each in of.activities])


def deadline_monotonic(of: Transactions) -> FixedPriorities:
    """By the deadline of the whole transaction."""
    return by(from_releases(of, ultimate))


def audsley(of: Transactions, due_ns: Sequence[int]) -> FixedPriorities:
    """Audsley's assignment (1991; without preemption: George, Rivierre and Spuri 1996), node by node, for sub-deadlines
    after releases.

    Its condition, that a response time depends on which activities go first and not on their order, holds for given
    jitters only. So each is as if all activities before it ended when they are due; where all nodes have an order,
    they do. Where a node has none, the activity with the longest sub-deadline takes the level.
    """
    jitter_ns = _jitters_if_in_time_ns(of, due_ns)
    rank = [0] * len(of.activities)
    for node in of.nodes:
        left = of.on(node)
        try:
            load = NodeLoad.of([of.activities[number] for number in left], [jitter_ns[number] for number in left])
        except UnboundedError:
            load = None
        arrivals = dict(zip(left, load.arrivals, strict=True)) if load is not None else {}
        done: list[int] = []
        while left:
            latest_first = sorted(left, key=lambda number: (-due_ns[number], number))
            fitting = (
                number
                for number in latest_first
                if arrivals
                and response_ns(
                    arrivals[number],
                    [arrivals[other] for other in left if other != number],
                    [arrivals[other] for other in done],
                )
                <= due_ns[number] + jitter_ns[number]
            )
            lowest = next(fitting, latest_first[0])
            rank[lowest] = len(left)
            left.remove(lowest)
            done.append(lowest)
    return by(rank)


def _jitters_if_in_time_ns(of: Transactions, due_ns: Sequence[int]) -> list[int]:
    least_ns = least_releases_ns(of)
    ends_ns: list[int] = []
    found = []
    for number in range(len(of.activities)):
        latest_ns = latest_release_ns(of, ends_ns, number)
        ends_ns.append(latest_ns + due_ns[number])
        found.append(latest_ns - least_ns[number])
    return found


def hopa(of: Transactions) -> FixedPriorities:
    """The first that holds, else the one whose latest output is nearest to its deadline, of some rounds from each
    start."""
    starts_ns = [[float(ns) for ns in from_releases(of, rule)] for rule in (equal_flexibility, equal_slack, ultimate)]
    best = by(starts_ns[0])
    least = _lateness(of, best)
    seen = {best.rank}
    for start_ns in starts_ns:
        for own_weight, node_weight in WEIGHTS:
            due_ns = start_ns
            for _ in range(ROUNDS):
                tried = by(due_ns)
                if tried.rank not in seen:
                    late = _lateness(of, tried)
                    best, least = (tried, late) if late < least else (best, least)
                    seen.add(tried.rank)
                if least <= 1:
                    return best
                try:
                    ends_ns = responses_ns(of, tried)
                except UnboundedError:
                    break
                due_ns = _shared_out_anew(of, due_ns, ends_ns, own_weight, node_weight)
    return best


def _lateness(of: Transactions, tried: FixedPriorities) -> float:
    """The largest bound over its deadline."""
    found = bounds_ns(of, tried)
    shares = [float("inf") if (ns := found[output.name]) is None else ns / output.deadline_ns for output in of.outputs]
    return max(shares)


def _shared_out_anew(
    of: Transactions, due_ns: Sequence[float], ends_ns: Sequence[int], own_weight: float, node_weight: float
) -> list[float]:
    """excess = (response - sub-deadline) R / D, of an activity and summed over its node; sub-deadlines change by both,
    and then fill their deadlines again."""
    excess = []
    for number in range(len(of.activities)):
        took_ns = ends_ns[number] - latest_release_ns(of, ends_ns, number)
        ratio = max(ends_ns[output.by] / output.deadline_ns for output in of.behind[number])
        excess.append((took_ns - due_ns[number]) * ratio)
    of_node = {node: sum(excess[number] for number in of.on(node)) for node in of.nodes}
    most = max(map(abs, excess)) or 1.0
    most_of_node = max(map(abs, of_node.values())) or 1.0
    wanted = [
        due * (1 + of_node[each.node] / (node_weight * most_of_node)) * (1 + excess[number] / (own_weight * most))
        for number, (due, each) in enumerate(zip(due_ns, of.activities, strict=True))
    ]
    found: dict[int, float] = {}
    for output in of.outputs:
        way = of.way(output)
        stretch = (output.deadline_ns - of.links_ns(output)) / sum(wanted[number] for number in way)
        for number in way:
            found[number] = min(found.get(number, wanted[number] * stretch), wanted[number] * stretch)
    return [found[number] for number in range(len(of.activities))]


__all__ = ["audsley", "by", "deadline_monotonic", "hopa", "rate_monotonic"]
