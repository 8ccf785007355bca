"""All stations at once say what each says by itself, and less often where the channel is busy."""

from pathlib import Path

import numpy as np

from sim_vehicles.v2v.all_stations import broadcast
from sim_vehicles.v2v.broadcasts import AWAY, KINDS, Broadcasts, load_broadcasts
from sim_vehicles.v2v.congestion import STATES, T_OFF_NS, air_time_ns, cpm_bytes, next_state
from sim_vehicles.v2v.stations import CAM, Generated, generated
from sim_vehicles.world.motion import Motion, State, Track
from sim_vehicles.world.scene import Scenario, Scene
from sim_vehicles.world.sense import Senses
from tests.sim_vehicles.street_scene import BEGIN_S, UNTIL_S, few

MS = 1_000_000
BEGIN_NS, UNTIL_NS = int((BEGIN_S + 1) * 1e9), int((UNTIL_S - 1) * 1e9)


def messages(found: Broadcasts) -> list[Generated]:
    names = found.names.tolist()
    return [
        Generated(
            int(found.at_ns[i]),
            names[found.station[i]],
            KINDS[found.kind[i]],
            int(found.measured_ns[i]),
            tuple(names[j] for j in found.objects[found.first[i] : found.first[i + 1]]),
        )
        for i in range(len(found))
    ]


def test_without_congestion_each_says_what_it_says_by_itself() -> None:
    scenario = few()
    found = broadcast(scenario, 1, BEGIN_NS, UNTIL_NS)
    assert found.state_shares()["relaxed"] == 1
    assert messages(found) == generated(Senses(scenario, 1), BEGIN_NS, UNTIL_NS)
    assert found.counts.max() > 2
    assert (found.counts == 0).any(), "and some CPMs have no object"


def test_what_is_saved_is_read(tmp_path: Path) -> None:
    found = broadcast(few(), 1, BEGIN_NS, BEGIN_NS + 1000 * MS)
    found.save(tmp_path / "found.npz")
    again = load_broadcasts(tmp_path / "found.npz")
    assert messages(again) == messages(found)
    assert again.state_shares() == found.state_shares()


def test_air_time_of_a_message() -> None:
    """350 bytes and 22 bits are 2822 bits: 59 symbols of 8 us after 40 us. A CPM with 5 objects has 331 bytes."""
    assert air_time_ns(np.array([350, 0])).tolist() == [512_000, 48_000]
    assert cpm_bytes(np.array([0, 5])).tolist() == [156, 331]


def test_a_state_leads_to_its_neighbours_only() -> None:
    busy = np.array([0.0, 0.29, 0.3, 0.45, 0.5, 0.6, 1.0])
    after = {name: next_state(np.full(len(busy), i), busy).tolist() for i, name in enumerate(STATES)}
    assert after == {
        "relaxed": [0, 0, 1, 1, 1, 1, 1],
        "active 1": [0, 0, 1, 2, 2, 2, 2],
        "active 2": [1, 1, 1, 2, 3, 3, 3],
        "active 3": [2, 2, 2, 2, 3, 4, 4],
        "restrictive": [3, 3, 3, 3, 3, 4, 4],
    }


def jam(lanes: int = 8, row: int = 8) -> Scenario:
    """Vehicles on a wide road, all within reach of one another; each lane is faster than the one beside it."""
    tracks = {}
    for lane in range(lanes):
        for i in range(row):
            x_m, speed = 12.0 * i, 20.0 + lane
            states = [State(t / 2, x_m + speed * t / 2, 4.0 * lane, 0.0, speed) for t in range(21)]
            name = f"v{lane}{i}"
            tracks[name] = Track(name, "car", 4.5, 1.8, states)
    return Scenario(Motion(tracks, "jam"), Scene("jam", "v00", tuple(tracks)))


def test_a_busy_channel_makes_stations_send_less() -> None:
    begin_ns, until_ns = 2000 * MS, 6000 * MS
    free = broadcast(jam(), 1, begin_ns, until_ns, carrier_sense_m=0)
    busy = broadcast(jam(), 1, begin_ns, until_ns)
    assert free.state_shares()["relaxed"] == 1
    assert busy.state_shares()["relaxed"] < 0.3
    assert len(busy) < 0.6 * len(free)
    assert busy.counts.mean() > free.counts.mean(), "more objects have changed in the meantime"
    assert (busy.states[:, 0] == AWAY).all(), "the ego has no radio here"
    _check_pauses(busy)
    _check_busy_ratio(busy)


def _check_pauses(found: Broadcasts) -> None:
    """Between two messages of a kind is at least T_off of a state that the station has about then."""
    step = (found.at_ns - found.span_ns[0]) // (100 * MS)
    for station in np.unique(found.station):
        state = found.states[:, station].astype(int)
        lowest = np.minimum(state, np.roll(state, 1))  # as it was before and after the change in this step
        lowest[0] = 0
        for kind in range(len(KINDS)):
            own = np.flatnonzero((found.station == station) & (found.kind == kind))
            pause_ns = np.diff(found.at_ns[own])
            assert (pause_ns >= T_OFF_NS[lowest[step[own][1:]]]).all()


def _check_busy_ratio(found: Broadcasts) -> None:
    """What a station measured is the air time of all messages of 100 ms before one tick of each step."""
    tick = (found.at_ns - found.span_ns[0]) // (10 * MS)
    air_ns = np.bincount(tick, air_time_ns(found.sizes).astype(float), minlength=10 * len(found.states))
    last = np.concatenate([[0], np.cumsum(air_ns)])
    sums = np.minimum(1.0, (last[10:] - last[:-10]) / (100 * MS))  # of 10 ticks from tick i on
    percent = np.rint(100 * sums)
    steps = len(found.states)
    for station in np.unique(found.station):
        measured = found.busy_percent[1:, station]
        fits = [np.array_equal(percent[phase : phase + 10 * (steps - 1) : 10], measured) for phase in range(10)]
        assert sum(fits) == 1


def test_the_same_seed_gives_the_same_messages() -> None:
    scenario = jam(lanes=2)
    one = messages(broadcast(scenario, 1, 2000 * MS, 4000 * MS))
    assert one == messages(broadcast(scenario, 1, 2000 * MS, 4000 * MS))
    assert one != messages(broadcast(scenario, 2, 2000 * MS, 4000 * MS))
    assert {message.kind for message in one} > {CAM}
