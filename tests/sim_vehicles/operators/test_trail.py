"""The path that a vehicle came: as its station says it (v2v), and what O1, O2, O7 and O20 make of it."""

from itertools import pairwise
from math import cos, dist, pi, sin
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protos.vehicle_pb2 import Cpm, Encounter, PathPoint, PerceivedObject, Sensor
from sim_vehicles.operators.alarm import Hysteresis
from sim_vehicles.operators.models.trail import LEAST_M, bend_of
from sim_vehicles.operators.own import Localise
from sim_vehicles.operators.place import Plane
from sim_vehicles.operators.reception import Decode
from sim_vehicles.readers.scenarios import load_scenario
from sim_vehicles.v2v.path_history import APART_M, BESIDE_M, LONGEST_M, MOST_POINTS, PathHistory
from sim_vehicles.v2v.radio import of_itself
from sim_vehicles.world.sense import NO_NOISE, Place, Senses
from tests.sim_vehicles.operators.test_place import at

MS = 1_000_000


@given(st.floats(8, 500), st.floats(-pi, pi), st.booleans(), st.floats(LEAST_M, 12))
def test_of_an_arc_it_is_its_curvature(radius: float, heading: float, left: bool, way: float) -> None:
    side = 1 if left else -1
    chord = 2 * radius * sin(way / radius / 2)
    back = heading - side * way / radius / 2
    came = [(-0.1, 0.0), (-chord * cos(back), -chord * sin(back))]
    found = bend_of((0.0, 0.0), heading, came)
    if chord < LEAST_M:
        assert found is None
    else:
        assert found == pytest.approx(side / radius, rel=0.1)


def test_without_a_far_place_nothing_is_known() -> None:
    assert bend_of((0.0, 0.0), 0.0, []) is None
    assert bend_of((0.0, 0.0), 0.0, [(-1.0, 0.0), (-5.9, 0.0)]) is None


@given(st.lists(st.tuples(st.floats(-0.6, 0.6), st.floats(0, 3)), min_size=1, max_size=120))
def test_few_points_describe_the_path(turns: list[tuple[float, float]]) -> None:
    history, x, y, heading, places = PathHistory(), 0.0, 0.0, 0.0, list[Place]()
    for k, (turn, way) in enumerate(turns):
        heading += turn
        x, y = x + way * cos(heading), y + way * sin(heading)
        places.append(Place(k * 100 * MS, x, y))
        history.add(places[-1])
    points = history.points()
    assert len(points) <= MOST_POINTS
    line = [places[-1], *points]
    assert sum(dist(a[1:], b[1:]) for a, b in pairwise(line)) <= LONGEST_M + 1e-6
    assert all(a.at_ns > b.at_ns for a, b in pairwise(line)), "the newest first"
    for one in places:
        chord = next(((a, b) for a, b in pairwise(line) if b.at_ns <= one.at_ns <= a.at_ns), None)
        if chord is not None:
            (_, ax, ay), (_, bx, by) = chord
            long = dist((ax, ay), (bx, by))
            beside = abs((ax - bx) * (one.y_m - by) - (ay - by) * (one.x_m - bx)) / long if long else 0.0
            assert beside <= BESIDE_M + APART_M + 1e-6


def test_a_path_goes_over_the_air_and_comes_back() -> None:
    scenario = load_scenario("crossing_50")
    senses = Senses(scenario, 1, NO_NOISE)
    there = scenario.motion.tracks["X"].at(8.0)
    assert there is not None
    came = (Place(7_500 * MS, there.x_m + 8.0, there.y_m + 0.5), Place(7_000 * MS, there.x_m + 15.0, there.y_m + 3.0))
    value = of_itself(senses.cam_of(8_000 * MS, "X", there, came))
    assert [point.time_cs for point in value.path] == [50, 50]
    heard = Decode()(value, at=at(0))
    assert heard is not None and len(heard.path) == 2
    placed = Plane()(heard)
    expected = bend_of((there.x_m, there.y_m), there.heading_rad, [one[1:] for one in came])
    assert placed.bend_1pm == pytest.approx(expected, abs=1e-3)
    assert not placed.path, "nobody reads it after that"


