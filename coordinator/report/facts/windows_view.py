"""The windows of a plan as the report sees them: every operator that collects tuples in windows, and its way in.

Tuples end at the unit that collects them, which has no exits; a window is admitted by a source of its own, whose
lineages the ledgers follow like any other. What belongs together is told here; only figures use it, no ledger does.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from protos.plan.operators import ADD
from protos.plan_pb2 import LocalPlan, Operator, Unit

BY_TIME = "time"


@dataclass(frozen=True)
class WindowView:
    """The windows of one operator. Ids are the plan's, times ns.

    source: what its windows are admitted as. operators: what WINDOW records may name it by: the part that collects
    and the part that closes. path: the units that a tuple runs through, from the entry at which it may be shed to the
    one that collects. first: deadlines count from a window's oldest tuple, not from its end. useful_ns: how long from
    then on a result is of use to some output; 0: for ever. lateness_ns: how much older than a lower number of its
    source a tuple may be. feeds: the sources of its tuples. definition: windows of an operator go on from plan to plan
    where it is the same.
    """

    name: str
    node: int
    source: int
    operators: tuple[int, ...]
    path: tuple[int, ...]
    kind: str
    length_ns: int
    hop_ns: int
    first: bool
    useful_ns: int
    lateness_ns: int = 0
    feeds: tuple[int, ...] = ()
    definition: str = ""

    def moved(self, moved_id: Callable[[int], int]) -> "WindowView":
        """The same with other ids."""
        return replace(
            self,
            source=moved_id(self.source),
            operators=tuple(map(moved_id, self.operators)),
            path=tuple(map(moved_id, self.path)),
            feeds=tuple(map(moved_id, self.feeds)),
        )


def windows(plan: LocalPlan, node: int) -> Iterator[WindowView]:
    """The windows that one node collects."""
    operators = {operator.id: operator for operator in plan.operators}
    closing = {operator.closes: operator for operator in plan.operators if operator.closes}
    for source in plan.sources:
        if not source.window:
            continue
        collects = operators[source.window]
        closes = closing.get(collects.id)
        yield WindowView(
            name=collects.name.removesuffix(ADD) if closes is None else closes.name,
            node=node,
            source=source.id,
            operators=(collects.id,) if closes is None else (collects.id, closes.id),
            path=_path(plan, collects.id),
            kind=collects.window.kind or BY_TIME,
            length_ns=collects.window.length,
            hop_ns=collects.window.hop or collects.window.length,
            first=collects.window.first,
            useful_ns=collects.window.useful_ns,
            lateness_ns=collects.window.lateness_ns,
            feeds=tuple(feed.source for feed in collects.window.feeds),
            definition=_definition(plan, collects),
        )


def _definition(plan: LocalPlan, collects: Operator) -> str:
    window, names = collects.window, {stream.id: stream.name for stream in plan.streams}
    feeds = [(feed.name or feed.source, feed.input) for feed in window.feeds]
    grid = (window.kind, window.length, window.hop, window.lateness_ns, window.first)
    made = (window.by, *window.on, window.size, collects.run, collects.with_json)
    return repr((grid, made, feeds, [names.get(stream) for stream in collects.inputs]))


def _path(plan: LocalPlan, collects: int) -> tuple[int, ...]:
    """That of the shedder for this operator; else from the first unit on this node that leads to nothing else."""
    for shedding in plan.sheddings:
        if collects in shedding.windows and shedding.path:
            return tuple(shedding.path)
    makes = {operator.id: operator.output for operator in plan.operators}
    reads = {unit.id: _inputs(plan, unit) for unit in plan.units}
    sides = {side.stream for operator in plan.operators for side in operator.sides}
    leaves = sides | {send.stream for send in plan.sends} | {output.stream for output in plan.outputs}
    path = [unit.id for unit in plan.units if collects in unit.operators]
    while path and len(reads[path[0]]) == 1:
        (stream,) = reads[path[0]]
        before = [unit for unit in plan.units if any(makes[each] == stream for each in unit.operators)]
        alone = [stream] == [each for unit in before for each in unit.exits] and stream not in leaves
        if not alone or sum(stream in found for found in reads.values()) != 1 or before[0].id in path:
            break
        path.insert(0, before[0].id)
    return tuple(path)


def _inputs(plan: LocalPlan, unit: Unit) -> tuple[int, ...]:
    (head,) = (operator for operator in plan.operators if operator.id == unit.operators[0])
    return tuple(head.inputs)
