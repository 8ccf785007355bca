"""Replays into fake agents: what is prepared, what is sent, when, and what is written down."""

import json
from collections import Counter
from dataclasses import replace
from itertools import groupby
from math import inf
from pathlib import Path
from typing import Any

import pytest

from node_agent.client.connection import NotAcceptedError
from node_agent.virtual.durations import duration_ns
from protos import plan_document
from sim_vehicles.errors import BadInputError, FeedError
from sim_vehicles.inputs.load import utilisation
from sim_vehicles.replay.live_laps import LiveReplay
from sim_vehicles.replay.preparation import Options, Prepared, parse_phase, parse_rate, prepare
from sim_vehicles.replay.replay_document import from_document
from sim_vehicles.replay.replay_summary import live_summary, virtual_summary, write_summary
from tests.sentences import Wording
from tests.sim_vehicles.replay.replay_fakes import FakeAgents
from tests.sim_vehicles.replay.replay_plans import small_plan
from tests.whole_plans import whole

SAID = Wording("replay", "options")

MS = 1_000_000


def plan_of(v2v: int = 20) -> dict[str, Any]:
    def source(at: str, type_: str, burst: int) -> dict[str, Any]:
        return {"at": at, "type": type_, "arrival": {"kind": "burst", "burst": burst, "period_ns": 500 * MS}}

    def operator(*inputs: str, mean: float | None = None) -> dict[str, Any]:
        return {
            "in": list(inputs),
            "cost_ns": MS,
            "selectivity": None if mean is None else {"mean": mean},
            "join": False,
        }

    return whole({
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
    })  # fmt: skip


@pytest.fixture
def options(tmp_path: Path) -> Options:
    (tmp_path / "plan.json").write_text(json.dumps(plan_of()))
    nodes = {
        "a": {"control": "127.0.0.1:1", "data": "127.0.0.1:2"},
        "b": {"control": "127.0.0.1:3", "data": "127.0.0.1:4"},
    }
    (tmp_path / "addresses.json").write_text(json.dumps({"nodes": nodes}))
    return Options("crossing_50", tmp_path / "addresses.json", start_ns=4_000 * MS, duration_ns=2_000 * MS, rate=10)


def run(prepared: Prepared, agents: FakeAgents) -> dict[str, Any]:
    done, failure = LiveReplay(prepared, agents.connect, agents.listen), None
    try:
        done.run()
    except FeedError as bad:
        failure = bad
    return live_summary(prepared, done, failure).document()


