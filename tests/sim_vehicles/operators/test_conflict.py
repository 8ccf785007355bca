"""O14 to O18 against hand-computed cases and properties. Boxes are 4.5 m x 1.8 m unless said otherwise."""

from math import atan2, cos, exp, hypot, inf, isclose, pi, radians, sin, sqrt, tan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protos.vehicle_pb2 import Ego, Encounter, Motion, Passage, Zone
from sim_vehicles.operators.conflict import Arrival, Deceleration, Encroachment, Overlap, Predict, arrival_s
from sim_vehicles.operators.models.ctrv import advance
from sim_vehicles.operators.models.lanes import lanes
from sim_vehicles.world.geometry import box, overlap
from tests.sampling import examples

NORTH, WEST, SOUTH, EAST = pi / 2, pi, -pi / 2, 0.0
LONG, WIDE = 4.5, 1.8


def motion(x: float, y: float, heading: float, speed: float, yaw_rate: float = 0.0, a: float = 0.0) -> Motion:
    return Motion(
        x_m=x, y_m=y, heading_rad=heading, speed_mps=speed, yaw_rate_rps=yaw_rate, acceleration_mps2=a
    )  # fmt: skip


def encounter(ego: Motion, other: Motion, length: float = LONG, width: float = WIDE) -> Encounter:
    own = Ego(length_m=LONG, width_m=WIDE)
    return Encounter(ego=own, ego_now=ego, object=other, length_m=length, width_m=width)


def zone(ego: Motion, other: Motion, length: float = LONG, width: float = WIDE, **with_: float) -> list[float] | None:
    found = Overlap()(Predict(**with_)(encounter(ego, other, length, width)))  # type: ignore[arg-type]
    return ways(found.zone) if found.HasField("zone") else None


def ways(one: Zone) -> list[float]:
    return [one.ego_in_m, one.ego_out_m, one.object_in_m, one.object_out_m]


# -- O14


def test_a_straight_path_has_one_point_per_step() -> None:
    given_ = encounter(motion(1, 2, NORTH, 10), motion(0, 0, EAST, 0))
    path = Predict()(given_).ego_paths[0]
    assert len(path.x_m) == 41 and path.step_s == 0.1  # now, and 4 s in steps of 0.1 s
    assert (path.x_m[0], path.y_m[0]) == (1, 2)
    assert path.y_m[-1] == pytest.approx(2 + 10 * 4) and path.x_m[-1] == pytest.approx(1)
    assert not given_.ego_paths  # the input stays as it was


def test_braking_does_not_shorten_a_path_and_accelerating_stretches_it() -> None:
    for a, far in ((-5.0, 40.0), (0.0, 40.0), (1.0, 48.0)):  # 10 x 4 + 1 x 16 / 2
        path = Predict()(encounter(motion(0, 0, EAST, 10, a=a), motion(0, 0, EAST, 0))).ego_paths[0]
        assert path.x_m[-1] == pytest.approx(far)


def test_without_fading_it_is_ctrv() -> None:
    turning = motion(3, -2, 0.7, 8, yaw_rate=0.3)
    path = Predict(fade_s=1e7)(encounter(turning, turning)).object_paths[0]
    for k in range(0, 41, 8):
        x, y, heading, *_ = advance(3, -2, 0.7, 8, 0.3, 0, 0.1 * k)
        # the yaw rate has faded by 4 s / 1e7 s = 4e-7 of 1.2 rad: micrometres over 32 m
        assert path.x_m[k] == pytest.approx(x, abs=1e-4)
        assert path.y_m[k] == pytest.approx(y, abs=1e-4)
        assert path.heading_rad[k] == pytest.approx(heading, abs=1e-5)


def test_a_turn_ends() -> None:
    path = Predict(fade_s=1.0)(encounter(motion(0, 0, 0, 6, yaw_rate=0.4), motion(0, 0, 0, 0))).ego_paths[0]
    assert path.heading_rad[10] == pytest.approx(0.4 * (1 - exp(-1)))  # 0.253 after 1 s
    assert path.heading_rad[-1] == pytest.approx(0.4 * (1 - exp(-4)))  # 0.393: 22.5 degrees, of 92 on the circle


