"""Random queries with windows on one or two nodes, as text, and the tuples that their sources admit."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import strategies as st

from node_agent.operators.registry import Registry
from node_agent.virtual.world import Admission, Delivery, Offer
from protos.plan_document import Plan
from tests.simulation.planned_queries import planned
from tests.simulation.windows import operators_for_windows

MS = 1_000_000
MOST_AGE_MS = 60
LEAD_MS = 500  # until the first admission of a trial: longer than any window
COST_US = 100  # of every operator, as declared
SHEDDERS = ("window-aware", "front", "random", "drop-tail")


@cache
def registry() -> Registry:
    """With the operators of the tests."""
    return Registry([Path(str(operators_for_windows.__file__))])


@dataclass(frozen=True)
class Source:
    """gap_ms: mean time between tuples."""

    name: str
    node: str
    gap_ms: int
    age_ms: int
    passes_but: int | None  # of 3, what a filter before the windows drops; None: no filter
    filter_node: str
    limit: int = 0  # tuples per 50 ms, of which those with the highest v; 0: none
    late: bool = False  # the filter drops what is late
    full: str = ""  # what goes where the filter's queue is full

    @property
    def stream(self) -> str:
        """What windows read."""
        return self.name if self.passes_but is None else f"F{self.name}"

    def keeps(self, payload: dict[str, Any]) -> bool:
        """Whether it passes the filter."""
        return self.passes_but is None or payload["v"] % 3 != self.passes_but


@dataclass(frozen=True)
class Windows:
    """Times in ms; length and hop of count windows in tuples."""

    name: str
    node: str
    sources: tuple[Source, ...]
    kind: str  # time, count, sized, join
    length: int
    hop: int
    lateness_ms: int = 0
    first: bool = False
    by: bool = False
    shed: str = "none"
    queue: int = 3000
    deadline_ms: int = 2000
    own: bool = False  # a user's aggregate

    @property
    def lateness_ns(self) -> int:
        """Of a tuple."""
        return self.lateness_ms * MS

    def text(self) -> str:
        """As query.yaml has it."""
        length = {"count": f"count: {self.length}, hop: {self.hop}"}.get(
            self.kind, f"time: {self.length} ms, hop: {self.hop} ms, lateness: {self.lateness_ms} ms"
        )
        if self.kind == "sized":
            length = f"size: test.size, most: {self.length} ms, hop: {self.hop} ms, lateness: {self.lateness_ms} ms"
        parts = [length, f"shed: {self.shed}", f"queue: {self.queue}", "wait: 300 ms", f"close: {COST_US} us"]
        parts += ["deadline: first"] * self.first + ["by: k"] * self.by
        run = "run: test.names" if self.own else "run: aggregate, with: {n: count, v: sum, top: {max: v}}"
        if self.kind == "join":
            run = "run: join, on: k"
        inputs = ", ".join(source.stream for source in self.sources)
        return f"{{{run}, in: [{inputs}], cost: {COST_US} us, nodes: [{self.node}], window: {{{', '.join(parts)}}}}}"


@dataclass(frozen=True)
class Query:
    """scale: by how much operators cost more than they declare."""

    nodes: str
    sources: tuple[Source, ...]
    windows: tuple[Windows, ...]
    scale: int
    after: bool  # something runs behind the windows
    seed: int
    seconds: float = 0.5
    name: str = "windows"

    def text(self) -> str:
        """query.yaml."""
        lines = ["shimekiri: 1", f"query: {self.name}", "sources:"]
        for source in self.sources:
            lines.append(
                f"  {source.name}: {{at: {source.node}, type: json, max_age: {MOST_AGE_MS} ms, "
                f"arrival: {{burst: 1, period: {source.gap_ms} ms}}"
                + f", max_rate: {{tuples: {source.limit}, per: 50 ms}}, value: v" * (source.limit > 0)
                + "}"
            )
        lines.append("operators:")
        for source in self.sources:
            if source.passes_but is not None:
                lines.append(
                    f"  {source.stream}: {{run: test.some, in: {source.name}, with: {{but: {source.passes_but}}}, "
                    f"cost: {COST_US} us, nodes: [{source.filter_node}], selectivity: {{mean: 0.67}}"
                    + ", on_late: drop" * source.late
                    + f", queue: {{most: 8 KiB, on_full: {source.full}}}" * (source.full != "")
                    + "}"
                )
        for each in self.windows:
            lines.append(f"  {each.name}: {each.text()}")
            if self.after:
                lines.append(f"  A{each.name}: {{run: pass, in: {each.name}, cost: 100 us}}")
        lines.append("outputs:")
        for each in self.windows:
            ends = f"A{each.name}" if self.after else each.name
            lines.append(f"  out_{each.name}: {{from: {ends}, at: {self.nodes[0]}, deadline: {each.deadline_ms} ms}}")
        return "\n".join(lines) + "\n"

    def cluster(self) -> str:
        """cluster.yaml."""
        lines = ["shimekiri: 1", "nodes:"]
        lines += [f'  {n}: {{address: "127.0.0.1:77{i}0", memory: 64 MiB, cap: 1}}' for i, n in enumerate(self.nodes)]
        links = len(self.nodes) > 1
        lines.append("links:" if links else "links: []")
        if links:
            lines.append("  - {between: [a, b], latency: 1 ms, bandwidth: 100 Mbit/s}")
        return "\n".join([*lines, "operators: operators.json", "security: insecure-loopback"]) + "\n"

    def plan(self) -> Plan:
        """The plan."""
        return planned(self.text(), self.cluster(), registry=registry())


@dataclass
class Planned:
    """A world: what each source admits in a trial, by number; what was delivered."""

    query: Query
    delivered: list[tuple[int, Delivery]] = field(default_factory=list)
    trial: int = 0

    def begin(self, trial: int) -> Sequence[Admission]:
        """Everything at once."""
        self.trial = trial
        return [
            Admission(at_ms * MS, source.name, (Offer(payload, age_ms * MS),))
            for source in self.query.sources
            for at_ms, age_ms, payload in tuples(self.query, source, trial)
        ]

    def offer(self, source: str, seq: int, at_ns: int) -> None:
        """Never asked."""

    def deliver(self, delivery: Delivery) -> None:
        """Kept, as it would be sent."""
        json.dumps(delivery.payload)
        self.delivered.append((self.trial, delivery))


def tuples(query: Query, source: Source, trial: int) -> list[tuple[int, int, dict[str, Any]]]:
    """(instant, age in ms, payload) in the order of the numbers, which begin with 1."""
    random = Random(f"{query.seed} {source.name} {trial}")
    found: list[tuple[int, int, dict[str, Any]]] = []
    at_ms = LEAD_MS
    while at_ms < LEAD_MS + 1000 * query.seconds:
        if found and random.random() < 0.03:
            at_ms += 150  # a window may be empty
        payload = {
            "v": random.randint(-20, 20),
            "k": random.choice(["x", "y", 7]),
            "size": random.randint(1, 200) * MS,
            "n": len(found),
        }
        found.append((at_ms, random.randint(0, source.age_ms), payload))
        at_ms += random.choice((0, 1, 1, 2)) * source.gap_ms
    return found


def queries(light: bool = False, lossy: bool = False, over: Query | None = None) -> st.SearchStrategy[Query]:
    """light: nothing waits for long. lossy: there is a link, and tuples on it. over: a query of the same sources. By a
    seed: what hypothesis would draw piece by piece is less varied."""
    return st.integers(0, 2**32).map(lambda seed: query(Random(seed), light, lossy, over))


def query(random: Random, light: bool, lossy: bool, over: Query | None) -> Query:
    """One of them."""
    nodes = over.nodes if over is not None else "ab" if lossy or random.random() < 0.5 else "a"
    if over is not None:
        sources = over.sources
    else:
        sources = tuple(_source(random, f"s{i}", nodes, light, lossy) for i in range(random.randint(1, 2)))
    shed = "none" if light else random.choice(["none", *SHEDDERS])  # windows over one stream share it
    queue = 3000 if light else random.choice([8, 40, 3000])
    windows = tuple(
        _windows(random, f"W{i}", nodes[-1] if lossy else random.choice(nodes), sources, light, shed, queue)
        for i in range(random.randint(1, 3))
    )
    read_ = {source for each in windows for source in each.sources}
    sources = tuple(source for source in sources if source in read_)
    scale = 1 if light else random.choice([1, 20, 40, 80])
    return Query(nodes, sources, windows, scale, random.random() < 0.5, random.randint(0, 2**32))


def _source(random: Random, name: str, nodes: str, light: bool, lossy: bool) -> Source:
    return Source(
        name,
        nodes[0] if lossy else random.choice(nodes),
        random.choice([4, 8, 15]),
        random.choice([0, 10, MOST_AGE_MS]),
        random.choice([None, 0, 1]),
        random.choice(nodes),
        0 if light else random.choice([0, 0, 0, 4]),
        not light and random.random() < 0.3,
        "" if light else random.choice(["", "", "front", "drop-tail"]),
    )


def _windows(
    random: Random, name: str, node: str, sources: tuple[Source, ...], light: bool, shed: str, queue: int
) -> Windows:
    kind = random.choice(["time", "time", "count", "sized", "join"])
    if kind == "join" and len(sources) == 1:
        kind = "time"
    both = kind == "join" or (kind == "time" and random.random() < 0.5)
    hop = random.randint(1, 12) if kind == "count" else 10 * random.randint(2, 12)
    length, first = hop * random.randint(1, 3), random.random() < 0.5
    first = first and not (light and kind == "count")  # windows that are never full would be overdue
    read = sources if both else (random.choice(sources),)
    first = first or (kind == "count" and any(source.late for source in read))  # else no tuple is too late for them
    lateness_ms = random.choice([0, 15, MOST_AGE_MS])
    least_ms = lateness_ms + (length if first and kind != "count" else 0)  # no result comes earlier
    return Windows(
        name, node, read, kind, length, hop, lateness_ms, first,
        kind != "join" and random.random() < 0.4, shed, queue,
        least_ms + (600 if light else random.choice([50, 150, 600])), random.random() < 0.4,
    )  # fmt: skip
