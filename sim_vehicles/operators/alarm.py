"""O19 to O21: how great the risk is, whether the alarm is on, and what the driver or the brake is told."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, erfc, exp, hypot, isinf, sin, sqrt

from node_agent.sdk import operator
from protos.vehicle_pb2 import Encounter, Motion, Warning
from sim_vehicles.operators.conflict import ENCOUNTER, stopping_mps2
from sim_vehicles.operators.models.its_time import since_ms
from sim_vehicles.operators.models.recent import Recent
from sim_vehicles.operators.place import SLOW_MPS

SERIOUS_MPS2 = 3.35  # DRAC from which a conflict counts as serious (Archer 2005)
HARD_MPS2 = 6.0  # DRAC that leaves no time: a moment later no brake holds it
TURNS_RPS = 0.1  # 10 m/s on a radius of 100 m
SLOWER_MPS, FASTER_MPS, NEARLY_ALL, TOGETHER_S = 2.5, 8.0, 0.95, 1.0  # where time to collision decides
TURNED_SHARE = 0.5  # of the present yaw rate that the path came with, for a turn that is no jump of the heading
COLLISION_RISK, CROSSING = 97, 2  # DENM cause and sub-cause (EN 302 637-3)
MOST_MS = 2**31 - 1  # sint32


@operator("vehicle.risk", version="1", inputs={"encounter": ENCOUNTER}, output=ENCOUNTER)
class Risk:
    """O19: risk = p (1 - (1 - severity) (1 - urgency)), a noisy-OR (Pearl 1988) times the probability to meet; 0 to 1.

    - p = share Phi(-PET / sigma_t): the share of their ways that cross (O15), and both in the zone at once there.
      sigma_t [s] is the standard deviation of the difference of their times: `sigma_t_s`, and what the covariance of
      the object's track says of its place, position_sd / v. Phi: the normal distribution.
    - severity = 1 - exp(-(dv / dv_ref)^2), dv = |v_ego - v_object| / 2: the change of speed of either of two equal
      masses that stay together [m/s]; `dv_ref_mps`: 0.63. At two times 50 km/h at a right angle dv is 9.8 m/s and
      severity 0.21; at 70 km/h 0.38.
    - urgency = min(1, DRAC / 3.35) x min(1, DRAC_object / `yield_mps2`): how hard the ego has to brake to stay out,
      and whether the other one shows that it will not give way. DRAC_object is the deceleration that stops the other
      vehicle before the zone, after `t_act_s` (infinite once it is in): as long as a braking at its ease would do
      (2 m/s2), nothing tells a vehicle that will wait from one that will not.
    - Who is slow stops within so little way that DRAC is small until the last moment. There time decides: where both
      are slower than 8 m/s and one than 2.5 m/s, nearly all their ways cross (share >= 0.95), they would be in the zone
      together for a second and TTC is at most `soon_s`, urgency is 1. 2.6 s: the least TTC that drivers who were
      warned let come (Hogema and Janssen 1996).
    """

    def __init__(
        self,
        sigma_t_s: float = 0.05,
        dv_ref_mps: float = 20.0,
        yield_mps2: float = 2.0,
        t_act_s: float = 0.2,
        soon_s: float = 2.6,
    ) -> None:
        if min(sigma_t_s, dv_ref_mps, yield_mps2) <= 0.0 or min(t_act_s, soon_s) < 0.0:
            raise ValueError("sigma_t_s, dv_ref_mps and yield_mps2 must be above 0, t_act_s and soon_s not below")
        self._sigma_t_s, self._dv_ref_mps = sigma_t_s, dv_ref_mps
        self._yield_mps2, self._t_act_s, self._soon_s = yield_mps2, t_act_s, soon_s

    def __call__(self, encounter: Encounter) -> Encounter:
        """The encounter with its risk."""
        out = Encounter()
        out.CopyFrom(encounter)
        out.risk = self._risk(encounter) if encounter.HasField("zone") else 0.0
        return out

    def _risk(self, encounter: Encounter) -> float:
        if isinf(encounter.pet_s) and encounter.pet_s > 0.0:
            return 0.0
        p = encounter.zone.share * normal(-encounter.pet_s / self._spread_s(encounter))
        if self._is_soon(encounter):
            return p
        ease = min(1.0, self._object_mps2(encounter) / self._yield_mps2)
        urgency = min(1.0, encounter.drac_mps2 / SERIOUS_MPS2) * ease
        return p * (1.0 - (1.0 - self._severity(encounter)) * (1.0 - urgency))

    def _is_soon(self, encounter: Encounter) -> bool:
        slower_mps, faster_mps = sorted((encounter.ego_now.speed_mps, encounter.object.speed_mps))
        return (
            slower_mps < SLOWER_MPS
            and faster_mps < FASTER_MPS
            and encounter.zone.share >= NEARLY_ALL
            and encounter.ttc_s <= self._soon_s
            and encounter.pet_s <= -TOGETHER_S
        )

    def _spread_s(self, encounter: Encounter) -> float:
        return hypot(self._sigma_t_s, encounter.position_sd_m / max(encounter.object.speed_mps, SLOW_MPS))

    def _object_mps2(self, encounter: Encounter) -> float:
        other, way_m = encounter.object, encounter.zone.object_in_m
        if way_m <= 0.0:
            return float("inf")
        return stopping_mps2(other.speed_mps, way_m, self._t_act_s)

    def _severity(self, encounter: Encounter) -> float:
        one, other = encounter.ego_now, encounter.object
        vx = one.speed_mps * cos(one.heading_rad) - other.speed_mps * cos(other.heading_rad)
        vy = one.speed_mps * sin(one.heading_rad) - other.speed_mps * sin(other.heading_rad)
        return 1.0 - exp(-(vx * vx + vy * vy) / (4.0 * self._dv_ref_mps**2))


def normal(z: float) -> float:
    """Phi, the standard normal distribution function; 0 and 1 at minus and plus infinity."""
    return 0.5 * erfc(-z / sqrt(2.0))


@dataclass
class _Alarm:
    """What O20 knows of one track. Instants in ITS ms."""

    heard_ms: int  # its newest measurement
    high: int = 0  # measurements in a row at or over the upper threshold
    high_ms: int = 0  # the first of them
    low_ms: int | None = None  # since when the risk has been below the lower one
    on: bool = False


@operator("vehicle.hysteresis", version="1", inputs={"encounter": ENCOUNTER}, output=ENCOUNTER)
class Hysteresis:
    """O20: whether the alarm about this track is on -> on.

    On at risk >= `on_risk` in two measurements of the track in a row, or in one with DRAC >= 3.35 m/s2, where the way
    of both is known: each is on a lane, turns by less than 0.1 rad/s, or as its path did before. Where one turns
    and no lane says for how long, a jump of its heading is no collision course yet: the measurements in a row must
    span `lasting_s`, or be two with DRAC >= 6 m/s2 in the later one, when there is no time to wait. Off once the
    risk has been below `off_risk` for `off_s`, in the time of the measurements; in between it stays as it is. A
    track that O13 has not confirmed never turns on; while it is not confirmed, nothing counts towards it. A repeat
    (same station, object and measured_ms) is the same evidence: it is told how things are, and counts for nothing.

    A track is known by its number, without one by station and object. At most 256 tracks are kept; one not heard of
    for 1 s is forgotten, and off.
    """

    def __init__(self, on_risk: float = 0.8, off_risk: float = 0.3, off_s: float = 0.5, lasting_s: float = 0.3) -> None:
        if not 0.0 <= off_risk <= on_risk <= 1.0 or min(off_s, lasting_s) < 0.0:
            raise ValueError("0 <= off_risk <= on_risk <= 1, off_s >= 0 and lasting_s >= 0 must hold")
        self._on_risk, self._off_risk = on_risk, off_risk
        self._off_ms, self._lasting_ms = 1000.0 * off_s, 1000.0 * lasting_s
        self._alarms: Recent[tuple[int, ...], _Alarm] = Recent()
        self._counted: Recent[tuple[int, int, int], bool] = Recent()

    def __call__(self, encounter: Encounter) -> Encounter:
        """The encounter with its alarm."""
        out = Encounter()
        out.CopyFrom(encounter)
        at_ms = encounter.measured_ms
        self._alarms.forget(at_ms)
        self._counted.forget(at_ms)
        track = (encounter.track,) if encounter.track else (encounter.station, encounter.object_id)
        message = (encounter.station, encounter.object_id, at_ms)
        alarm = self._alarms.get(track) or _Alarm(at_ms)
        if self._counted.get(message) is None:
            self._counted.put(message, at_ms, True)
            self._update(alarm, encounter)
        if since_ms(at_ms, alarm.heard_ms) > 0:
            alarm.heard_ms = at_ms
        self._alarms.put(track, alarm.heard_ms, alarm)
        out.on = alarm.on
        return out

    def _update(self, alarm: _Alarm, encounter: Encounter) -> None:
        risk, at_ms = encounter.risk, encounter.measured_ms
        high = encounter.confirmed and risk >= self._on_risk
        if high and not alarm.high:
            alarm.high_ms = at_ms
        alarm.high = min(alarm.high + 1, 2) if high else 0
        if high and self._sure(alarm, encounter):
            alarm.on = True
        if risk >= self._off_risk:
            alarm.low_ms = None
        elif alarm.low_ms is None:
            alarm.low_ms = at_ms
        elif since_ms(at_ms, alarm.low_ms) >= self._off_ms:
            alarm.on = False

    def _sure(self, alarm: _Alarm, encounter: Encounter) -> bool:
        """Whether the collision course has been seen for long enough."""
        if _way_is_known(encounter):
            return alarm.high == 2 or encounter.drac_mps2 >= SERIOUS_MPS2
        lasts = since_ms(encounter.measured_ms, alarm.high_ms) >= self._lasting_ms
        return lasts or (alarm.high == 2 and encounter.drac_mps2 >= HARD_MPS2)


def _way_is_known(encounter: Encounter) -> bool:
    """Whether each of the two is on a lane or goes straight on."""
    ego_bend = encounter.ego.bend_1pm if encounter.ego.HasField("bend_1pm") else None
    bend = encounter.bend_1pm if encounter.HasField("bend_1pm") else None
    return bool(encounter.ego_lane or _goes_on(encounter.ego_now, ego_bend)) and bool(
        encounter.lane or _goes_on(encounter.object, bend)
    )


def _goes_on(motion: Motion, bend_1pm: float | None) -> bool:
    """Whether the vehicle goes straight on, or turns as its path did."""
    turn_rps = motion.yaw_rate_rps
    if abs(turn_rps) < TURNS_RPS:
        return True
    return bend_1pm is not None and bend_1pm * motion.speed_mps / turn_rps >= TURNED_SHARE


@operator("vehicle.warn", version="1", inputs={"encounter": ENCOUNTER}, output="vehicle.Warning")
class Warn:
    """O21: what the driver or the brake is told -> vehicle.Warning, one per tuple (level 0: nothing to do).

    slack = d / v - t_act - v / (2 a) [s]: time left until braking with a = `brake_mps2` must begin so that the ego
    stops before the zone, d [m] being the way left to it. Level 2 (brake now) when the alarm is on and the slack is at
    most `now_s`, level 1 when it is on, else 0. Without a zone, and for an ego that stands, the slack is the greatest
    that fits. Cause 97 (collision risk), sub-cause 2 (crossing) of EN 302 637-3, at every level.
    """

    def __init__(self, t_act_s: float = 0.2, brake_mps2: float = 7.0, now_s: float = 0.5) -> None:
        if brake_mps2 <= 0.0 or t_act_s < 0.0:
            raise ValueError("brake_mps2 must be above 0, t_act_s not below")
        self._t_act_s, self._brake_mps2, self._now_s = t_act_s, brake_mps2, now_s

    def __call__(self, encounter: Encounter) -> Warning:
        """The warning about the encounter's object."""
        slack_s = self._slack_s(encounter)
        way_m = encounter.zone.ego_in_m if encounter.HasField("zone") else None
        level = 0 if not encounter.on else 2 if slack_s <= self._now_s else 1
        return Warning(
            object_id=encounter.object_id,
            station=encounter.station,
            measured_ms=encounter.measured_ms,
            level=level,
            slack_ms=round(min(max(slack_s * 1000.0, -MOST_MS), MOST_MS)),
            risk_permille=round(1000.0 * encounter.risk),
            distance_cm=-1 if way_m is None else round(100.0 * max(way_m, 0.0)),
            cause=COLLISION_RISK,
            sub_cause=CROSSING,
            track=encounter.track,
        )

    def _slack_s(self, encounter: Encounter) -> float:
        speed = encounter.ego_now.speed_mps
        if speed <= 0.0 or not encounter.HasField("zone"):
            return float("inf")
        return encounter.zone.ego_in_m / speed - self._t_act_s - speed / (2.0 * self._brake_mps2)