@pytest.mark.parametrize(
    ("speed", "yaw_rate", "turns"),
    [
        (2.0, 0.39, True),  # radius 5.1 m
        (2.0, 0.41, False),  # 4.9 m: below a turning circle
        (15.0, 0.19, True),  # 2.85 m/s2 across
        (15.0, 0.21, False),  # 3.15 m/s2
        (0.0, 0.5, False),
    ],
)
def test_a_yaw_rate_that_no_turn_has_is_noise(speed: float, yaw_rate: float, turns: bool) -> None:
    path = Predict()(encounter(motion(0, 0, 0, speed, yaw_rate), motion(0, 0, 0, 0))).ego_paths[0]
    assert (abs(path.heading_rad[-1]) > 0.1) == turns


def test_on_a_lane_the_path_follows_the_lane_at_the_same_distance_from_its_middle() -> None:
    lane = next(one for one in lanes("crossing_50") if one.name == "east-west")
    s0 = lane.project(40.0, 12.0, WEST).s_m  # in the bend of the east arm
    x, y, heading = lane.at(s0)
    left = 0.3
    here = motion(x - left * sin(heading), y + left * cos(heading), heading, 12)
    told = encounter(motion(0, -50, NORTH, 10), here)
    on = [(x, y), *((px, py) for px, py, s in zip(lane.x_m, lane.y_m, lane.s_m, strict=True) if s > s0 + 0.1)]
    told.ways.add(x_m=[px for px, _ in on], y_m=[py for _, py in on], share=1.0)
    path = Predict()(told).object_paths[0]
    for k in range(0, 41, 5):
        placed = lane.project(path.x_m[k], path.y_m[k], heading)
        assert placed.d_perp_m == pytest.approx(left, abs=0.05)
        assert placed.s_m - s0 == pytest.approx(12 * 0.1 * k, abs=0.2)  # the inner lane of the bend is shorter
    assert path.y_m[-1] == pytest.approx(1.6 - 0.3, abs=0.05)  # the westbound lane lies at y = 1.6


def test_impossible_parameters_are_refused() -> None:
    for bad in ({"step_s": 0.0}, {"horizon_s": 50.0}, {"fade_s": 0.0}, {"most_lateral_mps2": -1.0}):
        with pytest.raises(ValueError):
            Predict(**bad)  # type: ignore[arg-type]


# -- O15


def test_two_straight_corridors_at_a_right_angle() -> None:
    # The middle lines cross 30 m ahead of the ego and 40 m ahead of the object (centres). Each enters half the other's
    # width (0.9 m) and half its own length (2.25 m) earlier, and leaves as much later: 3.15 m.
    assert zone(motion(0, -30, NORTH, 10), motion(40, 0, WEST, 10)) == pytest.approx([26.85, 33.15, 36.85, 43.15])


def test_a_long_wide_vehicle_at_a_right_angle() -> None:
    # 12 m x 2.5 m: the ego's zone is 1.25 + 2.25 m round the crossing, the lorry's 0.9 + 6 m.
    found = zone(motion(0, -30, NORTH, 10), motion(40, 0, WEST, 10), length=12, width=2.5)
    assert found == pytest.approx([26.5, 33.5, 33.1, 46.9])


def test_two_straight_corridors_at_sixty_degrees() -> None:
    # Parallelogram: half its extent along the ego is (wide_o / sin 60 + wide_e / tan 60) / 2 = (2 x 1.1547 + 1.8 x
    # 0.57735) / 2 = 1.6743, along the object (1.8 x 1.1547 + 2 x 0.57735) / 2 = 1.6166; each plus half a length.
    heading = NORTH + radians(60)
    far = 35.0
    other = motion(-far * cos(heading), -far * sin(heading), heading, 12)
    found = zone(motion(0, -30, NORTH, 10), other, length=5, width=2)
    assert found == pytest.approx(
        [30 - 1.6743 - 2.25, 30 + 1.6743 + 2.25, 35 - 1.6166 - 2.5, 35 + 1.6166 + 2.5], abs=1e-4
    )


