"""Operators on a bench: called as an agent calls them, at the time that the test says."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.wrappers_pb2 import StringValue

from node_agent.core.windows.open_windows import UnfitError
from node_agent.operators import api
from node_agent.operators.registry import Registry
from node_agent.operators.signature import OperatorError
from node_agent.runtime.executor import OutputsError
from node_agent.sdk import At, Many, aggregate, operator
from node_agent.testing import SECOND_NS, START_NS, Bench, ChangedError, run, window
from tests.sentences import Wording

SAID = Wording("operators", "bench")

MANUAL = Path(__file__).parents[3] / "docs" / "how_to" / "test_operators.md"
MS = 1_000_000


@operator("t.closing", inputs={"car": "json"}, side={"ego": "json"})
class Closing:
    def __init__(self, min_speed: float = 1.0) -> None:
        self.min_speed = min_speed
        self.seen = 0

    def __call__(self, car: dict[str, Any], *, ego: dict[str, Any] | None, at: At) -> dict[str, Any] | None:
        self.seen += 1
        if ego is None or car["v"] < self.min_speed:
            return None
        return {"by": ego["v"] - car["v"], "at": at.now_ns, "origin": list(at.origin_ns), "due": at.deadline_ns}


@operator("t.both", inputs={"left": "json", "right": "json"})
def both(left: int, right: int) -> list[int]:
    return [left, right]


@operator("t.many", inputs={"n": "json"})
def many(n: int) -> Many:
    return Many(*range(n), None)


@operator("t.keeps", inputs={"value": "json"})
class Keeps:
    """Gives out the list that it goes on changing."""

    def __init__(self) -> None:
        self.all: list[int] = []

    def __call__(self, value: int) -> list[int]:
        self.all.append(value)
        return self.all


@operator("t.side", inputs={"value": "json"}, side={"table": "json"})
def fills(value: int, *, table: dict[str, int] | None) -> int:
    if table is not None:
        table["n"] = value
    return value


@operator("t.read", inputs={"code": "t.Code"}, output="same")
def read(code: StringValue) -> StringValue:
    return code


@operator("t.odd", inputs={"value": "json"})
def odd(value: Any) -> Any:
    return float("nan") if value == "nan" else {1, 2}


@aggregate("t.sum", inputs={"value": "json"})
class Sum:
    def __init__(self, field: str = "kg") -> None:
        self.field = field

    def start(self) -> float:
        return 0

    def add(self, state: float, value: dict[str, Any]) -> float:
        return state + float(value[self.field])

    def result(self, state: float) -> float:
        return state


@aggregate("t.mixing")
class Mixing(Sum):
    """Keeps what belongs to a window in itself."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[float] = []

    def add(self, state: float, value: dict[str, Any]) -> float:
        self.all.append(value["kg"])
        return state

    def result(self, state: float) -> float:
        return sum(self.all)


@aggregate("t.changing")
class Changing(Sum):
    def add(self, state: float, value: dict[str, Any]) -> float:
        value["kg"] = 0
        return state


def test_one_tuple_with_side_input_parameter_and_time() -> None:
    given = {"v": 9.5}
    (found,) = run(Closing, car=given, ego={"v": 14.0}, with_={"min_speed": 2}, at_ns=7_000, age_ns=(20, 50))
    assert found == {"by": 4.5, "at": 7_000, "origin": [6_950, 6_980], "due": 6_950 + SECOND_NS}
    assert run(Closing, given) == [] and run(Closing, given, ego={"v": 1.0}, with_={"min_speed": 10.0}) == []
    assert run(both, 1, 2) == run(both, right=2, left=1) == run(both, 2, left=1) == [[1, 2]]
    assert run(many, 3) == [0, 1, 2] and run(many, 0) == []
    assert run("pass", "x") == ["x"] and run("join", left=1, right=2) == [{"left": 1, "right": 2}]
    assert run("join", 1, 2) == [{"in1": 1, "in2": 2}]


def test_a_bench_keeps_its_instance_side_inputs_and_clock() -> None:
    bench = Bench(Closing, min_speed=2.0)
    assert bench.now_ns == START_NS and bench({"v": 5.0}) == [] and bench.instance.seen == 1
    bench.set(ego={"v": 9.0})
    bench.advance(3 * MS)
    (found,) = bench({"v": 5.0}, age_ns=MS, deadline_ns=10 * MS)
    now_ns = START_NS + 3 * MS
    assert found == {"by": 4.0, "at": now_ns, "origin": [now_ns - MS] * 2, "due": now_ns + 9 * MS}
    assert bench(car={"v": 1.0}) == [] and bench.instance.seen == 3
    bench.set(ego=None)
    assert bench({"v": 5.0}) == []
    with SAID.refuses("negative", kind=ValueError):
        bench.advance(-1)
    with SAID.refuses("out_of_range age_ns", kind=ValueError):
        bench({"v": 5.0}, age_ns=(2, 1))


