"""The closed loop around live agents: what a warning does to what is sent, and what is known of it afterwards."""

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.client.connection import UnreachableError
from sim_vehicles.cli.summary_report import outcome, rows
from sim_vehicles.inputs.send_schedule import SendSchedule
from sim_vehicles.replay import live_laps
from sim_vehicles.replay.live_laps import LiveReplay
from sim_vehicles.replay.preparation import Options, prepare
from sim_vehicles.replay.replay_summary import live_summary
from sim_vehicles.world.sense import Burst
from tests.node_agent.live import Agent, chain_plan, store, until
from tests.sim_vehicles.replay.replay_fakes import FakeAgents
from tests.sim_vehicles.replay.replay_plans import small_plan, write

MS = 1_000_000
X = 8  # A to G, X are numbered from 1
VERDICT = {
    "outcome", "valid", "why_not_valid", "gap_m", "impact_kmh", "impact_s", "speed_kmh", "burst_phase", "burst_phases",
    "burst_phase_ns", "crashes", "laps", "first_perceivable", "knew", "brake", "warnings", "closed_form", "deciding",
}  # fmt: skip


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("MARGIN_S", -0.3), ("QUIET_S", 0.2), ("PAUSE_S", 0.0)):
        monkeypatch.setattr(live_laps, name, seconds)


def options_of(tmp_path: Path, plan: dict[str, Any] | None = None, **changes: Any) -> Options:
    """From where X is perceived until after the collision, as fast as the agents take it."""
    write(tmp_path, plan or small_plan(X))
    options = Options(
        "crossing_50", tmp_path / "addresses.json", start_ns=9_500 * MS, until_ns=14_000 * MS, rate=float("inf")
    )
    return replace(options, **changes)


def replay_of(options: Options, agents: FakeAgents) -> LiveReplay:
    """The agents answer a burst that warned only when the vehicle has reacted to it."""
    done = LiveReplay(prepare(options), agents.connect, agents.listen)

    def after(warned: bool) -> None:
        if warned and done.laps[-1].recomputed_s is None and options.brake.kind != "none":
            until(lambda: done.laps[-1].recomputed_s is not None)

    agents.after = after
    return done


def tuples(bursts: Sequence[Burst]) -> list[tuple[str, Any]]:
    return [(burst.source, value) for burst in bursts for value in burst.values]


def test_a_warning_brakes_and_later_bursts_say_so(tmp_path: Path) -> None:
    agents = FakeAgents(about=X)
    done = replay_of(options_of(tmp_path), agents)
    done.run()
    summary = live_summary(done.prepared, done)
    what = summary.document()
    loop = done.laps[0].loop
    assert loop is not None and loop.commanded_ns is not None
    # Every burst once and in order: the old ones up to the warning, then the new ones.
    sent = [(one.source, value) for one in agents.sent for value in one.values]
    assert sent == tuples(loop.bursts) != tuples(done.prepared.bursts)
    assert what["bursts"] == what["bursts_planned"] == len(loop.bursts)
    own = [value.speed_cms for source, value in sent if source == "sensor"]
    assert own[0] > 1000 and own[-1] < 50, "the ego stands at the end, and its sensor says so"
    verdict = what["verdict"]
    assert set(verdict) >= VERDICT
    assert verdict["brake"]["commanded_s"] == loop.commanded_ns / 1e9
    assert (verdict["outcome"], verdict["valid"]) == ("AVOIDED", False) and "rate max" in verdict["why_not_valid"]
    assert (verdict["deciding"]["object"], verdict["deciding"]["source"]) == ("X", 1)
    assert verdict["deciding"]["latency_ns"] == [1_000_000, 2_000_000]
    assert verdict["warnings"]["about_crossing"] == len(what["warnings"]) > 0 == verdict["warnings"]["false"]
    assert {one["about"] for one in what["warnings"]} == {"X"}
    assert what["outputs"]["warning"]["results"] == what["sources"]["v2v"]["admitted"]
    assert what["recomputed"][0]["outdated_bursts"] == 0
    assert set(what["scene"]["vehicles"]) == set("ABCDEFGX")
    json.dumps(what, allow_nan=False)
    assert summary.verdict is not None and outcome(summary.verdict).startswith("AVOIDED, least gap")
    assert {"verdict", "ego knew", "brake", "closed form"} <= {name for name, _ in rows(summary)}


def test_a_warning_about_another_vehicle_is_a_false_one_and_does_not_brake(tmp_path: Path) -> None:
    agents = FakeAgents(about=1 + "ABCDEFGX".index("C"))
    done = LiveReplay(prepare(options_of(tmp_path)), agents.connect, agents.listen)
    done.run()
    verdict = live_summary(done.prepared, done).document()["verdict"]
    assert (verdict["outcome"], verdict["brake"], verdict["knew"]) == ("CRASH", None, None)
    assert verdict["warnings"]["missed"] and verdict["warnings"]["false"] > 0 == verdict["warnings"]["about_crossing"]
    assert [(one.source, value) for one in agents.sent for value in one.values] == tuples(done.prepared.bursts)


