"""Costs, arrivals, links, the closed loop and the command of the virtual cluster."""

import json
import os
import statistics
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.wrappers_pb2 import DoubleValue
from typer.testing import CliRunner

from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from node_agent.operators.registry import Registry
from node_agent.virtual import random_draws
from node_agent.virtual.arrivals import bursts
from node_agent.virtual.cost_model import parse_jitter
from node_agent.virtual.plan_file import typed
from node_agent.virtual.run import simulate, write_run
from node_agent.virtual.scenario import Scenario, virtual_plan
from node_agent.virtual.world import Delivery, Offer, Stub
from protos import records
from protos.plan.arrivals import Arrival, BurstArrival, JcpArrival, RateArrival, TraceArrival
from protos.plan_document import Plan
from sim_vehicles.__main__ import main
from sim_vehicles.cli.app import app
from tests.sentences import Wording
from tests.simulation.planned_queries import MS, paper, planned

SAID = Wording("simulate", "scenario")

TWO_NODES = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", memory: 64 MiB}
  b: {address: "127.0.0.1:7710", memory: 64 MiB, speed: 2}
links: [{between: [a, b], latency: 3 ms, bandwidth: 1 Mbit/s}]
operators: operators.json
security: insecure-loopback
"""

HOP = """
shimekiri: 1
query: hop
sources:
  p: {at: a, type: json, arrival: {burst: 3, period: 1 s}}
operators:
  O1: {run: pass, in: p, cost: 4 ms, nodes: [b]}
outputs:
  out: {from: O1, at: a, deadline: 100 ms}
"""

HALVES = """
shimekiri: 1
query: halves
sources:
  s: {at: a, type: json, arrival: {burst: 1, period: 1 s}}
operators:
  one:  {run: pass, in: s, cost: 1 ms}
  two:  {run: pass, in: one, cost: 1 ms}
  both: {run: union, in: [one, two], cost: 1 ms}
  pair: {run: join, in: [both, one], cost: 1 ms}  # of two with the same lineage one finds no other half
outputs:
  out: {from: pair, at: a, deadline: 900 ms}
