"""Cases in which an output is not guaranteed, each by another key of the two files, which a change has to name."""

from __future__ import annotations

from dataclasses import dataclass

AGED = "max_age: 1 ms"
A = 'a: {address: "127.0.0.1:7700"%s}'
B = 'b: {address: "127.0.0.1:7710"%s}'


@dataclass(frozen=True)
class Written:
    """Two files, and the key that a change has to name."""

    query: str
    cluster: str
    key: str


def cluster(a: str = "", b: str | None = None, links: str = "[]") -> str:
    nodes = [A % a] + ([] if b is None else [B % b])
    return "\n".join(["shimekiri: 1", "nodes:", *(f"  {node}" for node in nodes), f"links: {links}"])


def query(operators: str, output: str = "{from: X, at: a, deadline: 50 ms}", source: str = "", more: str = "") -> str:
    given = source or f"at: a, type: json, arrival: {{burst: 4, period: 100 ms}}, {AGED}"
    return f"""shimekiri: 1
query: q
sources:
  s: {{{given}}}{more}
operators:
{operators}
outputs:
  x: {output}
"""


def _two(where: str) -> str:
    """Two operators, of which one fits on a node."""
    cost = f"cost: 1 ms{where}"
    written = query(
        f"  X: {{run: pass, in: s, {cost}}}\n  Y: {{run: pass, in: s, {cost}}}",
        source=f"at: a, type: json, arrival: {{burst: 30, period: 100 ms}}, {AGED}",
    )
    return written + "  y: {from: Y, at: a, deadline: 50 ms}\n"


LINKED = "[{between: [a, b], latency: 1 ms}]"
ONE = "  X: {run: pass, in: s, cost: 1 ms}"
AWAY = "{from: X, at: b, deadline: 50 ms}"
WINDOW = "  X: {run: aggregate, in: s, with: {n: count}, cost: 100 us, window: {%s}}"

