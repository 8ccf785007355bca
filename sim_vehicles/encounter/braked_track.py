"""The track of a vehicle that is told to brake: its recorded path, driven by the law of braking."""

from __future__ import annotations

from math import ceil

from sim_vehicles.encounter.brake import Brake
from sim_vehicles.encounter.driven_path import DrivenPath
from sim_vehicles.encounter.physics import moved, stands_after_s
from sim_vehicles.world.motion import State, Track

STEP_S = 0.01  # between the states, which are exact: a chord is then below 0.1 mm off at 7 m/s2


def braked(track: Track, brake: Brake, commanded_s: float) -> Track:
    """The track of a vehicle that is commanded to brake at `commanded_s` of the recording.

    Its recorded motion until the brake bites, commanded_s + delay_s; from there its recorded path, braking until it
    stands, and it stands there until the end of the recording. Where the path is longer than what was recorded, it
    goes on straight. Without a state when the brake bites (before or after the recording, in a gap) nothing changes,
    as with kind "none".
    """
    begins_s = commanded_s + brake.delay_s
    first = track.at(begins_s)
    path = DrivenPath(track)
    way_m = path.way_m(begins_s)
    if brake.kind == "none" or first is None or way_m is None:
        return track
    states = [state for state in track.states if state.t_s < begins_s]
    end_s = track.states[-1].t_s
    speed_mps = max(0.0, first.speed_mps)
    stands_s = begins_s + stands_after_s(speed_mps, brake)
    count = ceil((min(stands_s, end_s) - begins_s) / STEP_S)
    instants = [begins_s + i * STEP_S for i in range(count)] + [min(stands_s, end_s)]
    # Standing is recorded twice a second: a longer gap would mean that the vehicle has vanished.
    instants += [stands_s + i / 2 for i in range(1, ceil((end_s - stands_s) * 2))]
    if stands_s < end_s:
        instants.append(end_s)
    for t_s in instants:
        now = moved(speed_mps, brake, t_s - begins_s)
        states.append(State(t_s, *path.at(way_m + now.way_m), now.speed_mps if t_s < stands_s else 0.0))
    return Track(track.id, track.type, track.length_m, track.width_m, states)
