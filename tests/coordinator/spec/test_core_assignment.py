"""Cores as places: how a host becomes several nodes of the plan, and how queries and options name them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.errors import BadInputError
from coordinator.guarantee.bounds import bounds
from coordinator.model.choices import Choices
from coordinator.solve import option_checks, planner
from coordinator.spec import input_files
from coordinator.spec.cluster import Cluster
from coordinator.spec.query import Query
from coordinator.spec.runtime_charges import NOTHING
from node_agent.virtual.scenario import virtual_plan
from protos.plan_document import Plan
from tests.coordinator.wording import facts

MS = 10**6
Files = Callable[[str, str], tuple[Path, Path]]
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", cores: 3, cpu: 2, memory: 30 MiB, cap: 0.8}
  b: {address: "127.0.0.1:7710", cores: 2, core_link: 50 us, speed: 2}
  c: {address: "127.0.0.1:7720"}
links: [{between: [a, b], latency: 3 ms, bandwidth: 10 Mbit/s}, {between: [b, c]}]
"""
QUERY = """
shimekiri: 1
query: q
sources:
  s: {at: a, type: json, arrival: {burst: 4, period: 100 ms}, max_age: 1 ms}
operators:
  one: {run: pass, in: s, cost: 1 ms, nodes: [a]}
  two: {run: pass, in: one, cost: 1 ms}
outputs:
  out: {from: two, at: b, deadline: 80 ms}
"""


def _loaded(files: Files, query: str = QUERY, cluster: str = CLUSTER) -> tuple[Query, Cluster]:
    found, given, _ = input_files.read_files(*files(query, cluster))
    assert given is not None
    return found, given


def _plan(files: Files, query: str = QUERY, cluster: str = CLUSTER, **choices: Any) -> Plan:
    return planner.make_plan(*files(query, cluster), Choices(charges=NOTHING, **choices))


def test_a_core_is_a_place(files: Files) -> None:
    _, cluster = _loaded(files)
    assert list(cluster.nodes) == ["a", "a.1", "a.2", "b", "b.1", "c"]
    assert [node.index for node in cluster.nodes.values()] == list(range(6))
    assert [(node.host, node.core, node.cpu) for node in cluster.nodes.values()][:4] == [
        ("a", 0, 2),
        ("a", 1, 3),
        ("a", 2, 4),
        ("b", 0, -1),
    ]
    last = cluster.nodes["a.2"]
    assert (last.memory_bytes, last.host_memory_bytes, float(last.cap), last.address) == (
        10 << 20,
        30 << 20,
        0.8,
        "127.0.0.1:7700",
    )
    assert [node.name for node in cluster.places("a")] == ["a", "a.1", "a.2"]
    assert [node.name for node in cluster.places("a.0")] == ["a"]
    assert cluster.places("a.3") == cluster.places("d") == cluster.places("a.") == ()


def test_links_of_places(files: Files) -> None:
    _, cluster = _loaded(files)

    def facts(one: str, other: str) -> tuple[int, int] | None:
        link = cluster.link(one, other)
        return (link.latency_ns, link.bandwidth_bps) if link else None

    assert facts("a", "a.2") == facts("a.1", "a.2") == (500_000, 0)
    assert facts("b", "b.1") == (50_000, 0)
    assert facts("b.1", "a.2") == facts("a", "b") == (3 * MS, 10**7)
    assert facts("c", "b.1") == (0, 0)
    assert facts("a", "c") is None
    every = _loaded(files, cluster=CLUSTER[: CLUSTER.index("links")])[1]
    assert len(every.links) == 15


@pytest.mark.parametrize(
    ("named", "allowed"),
    [
        ("nodes: [a]", ("a", "a.1", "a.2")),
        ("nodes: [a.1, c]", ("a.1", "c")),
        ("nodes: [a.0]", ("a",)),
        ("nodes: [a, b], forbid_nodes: [a.1, b]", ("a", "a.2")),
        ("forbid_nodes: [a]", ("b", "b.1", "c")),
    ],
)
def test_what_an_operator_may_run_on(files: Files, named: str, allowed: tuple[str, ...]) -> None:
    plan = _plan(files, QUERY.replace("nodes: [a]", named), CLUSTER.replace("[b, c]", "[b, c]}, {between: [a, c]"))
    assert plan.graph.operators["one"].nodes == allowed
    assert plan.placement["one"] in allowed


def test_sources_and_outputs_are_on_the_first_core_unless_told(files: Files) -> None:
    query, _ = _loaded(files)
    assert (query.sources[0].at, query.outputs[0].at) == ("a", "b")
    query, _ = _loaded(files, QUERY.replace("at: a", "at: a.2").replace("at: b", "at: b.1"))
    assert (query.sources[0].at, query.outputs[0].at) == ("a.2", "b.1")


def test_a_stream_forbidden_between_hosts_is_so_between_their_cores(files: Files) -> None:
    query, _ = _loaded(files, QUERY.replace("in: one,", "in: one, forbid_streams: [[b, c], [a, a.1]],"))
    assert set(query.operators[1].forbidden) == {("b", "c"), ("b.1", "c"), ("a", "a.1"), ("a.2", "a.1")}