CASES: dict[str, Written] = {
    "deadline": Written(query("  X: {run: pass, in: s, cost: 20 ms}"), cluster(), "outputs.x.deadline"),
    "speed": Written(query(ONE.replace("1 ms", "30 ms")), cluster(), "nodes.a.speed"),
    "emulate": Written(query(ONE), cluster(", emulate: {cost_per_tuple: 15 ms}"), "nodes.a.emulate.cost_per_tuple"),
    "cap": Written(
        query(ONE.replace("1 ms", "2 ms"), "{from: X, at: a, deadline: 90 ms}"), cluster(", cap: 0.05"), "nodes.a.cap"
    ),
    "cost": Written(query(ONE.replace("1 ms", "30 ms")), cluster(), "operators.X.cost"),
    "charges": Written(
        query(ONE, "{from: X, at: a, deadline: 10 ms}"),
        cluster(", charges: {decision: 2 ms, drain: 10 us, side: 1 us}"),
        "nodes.a.charges",
    ),
    "policy": Written(query(ONE), cluster(", policy: fifo"), "nodes.a.policy"),
    "node memory": Written(
        query("  X: {run: pass, in: s, cost: 1 ms, memory: 100 MiB}"), cluster(", memory: 64 MiB"), "nodes.a.memory"
    ),
    "operator memory": Written(
        query("  X: {run: pass, in: s, cost: 1 ms, memory: 100 MiB}"),
        cluster(", memory: 64 MiB"),
        "operators.X.memory",
    ),
    "bandwidth": Written(
        query(ONE.replace("1 ms", "1 ms, nodes: [a]"), AWAY),
        cluster("", "", "[{between: [a, b], latency: 1 ms, bandwidth: 10 kbit/s}]"),
        "links.a-b.bandwidth",
    ),
    "sending": Written(
        query(ONE.replace("1 ms", "1 ms, nodes: [a]"), AWAY),
        cluster("", "", "[{between: [a, b], latency: 1 ms, bandwidth: 300 kbit/s}]"),
        "links.a-b.bandwidth",
    ),
    "latency": Written(query(ONE, AWAY), cluster("", "", "[{between: [a, b], latency: 60 ms}]"), "links.a-b.latency"),
    "no link": Written(query(ONE, AWAY), cluster("", ""), "links"),
    "nodes": Written(_two(", nodes: [a]"), cluster("", "", LINKED), "operators.X.nodes"),
    "forbid_nodes": Written(_two(", forbid_nodes: [b]"), cluster("", "", LINKED), "operators.X.forbid_nodes"),
    "forbid_streams of a source": Written(
        query(
            "  X: {run: pass, in: s, cost: 1 ms, nodes: [b]}",
            AWAY,
            f"at: a, type: json, arrival: {{burst: 4, period: 100 ms}}, {AGED}, forbid_streams: [[a, b]]",
        ),
        cluster("", "", LINKED),
        "sources.s.forbid_streams",
    ),
    "forbid_streams of an operator": Written(
        query("  X: {run: pass, in: s, cost: 1 ms, nodes: [a], forbid_streams: [[a, b]]}", AWAY),
        cluster("", "", LINKED),
        "operators.X.forbid_streams",
    ),
    "max_age": Written(
        query(ONE, source="at: a, type: json, arrival: {burst: 4, period: 100 ms}, max_age: 48 ms"),
        cluster(),
        "sources.s.max_age",
    ),
    "no max_age": Written(
        query(ONE, source="at: a, type: json, arrival: {burst: 4, period: 100 ms}"), cluster(), "sources.s.max_age"
    ),
    "burst": Written(
        query(ONE, source=f"at: a, type: json, arrival: {{burst: 60, period: 100 ms}}, {AGED}"),
        cluster(),
        "sources.s.arrival.burst",
    ),
    "every": Written(
        query(ONE.replace("1 ms", "20 ms"), source=f"at: a, every: 10 ms, {AGED}"), cluster(), "sources.s.every"
    ),
    "size": Written(
        query(
            ONE.replace("1 ms", "1 ms, nodes: [b]"),
            AWAY,
            f"at: a, type: json, arrival: {{burst: 1, period: 100 ms}}, max_size: 512 KiB, {AGED}",
        ),
        cluster("", "", "[{between: [a, b], latency: 1 ms, bandwidth: 50 Mbit/s}]"),
        "sources.s.max_size",
    ),
    "output wait": Written(query(ONE, "{from: X, at: a, deadline: 50 ms, wait: 2 ms}"), cluster(), "outputs.x.wait"),
    "throughput": Written(
        query(ONE, "{from: X, at: a, deadline: 50 ms, throughput: 500, latency: 0 s}"),
        cluster(),
        "outputs.x.throughput",
    ),
    "output queue": Written(
        query(ONE, "{from: X, at: a, deadline: 50 ms, queue: 3 KiB}"), cluster(), "outputs.x.queue"
    ),
    "reaction": Written(
        query(ONE, "{from: X, at: a, deadline: 50 ms, reaction: 60 ms}"), cluster(), "outputs.x.reaction"
    ),
    "window length": Written(
        query(WINDOW % "time: 80 ms, deadline: first", "{from: X, at: a, deadline: 90 ms}"),
        cluster(),
        "operators.X.window",
    ),
    "window close": Written(query(WINDOW % "time: 100 ms, close: 80 ms"), cluster(), "operators.X.window.close"),
    "window hop": Written(
        query(WINDOW % "time: 100 ms, hop: 10 ms, close: 20 ms", "{from: X, at: a, deadline: 300 ms}"),
        cluster(),
        "operators.X.window.hop",
    ),
    "fusion without a timeout": Written(
        query(
            "  X: {run: join, in: [s, k], cost: 1 ms, sync: all}",
            more=f"\n  k: {{at: a, type: json, arrival: {{rate: 10, burst: 1}}, {AGED}}}",
        ),
        cluster(),
        "operators.X.sync",
    ),
    "fusion timeout": Written(
        query(
            "  X: {run: join, in: [s, k], cost: 1 ms, sync: {on: all, timeout: 60 ms}}",
            more=f"\n  k: {{at: a, type: json, arrival: {{rate: 10, burst: 1}}, {AGED}}}",
        ),
        cluster(),
        "operators.X.sync",
    ),
    "at_most": Written(
        query("  W: {run: pass, in: s, cost: 1 ms, selectivity: {mean: 2}}\n" + ONE.replace("in: s", "in: W")),
        cluster(),
        "operators.W.selectivity",
    ),
    "at_most of ten": Written(
        query(
            "  W: {run: pass, in: s, cost: 1 us, selectivity: {mean: 0.5, at_most: [[5, 4], [10, 8]]}}\n"
            + ONE.replace("in: s", "in: W").replace("1 ms", "14 ms")
        ),
        cluster(),
        "operators.W.selectivity",
    ),
    "chain": Written(
        query("  X1..X3: {chain: pass, in: s, cost: 5 ms}", "{from: X3, at: a, deadline: 50 ms}"),
        cluster(),
        "operators.X1..X3.cost",
    ),
    "batch": Written(  # one that is blocked by a batch of another
        query(
            ONE + "\n  Y: {run: pass, in: k, cost: 1 ms}",
            "{from: X, at: a, deadline: 7 ms}\n  y: {from: Y, at: a, deadline: 90 ms}",
            f"at: a, type: json, arrival: {{burst: 1, period: 100 ms}}, {AGED}",
            f"\n  k: {{at: a, type: json, arrival: {{burst: 8, period: 100 ms}}, {AGED}}}",
        ),
        cluster(", policy: edf:batch=8"),
        "nodes.a.policy",
    ),
}
GIVEN_UP = Written(
    query(WINDOW % "time: 100 ms, shed: none, wait: 1 ms", "{from: X, at: b, deadline: 300 ms}").replace(
        "cost: 100 us", "cost: 100 us, nodes: [b]"
    ),
    cluster("", "", "[{between: [a, b], latency: 20 ms}]"),
    "operators.X.window.wait",
)
PAIRS: dict[str, Written] = {
    "memory and deadline": Written(
        query("  X: {run: pass, in: s, cost: 20 ms, memory: 100 MiB}"),
        cluster(", memory: 64 MiB"),
        "outputs.x.deadline",
    ),
    "forbid_streams and deadline": Written(
        query("  X: {run: pass, in: s, cost: 20 ms, nodes: [a], forbid_streams: [[a, b]]}", AWAY),
        cluster("", "", LINKED),
        "operators.X.forbid_streams",
    ),
}
THREE = Written(
    query("  X: {run: pass, in: s, cost: 20 ms, memory: 100 MiB, nodes: [a], forbid_streams: [[a, b]]}", AWAY),
    cluster(", memory: 64 MiB", ", memory: 64 MiB", LINKED),
    "",
)
