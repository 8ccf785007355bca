"""Incumbent of a change: operators that run already keep their place, their sub-deadline, their task unit and
their streams' routes, so that tuples of both plans are treated alike while one gives way to the other."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from coordinator.errors import Mistake
from coordinator.model.task_units import LARGEST_EXITS
from coordinator.spec.query import Query
from protos.plan.search import IncumbentPart
from protos.plan_document import Plan

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Incumbent:
    """Of a plan that runs. `place`: operator to place; `due_ns`: operator to sub-deadline; `units`: each whole,
    readers of a stream in its middle; `hops`: per stream, from and to; `of`: that plan's hash. `spared`: outputs
    that need not hold, nor (5) for them, so that nothing which has to hold waits for them."""

    place: Mapping[str, str] = field(default_factory=dict)
    due_ns: Mapping[str, int] = field(default_factory=dict)
    units: tuple[tuple[str, ...], ...] = ()
    hops: Mapping[str, Pairs] = field(default_factory=dict)
    of: str = ""
    spared: frozenset[str] = frozenset()

    def exact(self, cores: Mapping[str, int]) -> dict[str, str]:
        """Places as a user names them: where a host has several cores its first is `a.0`, since `a` means any.
        `cores`: of each place's host."""
        return {name: f"{at}.0" if cores[at] > 1 and "." not in at else at for name, at in self.place.items()}

    def document(self) -> IncumbentPart | None:
        """For plan.json; all but the names stands elsewhere in it. None: nothing is kept or spared."""
        if not self.place and not self.spared:
            return None
        return IncumbentPart(of=self.of, operators=tuple(self.place), spared=tuple(sorted(self.spared)))


def read(plan: Plan, operators: Collection[str] | None = None, of: str | None = None) -> Incumbent:
    """What to keep of a plan: these operators (None: those that it kept itself, if any).

    Of a unit whose last operators are not kept, the last kept one takes their sub-deadlines: its place in the order of
    EDF is that of the unit.
    """
    told = plan.kept or IncumbentPart(of="", operators=())
    names = set(told.operators if operators is None else operators)
    due_ns: dict[str, int] = {}
    units = []
    for tasks in plan.tasks.values():
        for task in tasks:
            unit = tuple(name for name in task.operators if name in names)
            if unit:
                units.append(unit)
                due_ns.update({name: plan.sub_deadlines_ns[name] for name in unit})
                due_ns[unit[-1]] += task.sub_deadline_ns - sum(due_ns[name] for name in unit)
    order = [name for name in plan.graph.operators if name in names]
    streams = names | (set(plan.graph.sources) if names else set())
    return Incumbent(
        {name: plan.placement[name] for name in order},
        {name: due_ns[name] for name in order},
        tuple(units),
        {name: pairs for name, pairs in hops(plan).items() if name in streams},
        told.of if of is None else of,
        frozenset(told.spared) & plan.graph.outputs.keys(),
    )


def hops(plan: Plan) -> dict[str, Pairs]:
    """Per stream that is sent at all: from and to, by place."""
    names = {facts.index: name for name, facts in plan.cluster.nodes.items()}
    streams = {facts.id: name for name, facts in plan.graph.streams.items()}
    found: dict[str, list[tuple[str, str]]] = {}
    for node, local in plan.nodes.items():
        for send in local.sends:
            found.setdefault(streams[send.stream], []).append((node, names[send.peer]))
    return {name: tuple(pairs) for name, pairs in found.items()}


def fitted(query: Query, due_ns: Mapping[str, int], incumbent: Incumbent) -> dict[str, int]:
    """Sub-deadlines in which kept operators have their own, and others are shortened until (5) holds, as far as what is
    kept leaves room; at least 1 ns each."""
    due = {**due_ns, **incumbent.due_ns}
    free = [name for name in due if name not in incumbent.due_ns]
    for output in query.outputs:
        if output.name in incumbent.spared:
            continue
        behind = _behind(query, output.origin)
        fixed = _longest(query, output.origin, {name: incumbent.due_ns.get(name, 0) for name in due})
        movable = [name for name in free if name in behind]
        length = _longest(query, output.origin, {name: due[name] if name in movable else 0 for name in due})
        room = max(0, output.deadline_ns - fixed)
        if length > room:
            for name in movable:
                due[name] = max(1, due[name] * room // length)
    return due


def _behind(query: Query, end: str) -> set[str]:
    inputs = {operator.name: operator.inputs for operator in query.operators}
    found, waiting = {end}, [end]
    while waiting:
        for name in inputs[waiting.pop()]:
            if name in inputs and name not in found:
                found.add(name)
                waiting.append(name)
    return found


def _longest(query: Query, end: str, due_ns: Mapping[str, int]) -> int:
    """The longest sum on any way to an operator, itself included."""
    inputs = {operator.name: operator.inputs for operator in query.operators}
    found: dict[str, int] = {}
    waiting = [end]
    while waiting:
        name = waiting[-1]
        before = [one for one in inputs[name] if one in inputs]
        if left := [one for one in before if one not in found]:
            waiting += left
        else:
            found[waiting.pop()] = max((found[one] for one in before), default=0) + due_ns[name]
    return found[end]


def relaxed(query: Query, outputs: Collection[str], times: int) -> Query:
    """The query with so many times longer deadlines of some outputs."""
    return replace(
        query,
        outputs=tuple(
            replace(one, deadline_ns=one.deadline_ns * times) if one.name in outputs else one for one in query.outputs
        ),
    )


def crowded(query: Query, incumbent: Incumbent) -> list[Mistake]:
    """Kept units that more streams would leave than a unit may have exits: a trace record has no room."""
    found = []
    for unit in incumbent.units:
        leaving = [name for name, after in zip(unit, (*unit[1:], None), strict=True) if _leaves(query, name, after)]
        if len(leaving) > LARGEST_EXITS:
            text = (
                f"the task unit {unit[0]} to {unit[-1]} runs in one piece, and {len(leaving)} streams would leave it "
                f"({', '.join(leaving)})"
            )
            found.append(Mistake("too_many_exits", text, f"it may have {LARGEST_EXITS}", unit[0]))
    return found


def _leaves(query: Query, name: str, after: str | None) -> bool:
    return any(output.origin == name for output in query.outputs) or any(
        name in operator.side.values() or (name in operator.inputs and operator.name != after)
        for operator in query.operators
    )
