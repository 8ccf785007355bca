"""Every way in which windows, limits and what becomes of late tuples can be wrong: file, line, what is wrong, the
mend."""

# ruff: noqa: E501 - a table: a line per mistake

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.errors import BadInputError
from coordinator.spec import input_files
from tests.coordinator.wording import Wording, facts, mended, printed

Files = Callable[[str, str], tuple[Path, Path]]
Fact = tuple[str, int, str, str]
WORDING = Wording("validate", "windows, limits and late tuples")

QUERY = """\
shimekiri: 1
query: lanes
sources:
  cars: {at: a, type: my.Car, max_age: 100 ms, arrival: {burst: 2, period: 500 ms}, max_rate: 30, value: speed}
  bikes: {at: b, type: json, max_age: 50 ms, arrival: {burst: 1, period: 500 ms}}
operators:
  near: {run: pass, in: cars, cost: 1 ms}
  far: {run: pass, in: bikes, cost: 1 ms, on_late: drop}
  mean: {run: aggregate, in: near, cost: 1 ms, window: {time: 5 s, hop: 1 s}, with: {speed: mean}}
  tens: {run: aggregate, in: far, cost: 1 ms, window: {time: 10 s}, with: {n: count, speed: max}}
  both: {run: join, in: {left: conv, right: far}, cost: 1 ms, on: {left: id, right: number}, window: {time: 2 s}}
  own: {run: my.trend, in: far, cost: 1 ms, window: {time: 3 s}, with: {tail: 3}}
  shown: {run: pass, in: mean, cost: 1 ms}
  conv: {run: my.other, in: cars, cost: 1 ms}
outputs:
  one: {from: shown, at: a, deadline: 1 s}
  two: {from: tens, at: a, deadline: 1 s}
  three: {from: both, at: a, deadline: 1 s}
  four: {from: own, at: a, deadline: 1 s}
"""
CLUSTER = """\
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}
  b: {address: "127.0.0.1:7710"}
links: [{between: [a, b], latency: 1 ms}]
operators: operators.json
security: insecure-loopback
"""
OPERATORS = """{"shimekiri": 1, "codecs": ["json", "my.Car"],
 "fields": {"my.Car": {"id": "number", "name": "text", "speed": "number", "lane": "number", "tags": "list",
                       "at": {"x": "number"}}},
 "operators": {
 "my.trend": {"version": "1", "kind": "aggregate", "inputs": {"value": "json"}, "output": "json",
              "with": {"tail": {"type": "integer", "required": true}}},
 "my.rough": {"version": "1", "kind": "map", "inputs": {"value": "json"}, "output": "json", "with": {}},
 "my.other": {"version": "1", "kind": "map", "inputs": {"car": "my.Car"}, "output": "json", "with": {}},
 "my.long": {"version": "1", "kind": "map", "inputs": {"a": "any"}, "side": {"b": "any"}, "output": "json", "with": {}}
 }}
""".replace('"kind"', '"code": "' + "0" * 64 + '", "kind"')
HOP = "window: {time: 5 s, hop: 1 s}"


def _refused(files: Files, query: str, operators: bool = True) -> tuple[list[Fact], list[str]]:
    """File, line, code and subject of every problem, and what is printed."""
    paths = files(query, CLUSTER)
    (paths[0].parent / "operators.json").write_text(OPERATORS)
    try:
        input_files.read_files(paths[0], paths[1] if operators else None)
    except BadInputError as error:
        assert error.exit_code == 2
        assert mended(error.problems)
        return [facts(problem) for problem in error.problems], printed(error, paths[0].parent)
    return [], []


@pytest.mark.parametrize("operators", [True, False])
def test_the_files_as_they_stand_are_right(files: Files, operators: bool) -> None:
    assert _refused(files, QUERY, operators) == ([], [])


