"""The closed loop on the recorded crossing: who is credited, what is sent afterwards, what is kept."""

import json
from typing import Any

import pytest

from protos.vehicle_pb2 import Cpm, Sensor
from protos.vehicle_pb2 import Warning as Told
from sim_vehicles.closed_loop import constant_latency
from sim_vehicles.closed_loop.closed_loop import ClosedLoop
from sim_vehicles.closed_loop.lap import Lap, phase_ns, worst
from sim_vehicles.closed_loop.replay_record import record
from sim_vehicles.encounter.brake import AUTO, NONE, Brake
from sim_vehicles.encounter.physics import moved
from sim_vehicles.encounter.verdict import Judge
from sim_vehicles.inputs.feed import Feed
from sim_vehicles.inputs.stimuli import Stimuli, StimulusOptions
from sim_vehicles.readers.scenarios import load_scenario
from sim_vehicles.world.scene import Scenario
from sim_vehicles.world.sense import Burst
from tests.sim_vehicles.replayed import virtual

PERIOD_NS = 500_000_000
FEEDS = [
    Feed("centre", "b", "vehicle.Hazard", 4, PERIOD_NS),
    Feed("v2v", "a", "vehicle.Cpm", 20, PERIOD_NS),
    Feed("sensor", "a", "vehicle.Sensor", 10, PERIOD_NS),
]
OPTIONS = StimulusOptions(9_000_000_000, 14_000_000_000)


@pytest.fixture(scope="module")
def played() -> tuple[Scenario, Stimuli, Judge]:
    scenario = load_scenario("crossing_50")
    return scenario, Stimuli(FEEDS, scenario, OPTIONS), Judge(scenario)


Played = tuple[Scenario, Stimuli, Judge]


def loop(played: Played, brake: Brake = AUTO) -> ClosedLoop:
    scenario, inputs, judge = played
    return ClosedLoop(scenario, inputs, brake, judge)


def tell(one: ClosedLoop, at_s: float, about: str = "X", level: int = 2, age_s: float = 0.3) -> list[Burst] | None:
    numbers = one.inputs.numbers
    measured_ms = round((at_s - age_s) * 1e3) % 65536
    warning = Told(object_id=numbers[about], station=numbers["E"], measured_ms=measured_ms, level=level)
    return one.warned(round(at_s * 1e9), warning, (round(age_s * 1e9),) * 2, (0, 1, 11, 0))


def test_only_a_warning_about_the_crossing_vehicle_brakes_and_only_once(played: Played) -> None:
    one = loop(played)
    assert tell(one, 9.6, level=0) is None
    assert tell(one, 9.7, about="C") is None
    assert one.commanded_ns is None
    later = tell(one, 10.1, level=1)
    assert later is not None
    assert one.commanded_ns == 10_100_000_000
    assert tell(one, 10.2) is None
    assert len(one.log) == 4
    verdict = one.verdict(3, 20, 75_000_000, True, None).document()
    assert verdict["warnings"] == {"about_crossing": 2, "false": 1, "others": 0, "missed": False}
    assert (verdict["burst_phase"], verdict["burst_phases"], verdict["burst_phase_ns"]) == (3, 20, 75_000_000)


def test_after_the_warning_the_ego_senses_its_own_braking_and_nothing_sent_before_changes(played: Played) -> None:
    one, before = loop(played), loop(played).bursts
    later = tell(one, 10.1)
    assert later is not None
    assert all(burst.at_ns > 10_100_000_000 for burst in later)
    assert one.bursts == [burst for burst in before if burst.at_ns <= 10_100_000_000] + later
    assert [(burst.source, burst.at_ns, burst.age_ns) for burst in one.bursts] == [
        (burst.source, burst.at_ns, burst.age_ns) for burst in before
    ]
    speeds = [
        (value.generation_ms, value.speed_cms) for burst in later for value in burst.values if isinstance(value, Sensor)
    ]
    v = 50 / 3.6
    for generation_ms, speed_cms in speeds:
        expected_mps = moved(v, AUTO, max(0.0, generation_ms / 1e3 - 10.3)).speed_mps
        assert speed_cms == pytest.approx(100 * expected_mps, abs=30)  # within sensor noise
    crossing = one.inputs.numbers["X"]
    seen = [
        [
            value
            for burst in bursts
            for value in burst.values
            if isinstance(value, Cpm) and value.object.object_id == crossing
        ]
        for bursts in (before, one.bursts)
    ]
    assert [(each.station, each.object.x_cm) for each in seen[0]][:6] == [
        (each.station, each.object.x_cm) for each in seen[1]
    ][:6]