def test_order_and_instants_of_bursts(options: Options) -> None:
    prepared = prepare(options)
    together = [
        (name, at_ns // MS, [(one.age_ns // MS, len(one.values)) for one in some])
        for (name, at_ns), some in groupby(prepared.bursts, key=lambda one: (one.source, one.at_ns))
    ]
    assert [(name, at) for name, at, _ in together] == [
        (name, at + later)
        for at in (4000, 4500, 5000, 5500)
        for name, later in (("centre", -5), ("v2v", 0), ("sensor", 0))
    ]
    v2v = [parts for name, _, parts in together if name == "v2v"]
    # As many as there are measured 100 ms before; the rest of the 20 follows 50 ms after them.
    assert all([age for age, _ in parts] == [100, 50] and sum(n for _, n in parts) == 20 for parts in v2v)
    agents = FakeAgents()
    what = run(prepared, agents)
    assert (what["ended"], what["bursts"], what["sent"], what["admitted"], what["refused"]) == ("done", 16, 520, 520, 0)
    assert agents.closed == 3
    at_a = [sent for sent in agents.sent if sent.address == "127.0.0.1:2"]
    assert [sent.source for sent in at_a] == ["v2v", "sensor"] * 4, "sensor directly after V2V"
    for ((_, old), _), sent in zip(v2v, at_a[::2], strict=True):
        due_ms = [100] * old + [50] * (20 - old)
        assert all(age >= due for age, due in zip(sent.ages_ms, due_ms, strict=True)), "a late one is older by as much"
    assert {age for sent in agents.sent if sent.source != "v2v" for age in sent.ages_ms} == {0}
    assert len({sent.thread for sent in agents.sent}) == 2, "one thread per node"
    assert all(source["late_ns"]["p50"] >= 0 for source in what["sources"].values()), (
        "nothing leaves before its instant"
    )


def test_summary_counts_refusals_per_source(options: Options, tmp_path: Path) -> None:
    prepared = prepare(options)
    what = run(prepared, FakeAgents(refuse={"v2v": 4}))
    assert (what["sent"], what["admitted"], what["refused"]) == (520, 504, 16)
    assert what["sources"]["v2v"]["refused_why"] == {"too old": 16}
    assert what["sources"]["sensor"]["refused"] == 0
    path = write_summary(tmp_path / "new" / "run", from_document(what))
    assert json.loads(path.read_text()) == what
    assert what["verdict"] is None and "no output of type vehicle.Warning" in what["not_judged"]
    assert what["scene"]["ego"] == "A" and what["laps"] == what["warnings"] == []
    assert {key: what[key] for key in ("scenario", "rate", "seed", "inputs_hash")} == {
        "scenario": "crossing_50", "rate": 10, "seed": 1, "inputs_hash": prepared.inputs.hash,
    }  # fmt: skip


def test_an_agent_that_stops_answering_ends_the_replay(options: Options) -> None:
    what = run(prepare(options), FakeAgents(break_at=2))
    assert what["ended"] == "failed"
    assert "no answer within 5 s" in what["why"]
    assert what["bursts"] < what["bursts_planned"] <= 16
    assert what["sent"] == what["admitted"] + what["refused"] + what["unanswered"]
    assert what["unanswered"] in (97, 17, 7)


def test_stop_ends_it_early(options: Options) -> None:
    prepared = prepare(replace(options, rate=0.1))
    agents = FakeAgents()
    done = LiveReplay(prepared, agents.connect, agents.listen)
    done.on_burst = lambda burst: done.stop.set() if burst.source == "sensor" else None
    done.run()
    what = live_summary(prepared, done).document()
    assert what["ended"] == "interrupted" and what["bursts"] < what["bursts_planned"] == 16


def test_at_rate_max_nothing_waits(options: Options) -> None:
    what = run(prepare(replace(options, rate=inf, duration_ns=None, until_ns=16_000 * MS)), FakeAgents())
    assert what["rate"] == "max" and what["bursts"] == what["bursts_planned"]
    assert what["rate_reached"] > 0 and set(what["utilisation"]) == {"a", "b"}
    assert what["sources"]["v2v"]["late_ns"] == {"p50": None, "max": None}, "there is no instant to be late at"
    json.dumps(what, allow_nan=False)


def test_inputs_depend_on_what_is_asked_not_on_the_rate(options: Options) -> None:
    cases: dict[str, dict[str, Any]] = {
        "same": {}, "rate": {"rate": 1}, "seed": {"seed": 2}, "scenario": {"scenario": "crossing_30"}, "n": {"v2v": 15},
        "age": {"age_ns": 50 * MS}, "start": {"start_ns": 4_100 * MS}, "phase": {"phase": (3, 20)},
        "messages": {"messages": "etsi"}, "until": {"duration_ns": None, "until_ns": 7_000 * MS},
    }  # fmt: skip
    hashes = {key: prepare(replace(options, **changes)).inputs.hash for key, changes in cases.items()}
    assert hashes["same"] == hashes["rate"]
    assert len(set(hashes.values())) == len(hashes) - 1


def test_start_shifts_the_bursts_and_the_recording_ends_them(options: Options) -> None:
    prepared = prepare(replace(options, start_ns=15_300 * MS, duration_ns=60_000 * MS))
    assert sorted({burst.at_ns // MS for burst in prepared.bursts}) == [15_295, 15_300, 15_795, 15_800]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"duration_ns": None, "until_ns": 60_000 * MS},
            "the recording ends at 16 s, before the 60 s that --until asks",
        ),
        ({"duration_ns": 60_000 * MS}, "the recording ends at 16 s, before the 64 s that --duration asks"),
        ({"duration_ns": 12_001 * MS}, "the recording ends at 16 s, before the 16.001 s that --duration asks"),
        ({"duration_ns": 12_000 * MS}, None),
        ({"duration_ns": None, "start_ns": 15_000 * MS}, None),  # nobody asked for the default 10 s
    ],
)
def test_a_stretch_beyond_the_recordings_end_is_noted(
    options: Options, changes: dict[str, Any], said: str | None
) -> None:
    prepared = prepare(replace(options, **changes))
    noted = list(virtual_summary(prepared, [], {}).head.notes)
    assert noted == prepared.cut_short
    assert noted == ([] if said is None else [f"{said} for: the replay ends there"])