def test_laps_are_judged_one_by_one_and_late_results_count_for_none(tmp_path: Path) -> None:
    agents = FakeAgents(about=X)
    done = replay_of(options_of(tmp_path, laps=2), agents)
    first: list[Any] = []

    def on_lap(lap: live_laps.LiveLap) -> None:
        if lap.number == 1 and lap.judged is None:
            done.on_burst = lambda burst: None
        elif lap.number == 1:
            first.extend(one for one in lap.judged.loop.log[:3])
        elif lap.judged is None:  # between the laps: three results of the first one come again
            for one in first:
                agents.results.put(result_of(one))

    done.on_lap = on_lap
    done.run()
    what = live_summary(done.prepared, done).document()
    assert what["laps_played"] == len(what["laps"]) == what["verdict"]["laps"] == 2
    assert what["late_results"] == 3
    assert {one["lap"] for one in what["warnings"]} == {0, 1}
    loops = [lap.judged.loop for lap in done.laps if lap.judged is not None]
    assert sorted(len(loop.bursts) > 0 for loop in loops) == [False, True], "only the lap that is shown is kept"
    assert what["scene"]["messages"]
    assert what["bursts"] == what["bursts_planned"] == sum(lap.planned for lap in done.laps)


def result_of(one: Any) -> Any:
    from node_agent.client.client import Result

    return Result(one.warning, 0, (-2, -1), one.lineage)


def test_a_lost_sink_makes_the_verdict_invalid_and_a_reconnected_one_is_told(tmp_path: Path) -> None:
    agents = FakeAgents(about=X)
    agents.results.put(UnreachableError("unreachable", "no agent answers at 127.0.0.1:2"))
    agents.reconnects = 2
    done = LiveReplay(prepare(options_of(tmp_path, rate=1, until_ns=9_600 * MS)), agents.connect, agents.listen)
    done.run()
    what = live_summary(done.prepared, done).document()
    assert what["outputs"]["warning"] | {"results": 0} == {
        "results": 0, "unreadable": 0, "reconnects": 2, "failure": "no agent answers at 127.0.0.1:2",
    }  # fmt: skip
    assert not what["verdict"]["valid"]
    assert "output warning: no agent answers" in what["verdict"]["why_not_valid"]


def test_a_sink_that_breaks_in_any_way_makes_the_verdict_invalid(tmp_path: Path) -> None:
    agents = FakeAgents(about=X)
    agents.results.put(KeyError())
    done = LiveReplay(prepare(options_of(tmp_path, rate=1, until_ns=9_600 * MS)), agents.connect, agents.listen)
    done.run()
    assert (
        live_summary(done.prepared, done).document()["verdict"]["why_not_valid"].startswith("output warning: KeyError")
    )


@pytest.mark.parametrize("decided", [True, False])
def test_an_interrupted_lap_counts_only_if_it_was_decided(tmp_path: Path, decided: bool) -> None:
    agents = FakeAgents(about=X if decided else None)
    done = replay_of(options_of(tmp_path, rate=1, start_ns=9_900 * MS), agents)
    react = agents.after

    def after(warned: bool) -> None:
        react(warned)
        if warned == decided:
            done.stop.set()

    agents.after = after
    done.run()
    what = live_summary(done.prepared, done).document()
    assert what["ended"] == "interrupted" and what["bursts"] < what["bursts_planned"]
    verdict = what["verdict"]
    if decided:
        assert (verdict["valid"], verdict["why_not_valid"]) == (True, None) and verdict["brake"] is not None
    else:
        assert (verdict["valid"], verdict["why_not_valid"]) == (False, "interrupted")


def test_a_failure_of_the_loop_ends_the_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError("in the loop")

    monkeypatch.setattr("sim_vehicles.closed_loop.closed_loop.ClosedLoop.warned", broken)
    agents = FakeAgents(about=X)
    done = LiveReplay(prepare(options_of(tmp_path)), agents.connect, agents.listen)
    with pytest.raises(ZeroDivisionError, match="in the loop"):
        done.run()


