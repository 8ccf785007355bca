"""The ego's radio: what the query gets of what it receives.

The query reads one kind of V2V tuple, an object that a station perceived. A CPM gives one such tuple per object; a CAM
gives one about the station itself.
"""

from __future__ import annotations

from math import cos, radians, sin

from protos.vehicle_pb2 import Cam, Cpm, PerceivedObject

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
        ),
    )
