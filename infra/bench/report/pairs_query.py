"""The query of the runs that reports are measured with: pairs of nodes, each with a filter, a join and windows.

Of the four tuples of a burst one is filtered on its way to the join, so a contributor ends there without a partner;
what is late is dropped; a burst that is beyond the declared one is policed; links lose a hundredth.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]


def template(nodes: int, folder: Path) -> Path:
    """A simulated run over so many nodes, an even number of them: a second or less of feed, drained at its end."""
    pairs = nodes // 2
    query, cluster, plan, run = (folder / name for name in ("query.yaml", "cluster.yaml", "plan.json", "template"))
    query.write_text(_query(pairs), encoding="utf-8")
    cluster.write_text(_cluster(pairs), encoding="utf-8")
    scenario = folder / "scenario.json"
    varied = {"seed": 3, "bursts": 100 if pairs == 1 else 30, "jitter": "lognormal:cv=1.5", "cost_scale": 2.6,
              "loss": 0.01, "decision_ns": 20_000, "burst": {"ego0": 2}}  # fmt: skip
    scenario.write_text(json.dumps(varied), encoding="utf-8")
    _call("coordinator", "plan", query, cluster, "--best-effort", "-o", plan)
    _call("node_agent", "simulate", plan, "--scenario", scenario, "--out", run)
    return run


def _call(module: str, *arguments: str | Path) -> None:
    subprocess.run([sys.executable, "-m", module, *arguments], cwd=TOP, check=True, capture_output=True)


def _query(pairs: int) -> str:
    lines = ["shimekiri: 1", "query: pairs", "sources:"]
    for i in range(pairs):
        lines += [
            f"  s{i}: {{at: a{i}, type: json, max_age: 10 ms, arrival: {{burst: 4, period: 10 ms}}}}",
            f"  ego{i}: {{at: b{i}, type: json, max_age: 10 ms, arrival: {{burst: 1, period: 10 ms}}}}",
        ]
    lines.append("operators:")
    for i in range(pairs):
        lines += [
            f"  split{i}: {{run: pass, in: s{i}, cost: 300 us, nodes: [a{i}], on_late: drop}}",
            f"  left{i}: {{run: filter, in: split{i}, cost: 500 us, nodes: [a{i}], with: {{keep: 3, of: 4}},"
            f" selectivity: {{mean: 0.75}}}}",
            f"  right{i}: {{run: pass, in: split{i}, cost: 500 us, nodes: [b{i}], on_late: drop}}",
            f"  both{i}: {{run: join, in: [left{i}, right{i}], cost: 400 us, nodes: [b{i}], on_late: drop}}",
            f"  means{i}: {{run: aggregate, in: [right{i}, ego{i}], cost: 50 us, with: {{n: count}}, nodes: [b{i}],"
            f" window: {{time: 100 ms, hop: 100 ms, close: 100 us}}}}",
        ]
    lines.append("outputs:")
    for i in range(pairs):
        lines += [
            f"  split_out{i}: {{from: split{i}, at: a{i}, deadline: 40 ms}}",
            f"  both_out{i}: {{from: both{i}, at: b{i}, deadline: 45 ms}}",
            f"  mean_out{i}: {{from: means{i}, at: a{(i + 1) % pairs}, deadline: 100 ms}}",
        ]
    return "\n".join(lines) + "\n"


def _cluster(pairs: int) -> str:
    places = [f"{letter}{i}" for i in range(pairs) for letter in "ab"]
    lines = [f'  {name}: {{address: "127.0.0.1:{7000 + 2 * n}", policy: edf}}' for n, name in enumerate(places)]
    return "\n".join(["shimekiri: 1", "nodes:", *lines, "security: insecure-loopback"]) + "\n"
