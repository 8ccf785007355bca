"""O2 to O4: what came over the air, whether it can be, whether it closes in, and the ego it concerns."""

from __future__ import annotations

from math import atan2, cos, hypot, pi, radians, sin

from node_agent.sdk import At, operator
from protos.vehicle_pb2 import Cpm, Ego, Encounter, PathPoint, PerceivedObject
from sim_vehicles.operators.models.ctrv import advance, state_of
from sim_vehicles.operators.models.its_time import MODULUS, age_s, since_ms
from sim_vehicles.operators.place import LATITUDE, LONGITUDE, Plane
from sim_vehicles.world.motion import wrap

LATITUDE_E7, LONGITUDE_E7 = 900_000_000, 1_800_000_000  # one more means "unavailable"
DISTANCE_CM = 131_070  # beyond: out of range (CartesianCoordinateLarge)
VELOCITY_CMS = 16_382
NO_HEADING_DDEG = 3601
NO_LENGTHS = (0, 1022, 1023)  # not given, out of range, unavailable
NO_WIDTHS = (0, 256)
LENGTH_DM, WIDTH_DM = 1021, 255
OBJECT_ID, OBJECT_AGE_MS, QUALITY, CLASSIFICATION = 65535, 2047, 15, 255
ACCELERATION_DMS2, NO_ACCELERATION_DMS2 = 160, 161  # the largest value, and the one that means "unavailable"
YAW_RATE_CDEGS, NO_YAW_RATE_CDEGS = 32_766, 32_767
PATH_POINTS, PATH_TIME_CS, NO_DELTA_E7 = 40, 65_535, 131_072


@operator("vehicle.decode", inputs={"message": "vehicle.Cpm"}, output="vehicle.Encounter")
class Decode:
    """O2: one perceived object in SI units, from the station that perceived it; drops what cannot be.

    Drops: no object in the message; a field outside its range in EN 302 637-2 / TS 103 324; faster than
    `max_speed_mps`; measured after the message or more than `max_age_s` before it; an age since the measurement (now
    minus the middle of the tuple's origin) above `max_age_s`, or an origin that lies wholly in the future.

    Fills heading_rad mathematically (the message counts from north, clockwise); an "unavailable" heading becomes the
    direction of the velocity. A length or width that is not given becomes `length_m`, `width_m` (a passenger car).
    Acceleration and yaw rate are absent where the message does not have them, or has them as "unavailable", and so is
    a path with a place that is not known or cannot be.
    """

    def __init__(
        self, max_speed_mps: float = 70.0, max_age_s: float = 1.0, length_m: float = 4.5, width_m: float = 1.8
    ) -> None:
        if not (max_speed_mps > 0.0 and max_age_s > 0.0):
            raise ValueError(f"max_speed_mps {max_speed_mps} and max_age_s {max_age_s} must be above 0")
        if not (0.0 < length_m <= 60.0 and 0.0 < width_m <= 60.0):
            raise ValueError(f"a vehicle of {length_m} m x {width_m} m; use (0, 60] metres")
        self.max_speed_mps = max_speed_mps
        self.max_age_s = max_age_s
        self.length_m = length_m
        self.width_m = width_m

    def __call__(self, message: Cpm, *, at: At) -> Encounter | None:
        if at.now_ns < at.origin_ns[0] or age_s(at) > self.max_age_s:
            return None
        if not message.HasField("object") or not _station_can_be(message):
            return None
        seen = message.object
        if not _object_can_be(seen) or seen.measurement_delta_ms > self.max_age_s * 1000.0:
            return None
        vx, vy = seen.vx_cms / 100.0, seen.vy_cms / 100.0
        if hypot(vx, vy) > self.max_speed_mps:
            return None
        heading = pi / 2 - radians(seen.heading_ddeg / 10.0)
        return Encounter(
            station=message.station,
            object_id=seen.object_id,
            measured_ms=(message.generation_ms - seen.measurement_delta_ms) % MODULUS,
            latitude_e7=message.latitude_e7,
            longitude_e7=message.longitude_e7,
            east_m=seen.x_cm / 100.0,
            north_m=seen.y_cm / 100.0,
            vx_mps=vx,
            vy_mps=vy,
            heading_rad=wrap(heading if seen.heading_ddeg != NO_HEADING_DDEG else atan2(vy, vx)),
            length_m=self.length_m if seen.length_dm in NO_LENGTHS else seen.length_dm / 10.0,
            width_m=self.width_m if seen.width_dm in NO_WIDTHS else seen.width_dm / 10.0,
            quality=seen.quality,
            classification=seen.classification,
            acceleration_mps2=seen.acceleration_dms2 / 10.0 if _says_acceleration(seen) else None,
            yaw_rate_rps=radians(seen.yaw_rate_cdegs / 100.0) if _says_yaw_rate(seen) else None,
            path=message.path if _says_path(message) else None,
        )


