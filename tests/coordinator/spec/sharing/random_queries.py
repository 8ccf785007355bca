"""Small random queries for one cluster that have much in common, as text and as values."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from coordinator.spec import cluster as clusters
from coordinator.spec import core_assignment, query_reader
from coordinator.spec.checks import query_checks
from coordinator.spec.cluster import Cluster
from coordinator.spec.query import Query

Spec = dict[str, dict[str, Any]]  # operators by name: run, in, side, cost_ms, with, nodes, more
INSTALLED = {
    "shimekiri": 1,
    "codecs": ["json"],
    "operators": {
        "my.look": {
            "code": "0" * 64,
            "kind": "map",
            "inputs": {"in": "any"},
            "side": {"arm": "any"},
            "output": "same",
            "with": {"far": {"type": "number", "default": 5, "required": False}},
        },
        "my.pair": {"code": "1" * 64, "kind": "join", "inputs": {"left": "any", "right": "any"}, "output": "json"},
    },
}
MORE = [
    "state: fresh",
    "memory: 1 MiB",
    "hang: 5 s",
    "forbid_streams: [[a, c]]",
    "selectivity: {mean: 0.5, at_most: [[2, 1]]}",
    "selectivity: {mean: 0.5, at_most: [[3, 2]]}",
]
NODES = {"abc": [], "a": ["nodes: [a]"], "b": ["nodes: [b]"], "c": ["nodes: [c]"], "bc": ["nodes: [c, b]"],
         "ab": ["forbid_nodes: [c]"]}  # fmt: skip
SOURCES = """  s: {at: a, type: json, arrival: {burst: 2, period: 400 ms}, max_age: 3 ms}
  t: {at: b, type: json, arrival: {jcp: {period: 300 ms, late: 40 ms}}, max_age: 2 ms, tolerance: 1 ms}
"""


def cluster_text(cores: int = 1) -> str:
    """Three nodes; a has `cores` cores."""
    return f"""shimekiri: 1
operators: operators.json
nodes:
  a: {{address: "127.0.0.1:7701", policy: edf, cores: {cores}, speed: 1.5}}
  b: {{address: "127.0.0.1:7702", policy: edf, memory: 64 MiB}}
  c: {{address: "127.0.0.1:7703", charges: {{decision: 10 us, drain: 5 us, side: 2 us}}}}
links:
  - {{between: [a, b], latency: 1 ms}}
  - {{between: [b, c], latency: 500 us, bandwidth: 100 Mbit/s}}
  - {{between: [a, c]}}
