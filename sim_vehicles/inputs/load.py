"""Load: CPU time that a plan's operators ask of each node when its sources send in bursts."""

from __future__ import annotations

from math import inf

from protos.plan.cluster import Node
from protos.plan.operators import Operator
from protos.plan.sources import Source
from protos.plan_document import Plan


def utilisation(plan: Plan, sizes: dict[str, tuple[int, int]], rate: float) -> dict[str, float]:
    """Share of each node's time that its operators need: expected tuples per second times cost per tuple. Of a source
    with a limit no more than that goes on.

    sizes: {source: (tuples per burst, period in ns)}; rate: how much faster than recorded the bursts come (the cost of
    a tuple stays what it is). Selectivity is the mean that the plan states; a join gives as many as its rarest input.
    An emulated node spends at least its emulated cost per tuple. Over 1: a queue grows for as long as this goes on.
    """
    nodes = plan.cluster.nodes
    sources = plan.graph.sources
    per_s = {
        name: min(n * 1e9 / period_ns * rate, _most_per_s(sources[name])) for name, (n, period_ns) in sizes.items()
    }
    busy = dict.fromkeys(nodes, 0.0)
    waiting = dict(plan.graph.operators)
    while waiting:
        ready = [name for name, operator in waiting.items() if all(stream in per_s for stream in operator.inputs)]
        if not ready:
            break  # fed by a source that nobody sends to here
        for name in ready:
            operator = waiting.pop(name)
            inputs = [per_s[stream] for stream in operator.inputs]
            tuples = min(inputs) if operator.join else sum(inputs)
            node = plan.placement[name]
            busy[node] += tuples * _cost_ns(operator, nodes[node]) / 1e9
            per_s[name] = tuples * (1.0 if operator.selectivity is None else operator.selectivity.mean)
    return {name: round(share, 4) for name, share in busy.items()}


def _most_per_s(source: Source) -> float:
    return inf if source.limit is None else source.limit.tuples * 1e9 / source.limit.span_ns


def _cost_ns(operator: Operator, node: Node) -> float:
    return float(max(operator.cost_ns / node.speed, node.emulate_cost_ns))
