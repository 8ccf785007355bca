"""A value means the same after a hop as without one: on one node, between two, and where each hop is checked."""

import math
import subprocess
import sys
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np
import pytest
from google.protobuf.wrappers_pb2 import StringValue
from hypothesis import given
from hypothesis import strategies as st

from node_agent.core import plan as plans
from node_agent.host.clock import SystemClock
from node_agent.link.limits import MAX_PAYLOAD_BYTES
from node_agent.operators.codecs import JSON, MAX_DEPTH, CodecError, protobuf
from node_agent.operators.hop import UnencodableError
from node_agent.operators.registry import Registry
from node_agent.runtime import executor
from node_agent.runtime.deployments.cost_meter import CostMeter
from node_agent.sdk import Many, operator
from protos.records import CAUSE_ENCODE
from tests.sentences import refused

Pair = namedtuple("Pair", "x y")
Colour = IntEnum("Colour", "RED BLUE")
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
)  # fmt: skip
PLAIN = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab", max_size=3), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip
OTHERS = (
    st.builds(np.float32, st.floats(-8, 8)) | st.builds(np.int64, st.integers(-9, 9)) | st.builds(np.bool_)
    | st.builds(np.array, st.lists(st.floats(-8, 8), max_size=4)) | st.builds(Pair, SCALARS, SCALARS)
    | st.sampled_from(Colour) | st.builds(np.float64, st.floats(-8, 8)) | st.builds(np.str_, st.text("ab"))
)  # fmt: skip
ANY = st.recursive(
    SCALARS | OTHERS,
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple)
    | st.dictionaries(st.text("ab", max_size=3), inner, max_size=3).map(OrderedDict),
    max_leaves=20,
)  # fmt: skip


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types all the way down."""
    if one.__class__ is not other.__class__:
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(PLAIN)
def test_a_plain_value_stays_as_it_is(value: Any) -> None:
    assert same(JSON.fit(value), value)
    assert same(JSON.decode(JSON.encode(value)), value)


@given(ANY)
def test_any_other_is_what_it_would_be_on_another_node(value: Any) -> None:
    fitted = JSON.fit(value)
    assert same(fitted, JSON.decode(JSON.encode(value)))
    assert same(JSON.fit(fitted), fitted)


def test_a_plain_value_is_the_same_object() -> None:
    value = {"id": 7, "ok": True, "none": None, "kg": 2.5, "name": "x", "in": [{"x": [1.0]}, "y"]}
    assert JSON.fit(value) is value


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


around: list[Any] = []
around.append(around)
UNFIT = [
    math.nan, [math.inf], {"x": [np.nan]}, np.array([1.0, np.nan]), {1, 2}, object(), b"x", 1j, "\ud800", {"\ud800": 1},
    "x" * MAX_PAYLOAD_BYTES, ["xx"] * (MAX_PAYLOAD_BYTES // 4), {"x": "\n" * (MAX_PAYLOAD_BYTES // 2 + 1)},
    {1: 2}, {"x": [{None: 1}]}, {(1, 2): 3}, ({2.5: 1},), {np.int64(3): 1}, nested(MAX_DEPTH + 1), around,
    np.array([1j]), np.array([{}]), np.datetime64("2026-01-01"), np.longdouble(1), np.zeros(MAX_PAYLOAD_BYTES),
]  # fmt: skip


@pytest.mark.parametrize("value", UNFIT, ids=lambda value: type(value).__name__)
def test_what_cannot_be_sent_cannot_be_handed_on_either(value: Any) -> None:
    for use in (JSON.encode, JSON.fit):
        with pytest.raises(CodecError):
            use(value)


def test_the_longest_and_the_deepest_may_be_handed_on() -> None:
    for value in ("x" * (MAX_PAYLOAD_BYTES - 2), nested(MAX_DEPTH), {"x": "\n" * (MAX_PAYLOAD_BYTES // 2 - 8)}):
        assert same(JSON.fit(value), value)
        assert same(JSON.decode(JSON.encode(value)), value)


def test_messages_are_of_their_type_and_no_longer_than_they_may_be() -> None:
    codec = protobuf("t.Text", StringValue)
    value = StringValue(value="x")
    assert codec.fit(value) is value
    for wrong in ({"value": "x"}, StringValue(value="x" * MAX_PAYLOAD_BYTES)):
        with pytest.raises(CodecError):
            codec.fit(wrong)


@operator("t.gives")
def gives(value: Any) -> Any:
    return MADE[value["made"]]


@operator("t.beside", side={"other": "json"})
def beside(value: Any, *, other: Any) -> Any:
    return MADE[value["made"]]


MADE: dict[str, Any] = {
    "array": {"v": np.arange(3)}, "scalar": np.float32(0.5), "tuple": {"v": (1, Pair(2, 3))}, "nan": {"v": math.nan},
    "long": "x" * MAX_PAYLOAD_BYTES, "keys": {1: 2}, "many": Many((1, 2), None, np.int8(3)), "none": None,
    "bad among many": Many(1, {2}),
}  # fmt: skip
CARRIED: dict[str, Any] = {
    "array": {"v": [0, 1, 2]}, "scalar": 0.5, "tuple": {"v": [1, [2, 3]]}, "many": [[1, 2], 3], "none": [],
}  # fmt: skip


def call(registry: Registry, run: str, **changes: Any) -> Callable[[str], Any]:
    """The operator as the engine has it: what the next one gets, for each name of what it makes."""
    spec = plans.Operator(1, "O1", run, (1,), 2, 1, **changes)
    called, plain = registry.calls(spec, ["in"])

    def get(made: str) -> Any:
        value = {"made": made}
        got = called(value) if plain else called((value,), {}, None)
        return [each for _, each in executor.results((1, 1, 1, 0, 0, 0), got)]

    return get


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("run", ["t.gives", "t.beside"])
def test_the_next_operator_gets_what_one_on_another_node_would(run: str, checks: bool) -> None:
    got = call(Registry(operators=[gives, beside], checks=checks), run)
    for made, carried in CARRIED.items():
        wanted = carried if made in {"many", "none"} else [carried]
        assert same(got(made), wanted)
    for made in MADE.keys() - CARRIED.keys():
        with refused(f"{'too_large' if made == 'long' else 'not_json'} {run}", UnencodableError) as unfit:
            got(made)
        assert executor.cause_of(unfit.value) == CAUSE_ENCODE


def test_where_hops_are_checked_each_reader_has_a_value_of_its_own() -> None:
    value = {"made": "x"}
    for checks in (False, True):
        called, _ = Registry(checks=checks).calls(plans.Operator(1, "O1", "pass", (1,), 2, 1), ["in"])
        got = called(value)
        assert got == value and (got is value) != checks


def test_checks_cost_operators_nothing() -> None:
    """What is measured of an operator leaves out what its checks have taken, however long that was."""
    registry = Registry(checks=True)
    assert registry.checking is not None
    meter = CostMeter(SystemClock("REALTIME", 0), registry.checking)
    meter.start()
    value = [{"x": [1.5] * 100}] * 100
    called, _ = registry.calls(plans.Operator(1, "O1", "pass", (1,), 2, 1), ["in"])
    called(value)
    checked_ns = registry.checking.cpu_ns
    assert checked_ns > 0

    class Taken:
        emulate_ns = 0

        def add(self, spent_ns: int, elapsed_ns: int) -> None:
            self.spent_ns, self.elapsed_ns = spent_ns, elapsed_ns

    step: Any = object()
    taken: Any = Taken()
    meter.costs[step] = taken
    meter.spend(step, (1, 1, 1, 0, 0, 0), False)
    assert 0 <= taken.spent_ns < checked_ns and taken.elapsed_ns >= 0
    assert registry.checking.cpu_ns == 0


def test_numpy_is_known_without_being_imported() -> None:
    program = (
        "import sys, node_agent.runtime.deployments.loading, node_agent.operators.codecs as c;"
        "assert c.JSON.fit((1,)) == [1]; sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
