"""Random queries that fuse two or three inputs, and sources that keep their periods, or fall silent where that is
allowed for."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from re import sub

from node_agent.virtual.world import Admission, Delivery, Offer
from protos.plan.arrivals import BurstArrival, JcpArrival
from protos.plan_document import Plan

MS = 1_000_000
LENGTH_NS = 800 * MS


def sync(draw: Random) -> str:
    """Of any kind."""
    timeout = f", timeout: {draw.choice([5, 20, 60])} ms" if draw.random() < 0.5 else ""
    if draw.random() < 0.4:
        return f"{{on: all{timeout}}}"
    keep = f", keep: {draw.randint(1, 6)}" if draw.random() < 0.5 else ""
    if draw.random() < 0.25:
        return f"{{each: {draw.choice([3, 10, 30])} ms{keep}}}"
    return f"{{within: {draw.choice([0, 3, 10, 30])} ms{timeout}{keep}}}"


def query(draw: Random, nodes: str, late: str = "") -> str:
    """query.yaml. late: what operators before the fusion do with tuples that are late."""
    lines, streams = ["shimekiri: 1", "query: fusions", "sources:"], []
    for number in range(draw.randint(2, 3)):
        name, period_ms = f"s{number}", draw.choice([7, 15, 30, 50])
        arrival = draw.choice(
            [
                f"{{burst: {draw.randint(1, 3)}, period: {3 * period_ms} ms}}",
                f"{{jcp: {{period: {period_ms} ms, late: {draw.randint(0, period_ms)} ms}}}}",
            ]
        )
        age_ms = draw.choice([1, 10, 40])
        lines.append(f"  {name}: {{at: {draw.choice(nodes)}, type: json, max_age: {age_ms} ms, arrival: {arrival}}}")
        streams.append(name)
    lines.append("operators:")
    for number, name in enumerate(streams):
        if draw.random() < 0.5:
            lines.append(f"  P{name}: {{run: pass, in: {name}, cost: {draw.randint(50, 900)} us{late}}}")
            streams[number] = f"P{name}"
    inputs = ", ".join(streams)
    lines.append(f"  F: {{run: join, in: [{inputs}], cost: {draw.randint(50, 900)} us, sync: {sync(draw)}}}")
    lines.append(f"  E: {{run: pass, in: F, cost: {draw.randint(50, 900)} us}}")
    lines.append("outputs:")
    lines.append(f"  out: {{from: E, at: {draw.choice(nodes)}, deadline: {draw.choice([150, 400])} ms}}")
    if draw.random() < 0.3:  # a tight one beside it
        lines.insert(-2, f"  B: {{run: pass, in: {streams[0]}, cost: 300 us}}")
        lines.append(f"  beside: {{from: B, at: {draw.choice(nodes)}, deadline: 150 ms}}")
    return "\n".join(lines) + "\n"


def cluster(draw: Random, nodes: str) -> str:
    """cluster.yaml."""
    lines = ["shimekiri: 1", "nodes:"]
    for number, name in enumerate(nodes):
        emulated = ", emulate: {cost_per_tuple: 100 us}" if draw.random() < 0.3 else ""
        lines.append(f'  {name}: {{address: "127.0.0.1:77{number}0", memory: 64 MiB, cap: 1{emulated}}}')
    lines.append("links: [{between: [a, b], latency: 2 ms}]" if len(nodes) > 1 else "links: []")
    return "\n".join([*lines, "operators: operators.json", "security: insecure-loopback"]) + "\n"


def case(seed: int, late: str = "") -> tuple[str, str]:
    """query.yaml and cluster.yaml of a seed."""
    draw = Random(seed)
    nodes = draw.choice(["a", "ab", "ab"])
    return query(draw, nodes, late), cluster(draw, nodes)


@dataclass
class Periodic:
    """A world: every source as its arrivals say, of any age; one falls silent for a while, or never comes, where no
    bound rests on its period."""

    plan: Plan
    seed: int
    delivered: list[Delivery] = field(default_factory=list)

    def begin(self, trial: int) -> Sequence[Admission]:
        """Everything at once."""
        draw, found = Random(f"{self.seed} {trial}"), list[Admission]()
        how = self.plan.graph.operators["F"].sync
        assert how is not None
        rests_on_periods = how.within_ns is None and not how.timeout_ns
        silent = "" if rests_on_periods else draw.choice(["", *self.plan.graph.sources])
        from_ns = draw.choice([0, draw.randint(0, LENGTH_NS)])
        until_ns = from_ns + draw.choice([100 * MS, LENGTH_NS])
        for name, source in self.plan.graph.sources.items():
            arrival = source.arrival
            assert isinstance(arrival, BurstArrival | JcpArrival)
            late_ns = arrival.late_ns if isinstance(arrival, JcpArrival) else 0
            burst = arrival.burst if isinstance(arrival, BurstArrival) else 1
            at_ns = draw.randint(0, arrival.period_ns)
            while at_ns < LENGTH_NS:
                if name != silent or not from_ns <= at_ns < until_ns:
                    came_ns = at_ns + draw.choice([0, late_ns, draw.randint(0, late_ns)])
                    for _ in range(burst):
                        age_ns = draw.choice([0, source.max_age_ns, draw.randint(0, source.max_age_ns)])
                        found.append(Admission(came_ns, name, (Offer({"n": len(found)}, age_ns),)))
                at_ns += arrival.period_ns
        last_ns = LENGTH_NS + LENGTH_NS
        if rests_on_periods:  # what comes after the end of a source would wait for it in vain
            last_ns = min(max(each.at_ns for each in found if each.source == name) for name in self.plan.graph.sources)
        return sorted((each for each in found if each.at_ns <= last_ns), key=lambda each: each.at_ns)

    def offer(self, source: str, seq: int, at_ns: int) -> None:
        """Never asked."""

    def deliver(self, delivery: Delivery) -> None:
        """Kept."""
        self.delivered.append(delivery)


def windows_behind(seed: int) -> tuple[str, str]:
    """The case of a seed with a window behind its fusion."""
    query_text, cluster_text = case(seed)
    draw = Random(f"windows {seed}")
    hop = draw.choice(["", ", hop: 50 ms"])
    window = f"window: {{time: {draw.choice([100, 200])} ms{hop}, lateness: 50 ms}}"
    counted = f"E: {{run: aggregate, in: F, with: {{n: count}}, cost: {draw.randint(50, 900)} us, {window}}}"
    return sub("E: {run: pass.*}", counted, query_text), cluster_text


__all__ = ["Periodic", "case", "windows_behind"]