def test_a_path_is_known_until_the_next_one() -> None:
    plane = Plane()
    first = Encounter(station=4, object_id=4, measured_ms=100, path=[PathPoint(longitude_e7=-1000, time_cs=50)])
    assert plane(first).HasField("bend_1pm")
    assert plane(Encounter(station=4, object_id=4, measured_ms=400)).HasField("bend_1pm")
    assert not plane(Encounter(station=4, object_id=5, measured_ms=400)).HasField("bend_1pm"), "another object"
    assert not plane(Encounter(station=4, object_id=4, measured_ms=1500)).HasField("bend_1pm"), "a second later"


@pytest.mark.parametrize(
    "points",
    [
        [PathPoint(latitude_e7=131_073, time_cs=10)],
        [PathPoint(longitude_e7=131_072, time_cs=10)],
        [PathPoint(time_cs=65_536)],
        [PathPoint(time_cs=1)] * 41,
    ],
)
def test_a_path_that_cannot_be_or_is_not_known_is_left_out(points: list[PathPoint]) -> None:
    value = Cpm(station=7, object=PerceivedObject(object_id=7, heading_ddeg=0), path=points)
    heard = Decode()(value, at=at(0))
    assert heard is not None and not heard.path


def test_a_path_is_of_the_station_and_needs_no_time() -> None:
    value = Cpm(station=7, object=PerceivedObject(object_id=7), path=[PathPoint(latitude_e7=9)])
    heard = Decode()(value, at=at(0))
    assert heard is not None and len(heard.path) == 1
    value.object.object_id = 8
    of_another = Decode()(value, at=at(0))
    assert of_another is not None and not of_another.path


def test_who_stands_or_goes_straight_on_says_a_short_path(seed: int) -> None:
    draw = Random(seed)
    standing, straight = PathHistory(), PathHistory()
    for k in range(5000):
        standing.add(Place(k * 100 * MS, draw.gauss(0, 0.1), draw.gauss(0, 0.1)))
        straight.add(Place(k * 100 * MS, 1.4 * k, 0.0))
    assert len(standing.points()) <= 2
    assert 3 <= len(straight.points()) <= 6
    assert straight.points()[-1].x_m >= 1.4 * 4999 - LONGEST_M


def test_the_ego_knows_how_its_own_path_bends(seed: int) -> None:
    """On a circle of 20 m at 8 m/s, with the noise of GNSS."""
    draw = Random(seed)
    one, found = Localise(), []
    for k in range(60):
        turned = 0.4 * k / 10
        result = one(
            Sensor(
                station=1,
                generation_ms=100 * k,
                x_cm=round(2000 * sin(turned) + draw.gauss(0, 20)),
                y_cm=round(2000 * (1 - cos(turned)) + draw.gauss(0, 20)),
                speed_cms=800,
                heading_ddeg=round((90 - turned * 180 / pi) * 10) % 3600,
                yaw_rate_cdegs=round(0.4 * 18000 / pi),
            )
        )
        assert result is not None
        if k > 30:
            found.append(result.bend_1pm)
        elif k < 5:
            assert not result.HasField("bend_1pm")
    assert sum(found) / len(found) == pytest.approx(1 / 20, rel=0.2)


def alarm(bend_1pm: float | None, looks: int = 2) -> list[bool]:
    """Of a vehicle that turns by 0.4 rad/s at 8 m/s, looked at every 100 ms."""
    one, said = Hysteresis(), []
    for k in range(looks):
        seen = Encounter(station=1, object_id=7, measured_ms=100 * k, track=1, confirmed=True, risk=0.9)
        seen.object.yaw_rate_rps, seen.object.speed_mps = 0.4, 8.0
        if bend_1pm is not None:
            seen.bend_1pm = bend_1pm
        said.append(bool(one(seen).on))
    return said


def test_a_turn_that_the_path_shows_needs_no_longer_look() -> None:
    assert alarm(0.05) == [False, True]
    assert alarm(0.026) == [False, True], "a little over half of it"
    assert alarm(0.02) == [False, False]
    assert alarm(-0.05) == [False, False], "the other way round"
    assert alarm(None) == [False, False]
