"""Systems for the analysis, written in place: sources, units of one operator, links without bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from coordinator.calculus.curves import Bursts, Jcp
from coordinator.calculus.selectivity import ONE
from coordinator.guarantee.analysis import Analysis, analyse
from coordinator.guarantee.system import Link, Node, Output, Side, Source, Stage, System, Unit
from coordinator.guarantee.window_sources import Windows
from coordinator.spec.quality import Freshness
from coordinator.spec.runtime_charges import NOTHING, RuntimeOverhead
from protos.plan.operators import Sync

MS = 1_000_000
LONG = Freshness(10**12)


def source(name: str, node: str, period_ms: int, age_ms: int, jitter_ms: int = 0) -> Source:
    """With a period. age_ms: on admission at most, 0: of any age."""
    jitter_ns = jitter_ms * MS
    curve = Jcp(period_ms * MS, 0, jitter_ns)
    return Source(name, node, curve, age_ms * MS, gap_ns=period_ms * MS + jitter_ns)


def timer(name: str, node: str, period_ms: int) -> Source:
    """Its tuples are ticks."""
    period_ns = period_ms * MS
    return Source(name, node, Bursts(1, period_ns), 0, gap_ns=period_ns, every_ns=period_ns, timer=True)


def unit(
    number: int,
    name: str,
    node: str,
    inputs: Sequence[str],
    cost_ms: int,
    sides: Sequence[Side] = (),
    sync: Sync | None = None,
    whole: Sequence[bool] = (),
    join: bool = False,
    drops: str = "",
    sheds: str = "",
) -> Unit:
    """Of one operator, which takes that long."""
    stage = Stage(name, cost_ms * MS, 0, ONE, tuple(sides), drops, sheds)
    droppers = tuple(dict[str, int]() for _ in whole)
    return Unit(
        number, node, (stage,), 1000 * MS, tuple(inputs), join, {name: 0}, "",
        sync=sync, whole=tuple(whole), droppers=droppers,
    )  # fmt: skip


def window(name: str, node: str, length_ms: int, wait_ms: int, sources: Sequence[str]) -> Windows:
    """Of time, one after the other; `name.add` collects."""
    length_ns = length_ms * MS
    add = f"{name}.add"
    return Windows(name, add, node, "time", length_ns, length_ns, False, 0, wait_ms * MS, tuple(sources), True)


def analysed(
    sources: Sequence[Source],
    units: Sequence[Unit],
    outputs: Mapping[str, str],
    hops: Mapping[str, Sequence[tuple[str, str]]] | None = None,
    latency_ms: int = 1,
    windows: Sequence[Windows] = (),
    charges: RuntimeOverhead = NOTHING,
    analysis: Callable[[System, RuntimeOverhead], Analysis] = analyse,
) -> Analysis:
    """outputs: the node where each stream is delivered, with an age and a reaction that anything holds. units: in the
    order of what triggers what. Two nodes have one link, which takes latency_ms at most."""
    nodes = {one.node for one in (*sources, *units)} | set(outputs.values())
    travelled = {stream: tuple(pairs) for stream, pairs in (hops or {}).items()}
    system = System(
        nodes={
            name: Node(
                name,
                "edf",
                1,
                tuple(side.stream for one in units if one.node == name for stage in one.stages for side in stage.sides),
            )
            for name in sorted(nodes)
        },
        units={one.id: one for one in units},
        order=tuple(one.id for one in units),
        sources={one.name: one for one in sources},
        outputs={name: Output(name, node, 10_000 * MS, age=LONG, reaction=LONG) for name, node in outputs.items()},
        hops=travelled,
        links={(one, other): Link(latency_ms * MS, 0) for one in nodes for other in nodes if one != other},
        marked=frozenset(),
        windows={one.add: one for one in windows},
    )
    return analysis(system, charges)


def asking(analysis: Analysis, output: str, age_ms: int) -> Analysis:
    """The same, with an age alone that is asked of an output."""
    system = analysis.system
    outputs = {**system.outputs, output: replace(system.outputs[output], age=Freshness(age_ms * MS), reaction=None)}
    return replace(analysis, system=replace(system, outputs=outputs))