"""


@pytest.mark.parametrize(("text", "cv"), [("exp", 1.0), ("lognormal:cv=1", 1.0), ("uniform:0.5,1.5", 0.2887)])
def test_jitter_has_mean_1_and_the_variation_it_says(text: str, cv: float) -> None:
    quantile = parse_jitter(text).quantile
    assert quantile is not None
    drawn = [quantile(random_draws.uniform(random_draws.key(7, i))) for i in range(40_000)]
    assert statistics.mean(drawn) == pytest.approx(1, abs=0.02)
    assert statistics.pstdev(drawn) == pytest.approx(cv, abs=0.06)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "unknown_jitter"),
        ("normal", "unknown_jitter"),
        ("lognormal", "no_factor"),
        ("lognormal:cv=-1", "no_factor"),
        ("uniform:2,1", "factors_in_wrong_order"),
        ("uniform:1", "no_factor"),
        ("exp:2", "unknown_jitter"),
        ("uniform:nan,1", "no_factor"),
    ],
)
def test_a_jitter_that_cannot_be_meant_is_refused(text: str, code: str) -> None:
    with SAID.refuses(f"{code} --jitter"):
        parse_jitter(text)


def test_a_link_takes_its_latency_and_sends_one_tuple_after_the_other() -> None:
    done = simulate(planned(HOP, TWO_NODES))
    facts = [list(records.unpack_records(trace.records)) for trace in done.traces]
    sent = [fact for fact in facts[0] if isinstance(fact, records.Sent)]
    received = [fact for fact in facts[1] if isinstance(fact, records.Received)]
    assert [fact.link_seq for fact in sent] == [fact.link_seq for fact in received] == [1, 2, 3]
    assert [fact.sent_ns for fact in received] == [fact.at_ns for fact in sent]
    # 48 bytes of a tuple and 22 of {"seq":1,"source":"p"} at 1 Mbit/s
    assert [fact.at_ns - sent[0].at_ns for fact in received] == [3 * MS + i * 70 * 8_000 for i in (1, 2, 3)]
    assert [fact.end_ns - fact.start_ns for fact in facts[1] if isinstance(fact, records.Ran)] == [
        2 * MS
    ] * 3  # at speed 2


def test_a_lost_tuple_never_arrives_and_the_ledgers_balance(tmp_path: Path) -> None:
    """A later tuple acknowledges the lost one with it; the last ones are resent, then given up."""
    done = simulate(planned(HOP, TWO_NODES), Scenario(trials=20, loss=0.4))
    write_run(done, tmp_path / "run")
    found = verdict(read_run(tmp_path / "run")).document()
    facts = [fact for trace in done.traces for fact in records.unpack_records(trace.records)]
    sent, received, gave_up = (
        {(fact.flags, fact.stream, fact.epoch, fact.seq) for fact in facts if isinstance(fact, kind)}
        for kind in (records.Sent, records.Received, records.GaveUp)
    )
    lost = sent - received
    assert received < sent and set() < gave_up < lost
    assert found["conservation"]["balanced"] and found["completeness"]["complete"]
    out = found["outputs"]["out"]
    assert out["lost"] == len(lost) and out["met"] == 60 - len(lost)


def test_arrivals_of_each_kind() -> None:
    plan = planned(HOP, TWO_NODES)
    graph, source = plan.graph, plan.graph.sources["p"]

    def instants(arrival: Arrival, **scenario: Any) -> list[tuple[int, int]]:
        made = virtual_plan(replace(plan, graph=replace(graph, sources={"p": replace(source, arrival=arrival)})))
        return [(b.at_ns // MS, b.tuples) for b in bursts(made, Scenario(**scenario), 1)]

    burst = BurstArrival(burst=3, period_ns=50 * MS)
    assert instants(burst, bursts=2, phase_ns={"p": 5 * MS}) == [(5, 3), (55, 3)]
    assert instants(burst, burst={"p": 7}) == [(0, 7)]
    assert instants(RateArrival(rate_per_s=4.0, burst=2)) == [
        (0, 2),
        (250, 1),
        (500, 1),
        (750, 1),
        (1000, 1),
    ]
    jcp = JcpArrival(burst=1, period_ns=10 * MS, min_gap_ns=4 * MS, early_ns=5 * MS, late_ns=5 * MS)
    found = [at for at, _ in instants(jcp, bursts=100)]
    assert all(abs(at - number * 10) <= 10 for number, at in enumerate(found))
    assert all(b - a >= 3 for a, b in pairwise(found)) and len(found) == 100
    with SAID.refuses("arrivals_not_simulated p"):
        instants(TraceArrival(file="x", sha256="", burst=1, tuples=1, span_ns=0, counts=(1,), spans_ns=(0,)))


class Braking:
    """Offers tuples until it is told of a result."""

    def __init__(self) -> None:
        self.told: list[Delivery] = []
        self.asked: list[tuple[int, int]] = []

    def begin(self, trial: int) -> None:
        self.told.clear()

    def offer(self, source: str, seq: int, at_ns: int) -> Offer | None:
        self.asked.append((seq, at_ns))
        return None if self.told else Offer({"n": seq}, age_ns=at_ns // 2)

    def deliver(self, delivery: Delivery) -> None:
        self.told.append(delivery)


def test_a_closed_loop_is_asked_and_told_in_the_order_of_time() -> None:
    world = Braking()
    done = simulate(planned(HOP, TWO_NODES), Scenario(bursts=3), world=world)
    assert (
        done.admitted == 3 and world.asked == [(i, 0) for i in (1, 2, 3)] + [(4, 1000 * MS)] * 3 + [(4, 2000 * MS)] * 3
    )
    assert [delivery.payload for delivery in world.told] == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert all(delivery.at_ns == delivery.latency_ns > 0 for delivery in world.told)


def test_trials_without_jitter_are_alike_and_seeds_differ() -> None:
    plain = simulate(paper(15), Scenario(trials=3), trace=False).outputs["warning"].latencies_ns
    assert plain[:7] == plain[7:14] == plain[14:]
    exp = parse_jitter("exp")
    one, other = (simulate(paper(15), Scenario(seed=seed, jitter=exp), trace=False) for seed in (1, 2))
    assert one.outputs["warning"].latencies_ns != other.outputs["warning"].latencies_ns


def test_a_trial_begins_after_what_the_one_before_waited_for_was_given_up(tmp_path: Path) -> None:
    done = simulate(planned(HALVES, TWO_NODES, dict.fromkeys(("one", "two", "both", "pair"), "a")), Scenario(trials=2))
    facts = list(records.unpack_records(done.traces[0].records))
    lost = [(fact.epoch, fact.at_ns) for fact in facts if isinstance(fact, records.Lost)]
    began = [fact.at_ns for fact in facts if isinstance(fact, records.Admitted)]
    assert [trial for trial, _ in lost] == [1, 2] and lost[0][1] < began[1]
    assert isinstance(facts[-1], records.Load) and facts[-1].at_ns >= lost[1][1], "the incarnation ends last"
    write_run(done, tmp_path / "run")
    found = verdict(read_run(tmp_path / "run")).document()["conservation"]
    assert found["balanced"] and found["by_cause"] == {"lost(join_expired)": 2}


def test_a_trial_does_not_depend_on_how_many_there_are() -> None:
    exp = parse_jitter("exp")
    few, many = (simulate(paper(15), Scenario(trials=n, jitter=exp), trace=False).outputs["warning"] for n in (1, 3))
    assert many.latencies_ns[: len(few.latencies_ns)] == few.latencies_ns


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (Scenario(policy="lifo"), "unknown_policy --policy"),
        (Scenario(trials=0), "out_of_range --trials"),
        (Scenario(batch="half"), "unknown_word --batch"),
        (Scenario(batch="barrier"), "barrier_of_several_operators --batch"),
        (Scenario(batch="burst", policy="edf-op"), "burst_of_single_tuples --batch"),
        (Scenario(ages_ns={"x": 1}), "unknown_source --age"),
        (Scenario(cost_scale=float("nan")), "out_of_range --cost-scale"),
        (Scenario(loss=1.0), "out_of_range --loss"),
        (Scenario(phase_ns={"v2v": 1}, bursts=0), "out_of_range --bursts"),
    ],
)
def test_a_scenario_that_does_not_fit_is_refused(scenario: Scenario, said: str) -> None:
    with SAID.refuses(said):
        simulate(paper(15), scenario)


def test_what_is_no_plan_is_refused() -> None:
    values = paper(15).to_json()
    for wrong, told in (
        ({}, "plan.json not_a_plan"),
        (values | {"nodes": {"a": {"version": 9}}}, "not_simulated"),
        (values | {"hash": 5}, "plan.json not_a_plan hash"),
        (values | {"hash": "x"}, "not_simulated"),
    ):
        with SAID.refuses(told):
            simulate(typed(wrong, "plan.json"))


# -- the command


def test_the_command_prints_a_table_or_json(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(paper(15).text())
    table = CliRunner().invoke(app, ["simulate", str(plan), "--age", "v2v=100ms", "--latency", "0"])
    assert table.exit_code == 0 and "warning" in table.stdout and "late share" in table.stdout
    late = CliRunner().invoke(app, ["simulate", str(plan), "--then", str(plan), "--at", "5s"])
    assert late.exit_code == 0 and "last burst comes at 0 ms, so nothing runs under plan" in late.output
    found = CliRunner().invoke(app, ["simulate", str(plan), "--latency", "0", "--burst", "v2v=20", "--json"])
    outputs = json.loads(found.stdout)["outputs"]
    assert outputs["warning"]["met"] == 10 and outputs["control"]["latency_ns"]["max"] == 30 * MS


@pytest.mark.parametrize(
    "options",
    [
        ["--age", "v2v"],
        ["--age", "v2v=100"],
        ["--burst", "v2v=x"],
        ["--latency", "1"],
        ["--policy", "x"],
    ],
)
def test_bad_options_end_with_2_and_one_sentence(tmp_path: Path, options: list[str]) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(paper(15).text())
    assert CliRunner().invoke(app, ["simulate", str(plan), *options]).exit_code == 2
    assert CliRunner().invoke(app, ["simulate", str(tmp_path / "none.json")]).exit_code == 2


def test_a_directory_that_is_in_use_is_refused(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(paper(15).text())
    assert CliRunner().invoke(app, ["simulate", str(plan), "--out", str(tmp_path)]).exit_code == 2


def test_two_hash_seeds_give_the_same_bytes(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(paper(15).text())
    written = []
    for hash_seed in ("0", "4242"):
        out = tmp_path / f"run{hash_seed}" / "run"
        command = [
            sys.executable,
            "-m",
            "sim_vehicles",
            "simulate",
            str(plan),
            "--trials",
            "2",
            "--jitter",
            "exp",
        ]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        subprocess.run([*command, "--out", str(out)], env=environment, check=True, capture_output=True, timeout=120)
        written.append({path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()})
    assert written[0] == written[1] and len(written[0]) == 4


READINGS = """
shimekiri: 1
query: readings
sources:
  plain: {at: a, type: json, arrival: {burst: 3, period: 100 ms}}
  probe: {at: a, type: test.Reading, arrival: {burst: 2, period: 100 ms}}
