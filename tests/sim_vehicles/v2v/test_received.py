"""What an ego hears of a recording's broadcasts: the tuples that each message gives by itself."""

from collections.abc import Iterator
from math import hypot

import pytest

from sim_vehicles.v2v.all_stations import broadcast
from sim_vehicles.v2v.channel import Channel
from sim_vehicles.v2v.received import Received, Surroundings
from sim_vehicles.v2v.stations import Generated, generated, tuples
from sim_vehicles.world.motion import Motion, State, Track
from sim_vehicles.world.placement import AS_RECORDED, Placement
from sim_vehicles.world.scene import Scenario, Scene
from sim_vehicles.world.sense import Senses
from tests.sim_vehicles.street_scene import BEGIN_S, UNTIL_S, few

MS = 1_000_000
BEGIN_NS, UNTIL_NS = int((BEGIN_S + 2) * 1e9), int((UNTIL_S - 3) * 1e9)
LOSSY = Channel(delay_ns=5 * MS, jitter_ns=2 * MS, half_m=150.0)


def one_by_one(senses: Senses, sent: list[Generated], ego: Track, channel: Channel) -> Iterator[Received]:
    """As `inputs/stimuli.py` does it."""
    for message in sent:
        for one in tuples(senses, message):
            here, there = ego.at(one.sent_ns / 1e9), senses.sight.at(one.sent_ns)[one.station]
            if here is None:
                continue
            away_m = hypot(there.x_m - here.x_m, there.y_m - here.y_m)
            delay_ns = channel.delay(senses.seed, one.station, one.sent_ns, one.message, away_m)
            if delay_ns is not None:
                yield Received(one.sent_ns + delay_ns, one)


@pytest.mark.parametrize("channel", [Channel(), LOSSY], ids=["ideal", "lossy"])
def test_tuples_are_those_of_each_message_by_itself(channel: Channel) -> None:
    scenario = few()
    found = broadcast(scenario, 1, BEGIN_NS, UNTIL_NS)
    ego = scenario.motion.tracks[scenario.scene.ego]
    heard = list(Surroundings(found, scenario, 7, channel).received(ego, BEGIN_NS, UNTIL_NS))
    sent = generated(Senses(scenario, 1), BEGIN_NS, UNTIL_NS)
    assert heard == list(one_by_one(Senses(scenario, 7), sent, ego, channel))
    assert len(heard) > 50
    assert {one.sent.value.object.quality for one in heard} > {15}, "some are seen in part"
    assert {one.sent.value.object.age_ms for one in heard} > {0, 1500}


def test_who_was_hidden_for_a_moment_is_perceived_anew() -> None:
    """Q passes behind a hut, for less than the 1.5 s at which an age ends."""
    tracks = {
        name: Track(name, "car", 4.5, 1.8, [State(i / 10, x_m + v * i / 10, y_m, 0, v) for i in range(61)])
        for name, x_m, y_m, v in (("ego", 40, 0, 0), ("p", 0, 0, 0), ("q", -40, 20, 15))
    }
    hut = ((-2.0, 8.0), (2.0, 8.0), (2.0, 12.0), (-2.0, 12.0))
    scenario = Scenario(Motion(tracks, "hut"), Scene("hut", "ego", ("p",), occluders=(hut,)))
    begin_ns, until_ns = 2000 * MS, 6000 * MS
    found = broadcast(scenario, 1, begin_ns, until_ns)
    heard = list(Surroundings(found, scenario, 7).received(tracks["ego"], begin_ns, until_ns))
    sent = generated(Senses(scenario, 1), begin_ns, until_ns)
    assert heard == list(one_by_one(Senses(scenario, 7), sent, tracks["ego"], Channel()))
    ages_ms = [one.sent.value.object.age_ms for one in heard if one.sent.value.object.object_id == 3]
    assert ages_ms[0] >= 800
    assert min(ages_ms) < 300
    assert ages_ms[-1] >= 1500


def test_a_recording_is_placed_in_the_scene_of_the_ego() -> None:
    scenario = few()
    placement = Placement(x_m=40.0, y_m=-70.0, turn_rad=2.0, later_ns=-15_000 * MS)
    begin_ns, until_ns = BEGIN_NS + placement.later_ns, UNTIL_NS + placement.later_ns
    ego = Track("A", "car", 4.5, 1.8, [State(t, 40.0, -70.0 + 5 * t, 0.0, 5.0) for t in range(20)])
    found = broadcast(scenario, 1, BEGIN_NS, UNTIL_NS)
    around = Surroundings(found, scenario, 7, LOSSY, placement, first_number=100)
    placed = placement.scenario(scenario)
    later = [
        one._replace(at_ns=one.at_ns + placement.later_ns, measured_ns=one.measured_ns + placement.later_ns)
        for one in generated(Senses(scenario, 1), BEGIN_NS, UNTIL_NS)
    ]
    heard = list(around.received(ego, begin_ns, until_ns))
    assert heard == list(one_by_one(Senses(placed, 7, first_number=100), later, ego, LOSSY))
    assert heard[0].sent.value.station >= 100
    half_ns = (begin_ns + until_ns) // 2
    parts = [*around.received(ego, begin_ns, half_ns), *around.received(ego, half_ns, until_ns)]
    assert parts == heard


def test_nothing_is_received_while_the_ego_is_not_there() -> None:
    scenario = few()
    found = broadcast(scenario, 1, BEGIN_NS, UNTIL_NS)
    gone_s = BEGIN_S + 5
    ego = Track("A", "car", 4.5, 1.8, [State(BEGIN_S, 0, 0, 0, 0), State(BEGIN_S + 1, 0, 0, 0, 0)])
    ego.states += [State(t, 0, 0, 0, 0) for t in (gone_s - 1, gone_s)]
    heard = list(Surroundings(found, scenario, 7).received(ego, BEGIN_NS, UNTIL_NS))
    assert heard
    assert max(one.sent.sent_ns for one in heard) <= gone_s * 1e9


def test_broadcasts_of_another_recording_are_refused() -> None:
    scenario = few()
    found = broadcast(scenario, 1, BEGIN_NS, BEGIN_NS + 200 * MS)
    tracks = dict(list(scenario.motion.tracks.items())[1:])
    with pytest.raises(ValueError):
        Surroundings(found, Scenario(Motion(tracks, "other"), scenario.scene), 1)


def test_a_placement_turns_moves_and_delays() -> None:
    state = State(3.0, 10.0, 0.0, 0.5, 7.0)
    there = Placement(x_m=1.0, y_m=2.0, turn_rad=1.5707963267948966, later_ns=500 * MS).state(state)
    assert (there.t_s, there.speed_mps) == (3.5, 7.0)
    assert (there.x_m, there.y_m, there.heading_rad) == pytest.approx((1.0, 12.0, 0.5 + 1.5707963267948966))
    assert AS_RECORDED.state(state) == state
