"""The commands replay and judge: what they say, write and return."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from node_agent.client.client import Source
from sim_vehicles.cli.app import app
from sim_vehicles.cli.replay import _stopped_by_signals
from sim_vehicles.closed_loop.recorded import Record
from sim_vehicles.replay.live_laps import LiveReplay
from sim_vehicles.replay.preparation import Options, prepare
from tests.sim_vehicles.replay.replay_fakes import FakeAgents
from tests.sim_vehicles.replay.replay_plans import small_plan, write
from tests.sim_vehicles.replayed import SCENE, live
from tests.sim_vehicles.story.warned_crossing import replayed
from tests.whole_plans import whole

MS = 1_000_000
ROOT = Path(__file__).parents[3]
X = 8
SHORT = ["--start", "9.5s", "--until", "14s"]


def call(*arguments: object) -> Result:
    """The command in this process."""
    return CliRunner().invoke(app, [str(each) for each in arguments])


def virtual(plan: Path, *arguments: object) -> Result:
    operators = plan.with_name("operators.py")
    return call("replay", "crossing_50", "--virtual", plan, "--operators", operators, *SHORT, *arguments)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """One node, an operator of 1 ms, a warning for every message about X."""
    return write(tmp_path, small_plan(X))


BAD: list[tuple[list[str], str]] = [
    ([], "--to, --virtual: give one of them"),
    (["--to", "{to}", "--virtual", "{plan}"], "--to, --virtual: give only one of them"),
    (["--to", "{to}", "--rate", "0"], "--rate: 0 must be above 0"),
    (["--to", "{to}", "--rate", "nan"], "--rate: nan must be above 0"),
    (["--to", "{to}", "--rate", "fast"], "--rate: 'fast' is no number"),
    (["--to", "{to}", "--phase", "5/3"], "--phase: 5/3: phases of N are 0/N to (N-1)/N"),
    (["--to", "{to}", "--phase", "half"], "--phase: 'half': write K/N"),
    (["--to", "{to}", "--phases", "20"], "--phases: needs --virtual"),
    (["--to", "{to}", "--channel", "radio"], "--channel: 'radio' is not understood"),
    (["--to", "{to}", "--messages", "flat"], "--messages: 'flat' is unknown"),
    (["--to", "{to}", "--brake", "hard"], "--brake 'hard': unknown"),
    (["--to", "{to}", "--start", "99s"], "--start: 99 s is outside the recording"),
    (["--to", "{to}", "--age", "100"], "--age: '100': the unit is missing"),
    (["--to", "{to}", "--ego", "Z"], "the ego 'Z' is not in the recording"),
    (["--to", "{to}", "--duration", "1s", "--until", "14s"], "--duration, --until: give only one of them"),
    (["--to", "{none}"], "none.json: there is no such file; it should be what `coordinator up` writes"),
    (["--virtual", "{bare}"], "bare.json: the plan has no source"),
    (["--virtual", "{plan}", "--rate", "4"], "--rate: nothing waits in virtual time"),
    (["--virtual", "{plan}", "--loop", "0"], "--loop: 0 must be from 1"),
    (["--virtual", "{plan}", "--operators", "{none}"], "none.json"),
    (["--virtual", "{plan}", "--out", "{full}"], "is there already and not empty"),
    (["--virtual", "{plan}", "--out", "{plan}/run"], "plan.json is no directory that can be written to"),
    (["--virtual", "{none}"], "none.json: there is no such file; it should be a plan made by `coordinator plan`\n"),
    (["--virtual", "{plan}", "--mcap", "{none}/x.mcap"], "--mcap"),
    (["--virtual", "{plan}", "--mcap", "{full}"], "is a directory; name a file"),
    (["--to", "{to}", "--out", "{plan}"], "is a file; name a directory"),
    (["--to", "{to}", "--out", "{earlier}"], "holds the replay.json of an earlier replay; name another directory"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD, ids=[" ".join(arguments) or "nothing" for arguments, _ in BAD])
def test_bad_input_is_said_in_one_line(plan: Path, arguments: list[str], said: str) -> None:
    bare = plan.with_name("bare.json")
    bare.write_text(json.dumps(whole({})))
    places = {
        "plan": plan, "to": plan.with_name("addresses.json"), "none": plan.with_name("none.json"), "bare": bare,
        "full": plan.parent, "earlier": plan.parent / "earlier",
    }  # fmt: skip
    places["earlier"].mkdir()
    (places["earlier"] / "replay.json").write_text("{}")
    done = call("replay", "crossing_50", *(each.format(**places) for each in arguments))
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr and done.stderr.count("\n") == 1


def test_an_unknown_scenario(plan: Path) -> None:
    done = call("replay", "crossing_55", "--virtual", plan)
    assert done.exit_code == 2 and "crossing_55: no such scenario; did you mean crossing_50?" in done.stderr


def test_virtual_time_avoids_and_tells_why(plan: Path, tmp_path: Path) -> None:
    done = virtual(plan, "--phase", "3/20")
    assert done.exit_code == 0, done.output
    for said in (
        "verdict      AVOIDED, least gap",
        "X first by E at",
        "auto: 7 m/s2 after 0.2 s",
        "3 of 20: bursts 75 ms",
    ):
        assert said in done.stdout
    assert "utilisation  a 6% at virtual time" in done.stdout


def test_virtual_time_crashes_with_exit_code_3(plan: Path) -> None:
    done = virtual(plan, "--brake", "none", "--json")
    assert done.exit_code == 3
    what = json.loads(done.stdout)
    assert (what["verdict"]["outcome"], what["verdict"]["valid"], what["verdict"]["brake"]) == ("CRASH", True, None)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("CRASH at 50.") and last.endswith("s of the recording"), "the reason in one line"


def test_one_phase_is_called_that_in_every_file(plan: Path, tmp_path: Path) -> None:
    assert virtual(plan, "--phase", "3/20", "--out", tmp_path / "run").exit_code == 0
    (told,) = json.loads((tmp_path / "run" / "run.json").read_text())["laps"]
    (lap,) = json.loads((tmp_path / "run" / "replay.json").read_text())["laps"]
    assert (lap["burst_phase"], lap["burst_phases"]) == (3, 20)
    assert (told["phase"], told["phase_ns"]) == (3, lap["burst_phase_ns"]) and told["phase_ns"] > 0


def test_all_phases_and_the_run_directory(plan: Path, tmp_path: Path) -> None:
    pytest.importorskip("sim_vehicles.story.page.scene_html")
    run = tmp_path / "run"
    done = virtual(plan, "--phases", 4, "--loop", 2, "--out", run)
    assert done.exit_code == 0, done.output
    assert "crashes      0 of 8" in done.stdout and "lap by lap" in done.stdout
    assert "verdict      worst of 8 laps: AVOIDED" in done.stdout and " stands before X's way" in done.stdout
    assert "where the deciding tuple's time went" in done.stdout
    what = json.loads((run / "replay.json").read_text())
    assert [lap["burst_phase"] for lap in what["laps"]] == [0, 1, 2, 3] * 2
    assert what["verdict"]["laps"] == 8 and what["verdict"]["crashes"] == 0
    stages = what["verdict"]["deciding"]["split"]
    assert stages[0]["stage"] == "sensing" and "execution" in {one["stage"] for one in stages}
    assert (run / "scene.html").stat().st_size > 0 and (run / "trace" / "raw" / "a").is_dir()
    again = call("judge", run)
    assert again.exit_code == 0, again.output
    assert "where the deciding tuple's time went" in again.stdout and "lap by lap" not in again.stdout
    assert "verdict      worst of 8 laps" in call("judge", run, "--verbose").stdout
    assert json.loads((run / "replay.json").read_text()) == what, "twice gives the same"
    next((run / "trace" / "raw" / "a").glob("*/*.trace")).unlink()
    without = call("judge", run, "--json")
    assert without.exit_code == 0 and "not split: " in without.stderr
    assert json.loads(without.stdout)["deciding"]["split"] is None
    for damage in ({"laps": [3]}, {"seed": None, "inputs_hash": None, "verdict": {}}, {"utilisation": 3}):
        (run / "replay.json").write_text(json.dumps({**what, **damage}))
        damaged = call("judge", run, "--verbose")
        assert (damaged.exit_code, damaged.stderr.count("\n")) == (2, 1), damage
        assert "replay.json: is damaged: " in damaged.stderr
    (run / "replay.json").write_text(json.dumps({**what, "plan_hash": "0123456789abcdef"}))
    other = call("judge", run)
    assert other.exit_code == 2 and "but replay.json is of plan 01234567" in other.stderr.replace("\n", " ")


def test_judge_needs_a_run(tmp_path: Path) -> None:
    unjudged = live(Record(None, (), (), SCENE), not_judged="no output warns")
    for content, said in (
        (None, "replay.json: there is no such file"),
        ("{", "replay.json:1: is not JSON"),
        (json.dumps(unjudged.document()), "nothing to judge: no output warns"),
        (replayed(120), "holds no traces; `coordinator collect` makes a directory with them"),
    ):
        if content is not None:
            (tmp_path / "replay.json").write_text(content)
        done = call("judge", tmp_path)
        assert done.exit_code == 2 and said in done.stderr
    assert "is no directory" in call("judge", tmp_path / "none").stderr


def test_a_plan_that_warns_of_nothing_is_replayed_without_a_verdict(plan: Path, tmp_path: Path) -> None:
    write(tmp_path, small_plan(X, warns=False))
    done = virtual(plan, "--mcap", tmp_path / "x.mcap") if find_spec("mcap") else virtual(plan)
    assert done.exit_code == 0, done.output
    assert "verdict      none: the plan has no output of type vehicle.Warning" in done.stdout


def test_overload_is_said_in_words(tmp_path: Path) -> None:
    plan = write(tmp_path, small_plan(X, cost_ns=40 * MS))
    done = virtual(plan)
    assert "utilisation  a 240%" in done.stdout and "a: more is asked than there is" in done.stdout


def test_an_unreachable_agent(plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sim_vehicles.replay.live_laps.source", lambda address, name, tls: Source(address, name, timeout=0.2)
    )
    with socket.socket() as free:  # bound and not listening: nothing else can answer there
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        write(tmp_path, small_plan(X, warns=False), address)
        done = call("replay", "crossing_50", "--to", tmp_path / "addresses.json", *SHORT, "--out", tmp_path / "run")
    assert done.exit_code == 1
    assert f"source v2v: node a at {address} cannot be reached" in done.stderr
    what = json.loads((tmp_path / "run" / "replay.json").read_text())
    assert (what["ended"], what["sent"]) == ("failed", 0)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakeAgents], None]:
    """Puts agents of this process in place of real ones, and waits for nothing after the last burst."""

    def put(agents: FakeAgents) -> None:
        monkeypatch.setattr("sim_vehicles.replay.live_laps.source", agents.connect)
        monkeypatch.setattr("sim_vehicles.replay.live_laps.sink", agents.listen)
        monkeypatch.setattr("sim_vehicles.replay.live_laps.MARGIN_S", -0.3)
        monkeypatch.setattr("sim_vehicles.replay.live_laps.QUIET_S", 0.0)
        monkeypatch.setattr("sim_vehicles.replay.live_laps.PAUSE_S", 0.0)

    return put


def test_a_live_crash_at_another_rate_is_no_failed_verdict(plan: Path, fake: Callable[[FakeAgents], None]) -> None:
    fake(FakeAgents())
    to = plan.with_name("addresses.json")
    done = call("replay", "crossing_50", "--to", to, *SHORT, "--rate", "max", "--loop", 2)
    assert done.exit_code == 0, done.output
    assert "CRASH" in done.stdout and "not valid: rate max" in done.stdout and "between laps: " in done.stderr
    assert "lap 1: CRASH" in done.stderr and "lap 2: CRASH" in done.stderr


def test_a_signal_stops_it_with_the_summary(plan: Path, tmp_path: Path) -> None:
    """The command with fake agents in place of real ones; its first burst tells that it is running."""
    arguments = [
        "replay", "crossing_50", "--to", str(plan.with_name("addresses.json")), *SHORT,
        "--rate", "0.01", "--out", str(tmp_path / "run"), "--json",
    ]  # fmt: skip
    program = f"""
