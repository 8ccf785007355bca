"""Links that tuples of a plan cross and for which cluster.yaml gives no latency: bounds count none there."""

from __future__ import annotations

from coordinator.units import counted
from protos.plan_document import Plan

SHOWN = 3  # pairs by name
LIKE = "5 ms"  # in the line that is proposed


def untimed(plan: Plan) -> list[tuple[str, str]]:
    """Pairs of machines between which a stream crosses without a latency, once each, in the order of the plan's
    links. Cores of one machine are no pair: `core_link` is between them."""
    host = {name: node.host for name, node in plan.cluster.nodes.items()}
    crossed = _crossed(plan)
    found = [
        (host[one], host[other])
        for one, other in (link.between for link in plan.cluster.links if not link.latency_ns)
        if host[one] != host[other] and frozenset((one, other)) in crossed
    ]
    return list(dict.fromkeys(found))


def lines(plan: Plan) -> list[str]:
    """One sentence for all such pairs; none where every link that is used has a latency."""
    pairs = untimed(plan)
    if not pairs:
        return []
    named = [f"{one} and {other}" for one, other in pairs[:SHOWN]]
    more = [f"{counted(len(pairs) - SHOWN, 'more pair')}"] if len(pairs) > SHOWN else []
    first = f"{{between: [{', '.join(pairs[0])}], latency: {LIKE}}}"
    return [
        f"note: no latency is counted between {'; '.join([*named, *more])}, since cluster.yaml gives none; give the "
        f"longest that may occur under 'links:', like {first}"
    ]


def _crossed(plan: Plan) -> frozenset[frozenset[str]]:
    """Pairs of places between which a node sends."""
    names = {node.index: name for name, node in plan.cluster.nodes.items()}
    return frozenset(frozenset((node, names[send.peer])) for node, local in plan.nodes.items() for send in local.sends)


__all__ = ["lines", "untimed"]
