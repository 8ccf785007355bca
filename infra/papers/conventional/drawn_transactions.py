"""Random queries on two to four nodes, chains and trees, operators where the draw has put them; the same for all
methods. Costs are drawn, then scaled until each node is as full as asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

PERIODS_MS = (10, 20, 25, 40, 50, 80, 100, 200)


@dataclass(frozen=True)
class Case:
    """A query and a cluster as the two files a user writes, and where operators run."""

    query: str
    cluster: str
    place: dict[str, str]


@dataclass
class _Operator:
    reads: str
    node: str
    share: float  # of its node, before costs are scaled
    per_ms: float


@dataclass
class _Draw:
    dice: Random
    nodes: str
    sources: list[str] = field(default_factory=list)
    operators: dict[str, _Operator] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)

    def transaction(self, tree: bool) -> None:
        """A source, what it leads to, and an output for each end."""
        dice, name = self.dice, f"s{len(self.sources)}"
        period_ms, burst = dice.choice(PERIODS_MS), dice.choice((1, 1, 1, 2, 3))
        arrival = f"{{burst: {burst}, period: {period_ms} ms}}"
        if burst == 1 and dice.random() < 0.4:
            jitter_ms = dice.choice((period_ms // 2, period_ms, 2 * period_ms))
            arrival = f"{{jcp: {{period: {period_ms} ms, min_gap: 0 ms, early: 0 ms, late: {jitter_ms} ms}}}}"
        at = dice.choice(self.nodes)
        self.sources.append(f"  {name}: {{at: {at}, type: json, arrival: {arrival}}}")
        trunk = self.chain(name, dice.randint(1, 2) if tree else dice.randint(2, 5), at, burst / period_ms)
        ends = [trunk]
        if tree:
            ends = [
                self.chain(trunk[-1], dice.randint(1, 2), self.operators[trunk[-1]].node, burst / period_ms, trunk)
                for _ in range(dice.randint(2, 3))
            ]
        for way in ends:
            deadline_ms = period_ms * len(way) * dice.uniform(0.4, 1)
            last = way[-1]
            self.outputs.append(
                f"  out{len(self.outputs)}: {{from: {last}, at: {self.operators[last].node}, "
                f"deadline: {max(2, round(deadline_ms))} ms}}"
            )

    def chain(self, reads: str, length: int, at: str, per_ms: float, before: list[str] | None = None) -> list[str]:
        """Names of all on the way; three times in four an operator is on another node than the one before."""
        way = list(before or [])
        for _ in range(length):
            others = [node for node in self.nodes if node != at]
            at = self.dice.choice(others) if self.dice.random() < 0.75 else at
            name = f"o{len(self.operators)}"
            self.operators[name] = _Operator(reads, at, self.dice.uniform(0.2, 1), per_ms)
            way.append(name)
            reads = name
        return way


def case(seed: int, utilisation: float) -> Case:
    """Of even seeds chains, of odd ones trees; the same query at every utilisation, but for its costs."""
    dice = Random(f"conventional {seed}")
    draw = _Draw(dice, "abcd"[: dice.randint(2, 4)])
    for _ in range(dice.randint(1, 2) if seed % 2 else dice.randint(2, 4)):
        draw.transaction(tree=bool(seed % 2))
    latency_ms = dice.choice((0, 1))
    lines = ["shimekiri: 1", "query: conventional", "sources:", *draw.sources, "operators:"]
    for name, each in draw.operators.items():
        whole = sum(other.share for other in draw.operators.values() if other.node == each.node)
        cost_us = max(1, int(1000 * utilisation * each.share / whole / each.per_ms))
        lines.append(f"  {name}: {{run: pass, in: {each.reads}, cost: {cost_us} us}}")
    query = "\n".join([*lines, "outputs:", *draw.outputs]) + "\n"
    return Case(query, _cluster(draw.nodes, latency_ms), {name: each.node for name, each in draw.operators.items()})


def _cluster(nodes: str, latency_ms: int) -> str:
    lines = ["shimekiri: 1", "nodes:"]
    lines += [f'  {name}: {{address: "127.0.0.1:77{i}0", cap: 1}}' for i, name in enumerate(nodes)]
    links = [
        f"{{between: [{one}, {other}], latency: {latency_ms} ms}}" for one in nodes for other in nodes if one < other
    ]
    return "\n".join([*lines, f"links: [{', '.join(links)}]", "security: insecure-loopback"]) + "\n"


__all__ = ["Case", "case"]
