"""O7 to O9: where object and ego are now, on the plane and on their lanes."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, isfinite, pi, radians, sin

from node_agent.sdk import At, operator
from protos.vehicle_pb2 import Encounter, Motion
from sim_vehicles.operators.models.ctrv import advance, motion_of, state_of
from sim_vehicles.operators.models.its_time import age_s
from sim_vehicles.operators.models.lanes import Match
from sim_vehicles.operators.models.named_maps import network
from sim_vehicles.operators.models.network_paths import MOST_WAYS
from sim_vehicles.operators.models.onward_ways import Onward, Pose, RoadMap, messages
from sim_vehicles.operators.models.recent import Recent
from sim_vehicles.operators.models.trail import bend_of
from sim_vehicles.world.geometry import Point
from sim_vehicles.world.lane_network import LaneNetwork
from sim_vehicles.world.motion import wrap

EARTH_M = 6_378_137.0  # WGS 84, equatorial
LATITUDE, LONGITUDE = 35.0, 137.0  # default origin of the plane, degrees
REVERSING_MPS = 0.5  # below, a speed against the heading is noise
SLOW_MPS = 1.0  # the limit of a yaw rate at a lower speed is that at this one: a speed near 0 is mostly noise


@operator("vehicle.plane", inputs={"encounter": "vehicle.Encounter"}, output="vehicle.Encounter")
class Plane:
    """O7: the object on the plane when measured: x east, y north [m] of the origin; fills `measured`.

    Equirectangular: x = R cos(lat0) (lon - lon0), y = R (lat - lat0), angles in radians, R = 6378137 m; plus the
    object's way from the station. Within 1 km of the origin it differs from the ellipsoid's own scale by under 0.7 %,
    for stations and ego alike.

    Speed [m/s] is the velocity along the object's heading (its part across is the sensor's noise); an object that goes
    backwards at over 0.5 m/s has the heading it goes. Yaw rate and acceleration are those of the message, 0 where it
    does not say them. A yaw rate with over `most_lateral_mps2` across, which no vehicle drives, is cut to that.
    bend_1pm is the curvature of the path that the object, a station, says it came (pathHistory, not in every message).

    latitude, longitude: of the origin, degrees.
    """

    def __init__(
        self, latitude: float = LATITUDE, longitude: float = LONGITUDE, most_lateral_mps2: float = 4.0
    ) -> None:
        if not most_lateral_mps2 > 0.0:
            raise ValueError(f"most_lateral_mps2 is {most_lateral_mps2}; it must be above 0")
        if not (isfinite(latitude) and isfinite(longitude) and abs(latitude) < 90.0 and abs(longitude) <= 180.0):
            raise ValueError(
                f"an origin at latitude {latitude}, longitude {longitude}; use degrees, below 90 and to 180"
            )
        self.latitude = latitude
        self.longitude = longitude
        self._across_m = EARTH_M * cos(radians(latitude))
        self._most_lateral_mps2 = most_lateral_mps2
        self._paths: Recent[int, tuple[Point, ...]] = Recent()

    def __call__(self, encounter: Encounter) -> Encounter:
        result = Encounter()
        result.CopyFrom(encounter)
        x, y = self.place(encounter)
        heading = encounter.heading_rad
        speed = encounter.vx_mps * cos(heading) + encounter.vy_mps * sin(heading)
        acceleration = encounter.acceleration_mps2
        if speed < -REVERSING_MPS:
            heading, speed, acceleration = wrap(heading + pi), -speed, -acceleration
        speed = max(0.0, speed)
        most = self._most_lateral_mps2 / max(speed, SLOW_MPS)
        yaw_rate = min(max(encounter.yaw_rate_rps, -most), most)
        result.measured.CopyFrom(motion_of((x, y, heading, speed, yaw_rate, acceleration)))
        bend_1pm = bend_of((x, y), heading, self._came(encounter, (x, y)))
        if bend_1pm is not None:
            result.bend_1pm = bend_1pm
        result.ClearField("path")
        return result

    def _came(self, encounter: Encounter, here: Point) -> Sequence[Point]:
        """Places of the path that the object says, or last said, that it came, the newest first."""
        self._paths.forget(encounter.measured_ms)
        if encounter.path:
            places = [here]
            for point in encounter.path:
                x, y = places[-1]
                east, north = radians(point.longitude_e7 / 1e7), radians(point.latitude_e7 / 1e7)
                places.append((x + east * self._across_m, y + north * EARTH_M))
            self._paths.put(encounter.station, encounter.measured_ms, tuple(places))
        return self._paths.get(encounter.station) or () if encounter.object_id == encounter.station else ()

    def place(self, encounter: Encounter) -> tuple[float, float]:
        """x, y of the object when measured, in metres."""
        turn = wrap(radians(encounter.longitude_e7 / 1e7 - self.longitude))  # the short way round the earth
        north = radians(encounter.latitude_e7 / 1e7 - self.latitude)
        return turn * self._across_m + encounter.east_m, north * EARTH_M + encounter.north_m


@operator("vehicle.extrapolate", inputs={"encounter": "vehicle.Encounter"}, output="vehicle.Encounter")
class Extrapolate:
    """O8: object and ego as they are now, by CTRV (Schubert et al. 2008); fills `object` and `ego_now`.

    The object from its measurement, the ego from its generation_ms.
    Time has gone on since O4: age_s and ego_age_s are brought up to this instant, so that from here on they say which
    "now" the two states belong to.
    """

    def __call__(self, encounter: Encounter, *, at: At) -> Encounter:
        result = Encounter()
        result.CopyFrom(encounter)
        result.age_s = age_s(at)
        result.ego_age_s = encounter.ego_age_s + result.age_s - encounter.age_s
        result.object.CopyFrom(motion_of(advance(*state_of(encounter.measured), result.age_s)))
        result.ego_now.CopyFrom(motion_of(advance(*state_of(encounter.ego.motion), result.ego_age_s)))
        return result


@operator("vehicle.lane", inputs={"encounter": "vehicle.Encounter"}, output="vehicle.Encounter")
class Lane:
    """O9: on which ways the object and the ego go; fills ways and ego_ways (none where no lane is known), lane and
    ego_lane (of the likeliest, "" for none), and betters their headings.

    Map matching: the vehicle is on each lane with d_perp < `max_offset_m` and |dheading| < `max_turn_rad`. From there
    it goes on along what follows: the likeliest way, taken for certain, or up to `most_ways` different ways with
    shares (`models.onward_ways`), each of which costs O14 a path and O15 a crossing more. What is matched is the
    state as it was measured, and the vehicle as it is now is that state moved on along the likeliest way, at the
    same offset and with the lane's heading: in a bend a state that O8 moved straight on for some tenths of a
    second lies on no lane any more.

    map: name of an installed scene with roads, or of NAME.json in the folder SHIMEKIRI_MAPS of the agent; "" (default):
    no map, nothing is matched.
    """

    def __init__(
        self, map: str = "", max_offset_m: float = 1.2, max_turn_rad: float = 0.15, most_ways: int = 1
    ) -> None:
        if not 1 <= most_ways <= MOST_WAYS:
            raise ValueError(f"most_ways is {most_ways}; it must be 1 to {MOST_WAYS}")
        self._map = RoadMap(network(map), max_offset_m) if map else None
        self.max_offset_m = max_offset_m
        self.max_turn_rad = max_turn_rad
        self.most_ways = most_ways

    def drive_on(self, network: LaneNetwork) -> None:
        """Takes a network of lanes in place of the map that was named."""
        self._map = RoadMap(network, self.max_offset_m)

    def __call__(self, encounter: Encounter) -> Encounter:
        if self._map is None:
            return encounter
        result = Encounter()
        result.CopyFrom(encounter)
        knows_turn = result.HasField("yaw_rate_rps")
        onward = self._settle(self._map, result.measured, result.object, result.age_s, knows_turn)
        ego_onward = self._settle(self._map, result.ego.motion, result.ego_now, result.ego_age_s)
        result.lane, result.ego_lane = (some[0].lane if some else "" for some in (onward, ego_onward))
        result.ways.extend(messages(onward, result.object.speed_mps))
        result.ego_ways.extend(messages(ego_onward, result.ego_now.speed_mps))
        return result

    def _settle(self, map_: RoadMap, then: Motion, now: Motion, age_s: float, knows_turn: bool = True) -> list[Onward]:
        """Moves `now` to where `then` is after age_s along its likeliest way, if it has one; its ways."""
        fitting = [match for match in map_.near(then.x_m, then.y_m, then.heading_rad) if self._fits(match)]
        if not fitting:
            return []
        x_m, y_m, heading_rad, speed_mps, yaw_rate_rps, acceleration_mps2 = state_of(then)
        turn_rps = yaw_rate_rps if knows_turn else None
        pose = Pose(x_m, y_m, heading_rad, speed_mps, turn_rps, acceleration_mps2)
        onward = map_.onward(pose, fitting, self.most_ways)
        if onward:
            path, s_m = onward[0].path, onward[0].s_m
            left_m = path.offset(then.x_m, then.y_m, s_m)
            x_m, y_m, heading_rad = path.at(s_m + (then.speed_mps + now.speed_mps) / 2 * age_s)
            now.x_m, now.y_m = x_m - left_m * sin(heading_rad), y_m + left_m * cos(heading_rad)
            now.heading_rad = heading_rad
        return onward

    def _fits(self, match: Match) -> bool:
        return match.placed.d_perp_m < self.max_offset_m and abs(match.placed.dheading_rad) < self.max_turn_rad
