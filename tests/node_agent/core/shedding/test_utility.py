"""Trees from the wire, and the value of anything: refused with ValueError, or a function that never raises."""

import functools
import json
import math
import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.core.shedding.utility import LEAST, compiled, read
from protos.expressions import COUNTS, DEEPEST, LONGEST_JSON, LONGEST_TEXT, MOST_KEYS, MOST_NODES
from tests.sentences import Wording

SAID = Wording("engine", "values")

NAMES = st.sampled_from("abc")
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.integers(-3, 3)
    | st.floats()
    | st.text(max_size=2)
)
JSON = st.recursive(SCALARS, lambda one: st.lists(one, max_size=3) | st.dictionaries(NAMES, one, max_size=3))
WORDS = st.sampled_from([*COUNTS, "field", "eval", "__class__", "a", "b"])
HOSTILE = st.recursive(
    SCALARS | WORDS | st.dictionaries(NAMES, SCALARS, max_size=2),
    lambda one: st.tuples(WORDS, st.lists(one, max_size=4)).map(lambda pair: [pair[0], *pair[1]]) | st.lists(one),
)
FIELDS = st.lists(NAMES, max_size=2).map(lambda names: ["field", *names])


def _operations(one: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from(sorted(COUNTS)).flatmap(
        lambda name: st.lists(one, min_size=COUNTS[name][0], max_size=min(3, COUNTS[name][1])).map(
            lambda parts: [name, *parts]
        )
    )


PLAUSIBLE = st.recursive(FIELDS | st.integers(-3, 3) | st.booleans() | st.just("a"), _operations, max_leaves=8)


def _tried(tree: Any, payload: Any) -> float | None:
    try:
        value = compiled(tree)
    except ValueError:
        return None
    found = value(payload)
    assert found.__class__ is float and (math.isfinite(found) or found == LEAST)
    assert read(json.dumps(tree))(payload) == found
    return found


@given(PLAUSIBLE, JSON)
def test_every_payload_has_a_value(tree: Any, payload: Any) -> None:
    _tried(tree, payload)


@given(HOSTILE, JSON)
def test_a_hostile_tree_is_refused_or_harmless(tree: Any, payload: Any) -> None:
    _tried(tree, payload)


def _by_rules(tree: Any, payload: Any) -> Any:
    """The same, slowly and anew: every part checked as it comes."""
    if not isinstance(tree, list):
        return tree
    operation, *rest = tree
    if operation == "field":
        for name in rest:
            payload = payload[name] if isinstance(payload, dict) else math.nan
        whole = isinstance(payload, int) and not isinstance(payload, bool)
        assert not whole or -(1 << 63) <= payload < 1 << 64
        assert payload is None or isinstance(payload, (bool, int, str)) or math.isfinite(payload)
        return payload
    if operation == "if":
        condition = _by_rules(rest[0], payload)
        assert isinstance(condition, bool)
        return _by_rules(rest[1 if condition else 2], payload)
    if operation in ("and", "or"):
        for one in rest:
            found = _by_rules(one, payload)
            assert isinstance(found, bool)
            if found == (operation == "or"):
                break
        return found
    values = [_by_rules(one, payload) for one in rest]
    if operation == "not":
        assert isinstance(values[0], bool)
        return not values[0]
    if operation in ("==", "!="):
        return (values[0] == values[1]) == (operation == "==")
    if operation in ("<", "<=", ">", ">="):
        one, other = values
        return {"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}[operation]
    if operation == "since":  # nothing has been let in
        return 60.0
    assert not any(isinstance(value, str) or value is None for value in values)
    if operation in ("min", "max", "abs"):
        several: dict[str, Any] = {"min": min, "max": max, "abs": lambda one: abs(one[0])}
        return several[operation](values)
    if operation == "neg":
        return -values[0]
    apply: dict[str, Any] = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
    total = functools.reduce(apply[operation], values)
    assert math.isfinite(total)
    return total


SMALL = st.dictionaries(NAMES, st.integers(-3, 3) | st.booleans() | st.none() | st.just("a") | st.just(math.nan))


@given(PLAUSIBLE, SMALL)
def test_the_value_is_that_of_the_rules(tree: Any, payload: Any) -> None:
    found = _tried(tree, payload)
    if found is None:
        return
    try:
        by_rules = _by_rules(tree, payload)
        expected = float(by_rules) if isinstance(by_rules, (int, float)) and math.isfinite(by_rules) else LEAST
    except (AssertionError, KeyError, TypeError, ZeroDivisionError):
        expected = LEAST
    assert found == expected or found == pytest.approx(expected)


DEEP: Any = 1
for _ in range(DEEPEST):
    DEEP = ["neg", DEEP]


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (None, "other_type"),
        ("text", "other_type"),
        ([], "no_operator"),
        ({}, "other_type"),
        ({"field": "a"}, "other_type"),
        ([["field", "a"]], "no_operator"),
        (["eval", "1"], "unknown_operator eval"),
        (["__class__"], "unknown_operator __class__"),
        (["field", "__class__"], "bad_name __class__"),
        (["field", "a", "__dict__"], "bad_name __dict__"),
        (["field", "a b"], "bad_name a b"),
        (["field", ""], "bad_name"),
        (["field", 3], "bad_name 3"),
        (["field", ["a"]], "bad_name ['a']"),
        (["field", *["a"] * 17], "too_large"),
        (["field", "a" * 1000], f"bad_name {'a' * 40}"),
        (["+", 1], "wrong_number_of_arguments +"),
        (["+", 1, "a"], "other_type"),
        (["+", 1, None], "other_type"),
        (["-", 1, 2, 3], "wrong_number_of_arguments -"),
        (["if", True, 1], "wrong_number_of_arguments if"),
        (["if", 1, 2, 3], "other_type"),
        (["and", True, 1], "other_type"),
        (["not", ["+", 1, 2]], "other_type +"),
        (["if", ["abs", 1], 2, 3], "other_type abs"),
        (["+", 1, 1 << 64], "other_type"),
        (["+", 1, math.nan], "other_type"),
        (["+", 1, math.inf], "other_type"),
        (["==", ["field", "a"], "x" * 300], "other_type"),
        (["+", *[1] * MOST_NODES], "too_large"),
        (DEEP, "too_deep"),
    ],
)
def test_refused(tree: Any, expected: str) -> None:
    with SAID.refuses(expected, kind=ValueError):
        compiled(tree)


