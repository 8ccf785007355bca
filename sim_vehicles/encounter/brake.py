"""Reaction of the ego to a warning: none, or braking with constant deceleration on the path that it was recorded on."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal, get_args

from node_agent.virtual.durations import duration_ns
from sim_vehicles.encounter.driven_path import DrivenPath
from sim_vehicles.errors import bad_input
from sim_vehicles.world.motion import State, Track

Kind = Literal["auto", "driver", "none"]
STEP_S = 0.01  # between the states of a braked track: a chord is then below 0.1 mm off at 7 m/s2
MAX_DECELERATION_MPS2 = 15.0  # no road tyre holds more
MAX_REACTION_S = 10.0


@dataclass(frozen=True)
class Brake:
    """How a commanded vehicle brakes. kind "none": it ignores every command."""

    kind: Kind
    deceleration_mps2: float
    reaction_s: float


AUTO = Brake("auto", 7.0, 0.2)  # emergency braking by machine
DRIVER = Brake("driver", 6.0, 1.0)  # a driver who is warned
NONE = Brake("none", 0.0, 0.0)
DEFAULTS: dict[str, Brake] = {brake.kind: brake for brake in (AUTO, DRIVER, NONE)}


def parse_brake(text: str) -> Brake:
    """`auto`, `driver`, `none`, or with other values `auto:7,0.2s` (deceleration in m/s2, reaction). BadInputError."""
    kind, colon, values = text.partition(":")
    if kind not in get_args(Kind):
        raise bad_input(
            "unknown_word",
            f"--brake {text!r}: unknown",
            "use auto, driver, none, or values as in auto:7,0.2s",
            subject="--brake",
        )
    brake = DEFAULTS[kind]
    if not colon:
        return brake
    deceleration, comma, reaction = values.partition(",")
    if kind == "none" or not comma:
        raise bad_input(
            "wrong_form",
            f"--brake {text!r}: write m/s2 and a reaction time, as in auto:7,0.2s; none has no values",
            subject="--brake",
        )
    try:
        deceleration_mps2 = float(deceleration)
    except ValueError:
        raise bad_input(
            "no_number",
            f"--brake {text!r}: {deceleration!r} is no number of m/s2, as in auto:7,0.2s",
            subject="--brake",
        ) from None
    reaction_s = duration_ns(reaction, "--brake") / 1e9
    if not 0 < deceleration_mps2 <= MAX_DECELERATION_MPS2:
        raise bad_input(
            "out_of_range",
            f"--brake {text!r}: deceleration must be above 0 and at most {MAX_DECELERATION_MPS2:g} m/s2",
            subject="--brake",
        )
    if reaction_s > MAX_REACTION_S:
        raise bad_input(
            "out_of_range", f"--brake {text!r}: reaction must be at most {MAX_REACTION_S:g} s", subject="--brake"
        )
    return Brake(brake.kind, deceleration_mps2, reaction_s)


def braked(track: Track, brake: Brake, commanded_s: float) -> Track:
    """The track of a vehicle that is commanded to brake at `commanded_s` of the recording.

    Its recorded motion until commanded_s + reaction; from there its recorded path with constant deceleration until it
    stands, and it stands there until the end of the recording. Where the path is longer than what was recorded, it
    goes on straight. Without a state at the beginning of the braking (before or after the recording, in a gap)
    nothing changes, as with kind "none".
    """
    begins_s = commanded_s + brake.reaction_s
    first = track.at(begins_s)
    path = DrivenPath(track)
    way_m = path.way_m(begins_s)
    if brake.kind == "none" or first is None or way_m is None:
        return track
    states = [state for state in track.states if state.t_s < begins_s]
    end_s = track.states[-1].t_s
    speed_mps, a = max(0.0, first.speed_mps), brake.deceleration_mps2
    stands_s = begins_s + speed_mps / a
    count = ceil((min(stands_s, end_s) - begins_s) / STEP_S)
    instants = [begins_s + i * STEP_S for i in range(count)] + [min(stands_s, end_s)]
    # Standing is recorded twice a second: a longer gap would mean that the vehicle has vanished.
    instants += [stands_s + i / 2 for i in range(1, ceil((end_s - stands_s) * 2))]
    if stands_s < end_s:
        instants.append(end_s)
    for t_s in instants:
        span_s = min(t_s, stands_s) - begins_s
        x_m, y_m, heading_rad = path.at(way_m + speed_mps * span_s - a * span_s**2 / 2)
        states.append(State(t_s, x_m, y_m, heading_rad, speed_mps - a * span_s if t_s < stands_s else 0.0))
    return Track(track.id, track.type, track.length_m, track.width_m, states)
