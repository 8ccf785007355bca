"""Operators are found, checked against their code, made and bound."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from node_agent import sdk
from node_agent.core import plan as plans
from node_agent.operators.entry_points import Offers, installed
from node_agent.operators.registry import Registry
from node_agent.sdk import At, Many, operator
from tests.sentences import Wording

SAID = Wording("operators", "registry")

MANUAL = Path(__file__).parents[3] / "docs" / "how_to" / "operators.md"


def nothing(group: str) -> Offers:
    return {}


def offering(**operators: Callable[[], Any]) -> Callable[[str], Offers]:
    offers = {name.replace("__", "."): (f"m:{name}", load) for name, load in operators.items()}
    return lambda group: offers if group == "shimekiri.operators" else {}


def file_of(tmp_path: Path, text: str, name: str = "ops.py") -> Path:
    path = tmp_path / name
    path.write_text("from node_agent.sdk import *\n" + text)
    return path


@pytest.fixture
def manual(tmp_path: Path) -> Registry:
    code = "\n".join(re.findall(r"```python operators\n(.*?)```", MANUAL.read_text(), re.S))
    path = tmp_path / "manual.py"
    path.write_text(code)
    return Registry([path], discover=nothing)


def test_the_manuals_operators_do_what_it_says(manual: Registry) -> None:
    weigh = manual.make("sort.weigh", '{"most_kg": 20}', ["parcels"])
    assert weigh.plain and weigh.call({"kg": 20}) == {"kg": 20, "number": 1} and weigh.call({"kg": 21}) is None
    assert manual.make("sort.weigh").call({"kg": 21}) == {"kg": 21, "number": 1}, "each plan has its own instance"
    assert len(manual.make("sort.labels").call({"id": 1}).values) == 2
    three = manual.make("sort.labels", '{"copies": 3}').call({"id": 1})
    assert isinstance(three, Many) and len(three.values) == 3
    gate = manual.make("sort.gate")
    assert not gate.plain and gate.wants_at and gate.sides == ("belt",)
    at = At(10, (1, 2), 5)
    assert gate.call(({"id": 1},), {"belt": {"speed": 4.0}}, at)["open_in_s"] == 0.5
    assert gate.call(({"id": 1},), {}, at) == {"id": 1, "open_in_s": 2.0, "late": True, "age_ns": 8}
    match = manual.make("sort.match", "{}", ["weights", "sizes"])
    assert match.joins and not match.plain and match.call(({"kg": 2}, {"cm": 3}), {}, at) == {"cm": 3, "kg": 2}
    trend = manual.aggregate("sort.trend", '{"field": "cm"}', plans.Window("time", 9, 9, 9, ((1, 0),)))
    filled = trend.start()
    for cm in (3, 4, 9):
        filled.add(0, {"cm": cm})
    assert filled.result() == {"result": 6} and manual.make("sort.length").call({"seconds": 2}) == 2_000_000_000
    barcode = manual.codecs.get("sort.Barcode")
    assert manual.make("sort.read").call(barcode.decode(barcode.encode(barcode.from_json("x")))) == {"id": "x"}


def test_the_list_says_what_a_planner_needs(manual: Registry) -> None:
    described = manual.describe()
    assert json.loads(json.dumps(described, allow_nan=False)) == described
    assert described["shimekiri"] == 1 and described["codecs"] == ["json", "sort.Barcode"]
    assert "unavailable" not in described
    operators = described["operators"]
    assert operators["sort.gate"] == {
        "version": "1", "kind": "map", "inputs": {"parcel": "json"}, "side": {"belt": "json"}, "output": "json",
        "with": {}, "code": manual.identity("sort.gate").code,
    }  # fmt: skip
    assert operators["sort.weigh"]["with"] == {"most_kg": {"type": "number", "default": 30.0, "required": False}}
    assert operators["sort.labels"]["with"] == {"copies": {"type": "integer", "default": 2, "required": False}}
    assert list(operators["sort.match"]["inputs"]) == ["weight", "size"] and operators["sort.match"]["kind"] == "join"
    assert operators["busy"]["with"] == {"cpu_us": {"type": "integer", "default": None, "required": True}}
    assert operators["union"]["kind"] == "union" and operators["join"]["variadic"]
    assert operators["pass"]["inputs"] == {"in": "any"} and operators["pass"]["output"] == "same"


def test_built_in_operators() -> None:
    registry = Registry(discover=nothing)
    assert registry.names() == ["aggregate", "busy", "filter", "join", "pass", "union"]
    kept = registry.make("filter")
    assert kept.plain and [x for x in range(15) if kept.call(x + 1)] == [1, 3, 5, 7, 9, 11, 13]
    assert [registry.make("filter", '{"keep": 2, "of": 3}').call(x) for x in (7,)] == [None]
    everything = registry.make("filter", '{"keep": 1, "of": 1}')
    assert [everything.call(x) for x in (1, 2)] == [1, 2]
    assert registry.make("pass").call("x") == "x" and registry.make("busy", '{"cpu_us": 10}').call("x") == "x"
    join = registry.make("join", "{}", ["a", "b"])
    assert join.joins and not join.plain and join.call((1, 2), {}, None) == {"a": 1, "b": 2}
    union = registry.make("union", "{}", ["a", "b", "c"])
    assert union.plain and not union.joins and union.call(3) == 3


@pytest.mark.parametrize(
    ("run", "given", "inputs", "why"),
    [
        ("none", "{}", (), "unknown_operator none"),
        ("filter", '{"keep": 3}', (), "raised filter"),
        ("filter", '{"keep": 1.0}', (), "parameter_type keep"),
        ("filter", '{"keep": true}', (), "parameter_type keep"),
        ("filter", '{"keeps": 1}', (), "unknown_parameter keeps"),
        ("filter", "[]", (), "wrong_shape filter"),
        ("filter", "{", (), "parameters_not_json filter"),
        ("busy", "{}", (), "missing_parameter cpu_us"),
        ("busy", '{"cpu_us": -1}', (), "raised busy"),
        ("join", "{}", ("a",), "wrong_number_of_inputs join"),
        ("pass", "{}", ("a", "b"), "wrong_number_of_inputs pass"),
        ("pass", '{"x": 1}', (), "unknown_parameter x"),
    ],
)
def test_wrong_uses_are_explained(run: str, given: str, inputs: tuple[str, ...], why: str) -> None:
    with SAID.refuses(why):
        Registry(discover=nothing).make(run, given, inputs)


def test_parameters_are_checked_by_their_annotations(tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    path.write_text(
        "from __future__ import annotations\n"
        "from node_agent.sdk import operator\n"
        "@operator('t.all')\n"
        "class All:\n"
        "    def __init__(self, n: float, s: str = '', b: bool = False, a: list = None): self.got = (n, s, b, a)\n"
        "    def __call__(self, value): return self.got\n",
    )
    registry = Registry([path], discover=nothing)
    types = {name: each["type"] for name, each in registry.describe()["operators"]["t.all"]["with"].items()}
    assert types == {"n": "number", "s": "string", "b": "boolean", "a": "any"}
    assert registry.create("t.all", '{"n": 2, "s": "x", "b": true, "a": [1]}').got == (2.0, "x", True, [1])
    for bad, wrong in (
        ('{"n": "2"}', "parameter_type n"),
        ('{"n": NaN}', "not_finite n"),
        ('{"n": 1e999}', "not_finite n"),
        ('{"n": 1, "s": 2}', "parameter_type s"),
        ('{"n": 1, "b": 1}', "parameter_type b"),
    ):
        with SAID.refuses(wrong):
            registry.create("t.all", bad)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("@operator('t.x')\ndef f(): pass", "ops.py wrong_number_of_arguments t.x"),
        ("@operator('t.x', inputs={'a': 'json', 'b': 'json'})\ndef f(a): pass", "ops.py wrong_number_of_arguments t.x"),
        ("@operator('t.x', side={'s': 'json'})\ndef f(a): pass", "ops.py missing_side_input s"),
        ("@operator('t.x')\ndef f(a, **more): pass", "ops.py open_arguments t.x"),
        ("@operator('t.x')\nclass C: pass", "ops.py missing_method t.x"),
        ("@operator('t.x')\nclass C:\n    def __call__(self, a, *, more): pass", "ops.py unknown_argument more"),
        (
            "@operator('t.x')\nclass C:\n    def __init__(self, *a): pass\n    def __call__(self, a): pass",
            "ops.py open_arguments t.x",
        ),
        ("@operator('t.x')\nasync def f(a): pass", "ops.py not_ordinary t.x"),
        ("@operator('t.x')\ndef f(a):\n    yield 1", "ops.py not_ordinary t.x"),
        ("@operator('t.x')\ndef f(a, *, k=object()): pass", "ops.py default_not_json k"),
        ("@operator('t.x')\ndef f(a, *, k: 'Missing' = 1): pass", "ops.py no_signature t.x"),
        ("@operator('t.x')\ndef f(a): pass\n@operator('t.x')\ndef g(a): pass", "ops.py operator_twice t.x"),
        ("@operator('pass')\ndef f(a): pass", "ops.py operator_twice pass"),
        ("x = 1", "ops.py declares_nothing"),
        ("x = 1\n1 / 0", "ops.py:3 raised"),
        ("x = 1\nx x", "ops.py:3 raised"),
        ("@operator('not a name')\ndef f(a): pass", "ops.py:2 raised"),
        ("@operator('t.x', inputs={})\ndef f(): pass", "ops.py:2 raised"),
        ("@operator('t.x', inputs={'a': 'json'}, side={'a': 'json'})\ndef f(a): pass", "ops.py:2 raised"),
        ("@operator('t.x', output='any')\ndef f(a): pass", "ops.py:2 raised"),
        ("codec('t.C', dict)", "ops.py:2 raised"),
        (
            "from protos.tuple_pb2 import Ack\ncodec('json', Ack)\n",
            "ops.py:3 raised",
        ),
        (
            "from protos.tuple_pb2 import Ack\ncodec('t.Ack', Ack)\ncodec('t.Ack', Ack)\n",
            "ops.py not_declared",
        ),
    ],
)
def test_bad_files_are_refused_with_the_place_and_the_reason(tmp_path: Path, text: str, why: str) -> None:
    with SAID.refuses(why, worded=why != "ops.py operator_twice pass"):  # those name a line of ours
        Registry([file_of(tmp_path, text)], discover=nothing)


def test_no_such_file() -> None:
    with SAID.refuses("nowhere.py no_file"):
        Registry(["nowhere.py"], discover=nothing)


def test_two_files_may_not_declare_one_name_but_may_share_an_operator(tmp_path: Path) -> None:
    one = file_of(tmp_path, "@operator('t.x')\ndef f(a): pass", "shared_ops_one.py")
    two = file_of(tmp_path, "from shared_ops_one import f\n@operator('t.y')\ndef g(a): pass", "two.py")
    with SAID.refuses("two.py operator_twice t.x"):
        Registry([one, two], discover=nothing)
    other = file_of(
        tmp_path, "from shared_ops_one import f, operator\nfrom node_agent.operators.builtin import pass_\n", "other.py"
    )
    assert "t.x" in Registry([two, other], discover=nothing).names()


def test_packages_are_loaded_when_named_and_a_broken_one_stops_nothing() -> None:
    loads = []

    @operator("pack.good")
    def good(value: Any) -> Any:
        return value

    def load() -> Any:
        loads.append(1)
        return good

    def broken() -> Any:
        raise ImportError("libmissing.so")

    registry = Registry(discover=offering(pack__good=load, pack__bad=broken, pack__alias=load, pack__none=lambda: 3))
    assert registry.make("pass") and not loads
    assert registry.make("pack.good").call(5) == 5
    described = registry.describe()
    assert "pack.good" in described["operators"]
    assert described["unavailable"] == {
        "pack.bad": "operator 'pack.bad' (m:pack__bad) cannot be loaded: ImportError: libmissing.so",
        "pack.alias": "operator 'pack.alias' (m:pack__alias) cannot be loaded: it calls itself 'pack.good'",
        "pack.none": "operator 'pack.none' (m:pack__none) cannot be loaded: 3 is no operator;"
        " write @operator(...) above it",
    }
    for _ in range(2):
        with SAID.refuses("not_loaded pack.bad"):
            registry.make("pack.bad")


def test_entry_points_of_this_installation_can_be_listed() -> None:
    assert isinstance(installed("shimekiri.no_such_group"), dict)


def test_the_sdk_is_light_to_import() -> None:
    heavy = "{'google', 'socket', 'protos', 'grpc', 'inspect', 'json'}"
    code = f"import sys; import node_agent.sdk; print(sorted({heavy} & {{m.split('.')[0] for m in sys.modules}}))"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=MANUAL.parents[1]
    )
    assert out.stdout.strip() == "[]"
    with pytest.raises(AttributeError):
        _ = sdk.nothing_of_that_name  # type: ignore[attr-defined,unused-ignore]
    assert "Source" in sdk.__all__ and sdk.Source.__name__ == "Source"
    assert (
        repr(At(1, (2, 3), 4)) == "At(now_ns=1, origin_ns=(2, 3), deadline_ns=4)" and repr(Many(1, 2)) == "Many(1, 2)"
    )
