"""The ego's way to the crossing vehicle's strip over time, and the way that it would need to stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sim_vehicles.closed_loop.recorded import DrivenScene, track
from sim_vehicles.encounter.brake import Brake
from sim_vehicles.encounter.driven_path import DrivenPath
from sim_vehicles.encounter.physics import needed_m
from sim_vehicles.encounter.swept_area import entry_m
from sim_vehicles.world.motion import Track


@dataclass(frozen=True)
class Line:
    """A value in metres at instants of the recording, from `from_s` on every `step_s`."""

    from_s: float
    step_s: float
    metres: tuple[float, ...]

    def at(self, t_s: float) -> float | None:
        """Interpolated; None outside."""
        place = (t_s - self.from_s) / self.step_s
        if not self.metres or not -1e-6 <= place <= len(self.metres) - 1 + 1e-6:
            return None
        before = min(max(int(place), 0), max(0, len(self.metres) - 2))
        after = min(before + 1, len(self.metres) - 1)
        share = min(1.0, max(0.0, place - before))
        return self.metres[before] + share * (self.metres[after] - self.metres[before])

    @property
    def instants_s(self) -> list[float]:
        """When each value holds."""
        return [round(self.from_s + i * self.step_s, 6) for i in range(len(self.metres))]


@dataclass(frozen=True)
class StoppingProfile:
    """left: from the ego's front to the strip as it drove; recorded: as it would have, unbraked; needed: to stand if
    the brake is commanded at that instant of the unbraked motion.

    latest_s: the last instant at which a command lets it stand before the strip; None where there is none.
    """

    left: Line
    recorded: Line
    needed: Line
    latest_s: float | None


def stopping_profile(scene: DrivenScene, brake: Brake) -> StoppingProfile | None:
    """None where the scene has no crossing vehicle, or the ego's path does not meet its strip."""
    vehicles, ego, crossing, step_s = scene.vehicles, scene.ego, scene.crossing, scene.step_s
    if crossing is None or crossing not in vehicles or ego not in vehicles or scene.ego_recorded is None:
        return None
    recorded = track(ego, scene.ego_recorded, step_s)
    moved = track(ego, vehicles[ego], step_s)
    strip_m = entry_m(recorded, track(crossing, vehicles[crossing], step_s))
    if strip_m is None:
        return None
    speeds = [state.speed_mps for state in recorded.states]
    needed = _line(recorded, step_s, [needed_m(speed, 0.0, brake) for speed in speeds])
    left_recorded = _left(recorded, step_s, strip_m)
    return StoppingProfile(_left(moved, step_s, strip_m), left_recorded, needed, _latest(left_recorded, needed))


def _line(of: Track, step_s: float, metres: Sequence[float]) -> Line:
    return Line(of.states[0].t_s, step_s, tuple(round(each, 3) for each in metres))


def _left(of: Track, step_s: float, strip_m: float) -> Line:
    path = DrivenPath(of)
    return _line(of, step_s, [strip_m - (path.way_m(state.t_s) or 0.0) for state in of.states])


def _latest(left: Line, needed: Line) -> float | None:
    """When the way left falls below the way needed."""
    spare = [a - b for a, b in zip(left.metres, needed.metres, strict=True)]
    for i in range(len(spare) - 1, 0, -1):
        if spare[i - 1] >= 0 > spare[i]:
            return round(left.from_s + (i - 1 + spare[i - 1] / (spare[i - 1] - spare[i])) * left.step_s, 4)
    return None
