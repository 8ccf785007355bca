"""View of a plan for the ledgers: who consumes which stream on which node, and which outputs that leads to.

Read from plan.json's local plans (`nodes`), since these are what the agents obeyed. A *consumer* is a part that owes an
end to each tuple that arrives on a stream at a node: a task unit, a side input, an output or a peer that it is sent
to. Results that policing shed within a unit have a consumer of their own, RESULT. It is named by one integer
(`consumer_id`) so that both engines join and sort by the same key.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from coordinator.error_codes import Code
from coordinator.errors import Mistake
from coordinator.report.facts.most_results import MOST_GIVEN, most_results
from coordinator.report.facts.windows_view import WindowView, windows
from protos.plan.guarantee import Claim
from protos.plan.operators import Selectivity
from protos.plan_document import Plan
from protos.plan_pb2 import LocalPlan
from protos.records import stamp_of

UNIT, SIDE, OUTPUT, PEER, RESULT = range(1, 6)
MOST_NS = 1 << 60  # a bound beyond it is as good as that


def consumer_id(kind: int, ref: int, stream: int = 0) -> int:
    """One integer for a consumer: kind, then unit, operator, output or node number, then (sides, peers) the stream."""
    return kind << 48 | ref << 24 | stream


def consumer_parts(consumer: int) -> tuple[int, int, int]:
    """(kind, ref, stream) of `consumer_id`."""
    return consumer >> 48, (consumer >> 24) & 0xFFFFFF, consumer & 0xFFFFFF


class SideAges(NamedTuple):
    """How old a value of a side input may be at the most lenient of the ports that it comes to, and at the strictest;
    0: of any age."""

    most_ns: int = 0
    strictest_ns: int = 0


class PlanUnreadableError(ValueError):
    """plan.json is not a plan that this version can read."""

    def __init__(self, code: Code, text: str) -> None:
        self.mistake = Mistake(code, text)
        super().__init__(text)


@dataclass(frozen=True)
class UnitView:
    """A task unit: its exits are stream ids; `filters[i]`: the plan declares that exit i may give less than it gets;
    `gives[i]`: the most results of one tuple there; `fuses`: tuples of one lineage each, so one may go without a
    result and another have it; `unnamed`: of a fusion, no record names what its tuples met."""

    id: int
    node: int
    operators: tuple[str, ...]
    inputs: tuple[int, ...]
    exits: tuple[int, ...]
    join: bool
    filters: tuple[bool, ...]
    gives: tuple[int, ...] = ()
    fuses: bool = False
    unnamed: bool = False

    @property
    def label(self) -> str:
        """The operator's name, or the first and the last name of a chain."""
        names = self.operators
        return names[0] if len(names) == 1 else f"{names[0]}..{names[-1]}"


@dataclass(frozen=True)
class OutputView:
    """An output of the plan: the node that delivers it, its stream and its end-to-end deadline. share: of its results
    that is to be within its bound; None: all."""

    id: int
    name: str
    node: int
    stream: int
    deadline_ns: int
    share: float | None = None


@dataclass(frozen=True)
class Freshness:
    """What an output asks of the data behind its results, and what its plan says of it; None: not asked, not bounded.
    without: names of sources that do not count. reaction_bounds_ns: by source. alike: all plans with the output say the
    same of it."""

    age_ns: int | None
    age_without: tuple[str, ...]
    age_bound_ns: int | None
    reaction_ns: int | None
    reaction_without: tuple[str, ...]
    reaction_bounds_ns: Mapping[str, int | None]
    alike: bool = True


@dataclass(frozen=True)
class PlanView:
    """A plan as the ledgers see it, or several that were joined. Node numbers, not names, are the keys.

    made: the plan itself, of several the last. numbers: of the plans whose records count, by the start of their hashes.
    same: outputs of earlier plans that are known by another id. peers: nodes that an earlier plan numbers otherwise.
    queries: the outputs of each query. windows: by the source that admits them. side_ages: of side inputs, by operator
    and stream; none: of any age. freshness: of the outputs that ask for it.
    """

    hash: str
    query: str
    nodes: Mapping[int, str]
    streams: Mapping[int, str]
    sources: Mapping[int, tuple[int, int]]  # id -> (node, stream)
    units: Mapping[int, UnitView]
    outputs: Mapping[int, OutputView]
    operators: Mapping[int, str]
    consumers: Mapping[tuple[int, int], tuple[int, ...]]  # (node, stream) -> consumer ids, once per port
    before: Mapping[tuple[int, int], int]  # (unit, operator id) -> bit set of the exits before that operator
    through: Mapping[tuple[int, int], int]  # the same with that operator's own
    made: Plan = field(repr=False, compare=False)
    numbers: Mapping[int, int] = field(default_factory=dict)
    same: Mapping[int, int] = field(default_factory=dict)
    queries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    windows: Mapping[int, WindowView] = field(default_factory=dict)
    bounds: Mapping[tuple[int, int], int] = field(default_factory=dict)  # (output, plan's number) -> ns from the origin
    peers: Mapping[tuple[int, int], int] = field(default_factory=dict)  # (plan's number, node's in it) -> node's here
    side_ages: Mapping[tuple[int, int], SideAges] = field(default_factory=dict)
    freshness: Mapping[int, Freshness] = field(default_factory=dict)

    @property
    def hash_u64(self) -> int:
        """The hash as trace records carry it."""
        return stamp_of(self.hash)

    @cached_property
    def index(self) -> dict[str, int]:
        """node's name -> its number"""
        return {name: number for number, name in self.nodes.items()}

    @cached_property
    def producer(self) -> dict[int, tuple[int, int]]:
        """stream -> (unit, exit number); a source's stream has none."""
        return {stream: (unit.id, exit_) for unit in self.units.values() for exit_, stream in enumerate(unit.exits)}