operators:
  p: {run: pass, in: plain, cost: 1 ms}
  q: {run: pass, in: probe, cost: 1 ms}
outputs:
  o: {from: p, at: a, deadline: 50 ms}
  r: {from: q, at: a, deadline: 50 ms}
"""


class Listening(Stub):
    """Keeps what was delivered."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.heard: dict[str, list[Any]] = {"o": [], "r": []}

    def deliver(self, delivery: Delivery) -> None:
        self.heard[delivery.output].append(delivery.payload)


def readings() -> tuple[Plan, Registry]:
    """A plan with a source of JSON and one of a message whose JSON form is a bare number."""
    registry = Registry()
    registry.codecs.add("test.Reading", DoubleValue)
    return planned(READINGS, TWO_NODES, registry=registry), registry


def test_sources_admit_the_tuples_of_files_over_and_over(tmp_path: Path) -> None:
    plan, registry = readings()
    (tmp_path / "plain.jsonl").write_text('{"v": 1}\n\n{"v": 2}\n')
    (tmp_path / "probe.jsonl").write_text("1.5\n2.5\n")
    files = {name: str(tmp_path / f"{name}.jsonl") for name in ("plain", "probe")}
    world = Listening(virtual_plan(plan), {}, registry.codecs, files)
    simulate(plan, Scenario(), registry, world)
    assert world.heard["o"] == [{"v": 1}, {"v": 2}, {"v": 1}]
    assert [reading.value for reading in world.heard["r"]] == [1.5, 2.5]


