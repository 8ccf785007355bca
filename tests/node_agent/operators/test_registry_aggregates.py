"""Aggregates are found, checked against their code, and made with a window's specification."""

import json
from pathlib import Path
from typing import Any

import pytest

from node_agent.core import plan as plans
from node_agent.core.windows.open_windows import UnfitError, Window
from node_agent.core.windows.results import Complete
from node_agent.operators.entry_points import Offers
from node_agent.operators.mutation_check import ChangedError
from node_agent.operators.registry import Registry
from node_agent.sdk import aggregate
from tests.sentences import Wording

SAID = Wording("operators", "aggregates")

TREND = """
@aggregate("my.trend", version="2", inputs={"value": "json"})
class Trend:
    def __init__(self, scale: float = 1.0, least: int = 2) -> None:
        self.scale, self.least = scale, least
    def start(self): return []
    def add(self, state, value): return [*state, value["x"]]
    def result(self, state): return (state[-1] - state[0]) * self.scale if len(state) >= self.least else None

@operator("my.length", inputs={"value": "json"})
def length(value, *, ms: int = 3): return value["n"] * ms * 1_000_000

@operator("my.late", inputs={"value": "json"})
def late(value, *, at): return at.now_ns
"""


def nothing(group: str) -> Offers:
    return {}


def window(**changes: Any) -> plans.Window:
    made = {"kind": "time", "length": 10, "hop": 10, "source": 9, "feeds": ((1, 0),), **changes}
    return plans.Window(**made)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    path = tmp_path / "own.py"
    path.write_text("from node_agent.sdk import *\n" + TREND)
    return Registry([path], discover=nothing)


def made_of(registry: Registry, run: str, with_: Any, spec: plans.Window, *tuples: tuple[int, Any]) -> dict[str, Any]:
    made = registry.aggregate(run, json.dumps(with_), spec)
    filled = made.start()
    for source, payload in tuples:
        filled.add(source, payload)
    return filled.result()


def test_figures_stand_under_the_names_that_the_query_gives_them(registry: Registry) -> None:
    with_ = {
        "speed": "mean", "n": "count", "top": {"max": "speed"}, "p95": {"quantile": 0.95, "of": "speed"},
        "total": {"sum": "car.kg"}, "least": {"min": "speed"}, "count": "count",
    }  # fmt: skip
    tuples = [(0, {"speed": i, "car": {"kg": 2 * i}}) for i in range(1, 21)]
    assert made_of(registry, "aggregate", with_, window(), *tuples) == {
        "speed": 10.5, "n": 20, "top": 20, "p95": 19, "total": 420, "least": 1, "count": 20,
    }  # fmt: skip
    assert made_of(registry, "aggregate", {"speed": {"quantile": 1}}, window(), *tuples) == {"speed": 20}


@pytest.mark.parametrize(
    ("with_", "said"),
    [
        ({}, "raised aggregate"),
        ({"x": "median"}, "raised aggregate"),
        ({"x": 3}, "raised aggregate"),
        ({"mean": "speed"}, "raised aggregate"),
        ({"x": {"mean": "a", "max": "b"}}, "raised aggregate"),
        ({"x": {"count": "a"}}, "raised aggregate"),
        ({"x": {"quantile": 0}}, "raised aggregate"),
        ({"x": {"quantile": 1.0000001}}, "raised aggregate"),
        ({"x": {"quantile": True}}, "raised aggregate"),
        ({"x": {"quantile": 0.5, "at": "y"}}, "raised aggregate"),
        ({"x": {"mean": 4}}, "raised aggregate"),
        ({"x": {"mean": "a..b"}}, "raised aggregate"),
        ({"window": "mean"}, "raised aggregate"),
        ({"count": "mean"}, "raised aggregate"),
        ([], "wrong_shape aggregate"),
    ],
)
def test_figures_that_cannot_be_meant_are_refused_with_a_mend(registry: Registry, with_: Any, said: str) -> None:
    with SAID.refuses(said):
        registry.aggregate("aggregate", json.dumps(with_), window())


def test_groups_pairs_and_a_users_own_aggregate(registry: Registry) -> None:
    lanes = [(0, {"lane": 1, "x": 1}), (0, {"lane": 2, "x": 5}), (0, {"lane": 1, "x": 4})]
    assert made_of(registry, "aggregate", {"x": "sum"}, window(by="lane"), *lanes) == {
        "groups": {"1": {"x": 5}, "2": {"x": 5}}
    }
    assert made_of(registry, "my.trend", {"scale": 2}, window(), *lanes) == {"result": 6.0}
    two = window(feeds=((1, 0), (2, 1)), on=("lane", "row"))
    paired = {"pairs": [{"left": lanes[1][1], "right": {"row": 2}}]}
    assert made_of(registry, "join", {}, two, *lanes[:2], (1, {"row": 2})) == paired
    spec = plans.Operator(1, "W.add", "join", (1, 2), 3, 1, window=two)
    named = registry.calls(spec, ["cars", "rows"])[0]().aggregate
    filled = named.start()
    filled.add(0, lanes[1][1])
    filled.add(1, {"row": 2})
    assert filled.result() == {"pairs": [{"cars": lanes[1][1], "rows": {"row": 2}}]}
    with SAID.refuses("no_join aggregate"):
        registry.aggregate("aggregate", '{"n": "count"}', two)
    with SAID.refuses("no_aggregate pass"):
        registry.aggregate("pass", "{}", window())
    with SAID.refuses("unknown_parameter scales"):
        registry.aggregate("my.trend", '{"scales": 2}', window())
    with pytest.raises(UnfitError):
        made_of(registry, "aggregate", {"x": "mean"}, window(), (0, {"x": "much"}))


