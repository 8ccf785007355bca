"""What lies before an output, by the plan's graph: the operators and sources that its results come from.

Side inputs trigger nothing, so what is shed of them takes no result away; they are not before an output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

Plan = Mapping[str, Any]


@dataclass(frozen=True)
class Stage:
    """An operator on the way to an output. sub_deadline_ns: None where the plan gives it none."""

    operator: str
    place: str
    sub_deadline_ns: int | None


@dataclass(frozen=True)
class Path:
    """To one output. stages: each after those that trigger it. direct: sources and operators that lead there by no
    window; of others a tuple makes no result, but may be missing in one."""

    sources: frozenset[str]
    stages: tuple[Stage, ...]
    windows: frozenset[str]  # operators that collect windows, as the query has them
    direct: frozenset[str] = frozenset()

    @property
    def operators(self) -> frozenset[str]:
        """Names of the stages."""
        return frozenset(stage.operator for stage in self.stages)


def to(plan: Plan, output: str) -> Path:
    """The way to an output of the plan."""
    graph = plan["graph"]
    operators, windows = graph["operators"], graph.get("windows") or {}
    order: dict[str, None] = {}
    sources = set[str]()
    left = [(graph["outputs"][output]["from"], False)]
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
            left += [(before, False) for before in reversed(operators[name]["in"])]
    stages = tuple(Stage(name, plan["placement"][name], plan["sub_deadlines_ns"].get(name)) for name in order)
    direct = _without_windows(operators, windows, graph["outputs"][output]["from"])
    return Path(frozenset(sources), stages, frozenset(name for name in windows if name in order), direct)


def _without_windows(operators: Plan, windows: Iterable[str], last: str) -> frozenset[str]:
    found, left = set[str](), [last]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += operators[name]["in"] if name in operators and name not in windows else ()
    return frozenset(found)


def paths(plan: Plan) -> dict[str, Path]:
    """By output."""
    return {output: to(plan, output) for output in plan["graph"]["outputs"]}


@dataclass(frozen=True)
class Ends:
    """Of tuples on the way to an output that gave none. shed: without the policed, and with windows that have no
    result. refused_of_windows: refused tuples of sources behind windows."""

    refused: int = 0
    policed: int = 0
    shed: int = 0
    lost: int = 0
    refused_of_windows: int = 0

    def since(self, earlier: Ends) -> Ends:
        """What came after that."""
        return Ends(*(max(0, getattr(self, each.name) - getattr(earlier, each.name)) for each in fields(Ends)))


def ends(path: Path | None, places: Iterable[Mapping[str, Any]]) -> Ends:
    """What is known of places. path: None where the plan is not known: of everything there."""
    total: dict[str, int] = dict.fromkeys((each.name for each in fields(Ends)), 0)
    for values in places:
        for plan in values.get("plans", []):
            for name, source in plan["sources"].items():
                if path is None or name in path.direct:
                    total["refused"] += source["refused"]
                    total["policed"] += source["policed"]
                    total["shed"] += source["shed"] - source["policed"]
                    total["lost"] += source["lost"]
                elif name in path.sources:
                    total["refused_of_windows"] += source["refused"]
            for unit in plan["units"]:
                if path is None or path.direct.intersection(unit["operators"]):
                    total["shed"] += unit["shed"]
                    total["lost"] += unit["lost"]
        counters = values.get("counters", {})
        for name in path.windows & path.direct if path is not None else ():
            total["shed"] += sum(counters.get(f"windows.{name}.{end}", 0) for end in ("abandoned", "skipped"))
    return Ends(**total)


def shed_before(path: Path, places: Iterable[Mapping[str, Any]]) -> int:
    """Tuples that were shed on the way to an output, at its sources or in units with an operator of its path. What
    leads to several outputs counts for each: whether a tuple would have become a result of one is not known."""
    shed = 0
    for values in places:
        for plan in values.get("plans", []):
            shed += sum(source["shed"] for name, source in plan["sources"].items() if name in path.sources)
            shed += sum(unit["shed"] for unit in plan["units"] if path.operators.intersection(unit["operators"]))
    return shed
