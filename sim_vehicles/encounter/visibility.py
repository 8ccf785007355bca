"""Visibility: when one vehicle perceives another over a stretch of time, from motion and buildings (`sight`)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sim_vehicles.world.motion import Track
from sim_vehicles.world.scene import Scenario
from sim_vehicles.world.sight import perceived, visible

STEP_S = 0.05  # how often is looked; a glimpse shorter than that may be missed
EDGE_S = 1e-3  # beginning and end are found to this instant


class Eye:
    """One vehicle's sensor and one vehicle to be seen. track: the former's motion, where it is not the recorded one."""

    def __init__(self, scenario: Scenario, who: str, whom: str, track: Track | None = None) -> None:
        self._scenario, self._who, self._whom = scenario, who, whom
        self._track = track or scenario.motion.tracks[who]

    def sees(self, t_s: float) -> bool:
        """Whether it perceives the other vehicle at this instant."""
        motion, scene = self._scenario.motion, self._scenario.scene
        found = {self._who: self._track.at(t_s), self._whom: motion.tracks[self._whom].at(t_s)}
        states = {name: state for name, state in found.items() if state is not None}
        return perceived(visible(motion, scene, self._who, self._whom, states))

    def first_s(self, from_s: float, until_s: float) -> float | None:
        """Since when it does; None: not in this stretch of time."""
        return next((t_s for t_s, seen in self._changes(from_s, until_s) if seen), None)

    def spans(self, from_s: float, until_s: float) -> list[tuple[float, float]]:
        """The stretches of time in which it does, in order."""
        changes = [*self._changes(from_s, until_s), (until_s, False)]
        return [(begins_s, ends_s) for (begins_s, seen), (ends_s, _) in pairwise(changes) if seen]

    def _changes(self, from_s: float, until_s: float) -> Iterator[tuple[float, bool]]:
        """What it is at from_s, then every change, as soon as it is found."""
        seen, before_s = self.sees(from_s), from_s
        yield from_s, seen
        while before_s < until_s:
            t_s = min(before_s + STEP_S, until_s)
            if self.sees(t_s) != seen:
                yield self._edge(before_s, t_s, seen), not seen
                seen = not seen
            before_s = t_s

    def _edge(self, before_s: float, after_s: float, seen: bool) -> float:
        """The first instant of (before, after] at which it is no more as at `before_s`."""
        while after_s - before_s > EDGE_S:
            middle_s = (before_s + after_s) / 2
            if self.sees(middle_s) == seen:
                before_s = middle_s
            else:
                after_s = middle_s
        return after_s
