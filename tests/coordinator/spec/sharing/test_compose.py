"""Queries composed into one: what is shared, against unfolded trees written out; names; what is refused, and where."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coordinator.errors import BadInputError
from coordinator.spec import core_assignment, graph
from coordinator.spec.cluster import Cluster
from coordinator.spec.query import Operator, Query
from coordinator.spec.sharing import compose
from coordinator.spec.sharing.compose import Composite
from tests.coordinator.spec.sharing.random_queries import Spec, load, several, text
from tests.coordinator.wording import Wording, facts, mended, printed

SEEDS = st.integers(0, 2**32)
DEFAULTS = {"my.look": {"far": 5}}


def equal(one: Spec, left: str, other: Spec, right: str, depth: int, nodes: bool) -> bool:
    """Whether the trees unfolded from two operators are equal down to a depth; with `nodes`, and may run together all
    the way. Written out from the generator's facts, by pairs and not by classes."""
    if left not in one or right not in other:
        return left == right and left in "st"
    mine, its = one[left], other[right]
    given = [DEFAULTS.get(facts["run"], {}) | facts["with"] for facts in (mine, its)]
    same = all(mine[what] == its[what] for what in ("run", "cost_ms")) and set(mine["side"]) == set(its["side"])
    same = same and _more(mine) == _more(its)
    if not same or given[0] != given[1] or len(mine["in"]) != len(its["in"]):
        return False
    if mine["run"] in ("join", "union") and mine["in"] != its["in"]:
        return False  # what their inputs are called is in their results
    if nodes and not set(mine["nodes"]) & set(its["nodes"]):
        return False
    if depth == 0:
        return True
    pairs = [
        *zip(mine["in"], its["in"], strict=True),
        *((mine["side"][port], its["side"][port]) for port in mine["side"]),
    ]
    return all(equal(one, mine_, other, its_, depth - 1, nodes) for mine_, its_ in pairs)


def _more(facts: dict[str, Any]) -> str:
    """What else is declared; of a filter nothing where it is what its parameters say."""
    halves = facts["run"] == "filter" and facts["with"] == {"keep": 1, "of": 2}
    return "" if halves and facts["more"] == "selectivity: {mean: 0.5, at_most: [[2, 1]]}" else str(facts["more"])


def duplicates(spec: Spec, depth: int) -> bool:
    return any(equal(spec, a, spec, b, depth, False) for a in spec for b in spec if a < b)


@settings(max_examples=40, deadline=None)
@example(257)
@given(SEEDS)
def test_shared_is_what_unfolds_to_equal_trees(seed: int) -> None:
    specs, queries, cluster = several(seed)
    composite = compose.compose(queries, cluster)
    found = pairs(composite, queries[1])
    depth = len(specs[0]) + len(specs[1])
    depth = min(depth, 7)  # deeper than any two of these differ
    may = {(a, b) for a in specs[0] for b in specs[1] if equal(specs[0], a, specs[1], b, depth, True)}
    assert {(there, own) for own, there in found.items()} <= may
    if not duplicates(specs[0], depth) and not duplicates(specs[1], depth):
        assert {(there, own) for own, there in found.items()} == may


def pairs(composite: Composite, query: Query) -> dict[str, str]:
    """Operators of the last of two queries that take part in one of the first."""
    member = composite.members[query.name]
    names = dict(zip((one.name for one in query.operators), member.operators, strict=True))
    return {own: name for own, name in names.items() if name in composite.shared}


