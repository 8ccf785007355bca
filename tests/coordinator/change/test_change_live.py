"""Tuples flow through real agents while a query is added, another is refused, and the first one is removed again."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from coordinator.cli import app
from coordinator.errors import CoordinatorError
from coordinator.fleet.addresses import Addresses
from coordinator.fleet.agents import Agents
from coordinator.fleet.deployment import deploy
from coordinator.fleet.local import local_agents
from coordinator.fleet.local.local_agents import LocalAgent, Wanted
from coordinator.model.choices import Choices
from coordinator.plan import plan_file
from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from coordinator.solve import planner
from node_agent.client.client import NotAcceptedError, Sink, Source, UnreachableError

CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}
  b: {address: "127.0.0.1:7710"}
"""
# `half` remembers how many tuples it has seen: one that was lost, doubled or begun anew would change which pass.
STANDS = """
shimekiri: 1
query: stands
sources:
  s: {at: a, type: json, arrival: {burst: 40, period: 200 ms}, max_age: 500 ms}
operators:
  half: {run: filter, in: s, cost: 20 us, nodes: [b], selectivity: {mean: 0.5, at_most: [[1, 1], [2, 1]]}}
  back: {run: pass, in: half, cost: 20 us, nodes: [a]}
outputs:
  out: {from: back, at: a, deadline: 2 s}
"""
VISITS = """
shimekiri: 1
query: visits
sources:
  s: {at: a, type: json, arrival: {burst: 40, period: 200 ms}, max_age: 500 ms}
operators:
  mine: {run: filter, in: s, cost: 20 us, nodes: [b], selectivity: {mean: 0.5, at_most: [[1, 1], [2, 1]]}}
  more: {run: pass, in: mine, cost: 30 us, nodes: [b]}
outputs:
  seen: {from: more, at: b, deadline: 2 s}
"""
TOO_MUCH = """
shimekiri: 1
query: greedy
sources:
  s: {at: a, type: json, arrival: {burst: 40, period: 200 ms}, max_age: 500 ms}
operators:
  slow: {run: pass, in: s, cost: 4 ms, nodes: [a]}
outputs:
  never: {from: slow, at: a, deadline: 100 ms}
"""
EVERY_S = 0.01