def test_a_vehicle_that_stands_across_the_way_is_in_the_zone() -> None:
    # Across the ego's lane, centre on it, 20 m ahead: the ego enters at 20 - 2.25 (its front) - 0.9 (half its width).
    found = zone(motion(0, 0, NORTH, 10), motion(0, 20, EAST, 0))
    assert found is not None
    assert found[:2] == pytest.approx([20 - 2.25 - 0.9, 20 + 2.25 + 0.9])
    assert found[2] <= 0 < found[3]


NO_ZONE = {
    "following in the same lane": (motion(0, 0, NORTH, 14), motion(0, 15, NORTH, 8)),
    "the end of a queue": (motion(0, 0, NORTH, 14), motion(0.2, 25, NORTH + 0.05, 0)),
    "parallel lane": (motion(0, 0, NORTH, 14), motion(3.2, 10, NORTH, 5)),
    "oncoming in the other lane": (motion(0, 0, NORTH, 14), motion(-3.2, 60, SOUTH, 14)),
    "oncoming, a little askew": (motion(0, 0, NORTH, 14), motion(-3.2, 60, SOUTH + 0.1, 14)),
    "waiting at a right angle": (motion(0, 0, NORTH, 14), motion(5, 30, WEST, 0)),
    "waiting to turn left": (motion(0, 0, NORTH, 14), motion(-3.2, 40, SOUTH + 0.4, 0)),
    "the ego waits": (motion(0, 0, NORTH, 0), motion(40, 6, WEST, 14)),
    "beyond the horizon": (motion(0, -30, NORTH, 10), motion(60, 0, WEST, 10)),
    "it has passed": (motion(0, -30, NORTH, 10), motion(-6, 0, WEST, 10)),
    "behind the ego": (motion(0, 0, NORTH, 10), motion(20, -6, WEST, 10)),
    "merged into the ego's lane": (motion(0, 0, NORTH, 10), motion(0, 12, NORTH + 0.2, 6)),
}


@pytest.mark.parametrize("pair", NO_ZONE.values(), ids=NO_ZONE)
def test_no_zone(pair: tuple[Motion, Motion]) -> None:
    assert zone(*pair) is None


def test_a_turning_ego_does_not_meet_oncoming_traffic_that_its_path_will_not_meet() -> None:
    # At the end of a left turn into the westbound lane (y = 1.6) the yaw rate is still 0.4 rad/s; a car comes towards
    # it in the eastbound lane. On the circle the ego would go on turning, right across that lane.
    ego, oncoming = motion(-8, 1.2, radians(170), 6, yaw_rate=0.4), motion(-60, -1.6, EAST, 14)
    assert zone(ego, oncoming, fade_s=1e6) is not None
    assert zone(ego, oncoming) is None


def test_an_encounter_without_paths_has_no_zone() -> None:
    assert not Overlap()(Encounter()).HasField("zone")


ANGLE = st.floats(radians(32), radians(148))
FAR = st.floats(12, 38)


@given(ANGLE, FAR, FAR, st.floats(3, 12), st.floats(1.6, 2.5))
@settings(max_examples=examples(60, 4), deadline=None)
def test_in_and_out_are_where_the_box_touches_the_other_corridor(
    angle: float, ego_m: float, other_m: float, length: float, width: float
) -> None:
    ego = motion(-ego_m, 0, EAST, 10)
    other = motion(-other_m * cos(angle), -other_m * sin(angle), angle, 10)
    found = zone(ego, other, length, width)
    if found is None:  # the object's front does not reach the ego's corridor within 40 m
        assert other_m - 0.5 * (length + WIDE / sin(angle) + width / abs(tan(angle))) > 39.9
        return
    swept = box(0, 0, angle, 400, width)  # the object's corridor, as far as matters
    for way, inside in (
        (found[0] + 0.01, True),
        (found[0] - 0.01, False),
        (found[1] - 0.01, True),
        (found[1] + 0.01, False),
    ):
        assert overlap(box(-ego_m + way, 0, EAST, LONG, WIDE), swept) == inside