from sim_vehicles.replay import live_laps
from tests.sim_vehicles.replay.replay_fakes import FakeAgents
agents = FakeAgents()
agents.after = lambda warned: len(agents.sent) == 1 and print("running", flush=True)
live_laps.source, live_laps.sink = agents.connect, agents.listen
from sim_vehicles.cli.app import app
app({arguments!r})
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "running\n"
        os.kill(running.pid, signal.SIGTERM)
        out, err = running.communicate(timeout=60)
    assert running.returncode == 0, err
    what = json.loads(out)
    assert what == json.loads((tmp_path / "run" / "replay.json").read_text())
    assert what["ended"] == "interrupted"
    assert 0 < what["sent"] == what["admitted"]
    assert not what["verdict"]["valid"]
    assert what["inputs_hash"] in err


def test_a_second_signal_inside_the_first_ones_handler_does_not_block(plan: Path) -> None:
    class Stop(Event):
        calls = 0

        def set(self) -> None:
            self.calls += 1
            signal.raise_signal(signal.SIGTERM)
            super().set()

    agents = FakeAgents()
    options = Options("crossing_50", plan.with_name("addresses.json"), start_ns=9_500 * MS)
    done = LiveReplay(prepare(options), agents.connect, agents.listen)
    done.stop = stop = Stop()
    with _stopped_by_signals(done):
        signal.raise_signal(signal.SIGINT)
    assert stop.calls == 1 and stop.is_set()


