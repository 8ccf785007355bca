"""Sources that misbehave, on real agents: each is told in a line, is counted, and harms nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.coordinator.fleet.profile.test_profile_live import done

pytestmark = pytest.mark.long

QUERY = """
shimekiri: 1
query: odd
sources:
  quick:  {at: a, every: 10 ms}
  calm:   {at: b, every: 200 ms}
  back:   {at: b, run: my.back, every: 100 ms, max_age: 500 ms, cost: 1 ms}
  ahead:  {at: b, run: my.ahead, every: 100 ms, max_age: 500 ms, cost: 1 ms}
  huge:   {at: b, run: my.huge, every: 500 ms, max_age: 500 ms, max_size: 4 MiB, cost: 20 ms}
  absent: {at: b, type: json, max_age: 100 ms, arrival: {burst: 1, period: 100 ms}}
operators:
  work:   {run: busy, in: quick, with: {cpu_us: 30000}, cost: 5 ms, nodes: [a]}
  steady: {run: pass, in: calm, cost: 1 ms, nodes: [b]}
  old:    {run: join, in: [back, calm], sync: {within: 50 ms, timeout: 150 ms}, cost: 1 ms, nodes: [b]}
  future: {run: pass, in: ahead, cost: 1 ms, nodes: [b]}
  size:   {run: my.size, in: huge, cost: 5 ms, nodes: [b]}
  alone:  {run: join, in: [calm, absent], sync: all, cost: 1 ms, nodes: [b]}
outputs:
  worked: {from: work, at: a, deadline: 5 s}
  fine:   {from: steady, at: b, deadline: 5 s}
  olds:   {from: old, at: b, deadline: 5 s}
  futures: {from: future, at: b, deadline: 5 s}
  sizes:  {from: size, at: b, deadline: 5 s}
  pairs:  {from: alone, at: b, deadline: 5 s}
"""
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:0"}
  b: {address: "127.0.0.1:0"}
links: [{between: [a, b], latency: 1 ms}]
operators: operators.json
security: insecure-loopback
"""
OPERATORS = """
from node_agent.sdk import Aged, operator, source

def counting(name, **given):
    def made(give):
        @source(name, **given)
        class Counting:
            def __init__(self):
                self.calls = 0

            def __call__(self):
                self.calls += 1
                return give(self.calls)
        return Counting
    return made

@counting("my.back")
def back(n):
    return Aged({"n": n}, age_ms=n * 137 % 450)  # stamps run backwards

@counting("my.ahead")
def ahead(n):
    return Aged({"n": n}, age_ms=-40) if n % 2 else {"n": n}

@counting("my.huge", output="bytes")
def huge(n):
    return b"x" * ((8 << 20) if n % 2 else 1000)

@operator("my.size", inputs={"value": "bytes"}, output="json")
def size(value):
    return {"bytes": len(value)}
"""


def test_each_is_told_and_counted_and_harms_nothing_else(tmp_path: Path) -> None:
    for name, text in (("query.yaml", QUERY), ("cluster.yaml", CLUSTER), ("operators.py", OPERATORS)):
        (tmp_path / name).write_text(text)
    told = done(tmp_path, "run", "--local", "--for", "3s")
    for line in (
        "of source quick on a: beyond the declared arrivals; its node was kept from its ticks, which came together",
        "node b: source ahead raised; this tick has no tuple: my.ahead gave the age -40 ms, so its value lies in the ",
        "node b: source huge raised; this tick has no tuple: my.huge gave what a stream of bytes cannot carry: 838860",
        "tuples refused: too_large",
        "tuples refused: raised",
        "source absent: nothing fed it (--feed absent=FILE would); output pairs may need it",
        "tuples at alone at b: by a newer tuple, before those of the other inputs came",
        "balanced: ",
    ):
        assert line in told, told
    (heading,) = (line for line in told.splitlines() if line.split()[:2] == ["output", "deadline"])
    names = ("worked", "fine", "olds", "futures", "sizes", "pairs")
    table = {name: [line for line in told.splitlines() if re.match(rf"{name} +\d", line)] for name in names}
    rows = {
        name: dict(zip(heading.split(), re.split(" {2,}", row.strip()), strict=True)) for name, (row,) in table.items()
    }
    met = {name: int(row["met"]) for name, row in rows.items()}
    assert met["fine"] >= 5 and met["olds"] >= 10 and met["sizes"] >= 1 and met["futures"] >= 5, told
    assert all(int(rows["fine"].get(end, 0)) == 0 for end in ("late", "lost")), "neither late nor lost"