@settings(max_examples=40, deadline=None)
@example(10304, 1)  # one query writes down what a filter passes, another does not
@given(SEEDS, st.sampled_from([1, 3]))
def test_every_query_finds_itself_in_the_composite(seed: int, cores: int) -> None:
    """Shared or not: from each output of each query the same tree unfolds as in its file, and operators may run
    where it allows them to."""
    _, queries, cluster = several(seed, 3, cores)
    for share in (True, False):
        composite = compose.compose(queries, cluster, share)
        graph.types(composite.query, cluster.catalog)
        whole = {one.name: one for one in composite.query.operators}
        assert len(whole) == len(composite.query.operators)
        assert {one for member in composite.members.values() for one in member.operators} == set(whole)
        assert share or not composite.shared
        for query in queries:
            member = composite.members[query.name]
            names = dict(zip((one.name for one in query.operators), member.operators, strict=True))
            assert len(set(names.values())) == len(names), "operators of one query stay apart"
            names |= {one.name: one.name for one in query.sources}
            for own in query.operators:
                assert_same(own, whole[names[own.name]], names, cluster)
            delivered = {one.name: one for one in composite.query.outputs}
            for output in query.outputs:
                there = delivered[output.name]
                assert (there.origin, there.at) == (names[output.origin], output.at)
                assert there.deadline_ns == output.deadline_ns


def passes(operator: Operator) -> tuple[float, list[tuple[int, int]]] | None:
    """Mean and pairs: a filter that declares nothing passes what its parameters say."""
    if operator.selectivity is not None:
        return operator.selectivity.mean, operator.selectivity.at_most
    if operator.run != "filter":
        return None
    keep, of = operator.parameters.get("keep", 1), operator.parameters.get("of", 2)
    return keep / of, [(of, keep)]


def assert_same(own: Operator, there: Operator, names: dict[str, str], cluster: Cluster) -> None:
    reads = [names[name] for name in graph.ordered_inputs(own, cluster.catalog)]
    assert graph.ordered_inputs(there, cluster.catalog) == reads
    assert there.side == {port: names[name] for port, name in own.side.items()}
    fields = ("run", "cost_ns", "hang_ns", "memory_bytes", "forbidden", "state")
    assert [getattr(own, field) for field in fields] == [getattr(there, field) for field in fields]
    assert passes(own) == passes(there)
    allowed = core_assignment.allowed(there, cluster)
    assert allowed and set(allowed) <= set(core_assignment.allowed(own, cluster))
    if cluster.catalog.operators[own.run].variadic:
        assert (there.called or there.inputs) == own.inputs


@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_what_is_taken_away_leaves_the_others_as_they_were(seed: int) -> None:
    _, queries, cluster = several(seed, 3)
    composite = compose.compose(queries, cluster)
    for gone in composite.members:
        left = compose.without(composite, gone)
        assert left.query.name == "+".join(name for name in composite.members if name != gone)
        assert left.members == {name: member for name, member in composite.members.items() if name != gone}
        kept = {one for member in left.members.values() for one in member.operators}
        assert [one for one in composite.query.operators if one.name in kept] == list(left.query.operators)
        again = compose.extend(left, next(query for query in queries if query.name == gone), cluster)
        assert set(again.members) == set(composite.members)


def test_one_alone_stays_what_it_is() -> None:
    _, queries, cluster = several(3)
    composite = compose.compose(queries[:1], cluster)
    assert composite.query == queries[0]
    assert list(composite.members) == ["q1"] and composite.shared == {}
    assert composite.members["q1"].sha256 == queries[0].sha256


def pair(first: dict[str, Any], second: dict[str, Any]) -> tuple[list[Query], Cluster]:
    base = {"in": ["s"], "side": {}, "cost_ms": 1, "with": {}, "nodes": "abc", "more": ""}
    specs = [{name: base | facts for name, facts in spec.items()} for spec in (first, second)]
    return load([text(f"q{i}", spec, random.Random(0)) for i, spec in enumerate(specs, start=1)])


def test_names_that_are_taken_get_their_querys_before_them() -> None:
    queries, cluster = pair(
        {"x": {"run": "pass"}, "y": {"run": "filter", "in": ["x"]}},
        {"x": {"run": "filter"}, "y": {"run": "pass"}, "z": {"run": "join", "in": ["x", "y"]}},
    )
    composite = compose.compose(queries, cluster)
    names = [one.name for one in composite.query.operators]
    assert names == ["x", "y", "q2/x", "z"]
    assert composite.shared == {"x": ("q1", "q2")}
    assert composite.members["q2"].operators == ("q2/x", "x", "z")
    assert composite.members["q2"].called == {"q2/x": "x", "x": "y"}
    join = composite.query.operators[-1]
    assert join.inputs == ("q2/x", "x")
    assert join.called == ("x", "y")  # its results are {x: ..., y: ...}, as in its file


