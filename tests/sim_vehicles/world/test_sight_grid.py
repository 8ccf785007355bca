"""States and sight in arrays are those of one vehicle, or one pair, at a time."""

from random import Random

import numpy as np
import pytest

from sim_vehicles.world.motion import Motion, State, Track
from sim_vehicles.world.motion_grid import MotionGrid
from sim_vehicles.world.scene import Scene
from sim_vehicles.world.sight import Sight
from sim_vehicles.world.sight_grid import SightGrid
from tests.seeds import seeds
from tests.sim_vehicles.street_scene import BEGIN_S, UNTIL_S, few


def instants(draw: Random, n: int) -> list[int]:
    whole = [int(s * 1e9) for s in (BEGIN_S, UNTIL_S, BEGIN_S + 5, BEGIN_S + 5.5, BEGIN_S - 1, UNTIL_S + 1)]
    return [*whole, *(draw.randrange(int(BEGIN_S * 1e9), int(UNTIL_S * 1e9)) for _ in range(n))]


@pytest.mark.parametrize("seed", seeds([1, 2]))
def test_states_are_those_of_each_track(seed: int) -> None:
    motion, draw = few().motion, Random(seed)
    grid = MotionGrid(motion)
    assert grid.names == tuple(sorted(motion.tracks))
    for at_ns in instants(draw, 60):
        every = np.arange(len(grid.names))
        states = grid.at(every, np.full(len(every), at_ns))
        for name, state in zip(grid.names, states.each(np.full(len(every), at_ns)), strict=True):
            known = motion.tracks[name].at(at_ns / 1e9)
            if known is None:
                assert np.isnan(state.x_m)
            else:
                assert state[:5] == pytest.approx(known[:5], abs=1e-12)


def test_a_record_that_lacks_is_made_up_as_a_track_does_it() -> None:
    states = [State(t, 10 * t, t, 3.1 + t / 10, 10.0) for t in (0.0, 0.25, 0.5, 1.5, 4.0, 4.25)]
    motion = Motion({"a": Track("a", "car", 4.5, 1.8, states)}, "gaps")
    grid = MotionGrid(motion)
    for at_ns in range(0, 4_300_000_000, 50_000_000):
        (state,) = grid.at(np.array([0]), np.array([at_ns])).each(np.array([at_ns]))
        known = motion.tracks["a"].at(at_ns / 1e9)
        if known is None:
            assert np.isnan(state.x_m)
        else:
            assert state[:3] + state[4:5] == pytest.approx(known[:3] + known[4:5])
            assert np.cos(state.heading_rad - known.heading_rad) == pytest.approx(1)


@pytest.mark.parametrize("times", [(0.0, 0.5, 0.50003), (0.0, 1.5)], ids=["too fine", "too coarse"])
def test_records_on_no_grid_are_refused(times: tuple[float, ...]) -> None:
    track = Track("a", "car", 4.5, 1.8, [State(t, 0, 0, 0, 0) for t in times])
    with pytest.raises(ValueError):
        MotionGrid(Motion({"a": track}, "by hand"))


@pytest.mark.parametrize("seed", seeds([1, 2]))
def test_shares_are_those_of_each_pair(seed: int) -> None:
    scenario, draw = few(), Random(seed)
    sight, grid = Sight(scenario.motion, scenario.scene), MotionGrid(scenario.motion)
    n = len(grid.names)
    asked = [(draw.randrange(n), draw.randrange(n), at_ns) for at_ns in instants(draw, 1500)]
    who, whom, at_ns = (np.array(column) for column in zip(*asked, strict=True))
    found = SightGrid(grid, scenario.scene).shares(who, whom, at_ns)
    known = [sight.share(int(t), grid.names[i], grid.names[j]) for i, j, t in asked]
    assert found.tolist() == known
    assert len(set(known)) > 3, "some are seen in part"


@pytest.mark.parametrize("seed", seeds([1, 2]))
def test_pairs_over_some_time_hold_everyone_who_is_seen_in_it(seed: int) -> None:
    scenario, draw = few(), Random(seed)
    sight, grid = Sight(scenario.motion, scenario.scene), MotionGrid(scenario.motion)
    begin_ns = draw.randrange(int(BEGIN_S * 1e9), int(UNTIL_S * 1e9) - 1_100_000_000)
    pairs = SightGrid(grid, scenario.scene).meanwhile(begin_ns, begin_ns + 1_100_000_000)
    clear = {(int(i), int(j)): bool(c) for i, j, c in zip(*pairs, strict=True)}
    assert {True, False} == set(clear.values())
    assert len(clear) < len(grid.names) * (len(grid.names) - 1), "and not simply everyone"
    for at_ns in [begin_ns, *(begin_ns + draw.randrange(1_100_000_000) for _ in range(3))]:
        states = sight.at(at_ns)
        for i, who in enumerate(grid.names):
            for j, whom in enumerate(grid.names):
                share = sight.share(at_ns, who, whom)
                if i == j or who not in states or whom not in states:
                    continue
                if share:
                    assert (i, j) in clear
                if clear.get((i, j)):
                    away_m = np.hypot(states[who].x_m - states[whom].x_m, states[who].y_m - states[whom].y_m)
                    assert share == (1 if away_m <= scenario.scene.range_m else 0)


def test_a_building_with_a_corner_inwards_is_refused() -> None:
    track = Track("a", "car", 4.5, 1.8, [State(0, 0, 0, 0, 0), State(1, 0, 0, 0, 0)])
    corner = ((10.0, 10.0), (20.0, 10.0), (20.0, 20.0), (15.0, 12.0), (10.0, 20.0))
    with pytest.raises(ValueError):
        SightGrid(MotionGrid(Motion({"a": track}, "by hand")), Scene("by hand", "a", (), occluders=(corner,)))