def test_a_phase_shifts_the_bursts_by_its_share_of_the_period(options: Options) -> None:
    prepared = prepare(replace(options, phase=(3, 20)))
    assert prepared.phase_ns == 75 * MS
    assert min(burst.at_ns for burst in prepared.bursts if burst.source == "v2v") == 4_075 * MS


def test_v2v_overrides_the_burst_of_the_plan(options: Options) -> None:
    sent = Counter(b.at_ns for b in prepare(replace(options, v2v=7)).bursts if b.source == "v2v" for _ in b.values)
    assert set(sent.values()) == {7}


def test_utilisation_is_computed_from_the_plan() -> None:
    sizes = {"sensor": (10, 500 * MS), "v2v": (20, 500 * MS), "centre": (100, 500 * MS)}
    # a: (10 + 20) tuples of 1 ms in 500 ms; b: (20 + 10 + 100) of max(1 ms / 2, 2 ms emulated)
    made = plan_document.of(plan_of())
    assert utilisation(made, sizes, 1) == {"a": 0.06, "b": 0.52}
    assert utilisation(made, sizes, 4) == {"a": 0.24, "b": 2.08}


BAD_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"scenario": "crossing_500"}, "unknown_scenario crossing_500"),
    ({"rate": 0.0}, "out_of_range --rate"),
    ({"rate": float("nan")}, "out_of_range --rate"),
    ({"rate": -inf}, "out_of_range --rate"),
    ({"v2v": 0}, "out_of_range --v2v"),
    ({"age_ns": 2_000 * MS}, "out_of_range --age"),
    ({"start_ns": 17_000 * MS}, "out_of_range --start"),
    ({"until_ns": 9_000 * MS}, "options_do_not_fit --duration"),
    ({"duration_ns": None, "until_ns": 3_000 * MS}, "out_of_range --until"),
    ({"duration_ns": 0}, "out_of_range --duration"),
    ({"start_ns": 16_000 * MS, "phase": (19, 20)}, "no_burst --start"),
    ({"addresses": None}, "options_do_not_fit --to"),
    ({"virtual": Path("plan.json")}, "options_do_not_fit --to"),
    ({"phases": 20}, "options_do_not_fit --phases"),
    ({"phases": 0}, "out_of_range --phases"),
    ({"phase": (5, 3)}, "out_of_range --phase"),
    ({"phase": (0, 0)}, "out_of_range --phase"),
    ({"laps": -1}, "out_of_range --loop"),
    ({"laps": 2, "duration_ns": 900 * MS}, "laps_too_short --loop"),
    ({"messages": "flat"}, "unknown_word --messages"),
    ({"ego": "Z"}, "crossing_50.csv.gz unknown_vehicle Z"),
    ({"operators": (Path("x.py"),)}, "options_do_not_fit --operators"),
]


@pytest.mark.parametrize(("changes", "expected"), BAD_OPTIONS, ids=[expected[:30] for _, expected in BAD_OPTIONS])
def test_bad_options(options: Options, changes: dict[str, Any], expected: str) -> None:
    with SAID.refuses(expected):
        prepare(replace(options, **changes))