def test_no_query_shares_with_itself() -> None:
    queries, cluster = pair({"x": {"run": "pass"}}, {"x": {"run": "pass"}, "y": {"run": "pass"}})
    composite = compose.compose(queries, cluster)
    assert [one.name for one in composite.query.operators] == ["x", "y"]
    assert composite.shared == {"x": ("q1", "q2")}


def test_side_inputs_that_lead_back_to_each_other_are_shared_together() -> None:
    loop = {
        "x": {"run": "my.look", "side": {"arm": "y"}},
        "y": {"run": "my.look", "in": ["x"], "side": {"arm": "x"}},
    }
    queries, cluster = pair(loop, {name: dict(facts) for name, facts in loop.items()})
    assert set(compose.compose(queries, cluster).shared) == {"x", "y"}
    other = {name: dict(facts) for name, facts in loop.items()}
    other["y"]["cost_ms"] = 2
    queries, cluster = pair(loop, other)
    assert not compose.compose(queries, cluster).shared


def test_where_both_may_run() -> None:
    queries, cluster = pair({"x": {"run": "pass", "nodes": "ab"}}, {"x": {"run": "pass", "nodes": "bc"}})
    composite = compose.compose(queries, cluster)
    assert core_assignment.allowed(composite.query.operators[0], cluster) == ("b",)
    one = compose.of(queries[0])
    assert compose.extend(one, queries[1], cluster, place={"x": "b"}).shared
    assert not compose.extend(one, queries[1], cluster, place={"x": "a"}).shared


WORDING = Wording("validate", "several queries")
BAD = [
    ("query: q2", "query: q1", 2, "query_twice", "query", "query1.yaml:2"),
    ("q2_x:", "q1_x:", 8, "output_twice", "outputs.q1_x", "query1.yaml:8"),
    ("max_age: 3 ms", "max_age: 4 ms", 4, "source_declared_differently", "sources.s", "query1.yaml:4"),
    ("burst: 2", "burst: 3", 4, "source_declared_differently", "sources.s", "query1.yaml:4"),
    ("at: a, type", "at: b, type", 4, "source_declared_differently", "sources.s", "query1.yaml:4"),
]


@pytest.mark.parametrize(("was", "now", "line", "code", "subject", "other"), BAD)
def test_what_cannot_stand_beside_each_other(
    tmp_path: Path, was: str, now: str, line: int, code: str, subject: str, other: str
) -> None:
    from coordinator.spec import input_files

    spec = {"x": {"run": "pass", "in": ["s"], "side": {}, "cost_ms": 1, "with": {}, "nodes": "abc", "more": ""}}
    (tmp_path / "cluster.yaml").write_text(
        'shimekiri: 1\nnodes: {a: {address: "127.0.0.1:1"}, b: {address: "127.0.0.1:2"}}\n'
    )
    (tmp_path / "query1.yaml").write_text(text("q1", spec, random.Random(0)))
    changed = text("q2", spec, random.Random(0))
    assert was in changed
    (tmp_path / "query2.yaml").write_text(changed.replace(was, now))
    with pytest.raises(BadInputError) as raised:
        input_files.read_files([tmp_path / "query1.yaml", tmp_path / "query2.yaml"], tmp_path / "cluster.yaml")
    problem = raised.value.problems[0]
    assert facts(problem) == ("query2.yaml", line, code, subject)
    assert problem.file == str(tmp_path / "query2.yaml") and other in problem.mistake.text
    assert mended(raised.value.problems)
    WORDING.check(f"{was} -> {now}", printed(raised.value, tmp_path))


def test_a_source_with_the_name_of_an_operator_is_refused() -> None:
    queries, cluster = pair({"t": {"run": "pass"}}, {"x": {"run": "pass", "in": ["t"]}})
    with pytest.raises(BadInputError) as raised:
        compose.compose(queries, cluster)
    (problem,) = raised.value.problems
    assert (problem.mistake.code, problem.subject) == ("source_named_as_operator", "sources.t")
    assert "query0.yaml:6" in problem.mistake.text
