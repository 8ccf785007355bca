"""A queue of which no bound is known: its operator's input comes faster than its node can do."""

from collections.abc import Callable
from pathlib import Path

from tests.command_line import run

QUERY = """\
shimekiri: 1
query: over
sources: {s: {at: a, type: json, arrival: {burst: 5, period: 20 ms}, max_age: 100 ms}}
operators:
  first: {run: pass, in: s, cost: 300 us, nodes: [a]}
  slow: {run: pass, in: first, cost: 4 ms}
  kept: {run: pass, in: slow, cost: 100 us, queue: {most: 1 MiB, on_full: front}, on_late: drop}
outputs: {o: {from: kept, at: a, deadline: 1 s}}
"""
CLUSTER = 'shimekiri: 1\nnodes: {a: {address: "127.0.0.1:7700", cores: 2, emulate: {cost_per_tuple: 1 ms}}}\n'


def test_it_is_explained(files: Callable[[str, str], tuple[Path, Path]]) -> None:
    query, cluster = files(QUERY, CLUSTER)
    planned = run(query.parent, f"coordinator plan {query} {cluster} --best-effort -o plan.json")
    assert planned.code == 0, planned
    explained = run(query.parent, "coordinator explain plan.json --time-limit 0")
    assert explained.code == 0, explained
    assert "kept: at most 1 MiB wait for it" in explained.out
