"""The whole input of a run: instants, ages, what braking changes, what the channel does."""

from collections import Counter
from dataclasses import replace
from math import hypot

import pytest

from protos.vehicle_pb2 import Cpm, Hazard, Sensor
from sim_vehicles.errors import BadInputError
from sim_vehicles.inputs.feed import Feed
from sim_vehicles.inputs.stimuli import CENTRE_LEAD_NS, Stimuli, StimulusOptions, heard
from sim_vehicles.readers.scenarios import load_scenario
from sim_vehicles.v2v.channel import Channel, parse_channel
from sim_vehicles.world.column_track import with_states
from sim_vehicles.world.motion import Track
from sim_vehicles.world.scene import Scenario
from sim_vehicles.world.sense import Burst, Senses, inputs_hash
from sim_vehicles.world.sight import Sight, visible
from tests.sentences import Wording

SAID = Wording("replay", "stimuli")

MS = 1_000_000
S = 1000 * MS
PERIOD = 500 * MS
FEEDS = [
    Feed("v2v", "a", "vehicle.Cpm", 20, PERIOD),
    Feed("sensor", "a", "vehicle.Sensor", 10, PERIOD),
    Feed("centre", "b", "vehicle.Hazard", 100, PERIOD),
]
OPTIONS = StimulusOptions(4 * S, 14 * S)
BRAKES_NS = 10 * S


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return load_scenario("crossing_50")


@pytest.fixture(scope="module")
def inputs(scenario: Scenario) -> Stimuli:
    return Stimuli(FEEDS, scenario, OPTIONS)


@pytest.fixture(scope="module")
def slower(scenario: Scenario) -> Track:
    """The ego at half its speed from 10 s on, northwards as recorded."""
    track = scenario.motion.tracks["A"]
    turn = track.at(BRAKES_NS / 1e9)
    assert turn is not None
    states = [
        one
        if one.t_s <= turn.t_s
        else one._replace(y_m=turn.y_m + (one.y_m - turn.y_m) / 2, speed_mps=one.speed_mps / 2)
        for one in track.states
    ]
    return with_states(track, states)


def v2v(bursts: list[Burst]) -> list[tuple[int, int, Cpm]]:
    """(admitted, measured, message)"""
    return [
        (one.at_ns, one.at_ns - one.age_ns, value) for one in bursts for value in one.values if isinstance(value, Cpm)
    ]


def data(bursts: list[Burst]) -> list[tuple[str, int, int, int | None, list[bytes]]]:
    return [
        (one.source, one.at_ns, one.age_ns, one.sent_ns, [value.SerializeToString() for value in one.values])
        for one in bursts
    ]


@pytest.mark.parametrize("messages", ["burst", "etsi"])
@pytest.mark.parametrize("channel", ["ideal", "loss=0.1,delay=7ms,jitter=3ms,half=150m"])
def test_a_burst_has_one_age_and_it_is_that_of_the_measurement(scenario: Scenario, messages: str, channel: str) -> None:
    options = replace(OPTIONS, messages=messages, channel=parse_channel(channel))
    bursts = Stimuli(FEEDS, scenario, options).bursts()
    assert bursts == sorted(bursts, key=lambda one: one.at_ns)
    assert len(v2v(bursts)) > 300
    for at_ns, measured_ns, value in v2v(bursts):
        measured_ms = (value.generation_ms - value.object.measurement_delta_ms) % 65536
        assert measured_ms == measured_ns // MS % 65536
        assert at_ns - measured_ns <= 110 * MS
    for one in bursts:
        assert one.values
        newest = one.values[-1]
        if isinstance(newest, Sensor | Hazard):
            assert one.age_ns == 0
            assert newest.generation_ms == one.at_ns // MS % 65536


def test_instants_and_order(scenario: Scenario, inputs: Stimuli) -> None:
    sizes: Counter[tuple[str, int]] = Counter()
    for one in inputs.bursts():
        sizes[one.source, one.at_ns] += len(one.values)
    assert list(sizes) == [
        (source, at_ns - lead_ns)
        for at_ns in range(4 * S, 14 * S, PERIOD)
        for source, lead_ns in (("centre", CENTRE_LEAD_NS), ("v2v", 0), ("sensor", 0))
    ]
    assert set(sizes.values()) == {100, 20, 10}
    fewer = Stimuli(FEEDS, scenario, replace(OPTIONS, v2v=7)).bursts()
    assert set(Counter(at_ns for at_ns, _, _ in v2v(fewer)).values()) == {7}


def test_a_phase_sends_everything_later_over_the_same_motion(scenario: Scenario, inputs: Stimuli) -> None:
    later = Stimuli(FEEDS, scenario, replace(OPTIONS, phase_ns=25 * MS))
    assert [(source, at_ns - 25 * MS) for source, at_ns in instants(later)] == instants(inputs)
    assert later.hash != inputs.hash
    newest = next(one for one in later.bursts() if one.source == "sensor").values[-1]
    assert isinstance(newest, Sensor)
    assert newest.generation_ms == 4025