def test_without_a_file_a_message_of_any_shape_is_empty() -> None:
    plan, registry = readings()
    world = Listening(virtual_plan(plan), {}, registry.codecs)
    simulate(plan, Scenario(), registry, world)
    assert [reading.value for reading in world.heard["r"]] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "unreadable --tuples"), ("\n", "empty_file --tuples"), ("1.5\n{\n", "not_a_tuple --tuples")],
)
def test_a_file_of_tuples_that_cannot_be_used_is_refused(tmp_path: Path, text: str | None, said: str) -> None:
    plan, registry = readings()
    path = tmp_path / "probe.jsonl"
    if text is not None:
        path.write_text(text)
    with SAID.refuses(said):
        simulate(plan, Scenario(tuples={"probe": str(path)}), registry)


def test_operators_that_raise_on_made_up_tuples_point_to_real_ones(tmp_path: Path) -> None:
    operators = tmp_path / "operators.py"
    operators.write_text(
        "from node_agent.sdk import operator\n\n"
        '@operator("test.speed", inputs={"car": "json"})\n'
        'def speed(car: dict) -> dict:\n    return {"v": car["v"]}\n'
    )
    query = READINGS.split("  probe:", maxsplit=1)[0] + (
        "operators: {p: {run: test.speed, in: plain, cost: 1 ms}}\noutputs: {o: {from: p, at: a, deadline: 50 ms}}\n"
    )
    plan, tuples = tmp_path / "plan.json", tmp_path / "plain.jsonl"
    plan.write_text(planned(query, TWO_NODES, registry=Registry([operators])).text())
    tuples.write_text('{"v": 3}\n')
    command = ["simulate", str(plan), "--operators", str(operators)]
    made_up = CliRunner().invoke(app, command)
    assert made_up.exit_code == 0
    assert "raised 3 times, first: KeyError: 'v'" in made_up.output
    assert "--tuples SOURCE=FILE" in made_up.output
    given = CliRunner().invoke(app, [*command, "--tuples", f"plain={tuples}", "--json"])
    assert given.exit_code == 0
    assert json.loads(given.output)["outputs"]["o"]["met"] == 3


def test_ctrl_c_while_a_command_is_being_loaded_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sim_vehicles.cli.app.app", interrupted)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
