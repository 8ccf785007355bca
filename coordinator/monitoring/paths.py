"""Paths to an output, by the plan's graph: the operators and sources that its results come from.

Side inputs trigger nothing, so what is shed of them takes no result away; they are not before an output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from coordinator.report.facts.most_results import MOST_GIVEN, most_results

if TYPE_CHECKING:
    from coordinator.monitoring.status_response import PlaceStatus
    from protos.plan.graph import Windows
    from protos.plan.operators import Operator
    from protos.plan_document import Plan

ON_LINKS = ("tuples_given_up", "link_full")  # are lost as well


@dataclass(frozen=True)
class Stage:
    """An operator on the way to an output. sub_deadline_ns: None where the plan gives it none."""

    operator: str
    place: str
    sub_deadline_ns: int | None


@dataclass(frozen=True)
class Path:
    """To one output. stages: each after those that trigger it. direct: sources and operators that lead there by no
    window; of others a tuple makes no result, but may be missing in one. places: of all of these. most: of each source
    and operator, the most results at the output of one tuple there. touched: of each source that windows collect, the
    most results there of windows that one tuple of it may belong into."""

    sources: frozenset[str]
    stages: tuple[Stage, ...]
    windows: frozenset[str]  # operators that collect windows, as the query has them
    direct: frozenset[str] = frozenset()
    places: frozenset[str] = frozenset()
    most: Mapping[str, int] = field(default_factory=dict)
    touched: Mapping[str, int] = field(default_factory=dict)

    @property
    def operators(self) -> frozenset[str]:
        """Names of the stages."""
        return frozenset(stage.operator for stage in self.stages)


def to(plan: Plan, output: str) -> Path:
    """The way to an output of the plan."""
    operators, windows, origin = plan.graph.operators, plan.graph.windows, plan.graph.outputs[output].origin
    order: dict[str, None] = {}
    sources = set[str]()
    left = [(origin, False)]
    while left:  # not by recursion: chains may be long
        name, done = left.pop()
        if name in order:
            continue
        if name not in operators:
            sources.add(name)
        elif done:
            order[name] = None
        else:
            left.append((name, True))
            left += [(before, False) for before in reversed(operators[name].inputs)]
    stages = tuple(Stage(name, plan.placement[name], plan.sub_deadlines_ns.get(name)) for name in order)
    direct = _without_windows(operators, windows, origin)
    places = frozenset((*(stage.place for stage in stages), *(plan.graph.sources[name].at for name in sources)))
    collected = frozenset(name for name in windows if name in order)
    most = _most(operators, [*order, *sources], origin)
    touched = _touched({name: windows[name] for name in collected & direct}, most)
    return Path(frozenset(sources), stages, collected, direct, places, most, touched)


def _touched(windows: Mapping[str, Windows], most: Mapping[str, int]) -> dict[str, int]:
    """By source. windows: those that have results at the output."""
    found: dict[str, int] = {}
    for name, window in windows.items():
        overlap = -(-window.length // window.hop) if window.hop else 1
        for source in window.sources:
            found[source] = min(MOST_GIVEN, found.get(source, 0) + max(1, overlap) * most[name])
    return found


def _most(operators: Mapping[str, Operator], names: Iterable[str], origin: str) -> dict[str, int]:
    """By source and operator, the most results at an output of one tuple there. names: each operator after those that
    trigger it, then sources."""
    names = list(names)
    behind: dict[str, int] = {origin: 1}  # results of one tuple that it gives
    found: dict[str, int] = {}
    for name in reversed([each for each in names if each in operators]):
        gives = min(MOST_GIVEN, most_results(operators[name].selectivity) * behind.get(name, 0))
        found[name] = gives
        for before in operators[name].inputs:
            behind[before] = min(MOST_GIVEN, behind.get(before, 0) + gives)
    return found | {name: behind.get(name, 0) for name in names if name not in operators}


def _without_windows(operators: Mapping[str, Operator], windows: Iterable[str], last: str) -> frozenset[str]:
    found, left = set[str](), [last]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += operators[name].inputs if name in operators and name not in windows else ()
    return frozenset(found)


def paths(plan: Plan) -> dict[str, Path]:
    """By output."""
    return {output: to(plan, output) for output in plan.graph.outputs}


@dataclass(frozen=True)
class Ends:
    """Of tuples on the way to an output that gave none. shed: without the policed and those that a fusion left out, for
    which no result is missing, and with windows that have no result. refused_of_windows: results of windows that
    refused tuples may belong into."""

    refused: int = 0
    policed: int = 0
    shed: int = 0
    lost: int = 0
    refused_of_windows: int = 0

    def since(self, earlier: Ends) -> Ends:
        """What came after that."""
        return Ends(*(max(0, getattr(self, each.name) - getattr(earlier, each.name)) for each in fields(Ends)))


def ends(path: Path | None, places: Iterable[PlaceStatus]) -> Ends:
    """What is known of places, in results that may be missing. path: None where the plan is not known: of everything
    there, and one result of each tuple."""
    total: dict[str, int] = dict.fromkeys((each.name for each in fields(Ends)), 0)
    for values in places:
        most_here = 0
        for status in values.plans:
            for name, source in status.sources.items():
                if path is None or name in path.direct:
                    most = path.most.get(name, 1) if path is not None else 1
                    most_here = max(most_here, most)
                    total["refused"] += most * source.refused
                    total["policed"] += most * source.policed
                    total["shed"] += most * (source.shed - source.policed)
                    total["lost"] += most * source.lost
                if path is not None and name in path.sources and (name in path.touched or name not in path.direct):
                    total["refused_of_windows"] += path.touched.get(name, 1) * source.refused
            for unit in status.units:
                if path is None or path.direct.intersection(unit.operators):
                    most = max(1 if path is None else path.most.get(name, 1) for name in unit.operators)
                    most_here = max(most_here, most)
                    total["shed"] += most * (unit.shed - unit.unfused)
                    total["lost"] += most * unit.lost
        total["lost"] += most_here * sum(values.counters.get(name, 0) for name in ON_LINKS)
        for name in path.windows & path.direct if path is not None else ():
            total["shed"] += sum(values.counters.get(f"windows.{name}.{end}", 0) for end in ("abandoned", "skipped"))
    return Ends(**total)


def shed_before(path: Path, places: Iterable[PlaceStatus]) -> int:
    """Tuples that were shed on the way to an output, at its sources or in units with an operator of its path. What
    leads to several outputs counts for each: whether a tuple would have become a result of one is not known."""
    shed = 0
    for values in places:
        for status in values.plans:
            shed += sum(source.shed for name, source in status.sources.items() if name in path.sources)
            shed += sum(unit.shed for unit in status.units if path.operators.intersection(unit.operators))
    return shed