"""


def operators(dice: random.Random, most: int = 6) -> Spec:
    """Operators that each read what stands before them; side inputs may also lead back."""
    spec: Spec = {}
    lineage = {"s": {"s"}, "t": {"t"}}
    for number in range(1, dice.randint(2, most) + 1):
        name = f"o{number}"
        streams = sorted(lineage)
        first, second = dice.choice(streams), dice.choice(streams)
        kind = dice.choice(["pass", "busy", "filter", "my.look", "my.pair", "join", "union"])
        if kind in ("my.pair", "join") and (first == second or not lineage[first] & lineage[second]):
            kind = "my.look"
        if kind == "union" and first == second:
            kind = "pass"
        two = kind in ("my.pair", "join", "union")
        given = {
            "busy": {"cpu_us": dice.choice([1, 2])},
            "filter": {"keep": 1, "of": dice.choice([2, 3])},
            "my.look": dice.choice([{}, {"far": 5}, {"far": 6}]),
        }
        spec[name] = {
            "run": kind,
            "in": [first, second] if two else [first],
            "side": {},
            "cost_ms": dice.choice([1, 1, 2]),
            "with": given.get(kind, {}),
            "nodes": dice.choice(["abc", "abc", "abc", "a", "bc", "c", "ab"]),
            "more": dice.choice(MORE) if dice.random() < 0.3 and not two else "",
        }
        both = lineage[first] | lineage[second] if two else lineage[first]
        lineage[name] = lineage[first] & lineage[second] if kind in ("my.pair", "join") else set(both)
    for facts in spec.values():
        if facts["run"] == "my.look" and dice.random() < 0.7:
            facts["side"] = {"arm": dice.choice([*spec, "s"])}
    return spec


def varied(dice: random.Random, spec: Spec) -> Spec:
    """The same operators, some called differently, some changed."""
    called = {name: dice.choice([name, f"my_{name}", f"o{dice.randint(7, 9)}"]) for name in spec}
    if len(set(called.values())) < len(called):
        called = {name: name for name in spec}
    found: Spec = {}
    for name, facts in spec.items():
        changed = dict(facts, side={port: called.get(one, one) for port, one in facts["side"].items()})
        changed["in"] = [called.get(one, one) for one in facts["in"]]
        if dice.random() < 0.15:
            changed["cost_ms"] = 3
        if dice.random() < 0.15:
            changed["nodes"] = dice.choice(["abc", "a", "b", "c", "ab"])
        if dice.random() < 0.1 and len(facts["in"]) == 1:
            changed["more"] = dice.choice(MORE)
        found[called[name]] = changed
    return found


def text(name: str, spec: Spec, dice: random.Random) -> str:
    """query.yaml; what nothing reads is an output."""
    read = {one for facts in spec.values() for one in (*facts["in"], *facts["side"].values())}
    lines = ["shimekiri: 1", f"query: {name}", "sources:"]
    lines += [line for line in SOURCES.splitlines() if line.strip()[0] in read]
    lines.append("operators:")
    for one, facts in spec.items():
        ports = {"left": facts["in"][0], "right": facts["in"][-1]}
        if dice.random() < 0.5:
            ports = dict(reversed(ports.items()))
        reads = json.dumps(ports if facts["run"] == "my.pair" else facts["in"])
        parts = [f"run: {facts['run']}", f"in: {reads}", f"cost: {facts['cost_ms']} ms"]
        parts += [f"side: {json.dumps(facts['side'])}"] if facts["side"] else []
        parts += [f"with: {json.dumps(facts['with'])}"] if facts["with"] else []
        parts += NODES[facts["nodes"]] + ([facts["more"]] if facts["more"] else [])
        lines.append(f"  {one}: {{{', '.join(parts)}}}")
    lines.append("outputs:")
    triggered = {one for facts in spec.values() for one in facts["in"]}
    for one in spec:
        if one not in triggered or dice.random() < 0.2:
            deadline = dice.choice([80, 150, 300])
            asked = dice.choice(["", "", ", wait: 70 ms", ", throughput: 2, latency: 40 ms", ", queue: 1 MiB"])
            where = f"from: {one}, at: {dice.choice('ab')}"
            lines.append(f"  {name}_{one}: {{{where}, deadline: {deadline} ms{asked}}}")
    return "\n".join(lines) + "\n"


def load(texts: Sequence[str], cores: int = 1) -> tuple[list[Query], Cluster]:
    """Each checked by itself and resolved."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "operators.json").write_text(json.dumps(INSTALLED))
        (folder / "cluster.yaml").write_text(cluster_text(cores))
        cluster = clusters.load(folder / "cluster.yaml")
        found = []
        for number, one in enumerate(texts):
            path = folder / f"query{number}.yaml"
            path.write_text(one)
            query = query_reader.load(path)
            query_checks.check(query, cluster)
            found.append(core_assignment.resolve(query, cluster))
    return found, cluster


def several(seed: int, count: int = 2, cores: int = 1) -> tuple[list[Spec], list[Query], Cluster]:
    """Queries `q1`, `q2`, ...: the first, and variations of it."""
    dice = random.Random(seed)
    first = operators(dice)
    specs = [first, *(varied(dice, first) for _ in range(count - 1))]
    found, cluster = load([text(f"q{i}", spec, dice) for i, spec in enumerate(specs, start=1)], cores)
    return specs, found, cluster
