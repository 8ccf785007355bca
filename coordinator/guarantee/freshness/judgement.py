"""The age and the reaction that outputs ask, judged by the longest path of each source's data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from coordinator.guarantee.analysis import Analysis
from coordinator.guarantee.freshness import data_walk
from coordinator.guarantee.freshness.arrival_gaps import ArrivalGaps
from coordinator.guarantee.freshness.data_age import DataAge
from coordinator.guarantee.freshness.data_paths import Path, Paths, longer
from coordinator.guarantee.freshness.reaction import Reaction
from coordinator.spec.quality import Freshness
from coordinator.units import exact, show_ns


@dataclass(frozen=True)
class SideLimit:
    """A `max_age` of a side input."""

    operator: str
    port: str
    max_age_ns: int

    @property
    def sentence(self) -> str:
        """As a query has it."""
        return f"a 'max_age: {exact(self.max_age_ns)}' for side input {self.port} of {self.operator}"


@dataclass(frozen=True)
class Fresh:
    """One of the two. `name`: age or reaction; `paths`: of every source that it counts; `limits`: with all of which it
    would hold, none: not known."""

    name: Literal["age", "reaction"]
    limit_ns: int
    paths: Paths
    limits: tuple[SideLimit, ...] = ()

    @property
    def worst(self) -> tuple[str, Path]:
        """The source with the longest path."""
        source = next(iter(self.paths))
        for name, path in self.paths.items():
            if longer(self.paths[source], path) is path:
                source = name
        return source, self.paths[source]

    @property
    def bound_ns(self) -> int | None:
        """None: nothing bounds it."""
        return self.worst[1].ns

    @property
    def holds(self) -> bool:
        """Whether it is guaranteed."""
        return self.bound_ns is not None and self.bound_ns <= self.limit_ns

    @property
    def sentence(self) -> str:
        """`age (300 ms): 412 ms at most, of camera`, with what would mend it."""
        source, path = self.worst
        if path.ns is None:
            return f"{self.name} ({show_ns(self.limit_ns)}): no bound; {path.why}{self._mend}"
        bound = f"{show_ns(path.ns)} at most, of {source}"
        return f"{self.name} ({show_ns(self.limit_ns)}): {bound}{self._mend}"

    @property
    def _mend(self) -> str:
        return f"; {' and '.join(each.sentence for each in self.limits)} would bound it" if self.limits else ""


def checks(analysis: Analysis) -> Mapping[str, tuple[Fresh, ...]]:
    """By output, of those that ask for any."""
    outputs = {name: one for name, one in analysis.system.outputs.items() if one.age or one.reaction}
    if not outputs:
        return {}
    walked = data_walk.walk(analysis, sorted({one.stream for one in outputs.values()}))
    gaps = data_walk.follow(walked, ArrivalGaps(walked))
    ages, reactions = DataAge(walked, gaps), Reaction(walked, gaps)
    aged = data_walk.follow(walked, ages) if any(one.age for one in outputs.values()) else {}
    shown = data_walk.follow(walked, reactions) if any(one.reaction for one in outputs.values()) else {}
    found = {}
    for name, output in outputs.items():
        place, each = (output.stream, output.node), []
        if output.age is not None:
            paths = ages.of(place, aged[place]) if place in aged else ages.missing(output.stream, _why(analysis, place))
            each.append(_fresh("age", output.age, paths))
        if output.reaction is not None:
            there = shown[place] if place in shown else reactions.missing(output.stream, _why(analysis, place))
            each.append(_fresh("reaction", output.reaction, there.first))
        found[name] = tuple(each)
    return found


def _why(analysis: Analysis, place: data_walk.Place) -> str:
    return analysis.streams.why.get(place, f"stream {place[0]} never reaches node {place[1]}")


def _fresh(name: Literal["age", "reaction"], asked: Freshness, paths: Paths) -> Fresh:
    counted = {source: path for source, path in sorted(paths.items()) if source not in asked.without}
    return Fresh(name, asked.limit_ns, counted or {"": Path(why="no tuple ever gets there")})


__all__ = ["Fresh", "SideLimit", "checks"]
