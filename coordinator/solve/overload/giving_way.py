"""Sub-deadlines of a plan in which some outputs give way: what gives way stands behind all that is served in full.

Under EDF a sub-deadline is a place in the order, and a unit whose queue has no end becomes more urgent the longer it
waits: a backlog of frames of 500 ms is, in the end, ahead of an alarm of 30 ms that has just come. So

- outputs that are served in full get the sub-deadlines that suit them when nothing else runs, but for the longest
  instance of what gives way, which cannot be stopped;
- what gives way gets sub-deadlines a thousand times its deadline: whether it is late is decided by its age, so the
  order among it is kept, and none of it goes before what is served in full;
- of what gives way, what has begun on a node goes before what is new: work on results that nothing comes of is lost.

A sub-deadline is at least 1 ns for each operator of a unit. Where nothing is served in full, what has begun gets the
longest deadline of all outputs: its length does not matter for the order, but people read it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from coordinator.guarantee.system import System, Unit
from coordinator.model.routes import Hops
from coordinator.solve.guaranteed.candidate import Candidate, Setting, candidate
from coordinator.solve.guaranteed.sub_deadlines import RELAXED, Effort, Search
from coordinator.spec.query import Query
from coordinator.spec.runtime_charges import RuntimeOverhead


@dataclass(frozen=True)
class Ordered:
    """`due_ns`: by unit of the whole candidate; `analyses`: how many it took."""

    due_ns: Mapping[int, int]
    analyses: int


def ordered(
    setting: Setting, whole: Candidate, yielding: Collection[str], charges: RuntimeOverhead, effort: Effort
) -> Ordered:
    """Sub-deadlines for a placement. `yielding`: the outputs that give way."""
    first = served_in_full(setting.query, yielding)
    places = {operator.name: whole.place[operator.name] for operator in first.operators}
    shares: Mapping[str, int] = {}
    if first.outputs:
        streams = {*(source.name for source in first.sources), *places}
        hops: Hops = {name: pairs for name, pairs in whole.hops.items() if name in streams}
        alone = candidate(replace(setting, query=first), places, hops)
        behind_ns = max(
            (_instance_ns(unit) for unit in whole.system.units.values() if not _of(unit, places)), default=0
        )
        search = Search(alone, replace(charges, loading_ns=max(charges.loading_ns, behind_ns)), effort)
        search.feasible()
        found = search.improve()
        assert found is not None  # the first analysis is always made
        shares = alone.per_operator(found.due_ns)
    ahead_ns = max(output.deadline_ns for output in first.outputs or setting.query.outputs)
    begun_ns = 1 + max(ahead_ns, *(len(unit.stages) for unit in whole.system.units.values()))
    due_ns = {
        number: sum(shares[stage.operator] for stage in unit.stages)
        if _of(unit, places)
        else _behind_ns(whole.system, unit, begun_ns)
        for number, unit in whole.system.units.items()
    }
    return Ordered(due_ns, effort.analyses)


def served_in_full(query: Query, yielding: Collection[str]) -> Query:
    """The query without the outputs that give way, and without what leads to nothing else. It is no query of several
    any more: nothing asks whose an output is."""
    by_name = {operator.name: operator for operator in query.operators}
    outputs = tuple(output for output in query.outputs if output.name not in yielding)
    needed, waiting = set[str](), [output.origin for output in outputs]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            if name in by_name:
                waiting += [*by_name[name].inputs, *by_name[name].side.values()]
    return replace(
        query,
        sources=tuple(source for source in query.sources if source.name in needed),
        operators=tuple(operator for operator in query.operators if operator.name in needed),
        outputs=outputs,
        members={},
    )


def _of(unit: Unit, operators: Collection[str]) -> bool:
    return unit.stages[0].operator in operators


def _instance_ns(unit: Unit) -> int:
    return sum(stage.cost_ns for stage in unit.stages)


def _behind_ns(system: System, unit: Unit, begun_ns: int) -> int:
    """Of a unit that gives way. What follows another such unit on its node has come by no link: it has begun there."""
    here = {stream for one in system.units.values() if one.node == unit.node for stream in one.exits}
    if unit.inputs and here.issuperset(unit.inputs):
        return begun_ns
    return max(RELAXED * unit.last_ns, 2 * begun_ns)
