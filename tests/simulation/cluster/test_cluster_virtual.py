"""The cluster of runtimes: what comes while a batch runs, operators that raise, trials, heartbeats, and the one package
that it needs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from coordinator.model.choices import Choices
from coordinator.solve import planner
from node_agent.operators.registry import Registry
from node_agent.virtual.plan_file import read_plan
from node_agent.virtual.random_draws import Draws
from node_agent.virtual.run import Simulation, operators_here, simulate
from node_agent.virtual.scenario import Scenario
from node_agent.virtual.world import Admission, Delivery, Offer
from protos import records
from tests.simulation.planned_queries import planned
from tests.traces import Kind, of

MS = 1_000_000
ROOT = Path(__file__).resolve().parents[3]
PLANS = ROOT / "tests/golden/corpus/plans"


def facts(done: Simulation, kind: type[Kind]) -> list[Kind]:
    return [each for trace in done.traces for each in of(kind, records.unpack_records(trace.records))]


class Steady:
    """One tuple about every 4 ms, for a second and a half."""

    def __init__(self, seed: int) -> None:
        self._draws = Draws(seed)
        self.results = 0

    def begin(self, trial: int) -> Sequence[Admission]:
        at_ns, found = 0, []
        for number in range(400):
            at_ns += 2 * MS + self._draws.below(4 * MS)
            found.append(Admission(at_ns, "s", (Offer({"n": number}),)))
        return found

    def offer(self, source: str, seq: int, at_ns: int) -> None:
        raise AssertionError("it has said itself what is admitted")

    def deliver(self, delivery: Delivery) -> None:
        self.results += 1


BLOCKED = """
shimekiri: 1
query: one
sources:
  s: {at: a, type: json, arrival: {burst: 1, period: 50 ms}, max_age: 20 ms}
operators:
  first: {run: pass, in: s, cost: 30 ms}
outputs:
  out: {from: first, at: a, deadline: 20 s}
"""


@pytest.mark.parametrize(
    ("policy", "least", "most"), [("bts:phi=100ms,k=5", 82, 90), ("ats:phi=100ms", 82, 90), ("edf", 0, 0)]
)
def test_a_batch_keeps_a_node_from_its_sockets(policy: str, least: int, most: int, tmp_path: Path) -> None:
    """What comes meanwhile is too old when it is read: agents refuse 85 to 87 of 100, over ten seeds. A node that runs
    tuple by tuple reads at once."""
    query, cluster = tmp_path / "query.yaml", tmp_path / "cluster.yaml"
    query.write_text(BLOCKED)
    cluster.write_text(f'shimekiri: 1\nnodes: {{a: {{address: "127.0.0.1:0", policy: "{policy}"}}}}\n')
    made = planner.make_plan(query, cluster, Choices(model="paper"))
    for seed in range(1, 4):
        world = Steady(seed)
        refused = simulate(made, world=world).refused
        assert world.results == 400 - refused
        assert least <= 100 * refused / 400 <= most, seed


RAISES = """
from node_agent.sdk import operator

@operator("test.odd")
def odd(value):
    if value["seq"] % 2 == 0:
        raise ValueError("even")
    return value
"""
ODD = """
shimekiri: 1
query: odd
sources:
  s: {at: a, type: json, arrival: {burst: 4, period: 1 s}}
operators:
  o: {run: test.odd, in: s, cost: 5 ms}
outputs:
  out: {from: o, at: a, deadline: 900 ms}
"""
ALONE = """
shimekiri: 1
nodes: {a: {address: "127.0.0.1:7700"}}
operators: operators.json
"""


def test_an_operator_that_raises_costs_what_it_costs(tmp_path: Path) -> None:
    """Its tuple is lost, and the next one starts after it."""
    file = tmp_path / "operators.py"
    file.write_text(RAISES)
    done = simulate(planned(ODD, ALONE, registry=Registry([file])), Scenario(), operators_here([file]))
    assert done.failures == ("operator o on node a raised 2 times, first: ValueError: even",)
    assert done.outputs["out"].latencies_ns == [5 * MS, 15 * MS]
    assert [each.seq for each in facts(done, records.Lost)] == [2, 4]


def test_trials_follow_each_other_in_one_trace() -> None:
    """Numbers of tuples on links go on, so that a report can tell them apart."""
    done = simulate(read_plan(PLANS / "paper.json"), Scenario(trials=3))
    numbers = {
        trace.node: [each.link_seq for each in of(records.Sent, records.unpack_records(trace.records))]
        for trace in done.traces
    }
    assert any(numbers.values())
    assert all(each == list(range(1, len(each) + 1)) for each in numbers.values())


LONG = """
shimekiri: 1
query: long
sources:
  s: {at: a, type: json, arrival: {burst: 3, period: 1 s}, max_age: 1 s}
operators:
  w: {run: aggregate, with: {n: count}, in: s, cost: 1 ms, window: {time: 60 s, hop: 30 s, close: 2 ms, wait: 200 ms}}
outputs:
  out: {from: w, at: a, deadline: 200 s}
"""


def test_heartbeats_go_on_until_every_window_that_a_tuple_lies_in_has_closed() -> None:
    """Nothing is admitted for a minute, and the windows are given all the same."""
    done = simulate(planned(LONG, ALONE), Scenario())
    assert (done.admitted, done.outputs["out"].met) == (3, done.windows["w"].closed)
    assert done.windows["w"].closed >= 1


def test_without_greenlet_it_says_what_to_install(tmp_path: Path) -> None:
    """What needs no simulation works: the operators are read, and a test of one operator runs."""
    code = (
        "import sys; sys.modules['greenlet'] = None\n"
        "from node_agent.testing import run\n"
        "from node_agent.__main__ import main\n"
        f"sys.argv[1:] = ['simulate', {str(PLANS / 'paper.json')!r}]\n"
        "raise SystemExit(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr == ("simulations need greenlet, which is not installed; pip install 'shimekiri[simulate]'\n")
