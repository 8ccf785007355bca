"""The queries that outsiders' runs have: each alone or beside others, on a line of three nodes.

line      s -> x (a) -> y (b) -> z (c) -> out (c)         busy      n -> h (b) -> done (b)
fan       p -> cut (a) -> fast (a) -> quick (a)           tight     k -> one (b) -> soon (b)
                       -> slow (b) -> later (b)           merged    e (a), f (c) -> all (b), a union -> wide (b)
twin      s -> x (a) -> y (b) -> near (b), shared with line
joined    u -> left (a), right (b) -> both (b) -> pair (b)
sided     v -> w (b) -> seen (b), with g -> gg (c) as a side input of w
windowed  m (a) -> mean (b), windows of 400 ms -> sums (b)
"""

from __future__ import annotations

from collections.abc import Mapping

CLUSTER = """
shimekiri: 1
nodes:
  a: {{address: "127.0.0.1:7700", policy: edf}}
  b: {{address: "127.0.0.1:7710", policy: edf}}
  c: {{address: "127.0.0.1:7720", policy: edf}}
links:
  - {{between: [a, b], latency: {ab} ms, bandwidth: 100 Mbit/s}}
  - {{between: [b, c], latency: {bc} ms, bandwidth: 100 Mbit/s}}
operators: operators.json
"""
QUERIES: Mapping[str, str] = {
    "line": """
sources:
  s: {{at: a, type: json, arrival: {{burst: {s}, period: 40 ms}}{s_more}}}
operators:
  x: {{run: {x_run}, in: s, cost: {x} us, nodes: [a]{x_more}}}
  y: {{run: {y_run}, in: x, cost: {y} us, nodes: [b]{y_more}}}
  z: {{run: {z_run}, in: y, cost: {z} us, nodes: [c]{z_more}}}
outputs:
  out: {{from: z, at: c, deadline: {out} ms}}
""",
    "busy": """
sources:
  n: {{at: b, type: json, arrival: {{burst: {n}, period: {n_period} ms}}{n_more}}}
operators:
  {many}h: {{run: {h_run}, in: {h_in}, cost: {h} us, nodes: [b]{h_more}}}
outputs:
  done: {{from: h, at: b, deadline: {done} ms}}
""",
    "fan": """
sources:
  p: {{at: a, type: json, arrival: {{burst: 1, period: {p_period} ms}}}}
operators:
  cut: {{run: pass, in: p, cost: 500 us, nodes: [a]}}
  fast: {{run: pass, in: cut, cost: 500 us, nodes: [a]}}
  slow: {{run: pass, in: cut, cost: {slow} us, nodes: [b]}}
outputs:
  quick: {{from: fast, at: a, deadline: 20 ms}}
  later: {{from: slow, at: b, deadline: 60 ms}}
""",
    "twin": """
sources:
  s: {{at: a, type: json, arrival: {{burst: {s}, period: 40 ms}}{s_more}}}
operators:
  x: {{run: {x_run}, in: s, cost: {x} us, nodes: [a]{x_more}}}
  y: {{run: {y_run}, in: x, cost: {y} us, nodes: [b]{y_more}}}
outputs:
  near: {{from: y, at: b, deadline: 20 ms}}
""",
    "joined": """
sources:
  u: {{at: a, type: json, arrival: {{burst: 1, period: 50 ms}}}}
operators:
  left: {{run: {left_run}, in: u, cost: 1 ms, nodes: [a]{left_more}}}
  right: {{run: pass, in: u, cost: 2 ms, nodes: [b]}}
  both: {{run: join, in: [left, right], cost: 500 us, nodes: [b]}}
outputs:
  pair: {{from: both, at: b, deadline: {pair} ms}}
""",
    "sided": """
sources:
  v: {{at: a, type: json, arrival: {{burst: 1, period: 40 ms}}}}
  g: {{at: c, type: json, arrival: {{burst: 1, period: 200 ms}}}}
operators:
  gg: {{run: pass, in: g, cost: 1 ms, nodes: [c]}}
  w: {{run: outsider.beside, in: v, side: {{other: gg}}, cost: 1 ms, nodes: [b]}}
outputs:
  seen: {{from: w, at: b, deadline: 30 ms}}
""",
    "windowed": """
sources:
  m: {{at: a, type: json, max_age: 50 ms, arrival: {{burst: 1, period: 20 ms}}}}
operators:
  mean: {{run: aggregate, in: m, cost: 100 us, with: {{n: count}}, nodes: [b], window: {{time: 400 ms, close: 2 ms}}}}
outputs:
  sums: {{from: mean, at: b, deadline: 120 ms}}
""",
    "merged": """
sources:
  e: {{at: a, type: json, arrival: {{burst: 1, period: 50 ms}}}}
  f: {{at: c, type: json, arrival: {{burst: 1, period: 50 ms}}}}
operators:
  all: {{run: union, in: [e, f], cost: 1 ms, nodes: [b]}}
outputs:
  wide: {{from: all, at: b, deadline: 30 ms}}
""",
    "tight": """
sources:
  k: {{at: b, type: json, arrival: {{burst: 1, period: 25 ms}}}}
operators:
  one: {{run: pass, in: k, cost: 500 us, nodes: [b]}}
outputs:
  soon: {{from: one, at: b, deadline: 12 ms}}
""",
}
CALM: Mapping[str, object] = {
    "ab": 2, "bc": 2, "s": 1, "s_more": "", "x": 1000, "x_run": "pass", "x_more": "", "y": 1000, "y_run": "pass",
    "y_more": "", "z": 1000, "z_run": "pass", "z_more": "", "out": 40, "n": 3, "n_period": 100, "n_more": "", "h": 4000,
    "h_in": "n", "h_run": "pass", "h_more": "", "many": "", "done": 70, "left_run": "pass", "left_more": "", "pair": 35,
    "p_period": 50, "slow": 1000,
}  # fmt: skip


def texts(queries: tuple[str, ...], figures: Mapping[str, object]) -> dict[str, str]:
    """The files of a plan, by name without its ending."""
    values = {**CALM, **figures}
    found = {name: f"shimekiri: 1\nquery: {name}" + QUERIES[name].format(**values) for name in queries}
    return {**found, "cluster": CLUSTER.format(**values)}
