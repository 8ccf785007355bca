from math import cos, radians

import pytest

from protos.vehicle_pb2 import Cpm
from sim_vehicles.readers.scenarios import load_scenario
from sim_vehicles.world.sense import EARTH_M, NO_NOISE, Burst, Senses, inputs_hash

MS = 1_000_000
S = 1_000 * MS
PERIOD = 500 * MS
AGE = 100 * MS


@pytest.fixture(scope="module")
def senses() -> Senses:
    return Senses(load_scenario("crossing_50"), seed=1)


def messages(senses: Senses, at_ns: int, n: int, age_ns: int) -> list[Cpm]:
    return [sent.value for sent in senses.v2v(at_ns, n, age_ns)]


def test_sensor_burst_spans_the_last_period() -> None:
    senses = Senses(load_scenario("crossing_50"), 1, NO_NOISE)
    burst = senses.sensor(6 * S, 10, PERIOD)
    assert [value.generation_ms for value in burst] == [5550 + 50 * i for i in range(10)]
    assert {value.station for value in burst} == {senses.numbers["A"]}
    newest = burst[-1]
    assert (newest.x_cm, newest.heading_ddeg, newest.yaw_rate_cdegs) == (160, 0, 0)  # north, on its lane
    assert newest.speed_cms == 1389
    assert newest.y_cm == pytest.approx(160 - 6 * 1389, abs=2)


def test_v2v_messages_are_one_object_of_one_station_each(senses: Senses) -> None:
    burst = messages(senses, 11 * S, 20, AGE)
    assert len(burst) == 20
    names = {number: name for name, number in senses.numbers.items()}
    motion, scene = senses.scenario.motion, senses.scenario.scene
    assert {names[message.station] for message in burst} == set("BDE")
    for message in burst:
        seen = message.object
        assert message.station != seen.object_id
        assert 0 <= seen.measurement_delta_ms <= 100
        there = motion.tracks[names[seen.object_id]].at(11 - seen.measurement_delta_ms / 1000)
        assert there is not None
        y_m = radians(message.latitude_e7 / 1e7 - scene.latitude_deg) * EARTH_M + seen.y_cm / 100
        x_m = radians(message.longitude_e7 / 1e7 - scene.longitude_deg) * EARTH_M * cos(radians(scene.latitude_deg))
        assert (x_m + seen.x_cm / 100, y_m) == pytest.approx((there.x_m, there.y_m), abs=0.6)
        assert seen.quality in (12, 15), "a corner of X may still be hidden from B"
    x = [message for message in burst if names[message.object.object_id] == "X"]
    assert {names[message.station] for message in x} == {"B", "D", "E"}
    assert all(2500 < message.object.heading_ddeg <= 2700 for message in x), "X leaves the bend, to the west"


def test_object_age_says_since_when_a_station_perceives_it(senses: Senses) -> None:
    first = senses.scenario.scene.raw["facts"]["first_perceived_s"]["E"]
    burst = messages(senses, 11 * S, 20, AGE)
    age = next(
        m.object.age_ms for m in burst if m.station == senses.numbers["E"] and m.object.object_id == senses.numbers["X"]
    )
    assert 0 <= 1000 * (10.9 - first) - age < 100


def test_few_objects_are_measured_again_and_then_broadcast_again(senses: Senses) -> None:
    burst = messages(senses, 11 * S, 100, AGE)
    assert len(burst) == 100
    deltas = [message.object.measurement_delta_ms for message in burst]
    once = deltas.index(0)
    assert deltas[:once] == sorted(deltas[:once], reverse=True)
    assert set(deltas) == {100, 50, 0}, "never older than the age"
    distinct = [message.SerializeToString() for message in burst]
    fresh = len(set(distinct))
    assert fresh < 100
    assert distinct[fresh:] == distinct[: 100 - fresh], "repeats are equal to their first copies"