def read_plan(made: Plan) -> PlanView:
    """The view of a plan. Raises PlanUnreadableError."""
    try:
        return _view(made)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PlanUnreadableError(
            "unreadable_plan", f"plan.json cannot be read: {type(error).__name__}: {error}"
        ) from error


def _view(made: Plan) -> PlanView:
    nodes = {node.index: name for name, node in made.cluster.nodes.items()}
    index = {name: number for number, name in nodes.items()}
    declared = {name: operator.selectivity for name, operator in made.graph.operators.items()}
    units: dict[int, UnitView] = {}
    outputs: dict[int, OutputView] = {}
    sources: dict[int, tuple[int, int]] = {}
    consumers: dict[tuple[int, int], list[int]] = {}
    for name, plan in made.nodes.items():
        node = index[name]
        for unit in _units(plan, node, declared):
            units[unit.id] = unit
        for output in plan.outputs:
            share = _share(made.guarantee.get(output.name))
            outputs[output.id] = OutputView(output.id, output.name, node, output.stream, output.deadline_ns, share)
        sources.update({source.id: (node, source.stream) for source in plan.sources})
        for stream, consumer in _consumers(plan, units):
            consumers.setdefault((node, stream), []).append(consumer)
    return PlanView(
        hash=made.hash,
        query=made.query,
        nodes=nodes,
        streams={stream.id: stream.name for plan in made.nodes.values() for stream in plan.streams},
        sources=sources,
        units=units,
        outputs=outputs,
        operators={operator.id: operator.name for plan in made.nodes.values() for operator in plan.operators},
        consumers={key: tuple(sorted(found)) for key, found in consumers.items()},
        before={key: exits for plan in made.nodes.values() for key, exits, _ in _given(plan)},
        through={key: exits for plan in made.nodes.values() for key, _, exits in _given(plan)},
        made=made,
        numbers={stamp_of(made.hash): 0},
        queries={name: part.outputs for name, part in made.queries.items()},
        windows={view.source: view for name, plan in made.nodes.items() for view in windows(plan, index[name])},
        bounds=_bounds(made.guarantee, outputs.values()),
        side_ages=_side_ages(made.nodes.values()),
        freshness=dict(_freshness(made, outputs.values())),
    )


def _freshness(made: Plan, outputs: Iterable[OutputView]) -> Iterable[tuple[int, Freshness]]:
    for view in outputs:
        asked, claim = made.graph.outputs.get(view.name), made.guarantee.get(view.name)
        if asked is None or (asked.age_ns is None and asked.reaction_ns is None):
            continue
        paths = () if claim is None else claim.data_paths
        yield (
            view.id,
            Freshness(
                age_ns=asked.age_ns,
                age_without=asked.age_without,
                age_bound_ns=None if claim is None else claim.age_bound_ns,
                reaction_ns=asked.reaction_ns,
                reaction_without=asked.reaction_without,
                reaction_bounds_ns={each.source: each.bound_ns for each in paths if each.of == "reaction"},
            ),
        )


def _side_ages(nodes: Iterable[LocalPlan]) -> dict[tuple[int, int], SideAges]:
    found: dict[tuple[int, int], list[int]] = {}
    for plan in nodes:
        for operator in plan.operators:
            for side in operator.sides:
                found.setdefault((operator.id, side.stream), []).append(side.max_age_ns)
    return {key: SideAges(max(ns) if all(ns) else 0, min(filter(None, ns))) for key, ns in found.items() if any(ns)}


def _share(claim: Claim | None) -> float | None:
    """Of an output's results, that is to be within the bound that they are held against; None: all."""
    confident = claim.confident if claim is not None else None
    return confident.share if confident is not None and confident.bound_ns is not None else None


def _bounds(guarantee: Mapping[str, Claim], outputs: Iterable[OutputView]) -> dict[tuple[int, int], int]:
    """What the plan says that each output takes at most, or as large a share of its results as it asks for; nothing for
    those without a bound."""
    claims = ((output.id, guarantee[output.name].judged_ns) for output in outputs if output.name in guarantee)
    return {(id_, 0): min(bound_ns, MOST_NS) for id_, bound_ns in claims if bound_ns is not None}


def _may_filter(selectivity: Selectivity | None) -> bool:
    if selectivity is None:
        return False
    return selectivity.mean < 1 or any(inputs < results for inputs, results in selectivity.at_most)


