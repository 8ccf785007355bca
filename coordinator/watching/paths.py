"""What lies before an output, by the plan's graph: the operators and sources that its results come from.

Side inputs trigger nothing, so what is shed of them takes no result away; they are not before an output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
    """To one output. stages: each after those that trigger it."""

    sources: frozenset[str]
    stages: tuple[Stage, ...]
    windows: frozenset[str]  # operators that collect windows, as the query has them

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
    return Path(frozenset(sources), stages, frozenset(name for name in windows if name in order))


def paths(plan: Plan) -> dict[str, Path]:
    """By output."""
    return {output: to(plan, output) for output in plan["graph"]["outputs"]}


def shed_before(path: Path, places: Iterable[Mapping[str, Any]]) -> int:
    """Tuples that were shed on the way to an output, at its sources or in units with an operator of its path. What
    leads to several outputs counts for each: whether a tuple would have become a result of one is not known."""
    shed = 0
    for values in places:
        for plan in values.get("plans", []):
            shed += sum(source["shed"] for name, source in plan["sources"].items() if name in path.sources)
            shed += sum(unit["shed"] for unit in plan["units"] if path.operators.intersection(unit["operators"]))
    return shed
