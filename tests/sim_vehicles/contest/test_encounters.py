"""Encounters of the contest: drawn from their ranges, blind, and a crash where nobody brakes."""

from __future__ import annotations

from itertools import islice
from math import degrees, hypot

from hypothesis import given
from hypothesis import strategies as st

from sim_vehicles.contest.drawn_encounter import (
    ANGLES_DEG,
    DELAYS_MS,
    FIRST_SIGHTS_S,
    KMH,
    LOSSES,
    SPEEDS_KMH,
    STATIONS,
    drawn,
)
from sim_vehicles.contest.encounter_run import PlayedEncounter
from sim_vehicles.contest.encounter_scene import CROSSING, EGO, MEET_S, WITNESS, encounters, scenario
from sim_vehicles.encounter.brake import AUTO
from sim_vehicles.encounter.visibility import Eye
from sim_vehicles.world.geometry import Point

SAMPLE = list(islice(encounters(5), 8))


@given(st.integers(0, 2**31), st.integers(0, 10_000))
def test_circumstances_lie_within_their_ranges_and_depend_on_seed_and_number_alone(seed: int, number: int) -> None:
    one = drawn(seed, number)
    assert one == drawn(seed, number) != drawn(seed, number + 1)
    assert ANGLES_DEG[0] <= degrees(one.angle_rad) <= ANGLES_DEG[1]
    assert all(SPEEDS_KMH[0] <= speed * KMH <= SPEEDS_KMH[1] + 1e-9 for speed in (one.ego_mps, one.crossing_mps))
    assert FIRST_SIGHTS_S[0] <= one.first_sight_s <= FIRST_SIGHTS_S[1]
    assert LOSSES[0] <= one.loss <= LOSSES[1]
    assert DELAYS_MS[0] * 1e6 <= one.delay_ns <= DELAYS_MS[1] * 1e6
    assert one.stations in STATIONS


def test_the_witness_sees_the_crossing_vehicle_at_first_sight_and_the_ego_does_not_before() -> None:
    for one in SAMPLE:
        made, sight_s = scenario(one), MEET_S - one.first_sight_s
        assert Eye(made, EGO, CROSSING).first_s(0.0, sight_s) is None, one
        seen_s = Eye(made, WITNESS, CROSSING).first_s(0.0, MEET_S)
        assert seen_s is not None and abs(seen_s - sight_s) <= 0.11, one


def test_nobody_drives_through_a_house() -> None:
    for one in SAMPLE:
        made = scenario(one)
        for track in made.motion.tracks.values():
            for step in range(221):
                state = track.at(step / 10)
                assert state is not None
                assert not any(_inside((state.x_m, state.y_m), house) for house in made.scene.occluders), (one, step)


def test_where_nobody_brakes_the_two_crash_and_an_early_brake_stops_the_ego() -> None:
    for one in SAMPLE:
        played = PlayedEncounter(one, None, AUTO)
        unbraked, early = played.ended(None), played.ended(round((MEET_S - 6) * 1e9))
        assert unbraked.crashed and abs(unbraked.impact_kmh - one.ego_mps * KMH) < 0.1, one
        assert not early.crashed, one


def test_a_later_brake_never_makes_the_crash_of_an_ego_that_would_stop_late_slower() -> None:
    """Until the ego is so late that the other one has passed."""
    for one in SAMPLE:
        played = PlayedEncounter(one, None, AUTO)
        brakes = [played.ended(round((MEET_S - before_s) * 1e9)) for before_s in (3, 2.5, 2, 1.5, 1, 0.5, 0)]
        speeds = [outcome.impact_kmh for outcome in brakes if outcome.crashed]
        assert speeds == sorted(speeds), one


def _inside(point: Point, house: tuple[Point, ...]) -> bool:
    """In a triangle with its corner at the crossing, beyond its two fronts."""
    corner, first, second = house
    a, b = ((end[0] - corner[0], end[1] - corner[1]) for end in (first, second))
    x, y = point[0] - corner[0], point[1] - corner[1]
    across = a[0] * b[1] - a[1] * b[0]
    u, v = (x * b[1] - y * b[0]) / across, (a[0] * y - a[1] * x) / across
    return u > 0 and v > 0 and hypot(x, y) < 250
