"""The ego's radio: what the query gets of what it receives.

The query reads one kind of V2V tuple, an object that a station perceived. A CPM gives one such tuple per object; a CAM
gives one about the station itself. The radio knows where the ego is, so it adds when the two would be closest if both
went straight on, and how close: by that a limited source lets in first what matters (`value:`).
"""

from __future__ import annotations

from math import cos, hypot, radians, sin

from protos.vehicle_pb2 import Cam, Cpm, PerceivedObject
from sim_vehicles.world.geometry import Point
from sim_vehicles.world.motion import State
from sim_vehicles.world.scene import Scene
from sim_vehicles.world.sense import EARTH_M

ITSELF_M = 3.0  # an object as near as that is the ego, seen by others
STANDS_MPS = 0.1  # relative to one another
LONGEST_S = 1000.0
QUALITY = 15  # a station knows itself as well as the scale says


def of_itself(cam: Cam) -> Cpm:
    """The station as an object at its own place, measured when the CAM was generated."""
    heading_rad = radians(cam.heading_ddeg / 10)  # clockwise from north
    return Cpm(
        station=cam.station,
        generation_ms=cam.generation_ms,
        latitude_e7=cam.latitude_e7,
        longitude_e7=cam.longitude_e7,
        object=PerceivedObject(
            object_id=cam.station,
            vx_cms=round(cam.speed_cms * sin(heading_rad)),
            vy_cms=round(cam.speed_cms * cos(heading_rad)),
            heading_ddeg=cam.heading_ddeg,
            length_dm=cam.length_dm,
            width_dm=cam.width_dm,
            quality=QUALITY,
            classification=cam.classification,
            acceleration_dms2=cam.acceleration_dms2,
            yaw_rate_cdegs=cam.yaw_rate_cdegs,
        ),
        path=cam.path,
    )


def judged(value: Cpm, scene: Scene, ego: State) -> None:
    """Add to a message when its object and the ego are closest, both going straight on from where they are, and how
    far apart then. The ego itself, as others see it, does not come closer. scene: where the plane's origin is."""
    x_m, y_m = _place(value, scene)
    x_m, y_m = x_m - ego.x_m, y_m - ego.y_m
    vx_mps = value.object.vx_cms / 100 - ego.speed_mps * cos(ego.heading_rad)
    vy_mps = value.object.vy_cms / 100 - ego.speed_mps * sin(ego.heading_rad)
    square = vx_mps**2 + vy_mps**2
    itself = hypot(x_m, y_m) < ITSELF_M
    closes = square > STANDS_MPS**2 and not itself
    closest_s = max(0.0, -(x_m * vx_mps + y_m * vy_mps) / square) if closes else 0.0
    value.closest_ms = round(1000 * min(closest_s, LONGEST_S))
    value.closest_cm = round(100 * hypot(x_m + vx_mps * closest_s, y_m + vy_mps * closest_s))


def _place(value: Cpm, scene: Scene) -> Point:
    """Where the object of a message is, on the plane of the scene."""
    north_m = radians(value.latitude_e7 / 1e7 - scene.latitude_deg) * EARTH_M
    east_m = radians(value.longitude_e7 / 1e7 - scene.longitude_deg) * EARTH_M * cos(radians(scene.latitude_deg))
    return east_m + value.object.x_cm / 100, north_m + value.object.y_cm / 100