def test_live_agents_warn_and_the_ego_brakes(tmp_path: Path) -> None:
    """A real agent with the test's operator, in real time for two seconds of the recording."""
    plan = small_plan(X)
    options = options_of(tmp_path, plan, rate=1, start_ns=9_900 * MS, until_ns=11_900 * MS)
    local = chain_plan().FromString(local_bytes(plan))
    store(tmp_path / "s", local)
    with Agent(tmp_path / "s", "--operators", str(tmp_path / "operators.py")) as agent:
        write(tmp_path, plan, agent.data)
        done = LiveReplay(prepare(options))
        done.run()
    what = live_summary(done.prepared, done).document()
    assert (what["ended"], what["admitted"], what["refused"]) == ("done", what["sent"], 0)
    # A first burst that leaves at 9.9 s has a message about X; so A brakes, whenever it comes, and is sent anew.
    verdict = what["verdict"]
    assert verdict["brake"] is not None and verdict["warnings"]["about_crossing"] > 0, verdict
    assert what["verdict"]["deciding"]["latency_ns"][0] > 0 and what["verdict"]["deciding"]["seq"] >= 1
    assert what["recomputed"][0]["seconds"] > 0
    admitted = what["sources"]["v2v"]["admitted"]
    assert admitted >= 40
    assert what["outputs"]["warning"] == {"results": admitted, "unreadable": 0, "reconnects": 0, "failure": None}
    loop = done.laps[0].loop
    assert loop is not None
    assert [one.at_ns for one in loop.log] == sorted(one.at_ns for one in loop.log)
    assert what["verdict"]["valid"] == (what["verdict"]["why_not_valid"] is None)


def local_bytes(plan: dict[str, Any]) -> bytes:
    from google.protobuf import json_format

    from protos.plan_pb2 import LocalPlan

    return bytes(json_format.ParseDict(plan["nodes"]["a"], LocalPlan()).SerializeToString())


def burst(at_ns: int, age_ns: int = 0) -> Burst:
    return Burst("s", at_ns, age_ns, ())


@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=12).map(sorted),
    st.integers(0, 12),
    st.integers(-1, 9),
    st.integers(0, 9),
)
def test_replacing_loses_and_doubles_no_burst(instants: list[int], taken: int, after_ns: int, shift: int) -> None:
    old = [burst(at_ns) for at_ns in instants]
    schedule = SendSchedule(old)
    left: list[Burst] = []
    while len(left) < taken and (first := schedule.first()) is not None:
        left += schedule.take(first)  # all of its instant
    begun_ns = left[-1].at_ns if left else -1
    new = [burst(at_ns, 7) for at_ns in sorted({*instants, shift}) for _ in range(2) if at_ns > after_ns]
    outdated = schedule.replace(new, after_ns)
    while (first := schedule.first()) is not None:
        left += schedule.take(first)
    from_ns = max(after_ns, begun_ns)
    assert left == [one for one in old if one.at_ns <= from_ns] + [one for one in new if one.at_ns > from_ns]
    assert outdated == sum(one.at_ns <= from_ns for one in new)


def test_a_burst_that_was_replaced_is_not_taken() -> None:
    schedule = SendSchedule([burst(1), burst(2)])
    first = schedule.first()
    assert first is not None
    assert schedule.replace([burst(1, 7)], 0) == 0
    assert schedule.changed.is_set()
    assert not schedule.take(first)
    again = schedule.first()
    assert again == burst(1, 7) and not schedule.changed.is_set() and again is not None
    assert schedule.take(again) and schedule.first() is None and schedule.reached_ns == 1


def test_a_measurement_of_this_very_instant_ages_too_while_its_burst_is_late(tmp_path: Path) -> None:
    prepared = prepare(options_of(tmp_path, rate=1))
    agents = FakeAgents()
    agents.after = lambda warned: time.sleep(0.05)  # the next burst is due after 1 ms
    one = next(burst for burst in prepared.bursts if burst.source == "v2v")
    from sim_vehicles.replay.live import Live

    with Live(prepared.feeds, prepared.addresses, agents.connect) as live:
        live.run([Burst("v2v", 0, 0, one.values), Burst("v2v", MS, 0, one.values)])
    assert all(age_ms >= 49 for age_ms in agents.sent[1].ages_ms)


def test_a_sender_that_waits_goes_on_with_what_is_new(tmp_path: Path) -> None:
    """The only burst is an hour away; one that is due replaces it."""
    prepared = prepare(options_of(tmp_path, rate=1))
    agents = FakeAgents()
    far = [Burst("sensor", 0, 0, prepared.bursts[0].values), Burst("sensor", 3_600_000 * MS, 0, ())]
    from sim_vehicles.replay.live import Live

    with Live(prepared.feeds, prepared.addresses, agents.connect) as live:
        waiting = Thread(target=live.run, args=(far,))
        waiting.start()
        until(lambda: agents.sent)
        assert live.replace([Burst("v2v", MS, 0, prepared.bursts[1].values)], 0) == 0
        waiting.join(20)
    assert [one.source for one in agents.sent] == ["sensor", "v2v"]