def test_unknown_places_are_told_with_what_there_is(files: Files) -> None:
    for named, said in (
        ("at: a.3", "3 cores"),
        ("at: bb", "'b'"),
    ):
        with pytest.raises(BadInputError) as raised:
            _loaded(files, QUERY.replace("at: a,", f"{named},"))
        (problem,) = raised.value.problems
        assert facts(problem) == ("query.yaml", 5, "unknown_node", "sources.s.at")
        assert said in problem.mistake.mend
    with pytest.raises(option_checks.BadOptionError) as wrong:
        _plan(files, place={"one": "b.1"})
    assert [mistake.code for mistake in wrong.value.mistakes] == ["place_not_allowed"]
    assert "a, a.1, a.2" in wrong.value.mistakes[0].text
    with pytest.raises(option_checks.BadOptionError) as wrong:
        _plan(files, place={"two": "b.7"})
    assert [mistake.code for mistake in wrong.value.mistakes] == ["unknown_node"]
    assert "2 cores" in wrong.value.mistakes[0].mend


def test_an_operator_is_held_to_a_core_or_to_any_core_of_a_host(files: Files) -> None:
    assert _plan(files, place={"two": "a.2"}).placement["two"] == "a.2"
    held = _plan(files, place={"two": "b"})
    assert held.placement["two"] in ("b", "b.1")
    assert _plan(files, place={"two": "b.1", "one": "a.0"}).placement == {"one": "a", "two": "b.1"}


def test_work_beyond_one_core_is_spread_over_cores(files: Files) -> None:
    """Two operators of 40 ms per burst each, every 60 ms: one core's cap of 0.8 holds one."""
    query = """
shimekiri: 1
query: q
sources:
  s: {at: a, type: json, arrival: {burst: 4, period: 60 ms}, max_age: 1 ms}
operators:
  one: {run: pass, in: s, cost: 10 ms, nodes: [a]}
  two: {run: pass, in: s, cost: 10 ms, nodes: [a]}
outputs:
  out: {from: one, at: a, deadline: 100 ms}
  other: {from: two, at: a, deadline: 100 ms}
"""
    plan = _plan(files, query)
    assert len(set(plan.placement.values())) == 2
    claims = bounds(plan, NOTHING)
    assert all(claim.guaranteed for claim in claims.values())
    assert sum("link" in what for what, _ in claims["out"].trail + claims["other"].trail) >= 1


def test_the_cores_of_two_hosts_share_one_bandwidth(files: Files) -> None:
    """Two bursts of four at one instant over 10 Mbit/s, 1.2 ms a tuple: the last of them waits for all eight."""
    query = """
shimekiri: 1
query: q
sources:
  s: {at: a, type: json, arrival: {burst: 4, period: 100 ms}, max_age: 1 ms}
  t: {at: a.1, type: json, arrival: {burst: 4, period: 100 ms}, max_age: 1 ms}
operators:
  one: {run: pass, in: s, cost: 1 ms, nodes: [b.0]}
  two: {run: pass, in: t, cost: 1 ms, nodes: [b.1]}
outputs:
  out: {from: one, at: b, deadline: 100 ms}
  other: {from: two, at: b.1, deadline: 100 ms}
"""
    claims = bounds(_plan(files, query), NOTHING)
    for name in ("out", "other"):
        assert next(ns for what, ns in claims[name].trail if "link" in what) == 3 * MS + 8 * 1_200_000


def test_plan_json_has_an_entry_per_place_and_simulates_as_it_is(files: Files) -> None:
    plan = _plan(files, place={"one": "a.1", "two": "b.1"})
    nodes = plan.cluster.nodes
    assert [(name, facts.host, facts.core, facts.cores) for name, facts in nodes.items()][1:4] == [
        ("a.1", "a", 1, 3),
        ("a.2", "a", 2, 3),
        ("b", "b", 0, 2),
    ]
    local = plan.nodes["a.1"]
    assert (local.node, local.index, local.cpu, local.memory_bytes) == ("a.1", 1, 3, 10 << 20)
    assert [(peer.name, peer.latency_ns) for peer in local.peers] == [("a", 500_000), ("b.1", 3 * MS)]
    read = virtual_plan(plan)
    assert [each.node for each in read.nodes] == list(nodes)


def test_too_many_places_are_refused(files: Files) -> None:
    nodes = "\n".join(f'  n{i}: {{address: "127.0.0.1:{1000 + i}", cores: 64}}' for i in range(16))
    with pytest.raises(BadInputError) as raised:
        _loaded(files, cluster=f"shimekiri: 1\nnodes:\n  a: {{address: '127.0.0.1:1'}}\n{nodes}\n")
    (problem,) = raised.value.problems
    assert facts(problem) == ("cluster.yaml", 2, "too_many_nodes", "nodes")
    assert "1025" in problem.mistake.text and "1000" in problem.mistake.mend
