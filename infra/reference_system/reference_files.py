"""The reference system as a user writes it: query.yaml and cluster.yaml."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from infra.reference_system import planner_operator
from infra.reference_system.planner_operator import LATEST
from infra.reference_system.reference_graph import (
    AGE_MS,
    CALLBACKS,
    COMMANDS,
    DEADLINES_MS,
    DRIVE,
    HOT_PATH,
    PERIODS_MS,
    SINK,
    Callback,
    cost_ns,
)
from node_agent.operators.registry import Registry

OPERATORS = Path(planner_operator.__file__)
NODES = "ab"
ROOM = 0.15  # of a cap above the load


def write(folder: Path, load: float, nodes: int, live: bool = False) -> tuple[Path, Path]:
    """Both files at that share of the nodes' cores, and operators.json beside them. live: operators burn what they
    cost."""
    cost_us = cost_ns(load, nodes) // 1000
    query, cluster = folder / "query.yaml", folder / "cluster.yaml"
    query.write_text("\n".join(_query(cost_us)) + "\n")
    cluster.write_text("\n".join(_cluster(load, cost_us if live else 0, nodes)) + "\n")
    (folder / "operators.json").write_text(json.dumps(registry().describe()))
    return query, cluster


def registry() -> Registry:
    """With the operator of the reference system."""
    return Registry((OPERATORS,))


def _query(cost_us: int) -> Iterator[str]:
    yield "shimekiri: 1\nquery: autoware_reference_system\nsources:"
    for name, period_ms in PERIODS_MS.items():
        yield f"  {name}: {{at: a, every: {period_ms} ms}}"
    yield "operators:"
    for each in CALLBACKS:
        yield f"  {each.name}: {{{_run(each)}, in: [{', '.join(each.inputs)}], cost: {cost_us} us}}"
    yield "outputs:"
    for name, stream in ({HOT_PATH: SINK} | dict(COMMANDS)).items():
        age = f", age: {AGE_MS} ms" if name == DRIVE else ""
        yield f"  {name}: {{from: {stream}, at: a, deadline: {DEADLINES_MS[name]} ms{age}}}"


def _run(callback: Callback) -> str:
    """A fusion of two results of one tick is a join by lineage."""
    if callback.kind == "cyclic":
        side = ", ".join(f"{port}: {stream}" for port, stream in zip(LATEST, callback.latest, strict=True))
        return f"run: reference.planner, side: {{{side}}}"
    if callback.kind == "fusion":
        return "run: join" if _of_one_tick(callback) else "run: join, sync: all"
    return "run: pass"


def _of_one_tick(callback: Callback) -> bool:
    sources = [_sources(name) for name in callback.inputs]
    return all(each == sources[0] for each in sources)


def _sources(stream: str) -> frozenset[str]:
    made: Mapping[str, Callback] = {each.name: each for each in CALLBACKS}
    if stream in PERIODS_MS:
        return frozenset({stream})
    return frozenset().union(*(_sources(name) for name in made[stream].inputs))


def _cluster(load: float, burnt_us: int, nodes: int) -> Iterator[str]:
    """Caps are a little above the load: with more room, one node would get all that saves traffic."""
    cap = min(1.0, round(load + ROOM, 2))
    yield "shimekiri: 1\nnodes:"
    emulate = f", emulate: {{cost_per_tuple: {burnt_us} us}}" if burnt_us else ""
    for number, name in enumerate(NODES[:nodes]):
        yield f'  {name}: {{address: "127.0.0.1:77{number}0", memory: 256 MiB, cap: {cap}{emulate}}}'
    yield "links: [{between: [a, b], latency: 1 ms}]" if nodes > 1 else "links: []"
    yield "operators: operators.json\nsecurity: insecure-loopback"