def test_operators_with_any_number_of_inputs() -> None:
    join = Bench("join", "near", "far")
    assert join(1, 2) == join(far=2, near=1) == [{"near": 1, "far": 2}]
    union = Bench("union", "near", "far")
    assert union(1) == [1] and union(far=2) == [2]
    with SAID.refuses("wrong_number_of_inputs union"):
        union(1, 2)
    with SAID.refuses("wrong_number_of_inputs join"):
        Bench("join")


@pytest.mark.parametrize("given", [{"speed": 1.0}, {"min_speed": "1"}, {"min_speed": True}])
def test_parameters_fail_with_an_agents_words(given: dict[str, Any]) -> None:
    import json

    with pytest.raises(OperatorError) as live:
        Registry(operators=[Closing]).make("t.closing", json.dumps(given))
    with pytest.raises(OperatorError) as here:
        Bench(Closing, **given)
    assert str(here.value) == str(live.value)


def test_what_an_agent_would_not_call_is_refused() -> None:
    bench = Bench(Closing)
    for call, why in (
        (lambda: bench.set(other=1), "unknown_side_input other"),
        (lambda: bench(ego={}), "side_input_as_input ego"),
        (lambda: bench(lorry={}), "unknown_input lorry"),
        (bench, "wrong_number_of_inputs t.closing"),
        (lambda: bench({}, {}), "wrong_number_of_inputs t.closing"),
        (lambda: run(both, 1, lorry=2), "unknown_input lorry"),
        (lambda: Bench(Closing, min_speed={1}), "parameters_not_json t.closing"),
        (lambda: Bench(Closing, "a", "b"), "wrong_number_of_inputs t.closing"),
        (lambda: Bench(len), "no_operator <built-in function len>"),
        (lambda: Bench("t.none"), "unknown_operator t.none"),
        (lambda: Bench(Sum), "aggregate_without_window t.sum"),
        (lambda: window(Closing, []), "no_aggregate t.closing"),
    ):
        with SAID.refuses(why):
            call()

    @operator("t.badly", inputs={"value": "json"}, side={"table": "json"})
    def badly(value: Any) -> Any:
        return value

    with SAID.refuses("missing_side_input table"):
        run(badly, 1)


def test_what_others_read_is_left_alone() -> None:
    keeps = Bench(Keeps)
    assert keeps(1) == [[1]]
    with SAID.refuses("result_changed t.keeps", kind=ChangedError):
        keeps(2)
    with SAID.refuses("side_input_changed t.side", kind=ChangedError):
        run(fills, 1, table={})
    with SAID.refuses("input_changed t.changing", kind=ChangedError):
        window(Changing, [{"kg": 1}])


def test_values_are_of_their_types(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, why in (("nan", "not_json"), (1, "not_json")):
        with SAID.refuses(why):
            run(odd, value)
    with SAID.refuses("not_json"):
        run(odd, {1})
    with SAID.refuses("not_json"):
        run(Closing, {"v": 1}, ego={1})
    with SAID.refuses("too_many_results", kind=OutputsError):
        run(many, 256)
    monkeypatch.setattr(api, "declared_codecs", [])
    with SAID.refuses("unknown_codec t.Code"):
        run(read, StringValue())
    api.codec("t.Code", StringValue)
    assert run(read, StringValue(value="x")) == [StringValue(value="x")]
    with SAID.refuses("other_type t.Code"):
        run(read, {"value": "x"})


def test_what_an_operator_raises_comes_through() -> None:
    with pytest.raises(KeyError, check=lambda error: error.args == ("v",)):
        run(Closing, {}, ego={})
    with pytest.raises(KeyError, check=lambda error: error.args == ("kg",)):
        window(Sum, [{}])


def test_windows() -> None:
    tuples = [{"kg": 2.5, "g": 1, "lane": "x"}, {"kg": 4, "g": 3, "lane": "y"}]
    assert window(Sum, tuples) == 6.5 and window(Sum, []) == 0
    assert window(Sum, tuples, with_={"field": "g"}) == 4
    assert window(Sum, iter(tuples), by="lane") == {"x": 2.5, "y": 4}
    assert window("aggregate", tuples, {"n": "count", "kg": "max"}, by="lane") == {
        "x": {"n": 1, "kg": 2.5}, "y": {"n": 1, "kg": 4},
    }  # fmt: skip
    with SAID.refuses("unknown_parameter fields"):
        window(Sum, [], with_={"fields": "g"})
    with SAID.refuses("windows_mixed t.mixing"):
        window(Mixing, tuples)
    with SAID.refuses("value", kind=UnfitError):
        window(Sum, [{"kg": 1}], by="lane")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{re.escape(kind)}\n(.*?)```", MANUAL.read_text(), re.S)


@pytest.mark.parametrize("number", range(4))
def test_the_pages_examples_pass(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sorting.py").write_text(blocks("python sorting.py")[0])
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, Any] = {}
    try:
        exec(compile(blocks("python example")[number], f"example {number + 1}", "exec"), names)
        tests = [each for name, each in names.items() if name.startswith("test_")]
        assert tests
        for each in tests:
            each()
    finally:
        sys.modules.pop("sorting", None)


def test_the_page_has_five_examples() -> None:
    assert len(blocks("python example")) == 5
