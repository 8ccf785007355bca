"""Warnings against what really happened: counts and ratios per recording and in all.

A warning is an onset: the first of level 1 or 2 about an object after none or level 0. Each is true, false or
undecidable (`truth.judged`). Recordings of intersections are short, so most of what is not true cannot be decided
strictly; the rate that counts is therefore `at_most_false`: every warning that did not come true while the recording
lasted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import cos, degrees, pi, sin
from typing import Any

from sim_vehicles.traffic.ego_runs import EgoRun, FileRun, IssuedWarning
from sim_vehicles.traffic.truth import Conflict, Judgement, Limits, judged
from sim_vehicles.world.motion import Motion, State, wrap

KINDS = ("crossing", "closing")
IN_A_ROW = 20  # messages of one burst of the query
SAME_RAD, OPPOSITE_RAD = pi / 6, 5 * pi / 6
STANDS_MPS = 1.0
TURNS_RPS = 0.15  # 12 m/s on a radius of 80 m


@dataclass(frozen=True)
class Onset:
    """One warning and what it was. `situation`: how the two stood to each other when it came, by the recording."""

    ego: str
    other: str
    at_s: float
    judgement: Judgement
    situation: str


@dataclass(frozen=True)
class Warned:
    """A conflict and when its ego was first warned of it, in seconds before it ended; None: not in time."""

    conflict: Conflict
    before_s: float | None


def onsets(run: EgoRun, motion: Motion, conflicts: Sequence[Conflict], limits: Limits) -> list[Onset]:
    """The warnings of one ego, judged."""
    found = []
    on: set[str] = set()
    for told in run.warnings:
        if told.level == 0:
            on.discard(told.object)
        elif told.object not in on:
            on.add(told.object)
            pair = [one for one in conflicts if (one.ego, one.other) == (run.ego, told.object)]
            until_s = min(motion.tracks[name].states[-1].t_s for name in (run.ego, told.object))
            judgement = judged(told.at_s, pair, until_s, limits)
            found.append(Onset(run.ego, told.object, told.at_s, judgement, situation(motion, run.ego, told)))
    return found


def warned(conflict: Conflict, told: Iterable[IssuedWarning], limits: Limits) -> Warned:
    """Whether a warning about the other was on within the horizon before the conflict, and before it ended."""
    earliest_s = conflict.from_s - limits.horizon_s
    before = [
        conflict.until_s - each.at_s
        for each in told
        if each.level and each.object == conflict.other and earliest_s <= each.at_s < conflict.until_s
    ]
    return Warned(conflict, max(before, default=None))


def situation(motion: Motion, ego: str, told: IssuedWarning) -> str:
    """A name for how the other stood to the ego: by their headings, where it was, and whether either turned."""
    one, other = (_last_at(motion, name, told.at_s) for name in (ego, told.object))
    turn = abs(wrap(other.heading_rad - one.heading_rad))
    dx, dy = other.x_m - one.x_m, other.y_m - one.y_m
    ahead = dx * cos(one.heading_rad) + dy * sin(one.heading_rad)
    beside = abs(dy * cos(one.heading_rad) - dx * sin(one.heading_rad))
    if turn < SAME_RAD:
        in_line = beside < (motion.tracks[ego].width_m + motion.tracks[told.object].width_m) / 2
        name = ("ahead" if ahead > 0 else "behind") if in_line else "beside"
    else:
        name = "oncoming" if turn > OPPOSITE_RAD else "crossing"
    if abs(other.speed_mps) < STANDS_MPS:
        name = f"standing {name}"
    turning = [who for who, state in (("ego", one), ("other", other)) if abs(state.yaw_rate_rps) > TURNS_RPS]
    return f"{name}, {' and '.join(turning)} turning" if turning else name


def missed(file: FileRun, limits: Limits, kind: str = "crossing") -> set[frozenset[str]]:
    """Pairs with a conflict of this kind of which no ego was warned in time: one that brakes is enough."""
    checked = [one for one in _checked(file, limits) if one.conflict.kind == kind]
    pairs = {frozenset((one.conflict.ego, one.conflict.other)) for one in checked}
    return pairs - {frozenset((one.conflict.ego, one.conflict.other)) for one in checked if one.before_s is not None}


def document(file: FileRun, limits: Limits) -> dict[str, Any]:
    """What is known of one recording, as JSON; times in s, ratios 0 to 1, costs in us."""
    found = [one for run in file.runs for one in onsets(run, file.motion, file.conflicts, limits)]
    return {
        "file": file.name,
        "vehicles": len(file.runs),
        **_counts(sum(run.seconds for run in file.runs) / 60, found),
        "conflicts": [_conflict(one) for one in _checked(file, limits)],
        "missed": {kind: len(missed(file, limits, kind)) for kind in KINDS},
        "o3": _selectivity([run.relevant for run in file.runs]),
        "cost": _cost(file.runs),
        "warnings": [vars(one) for one in found],
    }


def in_all(files: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The same over several recordings, from their documents; without the single conflicts and warnings."""
    minutes = sum(one["vehicle_minutes"] for one in files)
    heard, passed = (sum(one["o3"][key] for one in files) for key in ("heard", "relevant"))
    counts = {key: sum(one[key] for one in files) for key in ("vehicles", "onsets", "true", "false", "undecidable")}
    spent_us: dict[str, float] = {}
    for one in files:
        for name, each in one["cost"]["operators"].items():
            spent_us[name] = spent_us.get(name, 0.0) + each["us"] * each["calls"]
    calls = {name: sum(one["cost"]["operators"][name]["calls"] for one in files) for name in spent_us}
    return {
        "file": "all",
        **counts,
        "vehicle_minutes": minutes,
        **_rates(minutes, counts),
        "missed": {kind: sum(one["missed"][kind] for one in files) for kind in KINDS},
        "o3": {
            "heard": heard,
            "relevant": passed,
            "mean": passed / heard if heard else None,
            "most_of_20": max((one["o3"]["most_of_20"] for one in files), default=0),
        },
        "cost": _costs(spent_us, calls),
    }


