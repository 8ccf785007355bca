"""`may_change:` of both files: what a range is, and what is wrong with others, by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.errors import BadInputError
from coordinator.solve.repair import numbers
from coordinator.solve.repair.within_ranges import ranged_numbers
from coordinator.spec import input_files
from coordinator.spec.files import declared_ranges
from coordinator.spec.query import Query
from tests.coordinator.wording import Wording, mended, printed

QUERY = """\
shimekiri: 1
query: q
sources:
  s: {at: a, type: json, arrival: {burst: 4, period: 100 ms}, max_age: 1 ms, max_rate: 100}
  r: {at: a, type: json, arrival: {rate: 2.5}, max_size: 2 KiB}
operators:
  X: {run: pass, in: s, cost: 2 ms}
  O4..O6: {chain: pass, in: r, cost: 1 ms}
  W: {run: aggregate, in: s, cost: 10 us, with: {n: count}, window: {count: 10, hop: 5}}
outputs:
  x: {from: X, at: a, deadline: 50 ms, age: {limit: 300 ms}}
  o: {from: O6, at: a, deadline: 50 ms, throughput: 1.5, latency: 1 s}
  w: {from: W, at: b, deadline: 5 s}
may_change:
"""
CLUSTER = """\
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", policy: edf}
  b: {address: "127.0.0.1:7710", cap: 0.5}
links: [{between: [a, b], latency: 1 ms, bandwidth: 1 Mbit/s}]
may_change:
"""
WORDING = Wording("adapt", "ranges")


def _read(folder: Path, query: str = "", cluster: str = "") -> tuple[Query, declared_ranges.Range]:
    paths = folder / "query.yaml", folder / "cluster.yaml"
    paths[0].write_text(QUERY + (f"  {query}\n" if query else "  {}\n"))
    paths[1].write_text(CLUSTER + (f"  {cluster}\n" if cluster else "  {}\n"))
    found, known, _ = input_files.read_files(*paths)
    assert known is not None
    (one,) = (*found.ranges, *known.ranges)
    return found, one


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("outputs.x.deadline: 50..70 ms", 50 * 10**6, 70 * 10**6),
        ("outputs.x.deadline: 40ms .. 1 s", 40 * 10**6, 10**9),
        ("outputs.x.age: 0.3..0.4 s", 3 * 10**8, 4 * 10**8),
        ("outputs.o.throughput: 0.5..1.5", 500_000, 1_500_000),
        ("sources.s.arrival.burst: 1..4", 1, 4),
        ("sources.r.arrival.rate: 1..2.5", 10**6, 2_500_000),
        ("sources.s.max_rate: 50..100", 50, 100),
        ("sources.r.max_age: 1..5 ms", 10**6, 5 * 10**6),
        ("sources.r.max_size: 1..2 KiB", 1024, 2048),
        ("operators.O4..O6.cost: 0.5..1 ms", 500_000, 10**6),
        ("operators.W.window.hop: 5..10", 5, 10),
    ],
)
def test_a_range_has_both_ends_in_the_least_unit(text: str, low: int, high: int, tmp_path: Path) -> None:
    _, one = _read(tmp_path, text)
    assert (one.low, one.high, one.of) == (low, high, "q")
    assert one.key == text.partition(": ")[0] and one.line == len(QUERY.splitlines()) + 1


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("nodes.b.cap: 0.5..0.9", 500, 900),
        ("nodes.a.speed: 1..2", 1000, 2000),
        ("nodes.a.policy.batch: 1..8", 1, 8),
        ("links.a-b.bandwidth: 1..10 Mbit/s", 10**6, 10**7),
        ("links.a-b.latency: 0.5..1 ms", 500_000, 10**6),
    ],
)
def test_a_cluster_has_ranges_of_its_own(text: str, low: int, high: int, tmp_path: Path) -> None:
    _, one = _read(tmp_path, cluster=text)
    assert (one.low, one.high, one.of) == (low, high, "")


BAD = {
    "outputs.x.deadline: 70..50 ms": "range_reversed",
    "outputs.x.deadline: 50..70": "no_quantity",
    "outputs.x.deadline: 50..70 KiB": "unknown_unit",
    "outputs.x.deadline: 60..70 ms": "value_outside_range",
    "outputs.x.deadline: 30..40 ms": "value_outside_range",
    "outputs.x.deadline: 50 ms": "no_range",
    "outputs.x.deadline: 50": "no_range",
    "outputs.x.deadline: [50, 70]": "no_range",
    "outputs.x.deadline: 1..2..3 ms": "no_range",
    "outputs.x.deadline: a..b": "no_range",
    "outputs.x.age: 100..200 ms": "value_outside_range",
    "outputs.x.dedline: 50..70 ms": "unknown_field",
    "outputs.x.from: 1..2": "unknown_field",
    "outputs.y.deadline: 50..70 ms": "unknown_name",
    "outputs.deadline: 50..70 ms": "unknown_field",
    "output.x.deadline: 50..70 ms": "unknown_field",
    "nodes.a.speed: 1..2": "unknown_field",
    "sources.s.arrival.burst: 1..4 ms": "no_number",
    "sources.s.arrival.burst: 0.5..4": "no_number",
    "sources.r.arrival.rate: 1..2.5000001": "too_fine",
    "operators.O5.cost: 0.5..1 ms": "field_of_chain",
    "operators.O4..O7.cost: 0.5..1 ms": "unknown_name",
}


@pytest.mark.parametrize("text", BAD)
def test_a_range_that_is_wrong_is_told_with_its_line(text: str, tmp_path: Path) -> None:
    with pytest.raises(BadInputError) as raised:
        _read(tmp_path, text)
    (problem,) = raised.value.problems
    assert (problem.mistake.code, problem.line) == (BAD[text], len(QUERY.splitlines()) + 1)
    assert problem.subject == f"may_change.{text.partition(': ')[0]}"
    assert mended(raised.value.problems)
    WORDING.check(text, printed(raised.value, tmp_path))


def test_a_range_of_the_other_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError) as raised:
        _read(tmp_path, cluster="outputs.x.deadline: 50..70 ms")
    assert [one.mistake.code for one in raised.value.problems] == ["unknown_field"]


def test_each_key_with_a_range_is_one_that_can_be_changed_and_the_other_way_round() -> None:
    """The tables of both rooms agree."""
    known = {(one.section.name, one.range_key) for one in (*numbers.NUMBERS, *ranged_numbers.RANGED)}
    assert known == {(section, key) for section, keys in declared_ranges.KEYS.items() for key in keys}
