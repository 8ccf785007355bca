"""Seeded placement problems of any size, as the two files a user writes, which every stage of the street can take.

Here and not with the planner: nothing that plans needs them, and the benchmark and the tests both may import from
here. Files, not problem values: a plan of a generated query is then audited like any other.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Literal

Shape = Literal["layered", "tree", "diamond", "shared", "mixed"]
SHAPES: tuple[Shape, ...] = ("layered", "tree", "diamond", "shared")
SPEEDS = (Fraction(1), Fraction(1), Fraction(3, 2), Fraction(2))
SELECTIVITIES = ("0.25", "0.5", "1", "1", "2")
WORST = {"0.25": "[[4, 1]]", "0.5": "[[2, 1]]", "2": "[[1, 2]]"}  # as even as the mean
LARGEST_PART = 20
MEAN_LOAD = Fraction(1, 2)


@dataclass(frozen=True)
class Recipe:
    """What to generate. `slack`: how much longer the deadlines are than the least with which all sub-deadlines could
    stand at (1) if work were divisible among nodes; below 1 that is impossible, so NLR is above 0."""

    nodes: int
    operators: int
    shape: Shape = "mixed"
    slack: float = 3.0
    seed: int = 0


@dataclass
class _Operator:
    run: str
    inputs: list[str]
    mean: str
    cost_us: int
    pin: int | None = None


@dataclass
class _Graph:
    """A query under construction. `homes`: the nodes that the part being built has its sources and outputs on."""

    dice: random.Random
    sources: dict[str, tuple[int, int]] = field(default_factory=dict)
    operators: dict[str, _Operator] = field(default_factory=dict)
    outputs: dict[str, tuple[str, int]] = field(default_factory=dict)
    homes: list[int] = field(default_factory=list)

    def source(self) -> str:
        """A source at one of the homes."""
        name = f"s{len(self.sources)}"
        self.sources[name] = (self.dice.choice(self.homes), self.dice.randint(1, 20))
        return name

    def operator(self, *inputs: str, run: str = "pass") -> str:
        """An operator on streams. One that reads a source is pinned to it now and then, as a device's driver is."""
        name, dice = f"o{len(self.operators)}", self.dice
        mean = dice.choice(SELECTIVITIES) if run == "pass" else "1"
        made = _Operator(run, list(inputs), mean, round(100 * 30 ** dice.random()))
        if run == "pass" and inputs[0] in self.sources and dice.random() < 0.4:
            made.pin = self.sources[inputs[0]][0]
        self.operators[name] = made
        return name

    def chain(self, stream: str, length: int) -> str:
        """Operators one after the other."""
        for _ in range(length):
            stream = self.operator(stream)
        return stream

    def output(self, stream: str) -> None:
        """Delivered at a home; the last operator is pinned there now and then, as an actuator's is."""
        at = self.dice.choice(self.homes)
        last = self.operators[stream]
        if last.pin is None and last.run == "pass" and self.dice.random() < 0.3:
            last.pin = at
        self.outputs[f"out{len(self.outputs)}"] = (stream, at)


def _layered(graph: _Graph, size: int) -> None:
    """Five layers; every operator reads one stream of the layer above or the union of two."""
    streams = [graph.source() for _ in range(2)]
    read: set[str] = set()
    for layer in range(5):
        width = size // 5 + (layer < size % 5)
        above, streams = streams, []
        for number in range(width):
            waiting = [one for one in above if one not in read]
            first = waiting[0] if waiting else graph.dice.choice(above)
            others = [one for one in above if one != first]
            two = bool(others) and (graph.dice.random() < 0.3 or (number == width - 1 and len(waiting) > 1))
            inputs = [first, graph.dice.choice(others)] if two else [first]
            read.update(inputs)
            streams.append(graph.operator(*inputs, run="union" if two else "pass"))
    for name in list(graph.operators)[-size:]:
        if name not in read:
            graph.output(name)