def test_what_a_plan_of_windows_is_loaded_with(registry: Registry) -> None:
    sized = window(kind="sized", size="my.length")
    collects = plans.Operator(1, "W.add", "my.trend", (1,), 2, 1, window=sized)
    collecting, plain = registry.calls(collects, ["a"])
    assert not plain and collecting().size({"n": 2}) == 6_000_000
    closes = plans.Operator(2, "W", "my.trend", (2,), 3, 1, closes=1)
    close, plain = registry.calls(closes, ["W.add"])
    assert plain
    states = [collecting().aggregate.start() for _ in range(2)]
    for x in (1, 3):
        states[0].add(0, {"x": x})
    complete = Complete(Window(4, 40, 50, states[0], count=2), True)
    assert close(complete) == {
        "window": 4,
        "start_ns": 40,
        "end_ns": 50,
        "count": 2,
        "result": 2.0,
    }
    counted = Complete(Window(4, 40, 50, states[1], base=30), False)
    assert close(counted) == {"window": 4, "first": 10, "last": 19, "count": 0, "result": None}
    other = plans.Operator(3, "P", "pass", (1,), 2, 1)
    assert registry.calls(other, ["a"])[0]({"x": 1}) == {"x": 1}
    with SAID.refuses("wrong_window_length my.late"):
        registry.collecting("my.trend", "{}", window(kind="sized", size="my.late"))
    with SAID.refuses("aggregate_without_window my.trend"):
        registry.calls(plans.Operator(3, "P", "my.trend", (1,), 2, 1), ["a"])


def test_the_list_says_what_a_planner_needs(registry: Registry) -> None:
    described = json.loads(json.dumps(registry.describe(), allow_nan=False))["operators"]
    assert described["my.trend"] == {
        "version": "2", "kind": "aggregate", "inputs": {"value": "json"}, "side": {}, "output": "json",
        "with": {
            "scale": {"type": "number", "default": 1.0, "required": False},
            "least": {"type": "integer", "default": 2, "required": False},
        },
        "code": registry.identity("my.trend").code,
    }  # fmt: skip
    assert described["aggregate"] == {
        "version": "1", "kind": "aggregate", "inputs": {"value": "any"}, "side": {}, "output": "json", "with": {},
        "open": True, "code": registry.identity("aggregate").code,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "@aggregate('a.b')\nclass A:\n    def start(self): ...\n    def result(self, s): ...\n",
            "own.py missing_method add",
        ),
        (
            "@aggregate('a.b')\nclass A:\n    def start(self): ...\n    def add(self, s): ...\n"
            "    def result(self, s): ...\n",
            "own.py wrong_number_of_arguments add",
        ),
        ("@aggregate('a.b')\ndef a(): ...\n", "own.py:2 raised"),
        ("@aggregate('a.b', inputs={'x': 'json', 'y': 'json'})\nclass A: ...\n", "own.py:2 raised"),
        ("@aggregate('a.b', output='other')\nclass A: ...\n", "own.py:2 raised"),
    ],
)
def test_aggregates_that_cannot_be_meant_are_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "own.py"
    path.write_text("from node_agent.sdk import *\n" + text)
    with SAID.refuses(said):
        Registry([path], discover=nothing)


def test_an_aggregate_is_declared_in_the_file_where_it_stands() -> None:
    @aggregate("t.sum")
    class Total:
        def start(self) -> int:
            return 0

        def add(self, state: int, value: int) -> int:
            return state + value

        def result(self, state: int) -> int:
            return state

    registry = Registry(discover=lambda group: {"t.sum": ("m:Total", lambda: Total)})
    assert made_of(registry, "t.sum", {}, window(feeds=((1, 0), (2, 0))), (1, 4), (0, 3)) == {"result": 7}


def test_an_aggregate_that_changes_a_tuple_is_found_where_operators_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    text = "@aggregate('a.b')\nclass A:\n    def start(self): return 0\n    def result(self, s): return s\n"
    path.write_text(f"from node_agent.sdk import *\n{text}    def add(self, s, v): v['x'] = s; return s + 1\n")
    assert made_of(Registry([path], discover=nothing), "a.b", {}, window(), (0, {"x": 3})) == {"result": 1}
    checked = Registry([path], discover=nothing, checks=True).aggregate("a.b", "{}", window())
    with SAID.refuses("input_changed a.b", kind=ChangedError):
        checked.start().add(0, {"x": 3})