def _units(plan: LocalPlan, node: int, declared: Mapping[str, Selectivity | None]) -> Iterable[UnitView]:
    operators = {operator.id: operator for operator in plan.operators}
    for unit in plan.units:
        chain = [operators[id_] for id_ in unit.operators]
        said = []
        for stream in unit.exits:
            upto = next(i for i, operator in enumerate(chain) if operator.output == stream)
            said.append([declared.get(operator.name) for operator in chain[: upto + 1]])
        yield UnitView(
            id=unit.id,
            node=node,
            operators=tuple(operator.name for operator in chain),
            inputs=tuple(chain[0].inputs),
            exits=tuple(unit.exits),
            join=chain[0].join and not chain[0].HasField("window"),  # that joins by lineage
            filters=tuple(any(map(_may_filter, each)) for each in said),
            gives=tuple(min(MOST_GIVEN, math.prod(map(most_results, each))) for each in said),
            fuses=chain[0].HasField("sync"),
            unnamed=chain[0].sync.each,
        )


def _given(plan: LocalPlan) -> Iterable[tuple[tuple[int, int], int, int]]:
    """What a unit's exits have given before and when one of its operators ends; it is not lost with a result."""
    makes = {operator.id: operator.output for operator in plan.operators}
    for unit in plan.units:
        given = 0
        for id_ in unit.operators:
            own = sum(1 << exit_ for exit_, stream in enumerate(unit.exits) if stream == makes[id_])
            yield (unit.id, id_), given, given | own
            given |= own


def _consumers(plan: LocalPlan, units: Mapping[int, UnitView]) -> Iterable[tuple[int, int]]:
    for unit in plan.units:
        for stream in units[unit.id].inputs:
            yield stream, consumer_id(UNIT, unit.id)
    for operator in plan.operators:
        for side in operator.sides:
            yield side.stream, consumer_id(SIDE, operator.id, side.stream)
    for output in plan.outputs:
        yield output.stream, consumer_id(OUTPUT, output.id)
    for send in plan.sends:
        yield send.stream, consumer_id(PEER, send.peer, send.stream)


class Reach:
    """Which outputs a tuple was on its way to, and whether it would surely have got there.

    `seen`: (unit, exit) pairs that filtered a tuple in this run. A result is *sure* unless an exit on some path may
    filter: its operators declare it, it did so in this run, it is a join with such an exit anywhere upstream (whose
    partner might have been filtered), or a fusion, whose result may do without it. Side inputs are in no deadline path
    and reach nothing.
    """

    def __init__(self, plan: PlanView, seen: Iterable[tuple[int, int]] = ()) -> None:
        self._plan = plan
        self._seen = frozenset(seen)
        self._streams: dict[tuple[int, int], dict[int, bool]] = {}

    def consumer(self, node: int, consumer: int) -> dict[int, bool]:
        """output id -> sure, for a tuple that this consumer at `node` should have ended."""
        kind, ref, stream = consumer_parts(consumer)
        if kind == UNIT and ref in self._plan.units:
            return self.after(ref, 0)
        if kind == OUTPUT:
            return {ref: True} if ref in self._plan.outputs else {}
        if kind == PEER:
            return self.stream(ref, stream)
        return {}

    def exit(self, unit: int, exit_: int) -> dict[int, bool]:
        """output id -> sure, for what the unit would have given on one exit."""
        view = self._plan.units[unit]
        sure = not (self._filters(unit, exit_) or view.fuses) and not (view.join and self._upstream(unit))
        return {output: sure and onward for output, onward in self.stream(view.node, view.exits[exit_]).items()}

    def after(self, unit: int, kept: int) -> dict[int, bool]:
        """As `consumer`, for an instance that failed after it had given outputs on the exits in the bit set `kept`."""
        exits = range(len(self._plan.units[unit].exits)) if unit in self._plan.units else range(0)
        return _merge(self.exit(unit, exit_) for exit_ in exits if not kept >> exit_ & 1)

    def stream(self, node: int, stream: int) -> dict[int, bool]:
        """output id -> sure, for a tuple that none of the stream's consumers at `node` got."""
        key = (node, stream)
        if key not in self._streams:
            self._streams[key] = {}  # a stream sent in a circle ends here
            found = self._plan.consumers.get(key, ())
            self._streams[key] = _merge(self.consumer(node, consumer) for consumer in found)
        return self._streams[key]

    def _filters(self, unit: int, exit_: int) -> bool:
        return self._plan.units[unit].filters[exit_] or (unit, exit_) in self._seen

    def _upstream(self, unit: int) -> bool:
        parents = [self._plan.producer[s] for s in self._plan.units[unit].inputs if s in self._plan.producer]
        return any(self._filters(*parent) or self._upstream(parent[0]) for parent in parents)


def _merge(found: Iterable[dict[int, bool]]) -> dict[int, bool]:
    merged: dict[int, bool] = {}
    for outputs in found:
        for output, sure in outputs.items():
            merged[output] = merged.get(output, True) and sure
    return merged
