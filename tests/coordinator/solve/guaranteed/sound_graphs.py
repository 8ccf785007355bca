"""Small random queries for the `sound` model, and every placement of one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from coordinator.model import routes
from coordinator.model.limits import Limits
from coordinator.solve.guaranteed.candidate import Candidate, Setting, candidate
from coordinator.solve.guaranteed.search import Finder
from coordinator.spec import input_files
from coordinator.spec.runtime_charges import NOTHING, RuntimeOverhead

SECONDS = 300.0  # no search here ends by the clock


def texts(seed: int) -> tuple[str, str]:
    """Two or three nodes, four or five operators; unions, joins, filters, pins, ages, latencies, emulated nodes."""
    dice = random.Random(seed)
    nodes = "ab" if dice.random() < 0.7 else "abc"
    emulate = ", emulate: {cost_per_tuple: 1 ms}" if dice.random() < 0.4 else ""
    lines = ["shimekiri: 1", "nodes:"]
    for i, name in enumerate(nodes):
        speed = f", speed: {dice.choice([1, 1, 2])}"
        lines.append(f'  {name}: {{address: "127.0.0.1:77{i}0"{speed}{emulate}}}')
    pairs = [(one, other) for one in nodes for other in nodes if one < other]
    links = ", ".join(f"{{between: [{a}, {b}], latency: {dice.choice([0, 1, 3])} ms}}" for a, b in pairs)
    cluster = "\n".join([*lines, f"links: [{links}]", "security: insecure-loopback"])
    query = ["shimekiri: 1", "query: random", "sources:"]
    for name in ("s1", "s2"):
        age = f", max_age: {dice.choice([1, 5])} ms" if dice.random() < 0.5 else ""
        period = dice.choice([60, 100, 200])
        arrival = dice.choice(
            [
                f"{{burst: {dice.randint(1, 5)}, period: {period} ms}}",
                f"{{jcp: {{period: {period} ms, min_gap: {dice.choice([0, 2])} ms, early: 0 ms, late: {period} ms}}}}",
            ]
        )
        query.append(f"  {name}: {{at: {dice.choice(nodes)}, type: json, arrival: {arrival}{age}}}")
    query.append("operators:")
    streams, lineage, read = ["s1", "s2"], {"s1": {"s1"}, "s2": {"s2"}}, set()
    for number in range(1, dice.randint(3, 4) + 1):
        name, first = f"o{number}", dice.choice(streams)
        other = dice.choice(streams)
        kind = dice.choice(["pass", "pass", "filter", "join", "union"])
        if kind in ("join", "union") and (other == first or (kind == "join" and not lineage[first] & lineage[other])):
            kind = "pass"
        both = kind in ("join", "union")
        text = f"run: {kind}, in: [{first}, {other}]" if both else f"run: {kind}, in: {first}"
        text += ", selectivity: {mean: 0.5, at_most: [[1, 1], [2, 1]]}" if kind == "filter" else ""
        pin = f", nodes: [{dice.choice(nodes)}]" if dice.random() < 0.45 else ""
        query.append(f"  {name}: {{{text}, cost: {dice.randint(1, 6)} ms{pin}}}")
        read |= {first, other} if both else {first}
        lineage[name] = lineage[first] & lineage[other] if kind == "join" else set(lineage[first])
        if kind == "union":
            lineage[name] |= lineage[other]
        streams.append(name)
    for name in ("s1", "s2"):
        if name not in read:
            query.append(f"  last{name}: {{run: pass, in: {name}, cost: 1 ms}}")
            streams.append(f"last{name}")
    query.append("outputs:")
    for name in streams[2:]:
        if name not in read or dice.random() < 0.2:
            deadline = dice.choice([15, 25, 40, 70])
            query.append(f"  out_{name}: {{from: {name}, at: {dice.choice(nodes)}, deadline: {deadline} ms}}")
    return "\n".join(query), cluster


def finder(seed: int, charges: RuntimeOverhead = NOTHING) -> Finder:
    """The search for a random query."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        query_text, cluster_text = texts(seed)
        (folder / "query.yaml").write_text(query_text)
        (folder / "cluster.yaml").write_text(cluster_text)
        query, cluster, types = input_files.read_files(folder / "query.yaml", folder / "cluster.yaml")
    assert cluster is not None
    return Finder(Setting(query, cluster, types, "path"), charges, Limits(SECONDS))


def placements(found: Finder) -> Iterator[tuple[Fraction, Candidate]]:
    """Every placement within the nodes' caps, with its traffic; these clusters are fully linked."""
    items = found.problem.items
    for nodes in product(*(item.nodes for item in items)):
        place = dict(enumerate(nodes))
        load = [Fraction(0)] * len(found.problem.nodes)
        for i, item in enumerate(items):
            load[place[i]] += item.load[place[i]]
        if any(used > node.cap for used, node in zip(load, found.problem.nodes, strict=True)):
            continue
        names = {name: found.problem.nodes[place[i]].name for i, item in enumerate(items) for name in item.members}
        hops = routes.direct(found.problem, place)
        yield routes.traffic(found.problem, hops), candidate(found.setting, names, hops)
