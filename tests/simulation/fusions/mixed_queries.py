"""Random queries whose fusions have inputs of different kinds: a source, a source that its node runs, a union, windows,
and another fusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from node_agent.operators.registry import Registry
from node_agent.sdk import Tick, source
from node_agent.virtual.world import Admission, Delivery, Offer
from protos.plan.arrivals import BurstArrival, JcpArrival
from protos.plan_document import Plan

MS = 1_000_000
LENGTH_NS = 700 * MS
KINDS = ("source", "pass", "own", "union", "window", "fusion")


@source("t.beat")
def beat(*, tick: Tick) -> Any:
    return {"beat": tick.number}


def registry() -> Registry:
    """With the source that nodes run."""
    return Registry(operators=(beat,))


@dataclass
class MixedQuery:
    """kinds: of the inputs that were drawn; fusions: the names of all, and their inputs; place: operator to node."""

    draw: Random
    nodes: str
    sources: list[str] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    fusions: dict[str, list[str]] = field(default_factory=dict)
    place: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """query.yaml, drawn: `F` fuses two or three inputs. An output `of_NAME` has the values of each stream that a
        fusion takes, unless a client sends them."""
        self._fusion("F", self.draw.randint(2, 3), KINDS)
        named = {"F", *(name for inputs in self.fusions.values() for name in inputs if name in self.place)}
        named |= {name for name in self.place if name.startswith("see_")}
        outputs = [
            f"  of_{name.removeprefix('see_')}: {{from: {name}, at: {self.draw.choice(self.nodes)}, deadline: 900 ms}}"
            for name in sorted(named)
        ]
        head = ["shimekiri: 1", "query: mixed", "sources:"]
        return "\n".join([*head, *self.sources, "operators:", *self.operators, "outputs:", *outputs])

    def _fusion(self, name: str, count: int, kinds: Sequence[str]) -> None:
        inputs = [self._input(f"{name}{number}", kinds) for number in range(count)]
        self._operator(name, f"run: join, in: [{', '.join(inputs)}], sync: {self._sync()}")
        self.fusions[name] = inputs

    def _input(self, name: str, kinds: Sequence[str]) -> str:
        draw, kind = self.draw, self.draw.choice(kinds)
        self.kinds.append(kind)
        if kind == "own":
            every_ms, age_ms = draw.choice([15, 30, 50]), draw.choice([5, 20])
            node, offset_ms = draw.choice(self.nodes), draw.randint(0, 9)
            self.sources.append(
                f"  {name}: {{at: {node}, run: t.beat, every: {every_ms} ms, offset: {offset_ms} ms,"
                f" max_age: {age_ms} ms, cost: 200 us}}"
            )
            self._operator(f"see_{name}", f"run: pass, in: {name}")
        elif kind == "fusion":
            self._fusion(name, 2, KINDS[:-1])
        elif kind == "union":
            self._operator(name, f"run: union, in: [{self._client(name + 'u')}, {self._client(name + 'v')}]")
        elif kind == "window":
            rule = draw.choice(["time: 40 ms", "time: 60 ms, hop: 30 ms"])
            of = f"in: {self._client(name + 'w')}, with: {{n: count}}"
            self._operator(name, f"run: aggregate, {of}, window: {{{rule}, lateness: 50 ms}}")
        elif kind == "pass":
            self._operator(name, f"run: pass, in: {self._client(name + 'p')}")
        else:
            self._client(name)
        return name

    def _client(self, name: str) -> str:
        """A source that a client feeds."""
        draw = self.draw
        period_ms, age_ms = draw.choice([7, 15, 30, 50]), draw.choice([1, 10, 30])
        arrival = draw.choice(
            [
                f"{{burst: {draw.randint(1, 2)}, period: {2 * period_ms} ms}}",
                f"{{jcp: {{period: {period_ms} ms, late: {draw.randint(0, period_ms)} ms}}}}",
            ]
        )
        node = draw.choice(self.nodes)
        self.sources.append(f"  {name}: {{at: {node}, type: json, max_age: {age_ms} ms, arrival: {arrival}}}")
        return name

    def _operator(self, name: str, what: str) -> None:
        self.operators.append(f"  {name}: {{{what}, cost: {self.draw.randint(50, 700)} us}}")
        self.place[name] = self.draw.choice(self.nodes)

    def _sync(self) -> str:
        draw = self.draw
        timeout = f", timeout: {draw.choice([5, 20, 60])} ms" if draw.random() < 0.5 else ""
        keep, near_ms = f"keep: {draw.randint(1, 6)}", draw.choice([0, 3, 10, 30])
        return draw.choice(
            [f"{{on: all{timeout}}}", f"{{within: {near_ms} ms, {keep}{timeout}}}", f"{{each: {near_ms} ms, {keep}}}"]
        )


def cluster(nodes: str) -> str:
    """cluster.yaml."""
    lines = [f'  {name}: {{address: "127.0.0.1:77{number}0", cap: 1}}' for number, name in enumerate(nodes)]
    links = "links: [{between: [a, b], latency: 2 ms}]" if len(nodes) > 1 else "links: []"
    return "\n".join(["shimekiri: 1", "nodes:", *lines, links, "operators: operators.json"]) + "\n"


class Clients:
    """A world: every source that a client feeds as its arrivals say, of any age. values: of each source, the first one
    first; delivered: by the name of the output."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self._plan, self._seed = plan, seed
        self.values: dict[str, list[Any]] = {}
        self.delivered: dict[str, list[Delivery]] = {name: [] for name in plan.graph.outputs}

    def begin(self, trial: int) -> Sequence[Admission]:
        draw, found = Random(f"{self._seed} {trial}"), list[Admission]()
        for name, each in self._plan.graph.sources.items():
            arrival = each.arrival
            if each.pull is not None:
                continue
            assert isinstance(arrival, BurstArrival | JcpArrival)
            late_ns = arrival.late_ns if isinstance(arrival, JcpArrival) else 0
            for at_ns in range(draw.randint(0, arrival.period_ns), LENGTH_NS, arrival.period_ns):
                came_ns = at_ns + draw.choice([0, late_ns, draw.randint(0, late_ns)])
                for _ in range(arrival.burst if isinstance(arrival, BurstArrival) else 1):
                    age_ns = draw.choice([0, each.max_age_ns, draw.randint(0, each.max_age_ns)])
                    found.append(Admission(came_ns, name, (Offer({"n": len(found)}, age_ns),)))
        found.sort(key=lambda each: each.at_ns)
        for admission in found:
            self.values.setdefault(admission.source, []).append(admission.offers[0].payload)
        return found

    def offer(self, source: str, seq: int, at_ns: int) -> None:
        raise AssertionError("never asked")

    def deliver(self, delivery: Delivery) -> None:
        self.delivered[delivery.output].append(delivery)


__all__ = ["KINDS", "LENGTH_NS", "MS", "Clients", "MixedQuery", "cluster", "registry"]
