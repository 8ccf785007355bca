"""Replays against a fake agent: what is sent, when, and what is written down."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Lock, get_ident
from typing import Any, NamedTuple

import pytest

from node_agent.connection import NoAnswerError, NotAcceptedError
from sim_vehicles.commands.replay import _stopped_by_signals
from sim_vehicles.durations import duration_ns
from sim_vehicles.errors import BadInputError, FeedError
from sim_vehicles.load import utilisation
from sim_vehicles.replay import Options, Prepared, prepare, start, summary, write_summary

MS = 1_000_000
ROOT = Path(__file__).parents[2]


class Refused(NamedTuple):
    why: str


class Sent(NamedTuple):
    at_ns: int
    thread: int
    address: str
    source: str
    n: int
    age_ms: float


class FakeAgents:
    """Takes every burst, except what `refuse` says; breaks at the burst that `break_at` counts."""

    def __init__(self, refuse: dict[str, int] | None = None, break_at: int = 0) -> None:
        self.refuse, self.break_at, self.closed, self.lock = refuse or {}, break_at, 0, Lock()
        self.sent: list[Sent] = []

    @contextmanager
    def connect(self, address: str, name: str) -> Iterator["FakeSource"]:
        yield FakeSource(self, address, name)
        self.closed += 1


class FakeSource:
    def __init__(self, agents: FakeAgents, address: str, name: str) -> None:
        self.agents, self.address, self.name = agents, address, name

    def send_many(self, values: Sequence[Any], *, age_ms: float) -> list[object]:
        with self.agents.lock:
            self.agents.sent.append(
                Sent(time.monotonic_ns(), get_ident(), self.address, self.name, len(values), age_ms)
            )
            refused = self.agents.refuse.get(self.name, 0)
            results: list[object] = [Refused("too old")] * refused + [object()] * (len(values) - refused)
            if len(self.agents.sent) == self.agents.break_at:
                raise NoAnswerError("no answer within 5 s", [*results[:3], *[None] * (len(values) - 3)])
            return results


def plan_of(v2v: int = 20) -> dict[str, Any]:
    def source(at: str, type_: str, burst: int) -> dict[str, Any]:
        return {"at": at, "type": type_, "arrival": {"kind": "burst", "burst": burst, "period_ns": 500 * MS}}

    def operator(*inputs: str, mean: float | None = None) -> dict[str, Any]:
        return {"in": list(inputs), "cost_ns": MS, "selectivity": mean and {"mean": mean}, "join": False}

    return {
        "hash": "00" * 32,
        "graph": {
            "sources": {
                "sensor": source("a", "vehicle.Sensor", 10),
                "v2v": source("a", "vehicle.Cpm", v2v),
                "centre": source("b", "vehicle.Hazard", 100),
            },
            "operators": {
                "O1": operator("sensor"), "O2": operator("v2v"), "O3": operator("O2", mean=0.5), "O4": operator("O3"),
                "O6": operator("centre"),
            },
        },
        "placement": {"O1": "a", "O2": "a", "O3": "b", "O4": "b", "O6": "b"},
        "cluster": {"nodes": {"a": {"speed": 1, "emulate_cost_ns": 0}, "b": {"speed": 2, "emulate_cost_ns": 2 * MS}}},
    }  # fmt: skip


@pytest.fixture
def options(tmp_path: Path) -> Options:
    (tmp_path / "plan.json").write_text(json.dumps(plan_of()))
    nodes = {
        "a": {"control": "127.0.0.1:1", "data": "127.0.0.1:2"},
        "b": {"control": "127.0.0.1:3", "data": "127.0.0.1:4"},
    }
    (tmp_path / "addresses.json").write_text(json.dumps({"nodes": nodes}))
    return Options("crossing_50", tmp_path / "addresses.json", duration_ns=2_000 * MS, rate=10)


def changed(options: Options, **changes: Any) -> Options:
    return Options(**{**vars(options), **changes})


def run(prepared: Prepared, agents: FakeAgents) -> dict[str, Any]:
    live, failure = start(prepared, agents.connect), None
    try:
        live.run(prepared.bursts)
    except FeedError as bad:
        failure = bad
    return summary(prepared, live, failure)


def test_order_and_instants_of_bursts(options: Options) -> None:
    prepared = prepare(options)
    # Of 20 V2V messages 16, later 18, are measured 100 ms before; the rest follows 50 ms after them.
    assert [(one.source, one.at_ns // MS, one.age_ns // MS, len(one.values)) for one in prepared.bursts] == [
        (name, at + later, age, n)
        for at, old in ((4000, 16), (4500, 16), (5000, 18), (5500, 18))
        for name, later, age, n in (
            ("centre", -5, 0, 100), ("v2v", 0, 100, old), ("v2v", 0, 50, 20 - old), ("sensor", 0, 0, 10),
        )
    ]  # fmt: skip
    agents = FakeAgents()
    what = run(prepared, agents)
    assert (what["ended"], what["bursts"], what["sent"], what["admitted"], what["refused"]) == ("done", 16, 520, 520, 0)
    assert agents.closed == 3
    at_a = [sent.source for sent in agents.sent if sent.address == "127.0.0.1:2"]
    assert at_a == ["v2v", "v2v", "sensor"] * 4, "sensor directly after V2V"
    assert {sent.age_ms for sent in agents.sent if sent.source == "v2v"} == {100, 50}
    assert len({sent.thread for sent in agents.sent}) == 2, "one thread per node"
    assert all(source["late_ns"]["p50"] >= 0 for source in what["sources"].values()), (
        "nothing leaves before its instant"
    )


def test_summary_counts_refusals_per_source(options: Options, tmp_path: Path) -> None:
    prepared = prepare(options)
    what = run(prepared, FakeAgents(refuse={"v2v": 5}))
    assert (what["sent"], what["admitted"], what["refused"]) == (520, 500, 20)
    assert what["sources"]["v2v"]["refused_why"] == {"too old": 20}
    assert what["sources"]["sensor"]["refused"] == 0
    path = write_summary(tmp_path / "new" / "run", what)
    assert json.loads(path.read_text()) == what
    assert what["verdict"] is None
    assert {key: what[key] for key in ("scenario", "rate", "seed", "inputs_hash")} == {
        "scenario": "crossing_50", "rate": 10, "seed": 1, "inputs_hash": prepared.inputs_hash,
    }  # fmt: skip


def test_an_agent_that_stops_answering_ends_the_replay(options: Options) -> None:
    what = run(prepare(options), FakeAgents(break_at=2))
    assert what["ended"] == "failed"
    assert "no answer within 5 s" in what["why"]
    assert what["bursts"] < 16
    assert what["sent"] == what["admitted"] + what["refused"] + what["unanswered"]
    assert what["unanswered"] in (97, 15, 13, 1)


def test_stop_ends_it_early(options: Options) -> None:
    prepared = prepare(changed(options, rate=0.001))
    live = start(prepared, FakeAgents().connect)
    live.on_burst = lambda burst: live.stop.set() if burst.source == "sensor" else None
    live.run(prepared.bursts)
    assert summary(prepared, live)["ended"] == "interrupted"


def test_inputs_depend_on_seed_and_scenario_not_on_the_rate(options: Options) -> None:
    cases: dict[str, dict[str, Any]] = {
        "same": {}, "rate": {"rate": 1}, "seed": {"seed": 2}, "scenario": {"scenario": "crossing_30"}, "n": {"v2v": 15},
        "age": {"age_ns": 50 * MS}, "start": {"start_ns": 4_100 * MS},
    }  # fmt: skip
    hashes = {key: prepare(changed(options, **changes)).inputs_hash for key, changes in cases.items()}
    assert hashes["same"] == hashes["rate"]
    assert len(set(hashes.values())) == len(hashes) - 1


def test_start_shifts_the_phase_and_the_recording_ends_the_bursts(options: Options) -> None:
    prepared = prepare(changed(options, start_ns=15_300 * MS, duration_ns=60_000 * MS))
    assert sorted({burst.at_ns // MS for burst in prepared.bursts}) == [15_295, 15_300, 15_795, 15_800]


def test_v2v_overrides_the_burst_of_the_plan(options: Options) -> None:
    sent = Counter(b.at_ns for b in prepare(changed(options, v2v=7)).bursts if b.source == "v2v" for _ in b.values)
    assert set(sent.values()) == {7}


def test_utilisation_is_computed_from_the_plan() -> None:
    sizes = {"sensor": (10, 500 * MS), "v2v": (20, 500 * MS), "centre": (100, 500 * MS)}
    # a: (10 + 20) tuples of 1 ms in 500 ms; b: (20 + 10 + 100) of max(1 ms / 2, 2 ms emulated)
    assert utilisation(plan_of(), sizes, 1) == {"a": 0.06, "b": 0.52}
    assert utilisation(plan_of(), sizes, 4) == {"a": 0.24, "b": 2.08}


def test_bad_options_and_files(options: Options, tmp_path: Path) -> None:
    def said(**changes: Any) -> str:
        with pytest.raises(BadInputError) as refused:
            prepare(changed(options, **changes))
        return str(refused.value)

    assert "did you mean crossing_50" in said(scenario="crossing_500")
    assert "--rate" in said(rate=0.0)
    assert "--rate" in said(rate=float("nan"))
    assert "--v2v" in said(v2v=0)
    assert "outside the recording (0 to 16 s)" in said(start_ns=17_000 * MS)
    assert "there is no such file; it should be a plan" in said(plan=tmp_path / "none.json")
    assert "there is no such file" in said(addresses=tmp_path / "none.json")
    for name, content, expected in (
        ("text.json", "{\n plan", "text.json:2: is not JSON"),
        ("list.json", "[]", "is not a JSON object"),
        ("empty.json", "{}", "is no plan: graph.sources is missing"),
    ):
        (tmp_path / name).write_text(content)
        assert expected in said(plan=tmp_path / name)
    for change, expected in (
        (
            {"type": "json"},
            "source v2v takes json; a scenario can feed only vehicle.Cpm, vehicle.Hazard, vehicle.Sensor",
        ),
        ({"arrival": {"kind": "rate"}}, "source v2v arrives as 'rate'; a replay needs burst and period"),
        ({"arrival": {"kind": "burst", "burst": 0, "period_ns": 5}}, "source v2v needs a positive burst"),
        ({"at": "c"}, "node c, where source v2v enters, has no data address here"),
    ):
        plan = plan_of()
        plan["graph"]["sources"]["v2v"].update(change)
        (tmp_path / "changed.json").write_text(json.dumps(plan))
        assert expected in said(plan=tmp_path / "changed.json")


def test_durations() -> None:
    assert duration_ns("10s", "--x") == 10_000 * MS
    assert duration_ns("1.5 ms", "--x") == 1_500_000
    assert duration_ns("2 min", "--x") == 120_000 * MS
    for text, said in (
        ("10", "the unit is missing"),
        ("10h", "'h' is no unit"),
        ("-1s", "no duration"),
        ("nan s", "no duration"),
    ):
        with pytest.raises(BadInputError, match=said):
            duration_ns(text, "--x")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "sim_vehicles", *arguments]


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def replay_arguments(options: Options) -> list[str]:
    return ["replay", "crossing_50", "--to", str(options.addresses), "--duration", "2s"]


def test_command_says_what_is_wrong_with_its_input(options: Options) -> None:
    done = call("replay", "crossing_55", "--to", str(options.addresses))
    assert done.returncode == 2
    assert "crossing_55: no such scenario; did you mean crossing_50?" in done.stderr
    assert "Traceback" not in done.stderr
    done = call(*replay_arguments(options), "--age", "100")
    assert done.returncode == 2
    assert "--age: '100': the unit is missing" in done.stderr


def test_command_with_an_unreachable_agent(options: Options, tmp_path: Path) -> None:
    with socket.socket() as free:  # bound and not listening: nothing else can answer there
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        options.addresses.write_text(json.dumps({"nodes": {node: {"data": address} for node in "ab"}}))
        done = call(*replay_arguments(options), "--out", str(tmp_path / "run"))
    assert done.returncode == 1
    assert f"source centre: node b at {address} cannot be reached" in done.stderr
    assert "Traceback" not in done.stderr
    what = json.loads((tmp_path / "run" / "replay.json").read_text())
    assert (what["ended"], what["sent"]) == ("failed", 0)


def test_a_source_that_an_agent_does_not_have_points_to_the_deployment(options: Options) -> None:
    def refuse(address: str, name: str) -> Any:
        raise NotAcceptedError(f"the agent at {address} refuses source:{name}")

    prepared = prepare(options)
    with pytest.raises(FeedError, match=r"source centre: the agent at .* refuses .*; deploy the plan first"):
        start(prepared, refuse).run(prepared.bursts)


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_signals_stop_it_with_the_summary(options: Options, tmp_path: Path, which: signal.Signals) -> None:
    """The command with the fake agents in place of the real ones; its first burst tells that it is running."""
    program = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("fake", {str(Path(__file__))!r})
fake = importlib.util.module_from_spec(spec)
sys.modules["fake"] = fake
spec.loader.exec_module(fake)
import sim_vehicles.live as live
agents = fake.FakeAgents()
live.source = agents.connect
plain = fake.FakeSource.send_many
def told(self, values, *, age_ms):
    if not agents.sent:
        print("running", flush=True)
    return plain(self, values, age_ms=age_ms)
fake.FakeSource.send_many = told
from sim_vehicles.cli import app
app({[*replay_arguments(options), "--rate", "0.01", "--out", str(tmp_path / "run"), "--json"]!r})
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "running\n"
        os.kill(running.pid, which)
        out, err = running.communicate(timeout=60)
    assert running.returncode == 0, err
    what = json.loads(out)
    assert what == json.loads((tmp_path / "run" / "replay.json").read_text())
    assert what["ended"] == "interrupted"
    assert 0 < what["sent"] == what["admitted"]
    assert what["inputs_hash"] in err


def test_a_second_signal_inside_the_first_ones_handler_does_not_block(options: Options) -> None:
    class Stop(Event):
        calls = 0

        def set(self) -> None:
            self.calls += 1
            signal.raise_signal(signal.SIGTERM)
            super().set()

    live = start(prepare(options), FakeAgents().connect)
    live.stop = stop = Stop()
    with _stopped_by_signals(live):
        signal.raise_signal(signal.SIGINT)
    assert stop.calls == 1 and stop.is_set()


def test_help_shows_examples() -> None:
    for name in ("record", "replay", "simulate"):
        done = call(name, "--help")
        assert done.returncode == 0
        assert f"sim-vehicles {name} " in done.stdout


def test_record_without_sumo_says_what_to_install(tmp_path: Path) -> None:
    if find_spec("sumo") is None:
        done = call("record", "--speed", "50", "--out", str(tmp_path))
        assert done.returncode == 1
        assert "pip install 'shimekiri[record]'" in done.stderr
    assert call("record", "--speed", "55", "--out", str(tmp_path)).returncode == 2


def test_without_typer_one_clear_line() -> None:
    program = "import sys; sys.modules['typer'] = None; from sim_vehicles.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "sim-vehicles needs typer, which is not installed: pip install 'shimekiri[vehicles]'\n"