@given(ANGLE, FAR, FAR, st.floats(-pi, pi), st.floats(-500, 500), st.floats(-500, 500), st.floats(-0.2, 0.2))
@settings(max_examples=examples(60, 4), deadline=None)
def test_a_zone_does_not_depend_on_where_the_scene_lies_nor_on_whose_it_is(
    angle: float, ego_m: float, other_m: float, turn: float, x: float, y: float, yaw_rate: float
) -> None:
    def placed(px: float, py: float, heading: float, yaw: float) -> Motion:
        c, s = cos(turn), sin(turn)
        return motion(x + c * px - s * py, y + s * px + c * py, heading + turn, 10, yaw)

    one = (-ego_m, 0.0, EAST, yaw_rate)
    other = (-other_m * cos(angle), -other_m * sin(angle), angle, 0.0)
    here = zone(motion(one[0], one[1], one[2], 10, yaw_rate), motion(*other[:3], 10))
    there = zone(placed(*one), placed(*other))
    assert (here is None) == (there is None)
    swapped = zone(placed(*other), placed(*one))
    if here is not None and there is not None and swapped is not None:
        assert there == pytest.approx(here, abs=1e-6)
        assert [*swapped[2:], *swapped[:2]] == pytest.approx(here, abs=1e-6)


def test_a_curved_path_against_boxes_set_along_it() -> None:
    # A left turn on a radius of 20 m across a straight corridor along y = 12: boxes set every centimetre along the arc
    # first touch, and last touch, within 0.15 m of the zone (the box is straight, the corridor is not).
    speed, radius = 7.0, 20.0
    found = zone(motion(0, 0, EAST, speed, speed / radius), motion(40, 12, WEST, 10), fade_s=1e6)
    assert found is not None
    swept = box(0, 12, WEST, 200, WIDE)
    touching = []
    for k in range(4000):
        turn = 0.01 * k / radius
        if overlap(box(radius * sin(turn), radius * (1 - cos(turn)), turn, LONG, WIDE), swept):
            touching.append(0.01 * k)
    assert found[0] == pytest.approx(touching[0], abs=0.15)


# -- O16


@pytest.mark.parametrize(
    ("way", "speed", "a", "seconds"),
    [
        (20, 10, 0, 2.0),
        (20, 10, 2, (-10 + sqrt(180)) / 2),  # 1.708
        (20, 10, -2, (10 - sqrt(20)) / 2),  # 2.764
        (20, 10, -2.5, 4.0),  # stops just there: v2 = 2 a s
        (20, 10, -3, inf),  # stops after 16.7 m
        (20, 0, 2, sqrt(20)),
        (20, 0, 0, inf),
        (20, 10, 1e-12, 2.0),  # no loss of digits near a = 0
        (0, 10, 0, 0.0),
        (-3, 0, 0, 0.0),
    ],
)
def test_arrival(way: float, speed: float, a: float, seconds: float) -> None:
    assert arrival_s(way, speed, a) == pytest.approx(seconds)


@given(st.floats(0.1, 100), st.floats(0, 40), st.floats(-8, 4))
def test_at_the_arrival_that_way_has_been_gone(way: float, speed: float, a: float) -> None:
    t = arrival_s(way, speed, a)
    if t == inf:
        assert speed * speed + 2 * a * way < 1e-9
    elif t < 1e3:
        assert speed * t + a * t * t / 2 == pytest.approx(way, rel=1e-6)
        assert speed + a * t >= -1e-6  # the first time, not on the way back


def test_the_passage_is_of_both() -> None:
    given_ = encounter(motion(0, 0, NORTH, 10), motion(0, 0, WEST, 0))
    given_.zone.CopyFrom(Zone(ego_in_m=20, ego_out_m=30, object_in_m=-1, object_out_m=5))
    when = Arrival()(given_).passage
    assert (when.ego_in_s, when.ego_out_s, when.object_in_s, when.object_out_s) == (2, 3, 0, inf)
    assert not Arrival()(encounter(motion(0, 0, NORTH, 10), motion(0, 0, WEST, 0))).HasField("passage")


