"""What the ego's radio adds to a message: for how long it has not heard of the object, and that the ego is no danger to
itself."""

from __future__ import annotations

from protos.vehicle_pb2 import Cpm, PerceivedObject
from sim_vehicles.v2v.radio import News, judged
from sim_vehicles.world.motion import State
from sim_vehicles.world.scene import Scene

MS = 1_000_000
SCENE = Scene("plane", "A", ())
EGO = State(0.0, 0.0, 0.0, 0.0, 10.0)


def about(number: int, x_m: float = 0.0, vx_mps: float = 0.0) -> Cpm:
    place = {"latitude_e7": round(SCENE.latitude_deg * 1e7), "longitude_e7": round(SCENE.longitude_deg * 1e7)}
    seen = PerceivedObject(object_id=number, x_cm=round(100 * x_m), vx_cms=round(100 * vx_mps))
    return Cpm(station=1, object=seen, **place)


def test_news_is_what_was_not_heard_of_for_a_second() -> None:
    news, found = News(), []
    for number, at_ms in ((1, 0), (2, 40), (1, 50), (1, 950), (2, 1039), (1, 5000)):
        message = about(number)
        news.complete(message, at_ms * MS)
        found.append(message.unheard_ms)
    assert found == [1000, 1000, 50, 900, 999, 1000]


def test_the_ego_that_others_see_does_not_come_closer() -> None:
    far, itself = about(2, 50.0), about(1, 1.0, 9.5)
    for message in (far, itself):
        judged(message, SCENE, EGO)
    assert (far.closest_ms, far.closest_cm) == (5000, 0)
    assert itself.closest_ms == 0