@pytest.mark.parametrize(
    ("old", "new", "line", "code", "subject"),
    [
        (HOP, "window: {time: 0 s}", 9, "not_above_zero", "operators.mean.window.time"),
        (HOP, "window: {count: 0}", 9, "out_of_range", "operators.mean.window.count"),
        (HOP, "window: {time: 5 s, hop: 0 s}", 9, "not_above_zero", "operators.mean.window.hop"),
        (HOP, "window: {count: 5, hop: 0}", 9, "not_above_zero", "operators.mean.window.hop"),
        (HOP, "window: {time: 5 s, hop: 6 s}", 9, "hop_beyond_length", "operators.mean.window"),
        (HOP, "window: {count: 5, hop: 6}", 9, "hop_beyond_length", "operators.mean.window"),
        (HOP, "window: {time: 5 s, hop: 6}", 9, "hop_of_another_kind", "operators.mean.window"),
        (HOP, "window: {count: 5, hop: 1 s}", 9, "hop_of_another_kind", "operators.mean.window"),
        (HOP, "window: {time: 5 s, hop: 1 ms}", 9, "too_many_windows", "operators.mean.window"),
        (HOP, "window: {hop: 1 s}", 9, "window_length", "operators.mean.window"),
        (HOP, "window: {time: 5 s, count: 5}", 9, "window_length", "operators.mean.window"),
        (HOP, "window: {size: my.rough}", 9, "size_without_most", "operators.mean.window"),
        (HOP, "window: {size: my.roug, most: 5 s}", 9, "unknown_operator", "operators.mean.window.size"),
        (HOP, "window: {size: my.long, most: 5 s}", 9, "no_window_length_function", "operators.mean.window.size"),
        (HOP, "window: {count: 5, lateness: 1 s}", 9, "lateness_of_count", "operators.mean.window"),
        (HOP, "window: {time: 5 s, shed: most}", 9, "unknown_word", "operators.mean.window.shed"),
        (HOP, "window: {time: 5 s, queue: 0}", 9, "out_of_range", "operators.mean.window.queue"),
        (HOP, "window: {time: 5 s, deadline: begin}", 9, "unknown_word", "operators.mean.window.deadline"),
        (HOP, "window: {time: 5 s, hops: 1 s}", 9, "unknown_key", "operators.mean.window.hops"),
        (HOP, "window: {time: 5 s, by: speeed}", 9, "unknown_field", "operators.mean.window.by"),
        (HOP, "window: {time: 5 s, by: tags}", 9, "no_key", "operators.mean.window.by"),
        (HOP, "window: {time: 5 s, by: at}", 9, "no_key", "operators.mean.window.by"),
        (HOP, "hang: 1500 us, window: {time: 5 s, close: 2 ms}", 9, "hang_too_short", "operators.mean.window.close"),
        (HOP, "selectivity: {mean: 0.5}, " + HOP, 9, "selectivity_of_window", "operators.mean"),
        (HOP, "side: {b: far}, " + HOP, 9, "side_of_window", "operators.mean"),
        (HOP, "on: id, " + HOP, 9, "on_without_join", "operators.mean"),
        (HOP, "on_late: {degrade: {run: pass, cost: 1 us}}, " + HOP, 9, "degraded_window", "operators.mean"),
        (HOP + ", ", "", 9, "aggregate_without_window", "operators.mean.run"),
        ("speed: mean", "speeed: mean", 9, "unknown_field", "operators.mean.with.speeed"),
        ("speed: mean", "name: mean", 9, "no_number", "operators.mean.with.name"),
        ("speed: mean", "x: {mean: at}", 9, "no_number", "operators.mean.with.x"),
        ("speed: mean", "x: {mean: at.y}", 9, "unknown_field", "operators.mean.with.x"),
        ("speed: mean", "speed: median", 9, "unknown_figure", "operators.mean.with.speed"),
        ("speed: mean", "speed: {median: x}", 9, "unknown_figure", "operators.mean.with.speed"),
        ("speed: mean", "speed: quantile", 9, "which_quantile", "operators.mean.with.speed"),
        ("speed: mean", "speed: {quantile: 1.5}", 9, "bad_quantile", "operators.mean.with.speed"),
        ("speed: mean", "speed: {quantile: 0}", 9, "bad_quantile", "operators.mean.with.speed"),
        ("speed: mean", "speed: {quantile: .nan}", 9, "bad_quantile", "operators.mean.with.speed"),
        ("speed: mean", "speed: {quantile: 0.5, off: speed}", 9, "unknown_key", "operators.mean.with.speed"),
        ("speed: mean", "n: {count: speed}", 9, "count_of_field", "operators.mean.with.n"),
        ("speed: mean", "speed: [mean]", 9, "bad_figure", "operators.mean.with.speed"),
        ("{speed: mean}", "{}", 9, "no_figure", "operators.mean.with"),
        ("run: aggregate, in: near, cost: 1 ms, " + HOP + ", with: {speed: mean}",
         "run: pass, in: near, cost: 1 ms, " + HOP, 9, "window_of_map", "operators.mean.window"),
        ("in: far, cost: 1 ms, window: {time: 10 s}", "in: [near, far], cost: 1 ms, window: {count: 10}", 10,
         "no_common_order", "operators.tens.in"),
        ("in: far, cost: 1 ms, window: {time: 10 s}", "in: mean, cost: 1 ms, window: {time: 10 s}", 10,
         "window_of_window_results", "operators.tens.in"),
        ("in: far, cost: 1 ms, window: {time: 10 s}", "in: [far, bikes], cost: 1 ms, window: {time: 10 s}", 10,
         "several_ways_to_window", "operators.tens.in"),
        ("in: far, cost: 1 ms, window: {time: 10 s}", "in: mean.add, cost: 1 ms, window: {time: 10 s}", 10,
         "unknown_stream", "operators.tens.in"),
        ("in: far, cost: 1 ms, window: {time: 10 s}", "in: [], cost: 1 ms, window: {time: 10 s}", 10,
         "inputs_not_alike", "operators.tens.in"),
        ("in: far, cost: 1 ms, window: {time: 10 s}", "in: {x: far}, cost: 1 ms, window: {time: 10 s}", 10,
         "inputs_not_alike", "operators.tens.in"),
        ("window: {time: 10 s}", "window: 10 s", 10, "wrong_shape", "operators.tens.window"),
        ("window: {time: 10 s}", "window: {time: 10 s, by: .x}", 10, "names_no_field", "operators.tens.window.by"),
        ("window: {time: 10 s}", "window: {time: 10 s, shed: front}", 12,
         "different_shedders", "operators.own.window"),
        ("window: {time: 10 s}", "window: {time: 10 s, deadline: first}", 17,
         "closes_after_deadline", "outputs.two.deadline"),
        ("window: {time: 10 s}", "window: {count: 10}", 8, "never_late", "operators.far.on_late"),
        ("deadline: 1 s}\n  two", "deadline: 90 ms}\n  two", 16, "", ""),
        ("on: {left: id, right: number}, ", "", 11, "join_without_on", "operators.both"),
        ("on: {left: id, right: number}", "on: {left: id, rigth: number}", 11, "join_fields_of_other_inputs", "operators.both.on"),
        ("on: {left: id, right: number}", "on: {left: .id, right: number}", 11, "names_no_field", "operators.both.on"),
        ("on: {left: id, right: number}", "on: [id]", 11, "names_no_field", "operators.both.on"),
        (HOP, "window: {size: my.rough, most: 5 s}", 9, "type_mismatch", "operators.mean.window.size"),
        (", window: {time: 2 s}", "", 11, "on_without_window", "operators.both"),
        ("window: {time: 2 s}", "window: {count: 2}", 11, "join_by_count", "operators.both.window"),
        ("in: {left: conv, right: far}", "in: [conv, far, bikes]", 11, "join_of_several_in_window", "operators.both.in"),
        ("run: my.other, in: cars", "run: pass, in: cars", 11, "type_mismatch", "operators.both.in"),
        ("with: {tail: 3}", "with: {tail: x}", 12, "parameter_type", "operators.own.with"),
        ("run: my.trend, in: far", "run: my.trend, in: near", 12, "type_mismatch", "operators.own.in"),
        ("max_age: 50 ms, ", "", 5, "no_max_age", "sources.bikes"),
        ("run: pass, in: cars", "run: pass, selectivity: {mean: 2, at_most: [[1, 3]]}, in: cars", 7,
         "several_results_to_window", "operators.near.selectivity"),
        ("max_rate: 30, ", "", 4, "value_without_max_rate", "sources.cars"),
        ("max_rate: 30", "max_rate: 0", 4, "no_tuple_passes", "sources.cars.max_rate"),
        ("max_rate: 30", "max_rate: {tuples: 0, per: 1 s}", 4, "out_of_range", "sources.cars.max_rate.tuples"),
        ("max_rate: 30", "max_rate: {tuples: 3, per: 0 s}", 4, "not_above_zero", "sources.cars.max_rate.per"),
        ("max_rate: 30", "max_rate: {tuples: 3}", 4, "missing_key", "sources.cars.max_rate.per"),
        ("max_rate: 30", "max_rate: fast", 4, "bad_max_rate", "sources.cars.max_rate"),
        ("value: speed", "value: [speed]", 4, "no_expression", "sources.cars.value"),
        ("value: speed", "value: speeed", 4, "bad_expression", "sources.cars.value"),
        ("value: speed", "value: name", 4, "bad_expression", "sources.cars.value"),
        ("value: speed", "value: 'speed *'", 4, "bad_expression", "sources.cars.value"),
        ("value: speed", "value: speed, on_full: front-end", 4, "unknown_word", "sources.cars.on_full"),
        ("on_late: drop", "on_late: {degrade: 3}", 8, "wrong_shape", "operators.far.on_late.degrade"),
        ("on_late: drop", "on_late: never", 8, "bad_on_late", "operators.far.on_late"),
        ("on_late: drop", "on_late: {degrade: {run: my.rogh, cost: 1 us}}", 8, "unknown_operator", "operators.far.on_late.degrade.run"),
        ("on_late: drop", "on_late: {degrade: {run: my.other, cost: 1 us}}", 8, "degraded_unlike", "operators.far.on_late.degrade.run"),
        ("on_late: drop", "on_late: {degrade: {run: my.long, cost: 1 us}}", 8, "degraded_unlike", "operators.far.on_late.degrade.run"),
        ("on_late: drop", "on_late: {degrade: {run: join, cost: 1 us}}", 8, "degraded_unlike", "operators.far.on_late.degrade.run"),
        ("on_late: drop", "on_late: {degrade: {run: my.rough, cost: 1 ms}}", 8, "degraded_no_cheaper", "operators.far.on_late.degrade.cost"),
        ("on_late: drop", "on_late: {degrade: {run: my.rough}}", 8, "missing_key", "operators.far.on_late.degrade.cost"),
        ("on_late: drop", "queue: {most: 0 B}", 8, "not_above_zero", "operators.far.queue.most"),
        ("on_late: drop", "queue: {most: 1 MiB, on_full: refuse}", 8, "unknown_word", "operators.far.queue.on_full"),
        ("on_late: drop", "within: 50 ms", 8, "not_available_yet", "operators.far.within"),
        ("  near: {run: pass", "  O1..O2: {chain: pass, in: cars, cost: 1 ms, on_late: drop}\n  near: {run: pass", 7,
         "options_of_chain", "operators.O1..O2"),
    ],
)  # fmt: skip
def test_window(files: Files, old: str, new: str, line: int, code: str, subject: str) -> None:
    assert QUERY.count(old) == 1, old
    found, lines = _refused(files, QUERY.replace(old, new))
    if not code:
        assert not found
        return
    assert ("query.yaml", line, code, subject) in found
    WORDING.check(f"{old} -> {new}", lines)


def test_each_is_told_once(files: Files) -> None:
    """Two halves of one operator are one line of the file, and one problem."""
    for old, new in (
        ("run: my.trend", "run: my.trnd"),
        ("cost: 1 ms, window: {time: 3 s}", "nodes: [c], cost: 1 ms, window: {time: 3 s}"),
        ("in: far, cost: 1 ms, window: {time: 3 s}", "in: fat, cost: 1 ms, window: {time: 3 s}"),
        ("{tail: 3}", "{tale: 3, tail: 1}"),
    ):
        assert QUERY.count(old) == 1, old
        found, lines = _refused(files, QUERY.replace(old, new))
        assert len(found) == 1 and ".add" not in lines[0], lines


def test_a_result_that_closes_too_late_is_told_with_its_lateness(files: Files) -> None:
    text = QUERY.replace("window: {time: 10 s}", "window: {time: 10 s, lateness: 80 ms}")
    text = text.replace("two: {from: tens, at: a, deadline: 1 s}", "two: {from: tens, at: a, deadline: 50 ms}")
    found, lines = _refused(files, text)
    assert found == [("query.yaml", 17, "closes_after_deadline", "outputs.two.deadline")]
    WORDING.check("with its lateness", lines)
