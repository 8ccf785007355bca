"""Where a recording lies in another scene: turned, moved, and later."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import cos, sin

from sim_vehicles.world.column_track import with_states
from sim_vehicles.world.geometry import Point
from sim_vehicles.world.motion import Motion, State, Track, wrap
from sim_vehicles.world.scene import Scenario


@dataclass(frozen=True)
class Placement:
    """The recording is turned about its origin (counter-clockwise), then its origin moved to x_m, y_m; what happens in
    it happens so much later."""

    x_m: float = 0.0
    y_m: float = 0.0
    turn_rad: float = 0.0
    later_ns: int = 0

    def point(self, point: Point) -> Point:
        """Where a point of the recording lies."""
        (x, y), c, s = point, cos(self.turn_rad), sin(self.turn_rad)
        return self.x_m + c * x - s * y, self.y_m + s * x + c * y

    def state(self, state: State) -> State:
        """A vehicle's state as it is there."""
        if self == AS_RECORDED:
            return state
        x_m, y_m = self.point((state.x_m, state.y_m))
        heading_rad, t_s = wrap(state.heading_rad + self.turn_rad), state.t_s + self.later_ns / 1e9
        return state._replace(t_s=t_s, x_m=x_m, y_m=y_m, heading_rad=heading_rad)

    def scenario(self, scenario: Scenario) -> Scenario:
        """The recording and its buildings as they are there; its scene's origin stays where it is."""
        motion, scene = scenario.motion, scenario.scene
        tracks = {name: self._track(track) for name, track in motion.tracks.items()}
        occluders = tuple(tuple(self.point(corner) for corner in polygon) for polygon in scene.occluders)
        return Scenario(Motion(tracks, motion.source), replace(scene, occluders=occluders))

    def _track(self, track: Track) -> Track:
        return with_states(track, [self.state(state) for state in track.states])


AS_RECORDED = Placement()