def test_bad_options_of_virtual_time(options: Options, tmp_path: Path) -> None:
    virtual = replace(options, addresses=None, virtual=tmp_path / "plan.json", rate=1.0)
    assert prepare(virtual).bursts == prepare(options).bursts
    for changes, expected in (
        ({"rate": 4.0}, "options_do_not_fit --rate"),
        ({"plan": tmp_path / "plan.json"}, "options_do_not_fit --plan"),
        ({"phases": 20, "phase": (1, 20)}, "options_do_not_fit --phase"),
        ({"laps": 0}, "out_of_range --loop"),
    ):
        with SAID.refuses(expected):
            prepare(replace(virtual, **changes))


def test_bad_plans_and_addresses(options: Options, tmp_path: Path) -> None:
    def said(**changes: Any) -> str:
        with pytest.raises(BadInputError) as refused:
            prepare(replace(options, **changes))
        return str(refused.value)

    assert "there is no such file; it should be a plan" in said(plan=tmp_path / "none.json")
    assert "there is no such file" in said(addresses=tmp_path / "none.json")
    for name, content, expected in (
        ("text.json", "{\n plan", "text.json:2: is not JSON"),
        ("list.json", "[]", "is not a JSON object"),
        ("empty.json", "{}", "empty.json: is not a plan; make it with `coordinator plan`"),
        ("bare.json", json.dumps(whole({})), "the plan has no source"),
        ("half.json", json.dumps(whole({"graph": plan_of()["graph"]})), "is no complete plan"),
    ):
        (tmp_path / name).write_text(content)
        assert expected in said(plan=tmp_path / name)
    for change, expected in (
        (
            {"type": "json"},
            "source v2v takes json; a scenario can feed only vehicle.Cpm, vehicle.Hazard, vehicle.Sensor",
        ),
        (
            {"arrival": {"kind": "rate", "rate_per_s": 1, "burst": 1}},
            "source v2v arrives as 'rate'; a replay needs burst and period",
        ),
        ({"arrival": {"kind": "burst", "burst": 0, "period_ns": 5}}, "source v2v needs a positive burst"),
        ({"at": "c"}, "node c, where source v2v enters, has no data address here"),
    ):
        plan = plan_of()
        plan["graph"]["sources"]["v2v"].update(change)
        (tmp_path / "changed.json").write_text(json.dumps(plan))
        assert expected in said(plan=tmp_path / "changed.json")
    plan = small_plan(8)
    plan["graph"]["outputs"]["warning"]["at"] = "z"
    (tmp_path / "changed.json").write_text(json.dumps(plan))
    assert "node z, where output warning leaves, has no data address here" in said(plan=tmp_path / "changed.json")


def test_a_source_that_an_agent_does_not_have_points_to_the_deployment(options: Options) -> None:
    def refuse(address: str, name: str) -> Any:
        raise NotAcceptedError("refused", f"the agent at {address} refuses source:{name}")

    done = LiveReplay(prepare(options), refuse, FakeAgents().listen)
    with SAID.refuses("not_accepted centre"):
        done.run()


def test_durations() -> None:
    assert duration_ns("10s", "--x") == 10_000 * MS
    assert duration_ns("1.5 ms", "--x") == 1_500_000
    assert duration_ns("2 min", "--x") == 120_000 * MS
    for text, said in (
        ("10", "no_unit --x"),
        ("10h", "no_unit --x"),
        ("-1s", "no_duration --x"),
        ("nan s", "no_duration --x"),
    ):
        with SAID.refuses(said):
            duration_ns(text, "--x")


def test_rates_and_phases_as_written() -> None:
    assert (parse_rate("1"), parse_rate("0.5"), parse_rate(" max ")) == (1.0, 0.5, inf)
    assert parse_phase(" 3 / 20") == (3, 20)
    for text in ("fast", "", "1/2"):
        with SAID.refuses("no_number --rate"):
            parse_rate(text)
    for text in ("3", "3/", "/20", "-1/20", "1.5/20", "3/20/2", "1/" + "9" * 30):
        with SAID.refuses("wrong_form --phase"):
            parse_phase(text)