def test_refused_as_text() -> None:
    for text in ("", "[", "[" * 4000, "nan", "NaN", "1" * (LONGEST_JSON + 1), "9" * 5000):
        with pytest.raises(ValueError):
            read(text)


def test_as_large_as_may_be() -> None:
    assert compiled(["+", *[1] * (MOST_NODES - 1)])(None) == MOST_NODES - 1
    assert compiled(DEEP[1])(None) == -1


def test_nothing_is_called_and_no_attribute_is_read() -> None:
    class Trap:
        DESCRIPTOR = None
        speed = 3

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

        def __getitem__(self, name: str) -> Any:
            raise AssertionError(name)

    value = compiled(["field", "speed"])
    assert value(Trap()) == value([1]) == value("speed") == value(None) == LEAST
    assert value({"speed": Trap()}) == LEAST


def test_since_counts_from_when_a_tuple_about_the_same_was_let_in() -> None:
    value = compiled(["since", ["field", "station"], ["field", "object"]])
    one, other, without = {"station": 1, "object": "x"}, {"station": 2, "object": "x"}, {"station": 1}
    assert value(one, 10**9) == 60
    value.let_in(one)
    assert (value(one, 3 * 10**9), value(other, 3 * 10**9), value(without, 3 * 10**9)) == (2, 60, LEAST)
    assert value(one, 0) == 0, "time does not run backwards"
    assert value(one, 100 * 10**9) == 60
    value.let_in(without)
    assert value({"station": 1, "object": "x" * (LONGEST_TEXT + 1)}, 0) == LEAST


def test_since_remembers_a_bounded_number_of_keys() -> None:
    value = compiled(["since", ["field"]])
    for number in range(2 * MOST_KEYS):
        value(number, number)
        value.let_in(number)
    kept = [number for number in range(2 * MOST_KEYS) if value(number, 2 * MOST_KEYS) < 60]
    assert kept == list(range(MOST_KEYS, 2 * MOST_KEYS))
