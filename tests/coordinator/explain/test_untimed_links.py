"""What is said of links between machines for which no latency is counted: once for all, and only where tuples cross."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.explain import link_lines
from coordinator.model.choices import Choices
from coordinator.solve import planner
from tests.command_line import run

Files = Callable[[str, str], tuple[Path, Path]]
QUERY = """\
shimekiri: 1
query: over
sources: {s: {at: a, type: json, arrival: {burst: 1, period: 100 ms}, max_age: 10 ms}}
operators:
  one: {run: pass, in: s, cost: 1 ms, nodes: [b]}
  two: {run: pass, in: one, cost: 1 ms, nodes: [c]}
outputs: {o: {from: two, at: c, deadline: 1 s}}
"""
NODES = """\
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}
  b: {address: "127.0.0.1:7710", cores: 2, core_link: 0 s}
  c: {address: "127.0.0.1:7720"}
"""
SOME = "links: [{between: [a, b], latency: 2 ms}, {between: [b, c]}, {between: [a, c]}]\n"
ALL = "links: [{between: [a, b], latency: 2 ms}, {between: [b, c], latency: 1 us}, {between: [a, c]}]\n"


@pytest.mark.parametrize(
    ("links", "pairs"),
    [("", [("a", "b"), ("b", "c")]), (SOME, [("b", "c")]), (ALL, [])],
    ids=["no links", "one without latency", "all that are used"],
)
def test_pairs_that_exchange_something_without_a_latency(
    files: Files, links: str, pairs: list[tuple[str, str]]
) -> None:
    plan = planner.make_plan(*files(QUERY, NODES + links), Choices())
    assert link_lines.untimed(plan) == pairs
    assert len(link_lines.lines(plan)) == bool(pairs)


def test_it_is_said_once_by_plan_and_explain_and_to_programs(files: Files) -> None:
    query, _ = files(QUERY, NODES)
    note = "note: no latency is counted between a and b; b and c, since cluster.yaml gives none; "
    for detail in ("", "-v"):
        planned = run(query.parent, f"coordinator plan query.yaml cluster.yaml {detail}")
        assert planned.code == 0 and planned.out.count(note) == 1, planned
    assert "under 'links:', like {between: [a, b], latency: 5 ms}\n" in planned.out
    document = json.loads(run(query.parent, "coordinator plan query.yaml cluster.yaml --json").out)
    assert [line.startswith(note) for line in document["notes"]] == [True]
    explained = run(query.parent, "coordinator explain plan.json -v --time-limit 0")
    assert explained.out.count(note) == 1, explained
    sections = json.loads(run(query.parent, "coordinator explain plan.json --time-limit 0 --json").out)["sections"]
    assert sum(line.startswith(note) for lines in sections.values() for line in lines) == 1


def test_the_line_that_is_proposed_ends_it(files: Files) -> None:
    query, cluster = files(QUERY.replace("nodes: [c]", "nodes: [b]").replace("at: c", "at: b"), NODES)
    said = run(query.parent, "coordinator plan query.yaml cluster.yaml").out
    line = said.partition("under 'links:', like ")[2].partition("\n")[0]
    cluster.write_text(f"{NODES}links: [{line}]\n")
    done = run(query.parent, "coordinator plan query.yaml cluster.yaml")
    assert done.code == 0 and "note:" not in done.out, done


def test_neither_the_template_nor_a_plan_within_one_machine_has_one(tmp_path: Path, files: Files) -> None:
    assert run(tmp_path, "coordinator init first").code == 0
    done = run(tmp_path / "first", "coordinator plan query.yaml cluster.yaml --json")
    assert done.code == 0 and json.loads(done.out)["notes"] == [], done
    inside = QUERY.replace("nodes: [b]", "nodes: [a]").replace("nodes: [c]", "nodes: [a]").replace("at: c", "at: a")
    assert link_lines.lines(planner.make_plan(*files(inside, NODES), Choices())) == []
