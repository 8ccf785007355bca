"""Every way in which windows, limits and what becomes of late tuples can be wrong: file, line, what is wrong, the
mend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.errors import BadInputError
from coordinator.solve import planner

Files = Callable[[str, str], tuple[Path, Path]]

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


def _problems(files: Files, query: str, operators: bool = True) -> list[str]:
    paths = files(query, CLUSTER)
    (paths[0].parent / "operators.json").write_text(OPERATORS)
    try:
        planner.load(paths[0], paths[1] if operators else None)
    except BadInputError as error:
        assert error.exit_code == 2
        return [line.replace(str(paths[0].parent) + "/", "") for line in error.lines()]
    return []


@pytest.mark.parametrize("operators", [True, False])
def test_the_files_as_they_stand_are_right(files: Files, operators: bool) -> None:
    assert _problems(files, QUERY, operators) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "said", "mend"),
    [
        (HOP, "window: {time: 0 s}", 9, "window.time is '0 s'", "longer than 0"),
        (HOP, "window: {count: 0}", 9, "window.count: input should be greater", "correct it"),
        (HOP, "window: {time: 5 s, hop: 0 s}", 9, "hop is '0 s'; windows have to follow each other", "leave it out"),
        (HOP, "window: {count: 5, hop: 0}", 9, "hop is 0; windows have to follow each other", "write 1 or more"),
        (HOP, "window: {time: 5 s, hop: 6 s}", 9, "hop of 6 s beyond its length of 5 s", "make the hop at most 5 s"),
        (HOP, "window: {count: 5, hop: 6}", 9, "hop of 6 tuples beyond its length of 5 tuples", "at most 5 tuples"),
        (HOP, "window: {time: 5 s, hop: 6}", 9, "a hop of another kind than its length", "like 'hop: 4 s'"),
        (HOP, "window: {count: 5, hop: 1 s}", 9, "a hop of another kind than its length", "like 'hop: 50'"),
        (HOP, "window: {time: 5 s, hop: 1 ms}", 9, "puts a tuple into 5000 windows", "make 'hop:' longer"),
        (HOP, "window: {hop: 1 s}", 9, "has no length", "write one of {time: 5 s}"),
        (HOP, "window: {time: 5 s, count: 5}", 9, "has time and count", "write one of {time: 5 s}"),
        (HOP, "window: {size: my.rough}", 9, "needs both 'size' and 'most'", "most: 20 s"),
        (HOP, "window: {size: my.roug, most: 5 s}", 9, "which no node has installed", "did you mean 'my.rough'?"),
        (HOP, "window: {size: my.long, most: 5 s}", 9, "my.long cannot say how long", "no side inputs"),
        (HOP, "window: {count: 5, lateness: 1 s}", 9, "so none is late", "remove 'lateness:'"),
        (HOP, "window: {time: 5 s, shed: most}", 9, "window.shed", "correct it"),
        (HOP, "window: {time: 5 s, queue: 0}", 9, "window.queue: input should be greater", "correct it"),
        (HOP, "window: {time: 5 s, deadline: begin}", 9, "window.deadline", "correct it"),
        (HOP, "window: {time: 5 s, hops: 1 s}", 9, "window.hops is not known here", "did you mean 'hop'?"),
        (HOP, "window: {time: 5 s, by: speeed}", 9, "by: there is no field 'speeed'", "did you mean 'speed'?"),
        (HOP, "window: {time: 5 s, by: tags}", 9, "field 'tags' is a list, which is no key", "name a text"),
        (HOP, "window: {time: 5 s, by: at}", 9, "field 'at' is a message, which is no key", "name a text"),
        (HOP, "hang: 1500 us, window: {time: 5 s, close: 2 ms}", 9, "killed within its 'close:'", "'hang:' longer"),
        (HOP, "selectivity: {mean: 0.5}, " + HOP, 9, "each window one result", "remove 'selectivity:'"),
        (HOP, "side: {b: far}, " + HOP, 9, "a window and side inputs", "before or behind it"),
        (HOP, "on: id, " + HOP, 9, "has 'on', which joins have", "write 'run: join'"),
        (HOP, "on_late: {degrade: {run: pass, cost: 1 us}}, " + HOP, 9, "cannot be made cheaper", "drop or deliver"),
        (HOP + ", ", "", 9, "aggregates, but over what?", "add a window"),
        ("speed: mean", "speeed: mean", 9, "'speeed': there is no field 'speeed'", "did you mean 'speed'?"),
        ("speed: mean", "name: mean", 9, "field 'name' is text, no number", "count them"),
        ("speed: mean", "x: {mean: at}", 9, "field 'at' is a message, no number", "name another"),
        ("speed: mean", "x: {mean: at.y}", 9, "there is no field 'y' in 'at'", "there are x"),
        ("speed: mean", "speed: median", 9, "figure 'median' is unknown", "did you mean 'mean'?"),
        ("speed: mean", "speed: {median: x}", 9, "figure 'median' is unknown", "did you mean 'mean'?"),
        ("speed: mean", "speed: quantile", 9, "which quantile?", "{quantile: 0.95, of: speed}"),
        ("speed: mean", "speed: {quantile: 1.5}", 9, "a quantile of 1.5", "above 0 and at most 1"),
        ("speed: mean", "speed: {quantile: 0}", 9, "a quantile of 0", "above 0 and at most 1"),
        ("speed: mean", "speed: {quantile: .nan}", 9, "a quantile of nan", "above 0 and at most 1"),
        ("speed: mean", "speed: {quantile: 0.5, off: speed}", 9, "'off' is not known here", "of: FIELD"),
        ("speed: mean", "n: {count: speed}", 9, "a count needs no field", "write 'n: count'"),
        ("speed: mean", "speed: [mean]", 9, "'speed' is no figure", "speed: mean"),
        ("{speed: mean}", "{}", 9, "names no figure", "like with: {n: count"),
        ("run: aggregate, in: near, cost: 1 ms, " + HOP + ", with: {speed: mean}",
         "run: pass, in: near, cost: 1 ms, " + HOP, 9, "pass takes one tuple at a time", "remove 'window:'"),
        ("in: far, cost: 1 ms, window: {time: 10 s}", "in: [near, far], cost: 1 ms, window: {count: 10}", 10,
         "counts tuples, and 2 sources have no common order", "write 'window: {time: 5 s}'"),
        ("in: far, cost: 1 ms, window: {time: 10 s}", "in: mean, cost: 1 ms, window: {time: 10 s}", 10,
         "takes results of window 'mean'", "make it longer"),
        ("in: far, cost: 1 ms, window: {time: 10 s}", "in: [far, bikes], cost: 1 ms, window: {time: 10 s}", 10,
         "come to window 'tens' on 2 ways", "leave one of them"),
        ("in: far, cost: 1 ms, window: {time: 10 s}", "in: mean.add, cost: 1 ms, window: {time: 10 s}", 10,
         "reads stream 'mean.add', which is unknown", "did you mean 'mean'?"),
        ("in: far, cost: 1 ms, window: {time: 10 s}", "in: [], cost: 1 ms, window: {time: 10 s}", 10,
         "takes any number of streams", "write 'in: a'"),
        ("in: far, cost: 1 ms, window: {time: 10 s}", "in: {x: far}, cost: 1 ms, window: {time: 10 s}", 10,
         "takes any number of streams", "write 'in: a'"),
        ("window: {time: 10 s}", "window: 10 s", 10, "window is '10 s'; write keys and values", "like {time: 5 s}"),
        ("window: {time: 10 s}", "window: {time: 10 s, by: .x}", 10, "'.x', which names no field", "like 'speed'"),
        ("window: {time: 10 s}", "window: {time: 10 s, shed: front}", 12,
         "windows 'tens' and 'own' over 'far' have shedders front and window-aware", "write one"),
        ("window: {time: 10 s}", "window: {time: 10 s, deadline: first}", 17,
         "window 'tens' closes 10 s after its first tuple at the earliest", "deadline: end"),
        ("window: {time: 10 s}", "window: {count: 10}", 8, "that no tuple is too late for", "remove 'on_late:'"),
        ("deadline: 1 s}\n  two", "deadline: 90 ms}\n  two", 16, "", ""),
        ("on: {left: id, right: number}, ", "", 11, "joins in a window; say which field", "'on: FIELD'"),
        ("on: {left: id, right: number}", "on: {left: id, rigth: number}", 11, "'on' names left, rigth",
         "on: {left: FIELD, right: FIELD}"),
        ("on: {left: id, right: number}", "on: {left: .id, right: number}", 11, "'.id', which names no field",
         "like 'speed' or 'car.speed'"),
        ("on: {left: id, right: number}", "on: [id]", 11, "['id'], which names no field", "like 'speed'"),
        (HOP, "window: {size: my.rough, most: 5 s}", 9, "my.rough takes json, but 'near' is my.Car", "convert it"),
        (", window: {time: 2 s}", "", 11, "has 'on' without a 'window'", "add 'window:'"),
        ("window: {time: 2 s}", "window: {count: 2}", 11, "two streams, which have no count", "{time: 5 s}"),
        ("in: {left: conv, right: far}", "in: [conv, far, bikes]", 11, "joins 3 streams in a window", "in: [a, b]"),
        ("run: my.other, in: cars", "run: pass, in: cars", 11, "reads 'conv' of type my.Car, but takes json",
         "convert it before"),
        ("with: {tail: 3}", "with: {tail: x}", 12, "parameter 'tail' of my.trend is 'x'", "type integer"),
        ("run: my.trend, in: far", "run: my.trend, in: near", 12, "of type my.Car, but takes json", "convert it"),
        ("max_age: 50 ms, ", "", 5, "which has to know when no older tuple comes", "like 'max_age: 200 ms'"),
        ("run: pass, in: cars", "run: pass, selectivity: {mean: 2, at_most: [[1, 3]]}, in: cars", 7,
         "may give several results for a tuple", "make them behind the window"),
        ("max_rate: 30, ", "", 4, "a 'value' without a 'max_rate'", "add 'max_rate:"),
        ("max_rate: 30", "max_rate: 0", 4, "max_rate is 0; no tuple could pass", "write 1 or more"),
        ("max_rate: 30", "max_rate: {tuples: 0, per: 1 s}", 4, "max_rate.tuples: input should be greater", "correct"),
        ("max_rate: 30", "max_rate: {tuples: 3, per: 0 s}", 4, "max_rate.per is '0 s'", "longer than 0"),
        ("max_rate: 30", "max_rate: {tuples: 3}", 4, "max_rate.per is missing", "add 'per:'"),
        ("max_rate: 30", "max_rate: fast", 4, "max_rate is 'fast'; write how many a second", "{tuples: 100, per: 1 s}"),
        ("value: speed", "value: [speed]", 4, "is no expression", "like 'speed'"),
        ("value: speed", "value: speeed", 4, "there is no field 'speeed'", "did you mean 'speed'?"),
        ("value: speed", "value: name", 4, "gives text", "a value is a number"),
        ("value: speed", "value: 'speed *'", 4, "'speed *'", "expected a number"),
        ("value: speed", "value: speed, on_full: front-end", 4, "on_full", "correct it"),
        ("on_late: drop", "on_late: {degrade: 3}", 8, "degrade is 3; write keys and values", "like {run: NAME"),
        ("on_late: drop", "on_late: never", 8, "on_late is 'never'", "write drop, deliver, or"),
        ("on_late: drop", "on_late: {degrade: {run: my.rogh, cost: 1 us}}", 8, "which no node has installed",
         "did you mean 'my.rough'?"),
        ("on_late: drop", "on_late: {degrade: {run: my.other, cost: 1 us}}", 8, "it takes my.Car, and 'bikes' is json",
         "the same inputs and output"),
        ("on_late: drop", "on_late: {degrade: {run: my.long, cost: 1 us}}", 8, "has a side input 'b'", "same inputs"),
        ("on_late: drop", "on_late: {degrade: {run: join, cost: 1 us}}", 8, "it is a join, not a map", "same inputs"),
        ("on_late: drop", "on_late: {degrade: {run: my.rough, cost: 1 ms}}", 8, "costs 1 ms, no less than 1 ms",
         "name a cheaper one"),
        ("on_late: drop", "on_late: {degrade: {run: my.rough}}", 8, "cost is missing", "add 'cost:'"),
        ("on_late: drop", "queue: {most: 0 B}", 8, "most is '0 B'", "above 0"),
        ("on_late: drop", "queue: {most: 1 MiB, on_full: refuse}", 8, "on_full", "correct it"),
        ("on_late: drop", "within: 50 ms", 8, "within is not available yet", "write 'window: {time: 50 ms}'"),
        ("  near: {run: pass", "  O1..O2: {chain: pass, in: cars, cost: 1 ms, on_late: drop}\n  near: {run: pass", 7,
         "is a chain", "write it out of the chain"),
    ],
)  # fmt: skip
def test_window(files: Files, old: str, new: str, line: int, said: str, mend: str) -> None:
    assert QUERY.count(old) == 1, old
    found = _problems(files, QUERY.replace(old, new))
    if not said:
        assert not found
        return
    hits = [text for text in found if text.startswith(f"query.yaml:{line}: ") and said in text]
    assert hits, found
    assert mend in hits[0]


def test_each_is_told_once(files: Files) -> None:
    """Two halves of one operator are one line of the file, and one problem."""
    for old, new in (
        ("run: my.trend", "run: my.trnd"),
        ("cost: 1 ms, window: {time: 3 s}", "nodes: [c], cost: 1 ms, window: {time: 3 s}"),
        ("in: far, cost: 1 ms, window: {time: 3 s}", "in: fat, cost: 1 ms, window: {time: 3 s}"),
        ("{tail: 3}", "{tale: 3, tail: 1}"),
    ):
        assert QUERY.count(old) == 1, old
        found = _problems(files, QUERY.replace(old, new))
        assert len(found) == 1 and ".add" not in found[0], found


def test_a_result_that_closes_too_late_is_told_with_its_lateness(files: Files) -> None:
    text = QUERY.replace("window: {time: 10 s}", "window: {time: 10 s, lateness: 80 ms}")
    text = text.replace("two: {from: tens, at: a, deadline: 1 s}", "two: {from: tens, at: a, deadline: 50 ms}")
    found = _problems(files, text)
    assert len(found) == 1 and "closes 50 ms after its end at the earliest" in found[0], found
