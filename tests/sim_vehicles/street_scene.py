"""A piece of a committed recording: few vehicles near one junction, among houses, some of them not always there."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import hypot

from sim_vehicles.readers.scenarios import load_scenario
from sim_vehicles.world.column_track import with_states
from sim_vehicles.world.motion import MAX_GAP_S, Motion, Track
from sim_vehicles.world.scene import Scenario

BEGIN_S, UNTIL_S = 20.0, 28.0
NEAR_M = 130.0


@cache
def few() -> Scenario:
    """Those near the middle at the beginning; of three of them the start, the end or 2 s between are cut off."""
    whole = load_scenario("streets_50")
    tracks = [_cut(track, BEGIN_S, UNTIL_S) for track in whole.motion.tracks.values()]
    near = {track.id: track for track in tracks if hypot(track.states[0].x_m, track.states[0].y_m) <= NEAR_M}
    assert len(near) > 8
    late, early, away = sorted(near)[:3]
    near[late] = _cut(near[late], BEGIN_S + 3.5, UNTIL_S)
    near[early] = _cut(near[early], BEGIN_S, BEGIN_S + 5)
    gone_s = BEGIN_S + 3
    states = [state for state in near[away].states if not gone_s < state.t_s < gone_s + 2 * MAX_GAP_S]
    near[away] = replace(near[away], states=states)
    ego = sorted(near)[4]
    others = tuple(name for name in sorted(near) if name not in (ego, sorted(near)[5]))  # and one without a radio
    return Scenario(Motion(near, "few"), replace(whole.scene, ego=ego, stations=others))


def _cut(track: Track, begin_s: float, until_s: float) -> Track:
    return with_states(track, [state for state in track.states if begin_s <= state.t_s <= until_s])