def instants(inputs: Stimuli) -> list[tuple[str, int]]:
    return list(dict.fromkeys((one.source, one.at_ns) for one in inputs.bursts()))


def test_repeated_broadcasts_keep_the_age_of_their_measurement(scenario: Scenario) -> None:
    options = replace(OPTIONS, until_ns=4 * S + 1, v2v=100)
    bursts = [one for one in Stimuli(FEEDS, scenario, options).bursts() if one.source == "v2v"]
    ages = [one.age_ns // MS for one in bursts]
    assert ages[:4] == [100, 50, 0, 100], "measured three times, then said again"
    assert sum(len(one.values) for one in bursts) == 100
    said = heard(bursts, Senses(scenario, 1).numbers)
    assert len(said) == len({value.SerializeToString() for one in bursts for value in one.values}) < 100
    assert {(one.at_s, one.measured_s) for one in said} == {(4.0, 3.9), (4.0, 3.95), (4.0, 4.0)}
    assert {one.station for one in said} == {"B", "D", "E"}


def test_the_hash_is_that_of_the_seed_and_of_nothing_that_was_asked(scenario: Scenario, slower: Track) -> None:
    one, other = Stimuli(FEEDS, scenario, OPTIONS), Stimuli(list(reversed(FEEDS)), scenario, OPTIONS)
    other.bursts(slower, 9 * S)
    assert one.hash == other.hash == inputs_hash(one.bursts())
    lossy = replace(OPTIONS, channel=parse_channel("loss=0.1"))
    changes = [replace(OPTIONS, seed=2), replace(OPTIONS, messages="etsi"), replace(OPTIONS, age_ns=0), lossy]
    assert len({one.hash, *(Stimuli(FEEDS, scenario, change).hash for change in changes)}) == 5


@pytest.mark.parametrize("messages", ["burst", "etsi"])
def test_braking_changes_what_is_sensed_of_the_ego_and_nothing_before(
    scenario: Scenario, slower: Track, messages: str
) -> None:
    found = Stimuli(FEEDS, scenario, replace(OPTIONS, messages=messages))
    plain, braking = found.bursts(), found.bursts(slower)
    until = [one for one in plain if one.at_ns < BRAKES_NS]
    assert data(braking)[: len(until)] == data(until)
    seen = [(at_ns, one) for _, at_ns, one in v2v(braking) if one.object.object_id == found.numbers["A"]]
    assert seen[-1][0] > BRAKES_NS
    for measured_ns, value in seen:
        truth = slower.at(measured_ns / 1e9)
        assert truth is not None
        assert value.object.vy_cms == pytest.approx(truth.speed_mps * 100, abs=60)
    last = next(one for one in reversed(braking) if one.source == "sensor").values[-1]
    assert isinstance(last, Sensor)
    truth = slower.at(13.5)
    assert truth is not None
    assert last.y_cm == pytest.approx(truth.y_m * 100, abs=150)
    assert last.speed_cms == pytest.approx(truth.speed_mps * 100, abs=30)


def test_braking_leaves_what_is_said_of_others(scenario: Scenario, slower: Track) -> None:
    """By the rules of CPM: every message about another vehicle is sent as before. What the ego's radio adds to it is
    about the ego."""
    found = Stimuli(FEEDS, scenario, replace(OPTIONS, messages="etsi"))

    def others(bursts: list[Burst]) -> set[bytes]:
        sent = set()
        for _, _, value in v2v(bursts):
            if value.object.object_id not in (found.numbers["A"], value.station):
                for added in ("closest_ms", "closest_cm"):
                    value.ClearField(added)
                sent.add(value.SerializeToString())
        return sent

    same = others(found.bursts()) & others(found.bursts(slower))
    assert len(same) > 0.95 * len(others(found.bursts())), "another grouping into messages is possible"


@pytest.mark.parametrize("messages", ["burst", "etsi"])
@pytest.mark.parametrize("channel", ["ideal", "loss=0.1,delay=300ms,jitter=100ms"])
@pytest.mark.parametrize("after_ns", [9_990 * MS, 9_995 * MS, 10 * S, 10_300 * MS])
def test_only_what_leaves_later(scenario: Scenario, slower: Track, messages: str, channel: str, after_ns: int) -> None:
    found = Stimuli(FEEDS, scenario, replace(OPTIONS, messages=messages, channel=parse_channel(channel)))
    whole = data(found.bursts(slower))
    assert data(found.bursts(slower, after_ns)) == [one for one in whole if one[1] > after_ns]


def test_sight_after_braking_is_that_of_a_fresh_look(scenario: Scenario, slower: Track) -> None:
    scene = scenario.scene
    recorded = Sight(scenario.motion, scene)
    for at_ns in range(9 * S, 13 * S, 250 * MS):
        recorded.perceived(at_ns, "E")
        moved = recorded.moved(slower)
        motion = scenario.motion.with_track(slower)
        states = motion.at(at_ns / 1e9)
        assert moved.at(at_ns) == states
        assert list(moved.at(at_ns)) == list(states)
        for who in "ABDE":
            for whom in "ABEX":
                if who != whom:
                    assert moved.share(at_ns, who, whom) == visible(motion, scene, who, whom, states)


def test_a_delayed_message_is_older_by_as_much(scenario: Scenario, inputs: Stimuli) -> None:
    late = Stimuli(FEEDS, scenario, replace(OPTIONS, channel=Channel(delay_ns=20 * MS)))
    before, after = ([one for one in each.bursts() if one.source == "v2v"] for each in (inputs, late))
    assert [(one.at_ns + 20 * MS, one.age_ns + 20 * MS, one.values) for one in before] == [
        (one.at_ns, one.age_ns, one.values) for one in after
    ]
    assert [one.sent_ns for one in before] == [one.sent_ns for one in after] == [one.at_ns for one in before]
    plain = [one for one in late.bursts() if one.source != "v2v"]
    assert plain == [one for one in inputs.bursts() if one.source != "v2v"], "the channel is the radio's alone"


def test_a_message_too_old_for_anyone_is_still_sent(scenario: Scenario) -> None:
    found = Stimuli(FEEDS, scenario, replace(OPTIONS, channel=Channel(delay_ns=2 * S))).bursts()
    assert {one.age_ns // MS for one in found if one.source == "v2v"} <= {2000, 2050, 2100}


def test_in_a_burst_each_tuple_is_a_message_by_rule_a_cpm_is_one(scenario: Scenario) -> None:
    lossy = parse_channel("loss=0.3")

    def kept(messages: str) -> tuple[Counter[tuple[int, int]], Counter[tuple[int, int]]]:
        """CPM tuples by (sent, station): all, and those that arrive."""
        counts = []
        for channel in (Channel(), lossy):
            found = Stimuli(FEEDS, scenario, replace(OPTIONS, messages=messages, channel=channel))
            counts.append(
                Counter(
                    (at_ns, value.station)
                    for at_ns, _, value in v2v(found.bursts())
                    if value.object.object_id != value.station
                )
            )
        return counts[0], counts[1]

    sent, arrived = kept("etsi")
    assert all(sent[key] == n for key, n in arrived.items()), "a CPM arrives whole or not at all"
    assert 0.6 < len(arrived) / len(sent) < 0.8
    sent, arrived = kept("burst")
    assert any(0 < arrived[key] < n for key, n in sent.items())
    assert 0.6 < arrived.total() / sent.total() < 0.8


def test_distance_decides_what_arrives(scenario: Scenario) -> None:
    found = Stimuli(FEEDS, scenario, replace(OPTIONS, messages="etsi", channel=parse_channel("half=60m")))
    names = {number: name for name, number in found.numbers.items()}
    ego, near, far = scenario.motion.tracks["A"], Counter[bool](), Counter[bool]()
    arrived = {(at_ns, value.SerializeToString()) for at_ns, _, value in v2v(found.bursts())}
    for at_ns, _, value in v2v(Stimuli(FEEDS, scenario, replace(OPTIONS, messages="etsi")).bursts()):
        here, there = ego.at(at_ns / 1e9), scenario.motion.tracks[names[value.station]].at(at_ns / 1e9)
        assert here is not None
        assert there is not None
        away_m = hypot(here.x_m - there.x_m, here.y_m - there.y_m)
        if away_m < 40 or away_m > 80:
            (near if away_m < 40 else far)[(at_ns, value.SerializeToString()) in arrived] += 1
    assert near[True] > 0.9 * near.total()
    assert far[True] < 0.1 * far.total()
    assert near.total() > 100 < far.total()


def test_every_station_talks(scenario: Scenario) -> None:
    all_of_them = Scenario(scenario.motion, replace(scenario.scene, stations=tuple("BCDEFGX")))
    found = Stimuli(FEEDS, all_of_them, replace(OPTIONS, messages="etsi"))
    assert {value.station for _, _, value in v2v(found.bursts())} == {found.numbers[name] for name in "BCDEFGX"}


def test_options_that_cannot_be() -> None:
    for change, expected in (
        ({"messages": "all"}, "unknown_word --messages"),
        ({"age_ns": 2 * S}, "out_of_range --age"),
        ({"phase_ns": -1}, "negative --phase"),
    ):
        with SAID.refuses(expected, kind=BadInputError):
            replace(OPTIONS, **change)
