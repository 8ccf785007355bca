"""Windows from query.yaml to results: planned, deployed on two agents, fed, judged; each result is recomputed here."""

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from coordinator.fleet.addresses import Addresses
from coordinator.fleet.agents import Agents
from coordinator.fleet.collection import collect
from coordinator.fleet.deployment import deploy
from coordinator.fleet.local import local_agents, local_cluster
from coordinator.model.choices import Choices
from coordinator.plan import plan_file
from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from coordinator.solve import planner
from node_agent.sdk import Admitted, Sink, Source
from protos import records
from protos.segments import records_in

MS = 1_000_000
QUERY = """
shimekiri: 1
query: road
sources:
  s: {at: a, type: json, max_age: 100 ms, arrival: {burst: 30, period: 20 ms}}
operators:
  keep: {run: filter, in: s, with: {keep: 2, of: 3}, cost: 20 us, nodes: [a]}
  speeds:
    {run: aggregate, in: keep, with: {n: count, total: {sum: v}, top: {max: v}}, cost: 50 us, nodes: [b],
     window: {time: 200 ms, hop: 100 ms, by: lane, lateness: 5 ms, close: 100 us, wait: 1 s}}
  tens:
    {run: aggregate, in: s, with: {n: count, total: {sum: v}}, cost: 50 us, nodes: [b],
     window: {count: 10, close: 100 us, wait: 1 s}}
outputs:
  lanes: {from: speeds, at: a, deadline: 1 s}
  batches: {from: tens, at: b, deadline: 1 s}
"""
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}
  b: {address: "127.0.0.1:7710"}
"""


class Tuple(NamedTuple):
    """One that was admitted: its number, origin, lane and value."""

    number: int
    origin_ns: int
    lane: int
    value: int


class Street:
    """Agents a and b, and a plan for them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "query.yaml").write_text(QUERY)
        (root / "cluster.yaml").write_text(CLUSTER)
        made = planner.make_plan(root / "query.yaml", root / "cluster.yaml", Choices(model="paper"))
        self.plan = made
        plan_file.write(self.plan, root / "plan.json")
        self.agents = local_agents.start(local_cluster.wanted(root / "cluster.yaml", root / "state", True, []))
        self.addresses = Addresses(
            root / "addresses.json", {place.name: place for agent in self.agents for place in agent.places}
        )
        self.addresses.write()

    def feed(self, bursts: int, seed: int) -> dict[int, tuple[int, int]]:
        """Lane and value of each tuple that was admitted, by its number."""
        draw, given = random.Random(seed), {}
        with Source(self.addresses.nodes["a"].data, "s", timeout=30) as source:
            for burst in range(bursts):
                values = [(draw.randrange(3), 10 * burst + i) for i in range(draw.randint(1, 8))]
                aged = [({"lane": lane, "v": v}, draw.uniform(0, 12)) for lane, v in values]
                for value, answer in zip(values, source.send_aged(aged), strict=True):
                    if isinstance(answer, Admitted):
                        given[answer.seq] = value
                threading.Event().wait(draw.uniform(0.01, 0.02))  # never more than was declared
        return given

    def stop(self) -> Path:
        """Let the plan drain; the run's folder."""
        with Agents(self.addresses.of_plan(self.plan)) as agents:
            assert deploy.stop({bytes.fromhex(self.plan.hash)}, agents, 60) == []
            run = collect.new_run(self.root / "runs", self.plan, self.root / "plan.json", self.addresses.path)
            assert collect.collect(run, self.plan, agents).problems == []
        return run


@pytest.fixture
def street(tmp_path: Path) -> Iterator[Street]:
    street = Street(tmp_path)
    yield street
    local_agents.stop(street.agents)


def _listen(sink: Sink, enough: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    got: list[dict[str, Any]] = []
    while not enough(got):
        got.append(sink.get(60).value)
    return got


def _admitted(run: Path, given: dict[int, tuple[int, int]]) -> list[Tuple]:
    """From the facts of admission at a, in the order of numbers."""
    found = []
    for path in sorted(run.rglob("*.trace")):
        data = path.read_bytes()
        if records.unpack_header(data).node == "a":
            found += [
                Tuple(each.seq, each.origin_lo_ns, *given[each.seq])
                for each in records.unpack_records(records_in(data))
                if isinstance(each, records.Admitted) and each.seq in given
            ]
    return sorted(found)


def _lanes(tuples: list[Tuple], start: int, end: int) -> dict[str, dict[str, int]]:
    """What the window over lanes has to say: of every three tuples the second and third pass, and what is older than a
    lower number by more than 5 ms is late."""
    youngest_ns, lanes = 0, dict[str, list[int]]()
    for position, each in enumerate(sorted(tuples)):
        late = each.origin_ns < youngest_ns - 5 * MS
        youngest_ns = max(youngest_ns, each.origin_ns)
        if position % 3 and not late and start <= each.origin_ns < end:
            lanes.setdefault(str(each.lane), []).append(each.value)
    return {lane: {"n": len(values), "total": sum(values), "top": max(values)} for lane, values in lanes.items()}


def test_results_of_windows_are_exact_and_the_books_balance(street: Street) -> None:
    with Agents(street.addresses.of_plan(street.plan)) as agents:
        deploy.deploy(street.plan, agents)
    a, b = (street.addresses.nodes[name].data for name in "ab")
    with Sink(a, "lanes", connect_timeout=30) as lanes, Sink(b, "batches", connect_timeout=30) as batches:
        given = street.feed(80, 7)
        tens = _listen(batches, lambda got: len(got) >= 3)
        windows = _listen(lanes, lambda got: len(got) > 6 and not any(each["count"] for each in got[-2:]))
    run = street.stop()
    tuples = _admitted(run, given)
    assert len(tuples) == len(given) > 100
    for each in windows:
        assert each["groups"] == _lanes(tuples, each["start_ns"], each["end_ns"]), f"window {each['window']}"
    for each in tens:
        values = [given[number][1] for number in range(each["first"], each["last"] + 1)]
        assert (each["n"], each["total"]) == (10, sum(values)) == (len(values), sum(values))
    report = verdict(read_run(run)).document()
    assert report["completeness"]["complete"], report["completeness"]
    assert report["conservation"]["balanced"], report["conservation"]
    told = report["outputs"]["lanes"]["windows"]["speeds"]
    assert told["all"] == told["given"] + sum(told["abandoned"].values()) + told["skipped"]
    assert told["given"] + told["idle"] >= len(windows)
