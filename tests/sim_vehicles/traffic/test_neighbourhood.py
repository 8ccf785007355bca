"""Work for one ego is that of its neighbourhood, however large the recording is; counted, not timed."""

from __future__ import annotations

from collections import Counter
from math import atan2, cos, hypot, pi, sin
from pathlib import Path
from random import Random

import pytest

from sim_vehicles.readers.table import write_motion
from sim_vehicles.traffic import truth
from sim_vehicles.traffic.ego_runs import Options, run_file
from sim_vehicles.traffic.neighbours import Neighbourhood
from sim_vehicles.traffic.shared_ground import overlaps, sampled
from sim_vehicles.traffic.transmissions import Transmissions
from sim_vehicles.traffic.truth import Limits
from sim_vehicles.world.motion import Motion, State, Track, wrap
from tests.sampling import sample

RANGE_M = 150.0


def drive(name: str, x_m: float, y_m: float, heading: float, speed: float = 12.0, at_s: float = 0.0) -> Track:
    """20 s straight on, 10 records a second."""
    states = []
    for k in range(200):
        way = speed * k / 10
        states.append(State(at_s + k / 10, x_m + way * cos(heading), y_m + way * sin(heading), wrap(heading), speed))
    return Track(name, "car", 4.5, 1.8, states)


def crossing(x_m: float, y_m: float, name: str, at_s: float = 0.0) -> list[Track]:
    """Two that meet at a right angle after 10 s."""
    return [
        drive(f"{name}a", x_m - 120, y_m, 0, at_s=at_s),
        drive(f"{name}b", x_m, y_m - 120, pi / 2, at_s=at_s),
    ]


def town(n: int) -> list[Track]:
    """A crossing, and n others a kilometre from one another and from it, or long after."""
    elsewhere = [crossing(1000 * (k + 1), 1000 * (k % 7), f"far{k}") for k in range(n)]
    later = [crossing(0, 0, f"late{k}", 100 + 50 * k) for k in range(n)]
    return [one for some in (crossing(0, 0, ""), *elsewhere, *later) for one in some]


def motion_of(tracks: list[Track]) -> Motion:
    return Motion({one.id: one for one in tracks}, "made")


def work(folder: Path, n: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a vehicle is asked for its state, sampled, and compared with another, for one ego."""
    path = folder / f"town{n}.csv.gz"
    write_motion(path, ((f"{state.t_s:.1f}", one, state) for one in town(n) for state in one.states))
    done: Counter[str] = Counter()

    def counted(name: str, call):  # type: ignore[no-untyped-def]
        def with_count(*given):  # type: ignore[no-untyped-def]
            done[name] += 1
            return call(*given)

        return with_count

    with monkeypatch.context() as patched:
        patched.setattr(Track, "at", counted("states", Track.at))
        patched.setattr(truth, "sampled", counted("courses", sampled))
        patched.setattr(truth, "overlaps", counted("pairs", overlaps))
        run = run_file(path, Options(), ("a",))
    assert {(one.ego, one.other, one.kind) for one in run.conflicts} == {("a", "b", "crossing"), ("a", "b", "closing")}
    assert any(told.level for told in run.runs[0].warnings)
    return done


def test_vehicles_elsewhere_and_at_other_times_cost_an_ego_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, among_many = (work(tmp_path, n, monkeypatch) for n in (0, 60))
    assert alone == among_many
    assert (alone["courses"], alone["pairs"]) == (2, 1)


def random_town(seed: int, n: int, side_m: float) -> list[Track]:
    """All about to the middle; some turn, stand, vanish for a while, come late."""
    chance = Random(seed)
    tracks = []
    for k in range(n):
        x, y, begin = chance.uniform(0, side_m), chance.uniform(0, side_m), chance.uniform(0, 15)
        heading = atan2(side_m / 2 - y, side_m / 2 - x) + chance.uniform(-0.2, 0.2)
        speed, turn, states = chance.choice((0.0, 6.0, 14.0, 30.0)), chance.choice((0.0, 0.0, 0.1)), []
        step_s = chance.choice((0.1, 0.5, 1.0))
        for i in range(round(30 / step_s)):
            if k % 5 or not 5 < i * step_s < 9:
                states.append(State(begin + i * step_s, x, y, wrap(heading), speed))
            x, y, heading = (
                x + speed * step_s * cos(heading),
                y + speed * step_s * sin(heading),
                heading + turn * step_s,
            )
        tracks.append(Track(f"{k:02}", "car", 4.5, 1.8, states))
    return tracks


@pytest.mark.parametrize("seed", sample(range(4), 2))
def test_an_ego_hears_all_that_is_sent_within_range(seed: int) -> None:
    """Against a comparison of everybody with everybody."""
    motion = motion_of(random_town(seed, 16, 500))
    neighbourhood = Neighbourhood(motion)
    sent = Transmissions(motion, neighbourhood, seed)
    everywhere = {name: list(sent.heard_by(name, 1e5)) for name in motion.tracks}
    missed = 0
    for ego, heard in everywhere.items():
        track = motion.tracks[ego]
        near = []
        for one in heard:
            here, there = track.at(one.at_ns / 1e9), motion.tracks[one.station].at(one.at_ns / 1e9)
            assert here is not None and there is not None
            if hypot(here.x_m - there.x_m, here.y_m - there.y_m) <= RANGE_M:
                near.append(one)
        assert list(sent.heard_by(ego, RANGE_M)) == near, f"seed {seed}, ego {ego}"
        missed += len(heard) - len(near)
        present = {one.station for one in heard}
        assert present <= set(neighbourhood.within(ego, 1e5))
    assert missed > 0


@pytest.mark.parametrize("seed", sample((1, 0, 2), 3))
def test_conflicts_of_one_ego_are_its_own_of_all(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is lost by looking only at vehicles on its path: with everybody it is the same."""
    motion = motion_of(random_town(seed, 9, 200))
    found = truth.conflicts(motion)
    assert found
    for ego in list(motion.tracks)[:2]:
        assert truth.conflicts(motion, egos=[ego]) == [one for one in found if one.ego == ego]
    monkeypatch.setattr(Neighbourhood, "on_path", lambda self, ego, *_: [name for name in motion.tracks if name != ego])
    assert truth.conflicts(motion) == found, f"seed {seed}"


def test_what_comes_over_the_path_later_than_the_ego_looks_ahead_is_no_conflict() -> None:
    """The ego drives on; the other is where it was 30 s before."""
    motion = motion_of([drive("a", -60, 0, 0), drive("b", 0, -60, pi / 2, at_s=30)])
    assert truth.conflicts(motion, Limits()) == []


def test_a_vehicle_that_comes_back_is_in_no_conflict_with_itself() -> None:
    one = drive("a", 0, 0, 0)
    back = [state._replace(t_s=state.t_s + 21.5) for state in one.states]
    one.states = [*one.states, *back]
    assert truth.conflicts(motion_of([one])) == []
