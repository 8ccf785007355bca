"""Warnings against what really happened: counts and ratios per recording and in all.

A warning is an onset: the first of level 1 or 2 about an object after none or level 0. Each is true, false or
undecidable (`truth.judged`). Recordings of intersections are short, so most of what is not true cannot be decided
strictly; the rate that counts is therefore `at_most_false`: every warning that did not come true while the recording
lasted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import cos, degrees, inf, sin

from sim_vehicles.traffic.ego_runs import EgoRun, FileRun, IssuedWarning
from sim_vehicles.traffic.truth import Conflict, Judgement, Limits, judged
from sim_vehicles.world.crossing_angle import LEAST_RAD, MOST_RAD
from sim_vehicles.world.motion import Motion, State, wrap

KINDS = ("crossing", "closing")
CRITICAL_S = 1.5  # TTC below which a crossing conflict is critical
LEAD_S = 1.0  # before its least TTC, the latest at which a warning of it is in time
SILENT_S = 1.0  # a station may be silent for that long (EN 302 637-2)
IN_A_ROW = 20  # messages of one burst of the query
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


@dataclass(frozen=True)
class ConflictMeasures:
    """A conflict of one of the egos, rounded. ttc_s: the least, None where the ego runs into nothing. warned_before_s:
    None where it was not warned in time."""

    ego: str
    other: str
    kind: str
    from_s: float
    until_s: float
    pet_s: float
    angle_deg: float
    needed_mps2: float
    ttc_s: float | None
    warned_before_s: float | None


@dataclass(frozen=True)
class Critical:
    """Pairs with a crossing conflict whose least TTC is below 1.5 s: of how many either was warned at least 1 s before
    that, of how many not, and how many came into the recording too late for that to be decided."""

    in_time: int
    late: int
    undecidable: int


@dataclass(frozen=True)
class Selectivity:
    """Messages that O3 heard and handed on: in all, on average, and the most of any 20 in a row."""

    heard: int
    relevant: int
    mean: float | None
    most_of_20: int


@dataclass(frozen=True)
class OperatorCost:
    """Calls of one operator, and us of each."""

    calls: int
    us: float


@dataclass(frozen=True)
class Cost:
    """us of a V2V tuple: of one like the others, and of one that passes O3; and of each operator that ran."""

    per_tuple_us: float | None
    per_relevant_tuple_us: float
    operators: Mapping[str, OperatorCost]


@dataclass(frozen=True)
class FileMeasures:
    """What is known of one recording; times in s, ratios 0 to 1, costs in us. missed: by kind of conflict."""

    file: str
    vehicles: int
    vehicle_minutes: float
    onsets: int
    true: int
    false: int
    undecidable: int
    warnings_per_minute: float
    false_per_minute: float
    at_most_false_per_minute: float
    conflicts: tuple[ConflictMeasures, ...]
    missed: Mapping[str, int]
    critical: Critical
    o3: Selectivity
    cost: Cost
    warnings: tuple[Onset, ...]


@dataclass(frozen=True)
class TotalMeasures:
    """The same over several recordings, without the single conflicts and warnings."""

    file: str
    vehicles: int
    onsets: int
    true: int
    false: int
    undecidable: int
    vehicle_minutes: float
    warnings_per_minute: float
    false_per_minute: float
    at_most_false_per_minute: float
    missed: Mapping[str, int]
    critical: Critical
    o3: Selectivity
    cost: Cost


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
    if turn < LEAST_RAD:
        in_line = beside < (motion.tracks[ego].width_m + motion.tracks[told.object].width_m) / 2
        name = ("ahead" if ahead > 0 else "behind") if in_line else "beside"
    else:
        name = "oncoming" if turn > MOST_RAD else "crossing"
    if abs(other.speed_mps) < STANDS_MPS:
        name = f"standing {name}"
    turning = [who for who, state in (("ego", one), ("other", other)) if abs(state.yaw_rate_rps) > TURNS_RPS]
    return f"{name}, {' and '.join(turning)} turning" if turning else name


def missed(file: FileRun, limits: Limits, kind: str = "crossing") -> set[frozenset[str]]:
    """Pairs with a conflict of this kind of which no ego was warned in time: one that brakes is enough."""
    checked = [one for one in _checked(file, limits) if one.conflict.kind == kind]
    pairs = {frozenset((one.conflict.ego, one.conflict.other)) for one in checked}
    return pairs - {frozenset((one.conflict.ego, one.conflict.other)) for one in checked if one.before_s is not None}


def critical(file: FileRun) -> Critical:
    """How the pairs with a critical conflict were warned."""
    worst: dict[frozenset[str], Conflict] = {}
    for one in file.conflicts:
        pair = frozenset((one.ego, one.other))
        if one.kind == "crossing" and one.ttc_s < min(CRITICAL_S, worst[pair].ttc_s if pair in worst else inf):
            worst[pair] = one
    found = [_in_time(file, one) for one in worst.values()]
    return Critical(found.count(True), found.count(False), found.count(None))


def _in_time(file: FileRun, one: Conflict) -> bool | None:
    motion, pair = file.motion, {one.ego, one.other}
    latest_s = one.ttc_at_s - LEAD_S
    if any(
        each.level and {run.ego, each.object} == pair and each.at_s <= latest_s
        for run in file.runs
        for each in run.warnings
    ):
        return True
    both_s = max(motion.tracks[name].states[0].t_s for name in pair)
    return False if both_s <= latest_s - SILENT_S else None


def measured(file: FileRun, limits: Limits) -> FileMeasures:
    """Of one recording."""
    found = [one for run in file.runs for one in onsets(run, file.motion, file.conflicts, limits)]
    minutes = sum(run.seconds for run in file.runs) / 60
    per = 1 / minutes if minutes else 0.0
    true, false, undecidable = (_judged_as(found, kind) for kind in ("true", "false", "undecidable"))
    return FileMeasures(
        file=file.name,
        vehicles=len(file.runs),
        vehicle_minutes=minutes,
        onsets=len(found),
        true=true,
        false=false,
        undecidable=undecidable,
        warnings_per_minute=len(found) * per,
        false_per_minute=false * per,
        at_most_false_per_minute=(false + undecidable) * per,
        conflicts=tuple(_conflict(one) for one in _checked(file, limits)),
        missed={kind: len(missed(file, limits, kind)) for kind in KINDS},
        critical=critical(file),
        o3=_selectivity([run.relevant for run in file.runs]),
        cost=_cost(file.runs),
        warnings=tuple(found),
    )


def in_all(files: Sequence[FileMeasures]) -> TotalMeasures:
    """Over several recordings."""
    minutes = sum(one.vehicle_minutes for one in files)
    per = 1 / minutes if minutes else 0.0
    heard, passed = sum(one.o3.heard for one in files), sum(one.o3.relevant for one in files)
    onsets, false = sum(one.onsets for one in files), sum(one.false for one in files)
    undecidable = sum(one.undecidable for one in files)
    spent_us: dict[str, float] = {}
    for one in files:
        for name, each in one.cost.operators.items():
            spent_us[name] = spent_us.get(name, 0.0) + each.us * each.calls
    calls = {name: sum(one.cost.operators[name].calls for one in files) for name in spent_us}
    return TotalMeasures(
        file="all",
        vehicles=sum(one.vehicles for one in files),
        onsets=onsets,
        true=sum(one.true for one in files),
        false=false,
        undecidable=undecidable,
        vehicle_minutes=minutes,
        warnings_per_minute=onsets * per,
        false_per_minute=false * per,
        at_most_false_per_minute=(false + undecidable) * per,
        missed={kind: sum(one.missed[kind] for one in files) for kind in KINDS},
        critical=Critical(
            in_time=sum(one.critical.in_time for one in files),
            late=sum(one.critical.late for one in files),
            undecidable=sum(one.critical.undecidable for one in files),
        ),
        o3=Selectivity(
            heard=heard,
            relevant=passed,
            mean=passed / heard if heard else None,
            most_of_20=max((one.o3.most_of_20 for one in files), default=0),
        ),
        cost=_costs(spent_us, calls),
    )


def _judged_as(found: Sequence[Onset], judgement: str) -> int:
    return sum(one.judgement == judgement for one in found)


def _checked(file: FileRun, limits: Limits) -> list[Warned]:
    """Every conflict of one of the egos that ran."""
    by_ego = {run.ego: run for run in file.runs}
    return [warned(one, by_ego[one.ego].warnings, limits) for one in file.conflicts if one.ego in by_ego]


def _conflict(one: Warned) -> ConflictMeasures:
    conflict = one.conflict
    return ConflictMeasures(
        ego=conflict.ego,
        other=conflict.other,
        kind=conflict.kind,
        from_s=round(conflict.from_s, 3),
        until_s=round(conflict.until_s, 3),
        pet_s=round(conflict.pet_s, 3),
        angle_deg=round(degrees(conflict.angle_rad), 1),
        needed_mps2=round(conflict.deceleration_mps2, 2),
        ttc_s=None if conflict.ttc_s == inf else round(conflict.ttc_s, 3),
        warned_before_s=None if one.before_s is None else round(one.before_s, 3),
    )


def _selectivity(relevant: Sequence[Sequence[bool]]) -> Selectivity:
    heard, passed = sum(map(len, relevant)), sum(map(sum, relevant))
    most = max((_most(each) for each in relevant), default=0)
    return Selectivity(heard, passed, passed / heard if heard else None, most)


def _most(flags: Sequence[bool]) -> int:
    """The most that O3 handed on of any 20 messages in a row."""
    window = most = sum(flags[:IN_A_ROW])
    for k in range(IN_A_ROW, len(flags)):
        window += flags[k] - flags[k - IN_A_ROW]
        most = max(most, window)
    return most


def _cost(runs: Sequence[EgoRun]) -> Cost:
    spent_us: dict[str, float] = {}
    calls: dict[str, int] = {}
    for run in runs:
        for name, ns in run.spent_ns.items():
            spent_us[name] = spent_us.get(name, 0.0) + ns / 1e3
            calls[name] = calls.get(name, 0) + run.calls[name]
    return _costs(spent_us, calls)


def _costs(spent_us: dict[str, float], calls: dict[str, int]) -> Cost:
    each = {name: OperatorCost(calls[name], us / calls[name]) for name, us in spent_us.items() if calls[name]}
    heard = calls.get("O2", 0)
    of_v2v = sum(us for name, us in spent_us.items() if name != "O1")
    through = sum(one.us for name, one in each.items() if name != "O1")
    return Cost(of_v2v / heard if heard else None, through, each)


def _last_at(motion: Motion, name: str, t_s: float) -> State:
    """The state then, or the nearest end of the recording: a warning may come when its object has just gone."""
    track = motion.tracks[name]
    return track.at(t_s) or min((track.states[0], track.states[-1]), key=lambda state: abs(state.t_s - t_s))
