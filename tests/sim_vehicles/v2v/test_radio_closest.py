"""What the ego's radio adds to a message: when its object comes closest. The ego is no danger to itself."""

from __future__ import annotations

from protos.vehicle_pb2 import Cpm, PerceivedObject
from sim_vehicles.v2v.radio import judged
from sim_vehicles.world.motion import State
from sim_vehicles.world.scene import Scene

SCENE = Scene("plane", "A", ())
EGO = State(0.0, 0.0, 0.0, 0.0, 10.0)


def about(number: int, x_m: float = 0.0, vx_mps: float = 0.0) -> Cpm:
    place = {"latitude_e7": round(SCENE.latitude_deg * 1e7), "longitude_e7": round(SCENE.longitude_deg * 1e7)}
    seen = PerceivedObject(object_id=number, x_cm=round(100 * x_m), vx_cms=round(100 * vx_mps))
    return Cpm(station=1, object=seen, **place)


def test_the_ego_that_others_see_does_not_come_closer() -> None:
    far, itself = about(2, 50.0), about(1, 1.0, 9.5)
    for message in (far, itself):
        judged(message, SCENE, EGO)
    assert (far.closest_ms, far.closest_cm) == (5000, 0)
    assert itself.closest_ms == 0