# -- O17


def encroached(*times: float) -> tuple[float, float]:
    found = Encroachment()(Encounter(passage=Passage(**dict(zip(NAMES, times, strict=True)))))
    return found.pet_s, found.ttc_s


NAMES = ("ego_in_s", "ego_out_s", "object_in_s", "object_out_s")


@pytest.mark.parametrize(
    ("times", "pet", "ttc"),
    [
        ((2.0, 2.5, 3.2, 3.6), 0.7, inf),  # the ego has left 0.7 s before the other enters
        ((3.2, 3.6, 2.0, 2.5), 0.7, inf),
        ((2.0, 2.5, 2.3, 2.9), -0.2, 2.3),  # both in it from 2.3 s to 2.5 s
        ((2.0, 2.5, 2.5, 2.9), 0.0, 2.5),
        ((2.0, 2.5, 0.0, inf), -0.5, 2.0),  # the other one stands in it
        ((2.0, 2.5, inf, inf), inf, inf),  # the other one stops before
        ((2.0, inf, 1.0, inf), -inf, 2.0),  # both will stop in it
    ],
)
def test_encroachment(times: tuple[float, ...], pet: float, ttc: float) -> None:
    found = encroached(*times)
    assert found[0] == pytest.approx(pet) and found[1] == pytest.approx(ttc)


def test_without_a_zone_nothing_is_encroached() -> None:
    found = Encroachment()(Encounter())
    assert (found.pet_s, found.ttc_s) == (inf, inf)


TIMES = st.lists(st.floats(0, 20) | st.just(inf), min_size=2, max_size=2).map(sorted)


@given(TIMES, TIMES)
def test_pet_and_ttc_do_not_change_when_the_roles_do(one: list[float], other: list[float]) -> None:
    assert encroached(*one, *other) == encroached(*other, *one)


# -- O18


@pytest.mark.parametrize(
    ("speed", "way", "drac"),
    [
        (13.889, 29.5, 13.889**2 / (2 * (29.5 - 2.7778))),  # 3.61: 50 km/h
        (10, 12, 5.0),  # 100 / (2 x 10)
        (10, 2, inf),  # gone before anything acts
        (10, 1, inf),
        (10, 0, 0.0),  # in it already
        (0, 10, 0.0),
    ],
)
def test_deceleration(speed: float, way: float, drac: float) -> None:
    given_ = encounter(motion(0, 0, NORTH, speed), motion(0, 0, WEST, 10))
    given_.zone.CopyFrom(Zone(ego_in_m=way, ego_out_m=way + 6, object_in_m=1, object_out_m=7))
    given_.pet_s = -0.1
    assert Deceleration()(given_).drac_mps2 == pytest.approx(drac, rel=1e-4)
    given_.pet_s = 0.1
    assert Deceleration()(given_).drac_mps2 == 0.0


@given(st.floats(1, 40), st.floats(0.1, 100), st.floats(0, 1))
def test_braking_with_drac_after_t_act_stops_at_the_zone(speed: float, way: float, t_act: float) -> None:
    given_ = encounter(motion(0, 0, NORTH, speed), motion(0, 0, WEST, 10))
    given_.zone.CopyFrom(Zone(ego_in_m=way, ego_out_m=way + 6))
    drac = Deceleration(t_act_s=t_act)(given_).drac_mps2
    if drac == inf:
        assert speed * t_act >= way
    else:
        assert speed * t_act + speed * speed / (2 * drac) == pytest.approx(way)


def test_the_bend_of_a_path_is_the_bend_of_its_points() -> None:
    path = Predict()(encounter(motion(0, 0, 0, 6, yaw_rate=0.4), motion(0, 0, 0, 0))).ego_paths[0]
    for k in range(40):
        dx, dy = path.x_m[k + 1] - path.x_m[k], path.y_m[k + 1] - path.y_m[k]
        assert isclose(hypot(dx, dy), 0.6, rel_tol=1e-3)
        assert path.heading_rad[k] - 1e-9 <= atan2(dy, dx) <= path.heading_rad[k + 1] + 1e-9