def test_x_is_in_no_message_before_anyone_can_perceive_it(senses: Senses) -> None:
    first = min(senses.scenario.scene.raw["facts"]["first_perceived_s"].values())
    for at_s in range(1, 16):
        objects = {m.object.object_id for m in messages(senses, at_s * S, 20, 0)}
        assert (senses.numbers["X"] in objects) == (at_s >= first), at_s


@pytest.mark.parametrize("speed", [30, 50, 70])
def test_at_most_ten_of_twenty_are_relevant_once_x_is_there(speed: int) -> None:
    """Relevant: closing by more than 0.5 m/s, closest within 8 s, at least 3 m away, all seen from the ego."""
    senses = Senses(load_scenario(f"crossing_{speed}"), seed=1)
    first = min(senses.scenario.scene.raw["facts"]["first_perceived_s"].values())
    names = {number: name for name, number in senses.numbers.items()}
    motion = senses.scenario.motion
    for step in range(120):
        at_ns = 9 * S + step * 25 * MS
        if at_ns - AGE < first * 1e9:
            continue
        ego = motion.tracks["A"].at(at_ns / 1e9)
        assert ego is not None
        relevant = 0
        for message in messages(senses, at_ns, 20, AGE):
            seen = message.object
            station = motion.tracks[names[message.station]].at((at_ns - seen.measurement_delta_ms * MS) / 1e9)
            assert station is not None
            dx, dy = station.x_m + seen.x_cm / 100 - ego.x_m, station.y_m + seen.y_cm / 100 - ego.y_m
            away = (dx * dx + dy * dy) ** 0.5
            closing = -(dx * seen.vx_cms / 100 + dy * (seen.vy_cms / 100 - ego.speed_mps)) / away
            relevant += away >= 3 and closing > 0.5 and away / closing < 8
        assert relevant <= 10, at_ns


def test_nothing_perceived_is_nothing_sent() -> None:
    scenario = load_scenario("crossing_50")
    assert Senses(scenario, 1).v2v(60 * S, 20, AGE) == []
    assert Senses(scenario, 1).sensor(60 * S, 10, PERIOD) == []


def test_centre_hazards_stay_and_are_renewed(senses: Senses) -> None:
    early, late = senses.centre(4 * S, 100), senses.centre(5 * S, 100)
    assert [hazard.id for hazard in early] == list(range(1, 101))
    assert [(h.x_cm, h.y_cm, h.cause) for h in early] == [(h.x_cm, h.y_cm, h.cause) for h in late]
    assert {h.generation_ms for h in early} == {4000}
    assert senses.centre(5 * S, 3) == late[:3]


def test_the_same_seed_gives_the_same_inputs_in_any_order() -> None:
    def run(seed: int, *, backwards: bool = False) -> str:
        senses = Senses(load_scenario("crossing_50"), seed)
        instants = [4 * S, 4 * S + PERIOD, 9 * S]
        found = {
            at: [
                Burst("centre", at, 0, tuple(senses.centre(at, 100))),
                Burst("v2v", at, AGE, tuple(messages(senses, at, 20, AGE))),
                Burst("sensor", at, 0, tuple(senses.sensor(at, 10, PERIOD))),
            ]
            for at in (reversed(instants) if backwards else instants)
        }
        return inputs_hash([burst for at in instants for burst in found[at]])

    assert run(1) == run(1) == run(1, backwards=True)
    assert run(1) != run(2)
    assert len(run(1)) == 64


def test_without_noise_positions_are_the_recorded_ones() -> None:
    senses = Senses(load_scenario("crossing_50"), 1, NO_NOISE)
    standing = next(
        m
        for m in messages(senses, 6 * S, 20, 0)
        if (m.station, m.object.object_id) == (senses.numbers["E"], senses.numbers["D"])
    )
    assert (standing.object.x_cm, standing.object.y_cm, standing.object.vx_cms) == (-695, 0, 0)