@pytest.mark.parametrize(("at_s", "outcome"), [(10.1, "AVOIDED"), (10.3, "AVOIDED"), (11.0, "CRASH"), (None, "CRASH")])
def test_an_early_warning_saves_a_late_one_softens(played: Played, at_s: float | None, outcome: str) -> None:
    one = loop(played)
    if at_s is not None:
        tell(one, at_s)
    verdict = one.verdict(0, 1, 0, True, None).document()
    assert verdict["outcome"] == outcome
    assert verdict["valid"] is True
    assert verdict["warnings"]["missed"] is (at_s is None)
    if outcome == "AVOIDED":
        assert (verdict["impact_kmh"], verdict["crashes"]) == (None, 0)
        assert verdict["gap_m"] > 1
    else:
        assert verdict["impact_kmh"] == pytest.approx(50 if at_s is None else 31.2, abs=0.2)
        assert verdict["crashes"] == 1
    if at_s is not None:
        assert verdict["deciding"]["measured_s"] == pytest.approx(at_s - 0.3)
        assert verdict["deciding"]["station"] == "E"


def test_who_does_not_brake_keeps_its_motion(played: Played) -> None:
    one = loop(played, NONE)
    assert tell(one, 10.1) is None
    assert one.ego is one.scenario.motion.tracks["A"]
    assert one.verdict(0, 1, 0, True, None).document()["outcome"] == "CRASH"


def test_a_verdict_says_why_it_is_not_valid(played: Played) -> None:
    scenario, _, judge = played
    assert loop(played).verdict(0, 1, 0, False, "played at rate 4").document()["why_not_valid"] == "played at rate 4"
    short = ClosedLoop(scenario, Stimuli(FEEDS, scenario, StimulusOptions(9_000_000_000, 11_000_000_000)), AUTO, judge)
    verdict = short.verdict(0, 1, 0, True, None).document()
    assert (verdict["outcome"], verdict["valid"]) == ("AVOIDED", False)
    assert verdict["why_not_valid"].startswith("the replay ends at 11 s, before a contact at 12.1")


def lap(played: Played, phase: int, at_s: float | None) -> Lap:
    one = loop(played)
    if at_s is not None:
        tell(one, at_s)
    return Lap(phase, 3, phase, one.inputs.hash, one.verdict(phase, 3, phase, True, None), one)


def test_the_worst_lap_and_the_record_for_a_page(played: Played) -> None:
    laps = [lap(played, 0, 10.1), lap(played, 1, 11.0), lap(played, 2, 10.9)]
    assert worst(laps) is laps[1]
    assert worst([laps[0], lap(played, 1, 10.4)]).phase == 1
    kept: dict[str, Any] = json.loads(json.dumps(virtual(record(laps)).document(), allow_nan=False))
    assert (kept["verdict"]["crashes"], kept["verdict"]["laps"], kept["verdict"]["burst_phase"]) == (2, 3, 1)
    assert [each["outcome"] for each in kept["laps"]] == ["AVOIDED", "CRASH", "CRASH"]
    assert kept["warnings"][0] == {
        "lap": 0, "at_s": 10.1, "about": "X", "station": "E", "level": 2, "latency_ns": [300_000_000] * 2, "seq": 11,
    }  # fmt: skip
    scene = kept["scene"]
    assert (scene["ego"], scene["crossing"], scene["start_s"], scene["end_s"]) == ("A", "X", 9.0, 14.0)
    ego, recorded = scene["vehicles"]["A"], scene["ego_recorded"]
    assert len(ego["x_m"]) == len(ego["speed_mps"]) == 101
    at = round((11.1 - 9.0) / 0.05)
    assert ego["y_m"][:at] == recorded["y_m"][:at]
    assert ego["speed_mps"][-1] == 0 < recorded["speed_mps"][-1]
    assert {one["name"] for one in scene["occluders"]} == {"south-east block", "north-east block"}
    assert {one["who"] for one in scene["perceives"]} == {"A", "B", "D", "E"}
    messages = [(one["station"], one["object"], one["measured_s"]) for one in scene["messages"]]
    assert len(messages) == len(set(messages)) > 50
    with pytest.raises(ValueError, match="no lap"):
        record([])


def test_the_phases_share_the_period_of_the_v2v_source() -> None:
    assert [phase_ns(FEEDS, phase, 20) for phase in (0, 1, 19)] == [0, 25_000_000, 475_000_000]
    assert phase_ns([Feed("s", "a", "vehicle.Sensor", 1, 200)], 1, 2) == 100


def test_crashes_grow_with_latency_and_the_closed_form_stands_beside_them() -> None:
    runs: list[None] = []
    short, long = constant_latency.crash_table((50,), (200_000_000, 1_500_000_000), 3, lambda: runs.append(None))
    assert len(runs) == 6
    assert (short.speed_kmh, short.latency_ns, short.phases, short.warned) == (50, 200_000_000, 3, 3)
    assert short.driven.crashes <= long.driven.crashes == 3
    assert short.closed_form.crashes == 0
    assert long.closed_form.crashes == 3
    assert 20 < long.closed_form.median_kmh <= long.driven.most_kmh <= 50
