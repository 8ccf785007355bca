"""Random queries on two to four nodes whose plans have bounds: chains, fan-outs, unions, joins, windows, fusions before
windows; fixed seeds.

Costs are drawn first and then scaled, so that each node is as full as the load says (at worst, in the long run).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from coordinator.model.choices import Choices
from coordinator.solve import planner
from coordinator.spec.runtime_charges import NOTHING
from protos.plan_document import Plan

PLAIN = ("chain", "fan-out", "union", "join", "mixed")
WINDOWED = ("window", "windows", "fused")
CLASSES = PLAIN + WINDOWED
LOADS = (0.3, 0.6, 0.85)
FILTER = ", selectivity: {mean: 0.5, at_most: [[1, 1], [2, 1]]}"


@dataclass(frozen=True)
class Case:
    """A query and a cluster as text, and where operators run."""

    query: str
    cluster: str
    place: dict[str, str]

    def plan(self) -> Plan:
        """With sub-deadlines in proportion, operators where they are to be."""
        with TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "query.yaml").write_text(self.query)
            (folder / "cluster.yaml").write_text(self.cluster)
            choices = Choices(
                allocator="sqpr", place=self.place, sub_deadlines="proportional", policy="edf", charges=NOTHING
            )
            return planner.make_plan(folder / "query.yaml", folder / "cluster.yaml", choices)


@dataclass
class _Operator:
    """`rate`: runs per ms at worst, in the long run; `share`: of its node, before costs are scaled."""

    text: str
    node: str
    rate: float
    share: float


@dataclass
class _Draw:
    """A query as it grows. `rates`: of every stream, tuples per ms."""

    dice: Random
    nodes: str
    wait: bool
    sources: list[str] = field(default_factory=list)
    operators: dict[str, _Operator] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    rates: dict[str, float] = field(default_factory=dict)

    def source(self, aged: bool = False) -> str:
        """A new one."""
        dice, name = self.dice, f"s{len(self.sources)}"
        period, burst = dice.choice([8, 15, 30, 50, 80]), dice.choice([1, 1, 2, 3, 5])
        arrival = f"{{burst: {burst}, period: {burst * period} ms}}"
        if dice.random() < 0.4:
            jitter = dice.choice([0, period // 2, period])
            arrival = f"{{jcp: {{period: {period} ms, min_gap: {period // 4} ms, early: 0 ms, late: {jitter} ms}}}}"
        age = f", max_age: {dice.choice([5, 20])} ms" if aged else ""
        self.sources.append(f"  {name}: {{at: {dice.choice(self.nodes)}, type: json{age}, arrival: {arrival}}}")
        self.rates[name] = 1 / period
        return name

    def operator(self, inputs: list[str], run: str = "pass", more: str = "", rate: float | None = None) -> str:
        """A new one, on a node of its own choice."""
        dice, name = self.dice, f"o{len(self.operators)}"
        runs = sum(self.rates[each] for each in inputs) if rate is None else rate
        given = inputs[0] if len(inputs) == 1 else f"[{', '.join(inputs)}]"
        text = f"run: {run}, in: {given}{more}"
        self.operators[name] = _Operator(text, dice.choice(self.nodes), runs, dice.uniform(0.2, 1))
        self.rates[name] = runs / 2 if run == "filter" else runs
        return name

    def chain(self, stream: str, length: int) -> str:
        """Operators one behind the other, a filter among them at times."""
        for _ in range(length):
            filters = self.dice.random() < 0.15
            stream = self.operator([stream], "filter", FILTER) if filters else self.operator([stream])
        return stream

    def chain_of_passes(self, stream: str) -> str:
        """None or one, which drops nothing."""
        return self.operator([stream]) if self.dice.random() < 0.5 else stream

    def window(self, streams: list[str]) -> str:
        """Of time. It runs for each of its tuples; its result costs a part of that."""
        dice = self.dice
        hop = dice.choice([40, 60, 100])
        length = hop * dice.choice([1, 1, 2])
        wait = "" if self.wait else ", wait: 200 ms"
        text = f"time: {length} ms, hop: {hop} ms, shed: none, close: {dice.randint(200, 2000)} us{wait}"
        more = f", with: {{n: count}}, window: {{{text}}}"
        made = self.operator(streams, "aggregate", more)
        self.rates[made] = 1 / hop
        return made

    def out(self, stream: str) -> None:
        """Delivered somewhere."""
        deadline = self.dice.choice([60, 100, 200, 400, 700])
        name = f"out{len(self.outputs)}"
        self.outputs.append(
            f"  {name}: {{from: {stream}, at: {self.dice.choice(self.nodes)}, deadline: {deadline} ms}}"
        )

    def beside(self, count: int) -> None:
        """Other streams on the same nodes."""
        for _ in range(count):
            self.out(self.chain(self.source(), self.dice.randint(1, 2)))


def _chain(draw: _Draw) -> None:
    draw.out(draw.chain(draw.source(), draw.dice.randint(2, 4)))
    draw.beside(draw.dice.randint(1, 2))


def _fan_out(draw: _Draw) -> None:
    first = draw.chain(draw.source(), draw.dice.randint(0, 2))
    for _ in range(draw.dice.randint(2, 3)):
        draw.out(draw.chain(first, draw.dice.randint(1, 2)))
    draw.beside(draw.dice.randint(0, 1))


def _union(draw: _Draw) -> None:
    inputs = [draw.chain(draw.source(), draw.dice.randint(0, 1)) for _ in range(2)]
    draw.out(draw.chain(draw.operator(inputs, "union"), draw.dice.randint(0, 2)))
    draw.beside(1)


def _join(draw: _Draw) -> None:
    source = draw.source()
    inputs = [draw.chain(source, draw.dice.randint(1, 2)) for _ in range(2)]
    rate = min(draw.rates[each] for each in inputs)
    draw.out(draw.chain(draw.operator(inputs, "join", rate=rate), draw.dice.randint(0, 1)))
    draw.beside(1)


def _mixed(draw: _Draw) -> None:
    dice = draw.dice
    streams = [draw.source() for _ in range(dice.randint(2, 3))]
    used: set[str] = set()
    for _ in range(dice.randint(3, 6)):
        first = dice.choice([each for each in streams if each not in used] or streams)
        other = dice.choice(streams)
        inputs = [first, other] if dice.random() < 0.25 and other != first else [first]
        streams.append(draw.operator(inputs, "union") if len(inputs) > 1 else draw.chain(first, 1))
        used |= set(inputs)
    for each in streams:
        if each not in used:
            draw.out(each if each.startswith("o") else draw.chain(each, 1))


def _window(draw: _Draw) -> None:
    draw.out(draw.chain(draw.window([draw.chain_of_passes(draw.source(aged=True))]), draw.dice.randint(0, 2)))
    draw.beside(draw.dice.randint(1, 2))


def _windows(draw: _Draw) -> None:
    streams = [draw.chain_of_passes(draw.source(aged=True)) for _ in range(2)]
    draw.out(draw.chain(draw.window(streams), draw.dice.randint(0, 1)))
    draw.out(draw.chain(draw.window([draw.dice.choice(streams)]), draw.dice.randint(0, 1)))
    draw.beside(1)


def _fused(draw: _Draw) -> None:
    streams = [draw.chain_of_passes(draw.source(aged=True)) for _ in range(2)]
    sync = f", sync: {{on: all, timeout: {draw.dice.choice([5, 20, 40])} ms}}"
    fused = draw.operator(streams, "join", sync, rate=sum(draw.rates[each] for each in streams))
    draw.out(draw.chain(draw.window([draw.chain_of_passes(fused)]), draw.dice.randint(0, 1)))
    draw.beside(1)


_SHAPES: dict[str, Callable[[_Draw], None]] = {
    "chain": _chain, "fan-out": _fan_out, "union": _union, "join": _join, "mixed": _mixed, "window": _window,
    "windows": _windows, "fused": _fused,
}  # fmt: skip


def case(kind: str, load: float, seed: int) -> Case:
    """A query of that class on nodes of that load. Windows wait a second for lost numbers (the default) or less."""
    dice = Random(f"{kind} {load} {seed}")
    draw = _Draw(dice, "abcd"[: dice.randint(2, 4)], wait=dice.random() < 0.7)
    _SHAPES[kind](draw)
    scale: dict[str, float] = {}
    for node in draw.nodes:
        here = [each for each in draw.operators.values() if each.node == node]
        scale[node] = load * dice.uniform(0.85, 1) / max(sum(each.share for each in here), 1e-9)
    lines = ["shimekiri: 1", "query: random", "sources:", *draw.sources, "operators:"]
    for name, each in draw.operators.items():
        cost_us = max(20, round(1000 * each.share * scale[each.node] / each.rate))
        lines.append(f"  {name}: {{{each.text}, cost: {cost_us} us}}")
    query = "\n".join([*lines, "outputs:", *draw.outputs]) + "\n"
    return Case(query, _cluster(draw.nodes, dice), {name: each.node for name, each in draw.operators.items()})


def _cluster(nodes: str, dice: Random) -> str:
    lines = ["shimekiri: 1", "nodes:"]
    emulated = ", emulate: {cost_per_tuple: 50 us}" if dice.random() < 0.25 else ""
    lines += [f'  {name}: {{address: "127.0.0.1:77{i}0", cap: 1{emulated}}}' for i, name in enumerate(nodes)]
    links = []
    for one in nodes:
        for other in nodes:
            if one < other:
                width = ", bandwidth: 20 Mbit/s" if dice.random() < 0.3 else ""
                links.append(f"{{between: [{one}, {other}], latency: {dice.choice([0, 1, 3])} ms{width}}}")
    return "\n".join([*lines, f"links: [{', '.join(links)}]", "security: insecure-loopback"]) + "\n"


__all__ = ["CLASSES", "LOADS", "PLAIN", "WINDOWED", "Case", "case"]
