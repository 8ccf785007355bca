"""Installs the shedders of a compiled plan at its units, and lets those of a new plan inherit from the old one's."""

from collections.abc import Sequence

from node_agent.core import plan as plans
from node_agent.core.model import CompiledPlan, Unit
from node_agent.core.shedding import shedding_policies
from node_agent.core.shedding.backlog import Backlog, pieces
from node_agent.core.shedding.entry_shedders import SharedEntry, Shedder, UnitEntry
from node_agent.problems import UnusableValueError

WITHDRAW = ("front", "window-aware")  # also what waits further on


def install_shedders(loaded: CompiledPlan) -> None:
    """Install every shedder of the plan at its entries. Raises ValueError where a unit has two."""
    firsts = {unit.id: unit for unit in loaded.units}  # of a unit's pieces the first was added last
    taken = set[Unit]()
    for spec in loaded.plan.sheddings:
        shed_units = [firsts[number] for number in spec.units]
        path = [firsts[number] for number in spec.path]
        operators = [_collects(loaded.plan, number) for number in spec.windows]
        places = [
            (route, at)
            for route in loaded.routes.values()
            if (at := [each for each in route.units if each in shed_units])
        ]
        joins = [join.unit for join in loaded.joins if join.unit in shed_units]
        backlog = Backlog([at for _, at in places] + [[unit] for unit in joins], path, _span_ns(spec, operators))
        names = [_name(loaded.plan, operator) for operator in operators]
        shedder = Shedder(shedding_policies.rule(spec, operators), names, backlog, spec.period_ns)
        shedder.sources = dict(each for operator in operators for each in _feeds(operator))
        late_ns = max(operator.window.lateness_ns for operator in operators if operator.window is not None)
        entries = {}
        for unit in dict.fromkeys([*shed_units, *path] if spec.policy in WITHDRAW else shed_units):
            if unit in taken:
                raise UnusableValueError(
                    "two_sheddings", f"unit {unit.id}: two entry shedders stand before it", subject=f"unit {unit.id}"
                )
            taken.add(unit)
            entries[unit] = UnitEntry(unit, shedder, late_ns, _meets_join(unit))
        shedder.entries = tuple(entries.values())
        for place, (route, at) in enumerate(places):
            route.stream_shedders += (SharedEntry(shedder, place, [entries[unit] for unit in at]),)
            route.simple = False
        for place, unit in enumerate(joins, len(places)):
            unit.join_shedder = SharedEntry(shedder, place, [entries[unit]])
        for route in loaded.routes.values():
            heads = (*route.units, *(join.unit for join, _ in route.joins))
            route.entry_shedders += tuple(entries[unit] for unit in dict.fromkeys(heads) if unit in entries)
        loaded.shedders += (shedder,)


def _collects(plan: plans.Plan, number: int) -> plans.Operator:
    """The operator that collects these windows, where the one that closes them was named as well."""
    operator = plan.operator_by_id[number]
    return plan.operator_by_id[operator.closes] if operator.closes else operator


def _name(plan: plans.Plan, operator: plans.Operator) -> str:
    """Its name in the query."""
    return next((each.name for each in plan.operators if each.closes == operator.id), operator.name)


def _feeds(operator: plans.Operator) -> list[tuple[str, int]]:
    """The numbers of its sources by name; where the plan has no names, by their place."""
    window = operator.window
    assert window is not None
    names = window.names or [f"{operator.name} {place}" for place in range(len(window.feeds))]
    return [(name, source) for name, (source, _) in zip(names, window.feeds, strict=True)]


def _span_ns(spec: plans.Shedding, operators: Sequence[plans.Operator]) -> int:
    """How long gaps between arrivals are remembered: at least the longest window, as half is forgotten at a time."""
    windows = [operator.window for operator in operators if operator.window is not None]
    return 2 * max(
        (each.length for each in windows if each.kind != "count"), default=shedding_policies.PERIODS * spec.period_ns
    )


def _meets_join(unit: Unit) -> bool:
    """Whether a join by lineage is behind it on this node."""
    waiting, seen = [unit], set[Unit]()
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        for route in (exit_.route for piece in pieces(each) for exit_ in piece.exits):
            if route.joins:
                return True
            waiting += route.units
    return False


def inherit_shedders(new: CompiledPlan, old: CompiledPlan) -> None:
    """Shedders of the same policy with a window in common inherit measurements and decisions; entries of the same units
    inherit their pending ranges."""
    same = {_operators(unit): unit for unit in old.units}
    pairs = [(unit, same[name]) for unit in new.units if (name := _operators(unit)) in same]
    left = _shedders(old)
    for mine in _shedders(new):
        other = next((each for each in left if _goes_on(mine, each)), None)
        if other is None:
            continue
        left.remove(other)
        sources = {number: mine.sources[name] for name, number in other.sources.items() if name in mine.sources}
        mine.backlog.inherit(other.backlog, pairs)
        mine.inherit(other, sources)
        before = {entry.unit: entry for each in _shedders(old) for entry in each.entries}
        entries = {entry.unit: entry for entry in mine.entries}
        for unit, theirs in pairs:
            if unit in entries and theirs in before:
                entries[unit].inherit(before[theirs], sources)


def _shedders(loaded: CompiledPlan) -> list[Shedder]:
    return [each for each in loaded.shedders if isinstance(each, Shedder)]


def _goes_on(mine: Shedder, other: Shedder) -> bool:
    return mine.policy == other.policy and not set(mine.windows).isdisjoint(other.windows)


def _operators(unit: Unit) -> tuple[str, ...]:
    known = unit.loaded.plan.operator_by_id
    return tuple(known[step.operator_id].name for step in unit.chain)


__all__ = ["inherit_shedders", "install_shedders"]