def _counts(minutes: float, found: Sequence[Onset]) -> dict[str, Any]:
    kinds = ("true", "false", "undecidable")
    counts = {"onsets": len(found), **{kind: sum(one.judgement == kind for one in found) for kind in kinds}}
    return {"vehicle_minutes": minutes, **counts, **_rates(minutes, counts)}


def _rates(minutes: float, counts: dict[str, int]) -> dict[str, float]:
    """Per vehicle-minute."""
    per = 1 / minutes if minutes else 0.0
    return {
        "warnings_per_minute": counts["onsets"] * per,
        "false_per_minute": counts["false"] * per,
        "at_most_false_per_minute": (counts["false"] + counts["undecidable"]) * per,
    }


def _checked(file: FileRun, limits: Limits) -> list[Warned]:
    """Every conflict of one of the egos that ran."""
    by_ego = {run.ego: run for run in file.runs}
    return [warned(one, by_ego[one.ego].warnings, limits) for one in file.conflicts if one.ego in by_ego]


def _conflict(one: Warned) -> dict[str, Any]:
    conflict = one.conflict
    return {
        "ego": conflict.ego,
        "other": conflict.other,
        "kind": conflict.kind,
        "from_s": round(conflict.from_s, 3),
        "until_s": round(conflict.until_s, 3),
        "pet_s": round(conflict.pet_s, 3),
        "angle_deg": round(degrees(conflict.angle_rad), 1),
        "needed_mps2": round(conflict.deceleration_mps2, 2),
        "warned_before_s": None if one.before_s is None else round(one.before_s, 3),
    }


def _selectivity(relevant: Sequence[Sequence[bool]]) -> dict[str, Any]:
    heard, passed = sum(map(len, relevant)), sum(map(sum, relevant))
    most = max((_most(each) for each in relevant), default=0)
    return {"heard": heard, "relevant": passed, "mean": passed / heard if heard else None, "most_of_20": most}


def _most(flags: Sequence[bool]) -> int:
    """The most that O3 handed on of any 20 messages in a row."""
    window = most = sum(flags[:IN_A_ROW])
    for k in range(IN_A_ROW, len(flags)):
        window += flags[k] - flags[k - IN_A_ROW]
        most = max(most, window)
    return most


def _cost(runs: Sequence[EgoRun]) -> dict[str, Any]:
    spent_us: dict[str, float] = {}
    calls: dict[str, int] = {}
    for run in runs:
        for name, ns in run.spent_ns.items():
            spent_us[name] = spent_us.get(name, 0.0) + ns / 1e3
            calls[name] = calls.get(name, 0) + run.calls[name]
    return _costs(spent_us, calls)


def _costs(spent_us: dict[str, float], calls: dict[str, int]) -> dict[str, Any]:
    """us per call of each operator that ran, and of a V2V tuple: of one like the others, and of one that passes O3."""
    each = {name: {"calls": calls[name], "us": us / calls[name]} for name, us in spent_us.items() if calls[name]}
    heard = calls.get("O2", 0)
    of_v2v = sum(us for name, us in spent_us.items() if name != "O1")
    through = sum(one["us"] for name, one in each.items() if name != "O1")
    return {"per_tuple_us": of_v2v / heard if heard else None, "per_relevant_tuple_us": through, "operators": each}


def _last_at(motion: Motion, name: str, t_s: float) -> State:
    """The state then, or the nearest end of the recording: a warning may come when its object has just gone."""
    track = motion.tracks[name]
    return track.at(t_s) or min((track.states[0], track.states[-1]), key=lambda state: abs(state.t_s - t_s))