@operator(
    "vehicle.closing",
    inputs={"encounter": "vehicle.Encounter"},
    side={"ego": "vehicle.Ego"},
    output="vehicle.Encounter",
)
class Closing:
    """O3: hands on an object that closes in on the ego; fills range_m and closing_mps.

    Both are moved to ITS now: the ego from its generation_ms by CTRV, the object by its age at constant velocity. With
    dp = p_object - p_ego and dv likewise, it passes when the closing speed -dp.dv/|dp| is above `min_closing_mps`, the
    closest approach -dp.dv/|dv|^2 less than `horizon_s` away, the range |dp| (centre to centre) at least `min_range_m`
    (nearer, it is the ego itself, perceived by another) and object_id not the ego's station. How many pass is decided
    by traffic alone. After the target classification of SAE J2945/1.

    Without an ego state, or with one more than `max_ego_age_s` old, nothing passes: nobody can close in on nowhere.
    latitude, longitude: origin of the plane, degrees.
    """

    def __init__(
        self,
        min_closing_mps: float = 0.5,
        horizon_s: float = 8.0,
        min_range_m: float = 3.0,
        max_ego_age_s: float = 2.0,
        latitude: float = LATITUDE,
        longitude: float = LONGITUDE,
    ) -> None:
        if not (min_range_m > 0.0 and horizon_s > 0.0 and max_ego_age_s > 0.0):
            raise ValueError("min_range_m, horizon_s and max_ego_age_s must be above 0")
        self.min_closing_mps = min_closing_mps
        self.horizon_s = horizon_s
        self.min_range_m = min_range_m
        self.max_ego_age_s = max_ego_age_s
        self._plane = Plane(latitude, longitude)

    def __call__(self, encounter: Encounter, *, ego: Ego | None, at: At) -> Encounter | None:
        if ego is None or encounter.object_id == ego.station:
            return None
        age = age_s(at)
        ego_age = ego_age_s(encounter, ego, age)
        if abs(ego_age) > self.max_ego_age_s:
            return None
        ego_x, ego_y, heading, speed, _, _ = advance(*state_of(ego.motion), ego_age)
        x, y = self._plane.place(encounter)
        dx, dy = x + age * encounter.vx_mps - ego_x, y + age * encounter.vy_mps - ego_y
        dvx, dvy = encounter.vx_mps - speed * cos(heading), encounter.vy_mps - speed * sin(heading)
        away = hypot(dx, dy)
        if away < self.min_range_m:
            return None
        approach = -(dx * dvx + dy * dvy)
        closing = approach / away
        if closing <= self.min_closing_mps or approach >= self.horizon_s * (dvx * dvx + dvy * dvy):
            return None
        result = Encounter()
        result.CopyFrom(encounter)
        result.range_m = away
        result.closing_mps = closing
        return result


@operator(
    "vehicle.attach",
    inputs={"encounter": "vehicle.Encounter"},
    side={"ego": "vehicle.Ego"},
    output="vehicle.Encounter",
)
class Attach:
    """O4: joins the newest ego state; fills ego, age_s (since the measurement) and ego_age_s (since its generation).

    age_s is now minus the middle of the tuple's origin. The ego's age is counted in ITS time and may be slightly
    negative, when its state is newer than this tuple's now. Without an ego state the tuple is filtered.
    """

    def __call__(self, encounter: Encounter, *, ego: Ego | None, at: At) -> Encounter | None:
        if ego is None:
            return None
        age = age_s(at)
        result = Encounter()
        result.CopyFrom(encounter)
        result.ego.CopyFrom(ego)
        result.age_s = age
        result.ego_age_s = ego_age_s(encounter, ego, age)
        return result


def ego_age_s(encounter: Encounter, ego: Ego, age: float) -> float:
    """Seconds of ITS time from the ego state's generation to now, now being `age` after the object's measurement."""
    return since_ms(encounter.measured_ms, ego.generation_ms) / 1000.0 + age


def _station_can_be(message: Cpm) -> bool:
    return (
        0 <= message.generation_ms < MODULUS
        and abs(message.latitude_e7) <= LATITUDE_E7
        and abs(message.longitude_e7) <= LONGITUDE_E7
    )


def _object_can_be(seen: PerceivedObject) -> bool:
    return (
        seen.object_id <= OBJECT_ID
        and seen.measurement_delta_ms >= 0
        and abs(seen.x_cm) <= DISTANCE_CM
        and abs(seen.y_cm) <= DISTANCE_CM
        and abs(seen.vx_cms) <= VELOCITY_CMS
        and abs(seen.vy_cms) <= VELOCITY_CMS
        and seen.heading_ddeg <= NO_HEADING_DDEG
        and (seen.length_dm <= LENGTH_DM or seen.length_dm in NO_LENGTHS)
        and (seen.width_dm <= WIDTH_DM or seen.width_dm in NO_WIDTHS)
        and seen.age_ms <= OBJECT_AGE_MS
        and seen.quality <= QUALITY
        and seen.classification <= CLASSIFICATION
        and -ACCELERATION_DMS2 <= seen.acceleration_dms2 <= NO_ACCELERATION_DMS2
        and abs(seen.yaw_rate_cdegs) <= NO_YAW_RATE_CDEGS
    )


def _says_path(message: Cpm) -> bool:
    """Whether the station speaks of itself and its path can be, with every place known."""
    return (
        message.object.object_id == message.station
        and len(message.path) <= PATH_POINTS
        and all(_is_known(point) for point in message.path)
    )


def _is_known(point: PathPoint) -> bool:
    return (
        abs(point.latitude_e7) < NO_DELTA_E7
        and abs(point.longitude_e7) < NO_DELTA_E7
        and point.time_cs <= PATH_TIME_CS  # 0: not said
    )


def _says_acceleration(seen: PerceivedObject) -> bool:
    return seen.HasField("acceleration_dms2") and seen.acceleration_dms2 != NO_ACCELERATION_DMS2


def _says_yaw_rate(seen: PerceivedObject) -> bool:
    return seen.HasField("yaw_rate_cdegs") and abs(seen.yaw_rate_cdegs) <= YAW_RATE_CDEGS