class Stream(threading.Thread):
    """Sends 1, 2, 3, ... steadily; `sent`: how many were admitted, in a row."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self.address, self.sent, self.over = address, 0, threading.Event()
        self.refused: list[Any] = []

    def run(self) -> None:
        with Source(self.address, "s", timeout=30) as source:
            while not self.over.wait(EVERY_S):
                answer = source.send({"n": self.sent + 1})
                if type(answer).__name__ != "Admitted":
                    self.refused.append(answer)
                    return
                self.sent += 1


class Listener(threading.Thread):
    """Keeps what an output gives, until it is told to end or the output is gone."""

    def __init__(self, address: str, output: str) -> None:
        super().__init__(daemon=True)
        self.sink, self.over = Sink(address, output, connect_timeout=20), threading.Event()
        self.values: list[int] = []
        self.start()

    def run(self) -> None:
        while not self.over.is_set():
            try:
                self.values.append(self.sink.get(0.2).value["n"])
            except TimeoutError:
                continue
            except (UnreachableError, NotAcceptedError):
                break
        self.sink.close()


class Lane:
    """Two agents with the files of the queries."""

    def __init__(self, root: Path) -> None:
        self.root, self.plan = root, root / "plan.json"
        self.agents: list[LocalAgent] = []
        for name in ("a", "b"):
            self.agents += local_agents.start([Wanted(name, "127.0.0.1:0", "127.0.0.1:0", root / "state" / name)])
        found = {agent.wanted.name: agent.address for agent in self.agents if agent.address}
        self.addresses = Addresses(root / "addresses.json", found)
        self.addresses.write()
        for name, text in (("stands", STANDS), ("visits", VISITS), ("greedy", TOO_MUCH), ("cluster", CLUSTER)):
            (root / f"{name}.yaml").write_text(text)
        choices = Choices(quick=True)
        plan_file.write(planner.make_plan(root / "stands.yaml", root / "cluster.yaml", choices), self.plan)
        with self.connect() as agents:
            deploy.deploy(plan_file.read(self.plan), agents)

    def connect(self) -> Agents:
        return Agents(self.addresses.nodes)

    def command(self, *words: str | Path, plan: Path | None = None) -> tuple[int, str]:
        """Exit code, and what it says."""
        given = [*map(str, words), "--addresses", str(self.addresses.path), "--plan", str(plan or self.plan)]
        done = CliRunner().invoke(app.app, given)
        if isinstance(done.exception, CoordinatorError):
            return done.exception.exit_code, "\n".join(done.exception.lines())
        return done.exit_code, done.output

    def committed(self) -> dict[str, list[tuple[bytes, int]]]:
        """Hash and epoch of what every agent has, committed or not."""
        with self.connect() as agents:
            return {
                name: [(plan.hash, plan.epoch) for plan in status.plans] for name, status in agents.status().items()
            }

    def data(self, node: str) -> str:
        return self.addresses.nodes[node].data


@pytest.fixture(scope="module", autouse=True)
def commands() -> None:
    app.register()


@pytest.fixture
def lane(tmp_path: Path) -> Iterator[Lane]:
    lane = Lane(tmp_path)
    yield lane
    local_agents.stop(lane.agents)


def judged(said: str) -> dict[str, Any]:
    """Of the run that `collect` has named last."""
    return verdict(read_run(Path(said.strip().splitlines()[-1]))).document()


def until(condition: Any, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def test_a_stream_notices_nothing_of_queries_that_come_and_go(lane: Lane) -> None:
    stream, results = Stream(lane.data("a")), Listener(lane.data("a"), "out")
    stream.start()
    until(lambda: results.values)
    code, said = lane.command("add", lane.root / "visits.yaml")
    assert code == 0, said
    both = plan_file.read(lane.plan)
    assert "half" in both.queries["visits"].operators, "the filter is shared"
    visitor = Listener(lane.data("b"), "seen")
    until(lambda: len(visitor.values) > 20)
    until(lambda: all(len(plans) == 1 for plans in lane.committed().values()))  # the first plan has drained
    (first_plan,) = lane.root.glob("plan-*.json")
    code, said = lane.command("collect", "-o", lane.root / "runs", plan=first_plan)
    assert code == 0 and "the nodes keep their traces for it" in said, said
    early = judged(said)
    assert early["completeness"]["complete"] and early["outputs"]["out"]["met"], "what has drained can be judged"
    before = lane.committed()
    code, said = lane.command("add", lane.root / "greedy.yaml")
    assert code == 3 and "never" in said, said
    assert lane.committed() == before and plan_file.read(lane.plan) == both
    code, said = lane.command("remove", "visits")
    assert code == 0, said
    sent = stream.sent
    until(lambda: stream.sent > sent + 30)
    stream.over.set()
    stream.join(20)
    until(lambda: len(results.values) >= stream.sent // 2)
    time.sleep(0.3)  # in case that something comes twice
    for listener in (results, visitor):
        listener.over.set()
        listener.join(20)
    assert not stream.refused
    assert results.values == list(range(2, stream.sent + 1, 2)), "every second one, each once, in order"
    first, last = visitor.values[0], visitor.values[-1]
    assert visitor.values == list(range(first, last + 1, 2)) and first % 2 == 0
    code, said = lane.command("collect", "-o", lane.root / "runs")
    assert code == 0, said
    told = judged(said)
    assert len(told["earlier"]) == 2 and told["completeness"]["complete"], told["completeness"]
    assert told["conservation"]["balanced"], told["conservation"]["problems"]
    assert told["conservation"]["admitted"] == told["conservation"]["accounted"] == stream.sent
    out, seen = told["outputs"]["out"], told["outputs"]["seen"]
    assert out["met"] == out["delivered"] == stream.sent // 2, out
    assert out["late"] == out["lost"] == out["shed"] == out["undecidable"] == 0
    assert seen["met"] == seen["delivered"] >= len(visitor.values)
    assert told["queries"]["stands"]["met"] == out["met"]
