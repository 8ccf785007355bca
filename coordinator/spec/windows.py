"""Windows of a checked query: which tuples reach them, what is counted on the way, how old what they take may be.

A window operator `W` is two operators here. `W.add` collects the tuples of its inputs, `W` makes a result of each
window that closes. In between no tuple goes on: a window that closes is admitted like a tuple of a source of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.spec import graph
from coordinator.spec.catalog import Catalog
from coordinator.spec.query import Operator, Query

LEAST_BEAT_NS, MOST_BEAT_NS = 10**7, 5 * 10**7
WAIT_NS = 10**9
ENDLESS_NS = 1 << 62  # beyond every deadline and every cost


def collecting(query: Query) -> list[Operator]:
    """The operators that collect tuples in windows, in the query's order."""
    return [operator for operator in query.operators if operator.window is not None]


def closing(query: Query) -> dict[str, Operator]:
    """What makes the results, by the name of what collects."""
    return {operator.closes: operator for operator in query.operators if operator.closes}


def source_ids(query: Query) -> dict[str, int]:
    """The ids of all sources: those of clients in the query's order, then those of windows, by `W.add`."""
    names = [source.name for source in query.sources] + [operator.name for operator in collecting(query)]
    return {name: number for number, name in enumerate(names, start=1)}


def paths(query: Query, catalog: Catalog) -> dict[str, dict[str, int]]:
    """Per stream the sources whose tuples it carries, and on how many ways each comes. A join by lineage makes one
    tuple of all; what windows give comes from the window."""
    found: dict[str, dict[str, int]] = {source.name: {source.name: 1} for source in query.sources}
    for operator in graph.order(query):
        if operator.window is not None:
            found[operator.name] = {operator.name: 1}
            continue
        inputs = [found[name] for name in operator.inputs]
        if graph.kind(operator, catalog) == "join":
            common = set(inputs[0]).intersection(*inputs)
            found[operator.name] = {name: 1 for name in inputs[0] if name in common}
            continue
        sums: dict[str, int] = {}
        for each in inputs:
            for name, ways in each.items():
                sums[name] = sums.get(name, 0) + ways
        found[operator.name] = sums
    return found


def feeds(operator: Operator, found: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """The sources of a window, each with the number of the input that it comes by; `found`: of `paths`."""
    return {name: number for number, stream in enumerate(operator.inputs) for name in found[stream]}


def counted(query: Query) -> set[str]:
    """Streams that lead to a window before they end: each number of their sources has to be accounted for there."""
    found: set[str] = set()
    for operator in reversed(graph.order(query)):
        if operator.window is not None or operator.name in found:
            found |= set(operator.inputs)
        if operator.closes:
            found.discard(operator.closes)
    return found


def beats_ns(query: Query, catalog: Catalog) -> dict[str, int]:
    """How often the source's node says how far it is, for sources that lead to a window: a quarter of the least hop."""
    found: dict[str, int] = {}
    every = paths(query, catalog) if collecting(query) else {}
    for operator in collecting(query):
        window = operator.window
        assert window is not None
        quarter_ns = MOST_BEAT_NS if window.kind == "count" else window.hop // 4
        beat_ns = min(max(quarter_ns, LEAST_BEAT_NS), MOST_BEAT_NS)
        for name in feeds(operator, every):
            found[name] = min(found.get(name, beat_ns), beat_ns)
    return found


def latest_ns(query: Query) -> dict[str, int]:
    """Per stream how old one of its tuples may be and still lead to a result in time, by the longest deadline
    behind it, at any cost of the way there; 0: it leads to no output; None stands for no end, as `-1`.

    A tuple that lies in a window of time may be as much older than its end as the window is long. By count nothing
    says how old the others of a window are, unless the deadline counts from the oldest; and for results that are given
    however late none is too old. Their ages have no end (`endless`).
    """
    found = {one.name: 0 for one in query.producers}
    for output in query.outputs:
        found[output.origin] = max(found[output.origin], output.deadline_ns)
    for operator in reversed(graph.order(query)):
        behind = found[operator.name] and found[operator.name] + more_ns(operator)
        for name in operator.inputs:
            found[name] = max(found[name], behind)
    return found


def endless(age_ns: int) -> bool:
    """Whether an age of `latest_ns`, or what costs leave of it, is none that ever comes."""
    return age_ns >= ENDLESS_NS // 2


def more_ns(operator: Operator) -> int:
    """How much older a tuple may be that an operator takes than what it gives, for it to be of use."""
    window = operator.window
    if window is not None and (window.keep or (window.kind == "count" and not window.first)):
        return ENDLESS_NS
    return beyond_ns(operator)


def beyond_ns(operator: Operator) -> int:
    """How much older than a deadline behind it a tuple may be that comes to an operator: the length of the windows of
    time that it collects, unless their deadlines count from their oldest tuple."""
    window = operator.window
    return window.length if window is not None and not window.first and window.kind != "count" else 0