def test_help_shows_examples() -> None:
    for name in ("record", "replay", "judge", "simulate"):
        done = call(name, "--help")
        assert done.exit_code == 0
        assert f"sim-vehicles {name} " in done.stdout


def test_record_without_sumo_says_what_to_install(tmp_path: Path) -> None:
    if find_spec("sumo") is None:
        done = call("record", "--speed", "50", "--out", tmp_path)
        assert done.exit_code == 1
        assert "pip install 'shimekiri[record]'" in done.stderr
    assert call("record", "--speed", "55", "--out", tmp_path).exit_code == 2


def test_without_typer_one_clear_line() -> None:
    program = "import sys; sys.modules['typer'] = None; from sim_vehicles.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "sim-vehicles needs typer, which is not installed: pip install 'shimekiri[vehicles]'"
        " (from a file: 'shimekiri-VERSION-py3-none-any.whl[vehicles]')\n"
    )


def test_judged_verdict_keys_are_the_contract(plan: Path) -> None:
    what: dict[str, Any] = json.loads(virtual(plan, "--json").stdout)
    assert {"outcome", "impact_kmh", "burst_phase", "deciding", "closed_form"} <= set(what["verdict"])
    assert {"vehicles", "occluders", "messages", "perceives"} <= set(what["scene"])