def _tree(graph: _Graph, size: int) -> None:
    """Sources merge by unions into one trunk, which fans out to several outputs."""
    arms = max(2, size // 5)
    heads = [graph.chain(graph.source(), 1) for _ in range(arms)]
    left = size - arms
    while len(heads) > 1:
        heads = [*heads[2:], graph.operator(heads[0], heads[1], run="union")]
        left -= 1
    leaves = max(1, left // 3)
    for number in range(leaves):
        graph.output(graph.chain(heads[0], left // leaves + (number < left % leaves)))


def _diamond(graph: _Graph, size: int) -> None:
    """A stream is split, worked on in branches and joined again, several times."""
    stream = graph.chain(graph.source(), 1)
    left = size - 1
    while left > 0:
        width = min(3, left - 1)
        if width < 2:
            stream, left = graph.chain(stream, left), 0
            break
        length = 2 if left >= 2 * width + 2 else 1
        branches = [graph.chain(stream, length) for _ in range(width)]
        stream, left = graph.operator(*branches, run="join"), left - width * length - 1
    graph.output(stream)


def _shared(graph: _Graph, size: int) -> None:
    """Several queries with deadlines of their own that share how they begin."""
    prefix = max(1, size // 4)
    stream = graph.chain(graph.source(), prefix)
    left, tails = size - prefix, max(1, (size - prefix) // 4)
    for number in range(tails):
        graph.output(graph.chain(stream, left // tails + (number < left % tails)))


BUILDERS = {"layered": _layered, "tree": _tree, "diamond": _diamond, "shared": _shared}


def generate(recipe: Recipe) -> tuple[str, str]:
    """query.yaml and cluster.yaml of a recipe, the same text for the same recipe on any machine."""
    dice = random.Random(f"{recipe.nodes} {recipe.operators} {recipe.shape} {recipe.seed}")
    speeds = [dice.choice(SPEEDS) for _ in range(recipe.nodes)]
    graph = _Graph(dice)
    parts = ceil(recipe.operators / LARGEST_PART)
    around = list(range(recipe.nodes)) * 4
    dice.shuffle(around)
    for part in range(parts):
        size = recipe.operators // parts + (part < recipe.operators % parts)
        graph.homes = [around[(part * 3 + step) % len(around)] for step in range(3)]
        BUILDERS[dice.choice(SHAPES) if recipe.shape == "mixed" else recipe.shape](graph, size)
    return _query(graph, speeds, recipe.slack), _cluster(speeds)


def write(recipe: Recipe, directory: Path) -> tuple[Path, Path]:
    """The two files of a recipe in a directory."""
    query, cluster = directory / "query.yaml", directory / "cluster.yaml"
    texts = generate(recipe)
    query.write_text(texts[0])
    cluster.write_text(texts[1])
    return query, cluster


def _flows(graph: _Graph) -> dict[str, Fraction]:
    flow = {name: Fraction(burst) for name, (_, burst) in graph.sources.items()}
    for name, one in graph.operators.items():
        flow[name] = _entering(one, flow) * Fraction(one.mean)
    return flow


def _entering(one: _Operator, flow: Mapping[str, Fraction]) -> Fraction:
    rates = [flow[name] for name in one.inputs]
    return sum(rates, Fraction(0)) if one.run == "union" else min(rates)


def _query(graph: _Graph, speeds: Sequence[Fraction], slack: float) -> str:
    flow, fastest = _flows(graph), max(speeds)
    cost_us = {name: _entering(one, flow) * one.cost_us / fastest for name, one in graph.operators.items()}
    before: dict[str, set[str]] = {}
    for name, one in graph.operators.items():
        before[name] = {name}.union(*(before.get(stream, set()) for stream in one.inputs))
    ratio, load_us = _least_ratio(cost_us, [fastest / speed for speed in speeds], graph)
    period_us = ceil(load_us / MEAN_LOAD)
    lines = ["shimekiri: 1", "query: generated", "sources:"]
    for name, (at, burst) in graph.sources.items():
        lines.append(f"  {name}: {{at: n{at}, type: json, arrival: {{burst: {burst}, period: {period_us} us}}}}")
    lines.append("operators:")
    for name, one in graph.operators.items():
        reads = one.inputs[0] if len(one.inputs) == 1 else f"[{', '.join(one.inputs)}]"
        extra = f", selectivity: {{mean: {one.mean}, at_most: {WORST[one.mean]}}}" if one.mean != "1" else ""
        extra += f", nodes: [n{one.pin}]" if one.pin is not None else ""
        lines.append(f"  {name}: {{run: {one.run}, in: {reads}, cost: {one.cost_us} us{extra}}}")
    lines.append("outputs:")
    for name, (stream, at) in graph.outputs.items():
        own = Fraction(graph.dice.randint(100, 150), 100) * Fraction(str(slack))
        deadline_us = ceil(max(ratio * own, Fraction(1)) * sum(cost_us[one] for one in before[stream]))
        lines.append(f"  {name}: {{from: {stream}, at: n{at}, deadline: {deadline_us} us}}")
    return "\n".join(lines) + "\n"


def _least_ratio(
    cost_us: Mapping[str, Fraction], slower: Sequence[Fraction], graph: _Graph
) -> tuple[Fraction, Fraction]:
    """The least deadline over cost at which demand at (1) could hold if unpinned work were divisible, and the work of
    the busiest node then, at least one operator's on the slowest. `slower[n]`: cost there over cost on the fastest."""
    groups = [(list(cost_us.values()), 1 / sum((1 / one for one in slower), Fraction(0)))]
    for node, factor in enumerate(slower):
        groups.append(([cost_us[name] for name, one in graph.operators.items() if one.pin == node], factor))
    ratio, most = Fraction(1), max(cost_us.values()) * max(slower)
    for costs, factor in groups:
        so_far = Fraction(0)
        for cost in sorted(costs):  # all work no costlier than this one has to fit in its sub-deadline
            so_far += cost * factor
            ratio = max(ratio, so_far / cost)
        most = max(most, so_far)
    return ratio, most


def _cluster(speeds: Sequence[Fraction]) -> str:
    lines = ["shimekiri: 1", "nodes:"]
    for number, speed in enumerate(speeds):
        lines.append(f'  n{number}: {{address: "127.0.0.1:{10000 + number}", speed: {float(speed):g}}}')
    return "\n".join(lines) + "\n"
