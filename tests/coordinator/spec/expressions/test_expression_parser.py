"""Value expressions: text -> tree and back, and the sentences about what is wrong with one."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.errors import BadInputError
from coordinator.spec.expressions import ExpressionError, Kind, checked, parse, written
from coordinator.spec.files import yaml_source
from protos.expressions import LONGEST_TEXT, MOST_NODES
from tests.sentences import Wording

SAID = Wording("plan", "expressions")

KNOWN: Kind = {
    "speed": "number",
    "braking": "condition",
    "kind": "text",
    "raw": "bytes",
    "points": "list",
    "car": {"speed": "number", "name": "text", "note": None},
}

NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,5}", fullmatch=True)
FIELDS = st.lists(NAMES, max_size=3).map(lambda names: ["field", *names])
NUMBERS = st.integers(-(1 << 63), (1 << 64) - 1) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=6).filter(str.isprintable)


def _made(names: list[str], inner: st.SearchStrategy[Any], least: int, most: int) -> st.SearchStrategy[Any]:
    rows = st.tuples(st.sampled_from(names), st.lists(inner, min_size=least, max_size=most))
    return rows.map(lambda pair: [pair[0], *pair[1]])


TREES: st.SearchStrategy[Any] = st.deferred(
    lambda: NUMBERS | FIELDS
    | _made(["+", "*", "min", "max"], TREES, 2, 4) | _made(["-", "/"], TREES, 2, 2) | _made(["neg", "abs"], TREES, 1, 1)
    | st.tuples(CONDITIONS, TREES, TREES).map(lambda parts: ["if", *parts])
)  # fmt: skip
CONDITIONS: st.SearchStrategy[Any] = st.deferred(
    lambda: FIELDS | st.booleans()
    | _made(["<", "<=", ">", ">=", "==", "!="], TREES, 2, 2)
    | st.tuples(st.sampled_from(["==", "!="]), FIELDS, TEXTS | st.none() | st.booleans()).map(list)
    | _made(["and", "or"], CONDITIONS, 2, 3) | _made(["not"], CONDITIONS, 1, 1)
)  # fmt: skip


@given(TREES | CONDITIONS)
def test_what_is_written_is_parsed_again(tree: Any) -> None:
    text = written(tree)
    try:
        again = parse(text)
    except ExpressionError as error:
        assert "at most" in error.text or "more than" in error.text
        return
    assert repr(again) == repr(tree)  # 1, 1.0 and true are equal, but not the same


WORDS = st.sampled_from([*"a1(),.-+*/<", "==", "and", "or", "not", "if", "min", "'x'", "this"])


@given(st.text(max_size=80) | st.lists(WORDS).map(" ".join))
def test_any_text_is_a_tree_or_an_error_within_it(text: str) -> None:
    try:
        tree = parse(text)
    except ExpressionError as error:
        assert 0 <= error.at <= len(text)
    else:
        assert parse(written(tree)) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("speed", ["field", "speed"]),
        ("this", ["field"]),
        ("this.and", ["field", "and"]),
        ("min + 1", ["+", ["field", "min"], 1]),
        ("1 + 2 * 3", ["+", 1, ["*", 2, 3]]),
        ("(1 + 2) * 3", ["*", ["+", 1, 2], 3]),
        ("a + b + c", ["+", ["field", "a"], ["field", "b"], ["field", "c"]]),
        ("1 - 2 - 3", ["-", ["-", 1, 2], 3]),
        ("1 - 2 + 3 + 4", ["+", ["-", 1, 2], 3, 4]),
        ("-2 - -3", ["-", -2, -3]),
        ("-a * 2", ["*", ["neg", ["field", "a"]], 2]),
        ("not a == 1 and b or c", ["or", ["and", ["not", ["==", ["field", "a"], 1]], ["field", "b"]], ["field", "c"]]),
        ("if(a < .5e1, 'x' == kind, false)", ["if", ["<", ["field", "a"], 5.0], ["==", "x", ["field", "kind"]], False]),
        (r"kind == 'it\'s'", ["==", ["field", "kind"], "it's"]),
        (r'kind == "a\\b"', ["==", ["field", "kind"], "a\\b"]),
        ("max(a.b, abs(c), 3)", ["max", ["field", "a", "b"], ["abs", ["field", "c"]], 3]),
    ],
)  # fmt: skip
def test_how_it_binds(text: str, tree: Any) -> None:
    assert parse(text) == tree


def test_a_sum_may_be_long() -> None:
    assert parse("+".join(["a"] * (MOST_NODES - 1))) == ["+", *[["field", "a"]] * (MOST_NODES - 1)]


BAD = [
    "speeed > 3",
    "car.sped > 3",
    "speed.x",
    "(speed > 3",
    "speed > 3)",
    "min(speed, 3",
    "speed = 3",
    "speed := 3",
    "sqrt(speed)",
    "mim(speed, 1)",
    "eval('1')",
    "__import__('os')",
    "car.speed()",
    "__class__",
    "car.__class__.__bases__",
    "this.__dict__",
    "points[0]",
    "points",
    "raw == 'x'",
    "car > 3",
    "kind + 1",
    "kind == 3",
    "kind == null",
    "null < 3",
    "speed and braking",
    "if(speed, 1, 2)",
    "if(braking, 1, 'x')",
    "if(braking, 1)",
    "min(speed)",
    "since(1, 2, 3, 4, 5)",
    "since(car)",
    "kind",
    "1 < speed < 3",
    "braking && speed > 1",
    "!braking",
    "speed ** 2",
    "True",
    "braking AND braking",
    "speed > 30ms",
    "speed speed",
    "speed +",
    "speed + and",
    "1e999",
    "99999999999999999999",
    "kind == 'x",
    r"kind == '\n'",
    "",
    "lambda: 1",
    "speed\u00e9",
    "a" * (LONGEST_TEXT + 1),
    "(" * 100 + "1" + ")" * 100,
    "-" * 250 + "x",
    "not " * 60 + "braking",
    "abs(" * 60 + "1" + ")",
    "speed-1+" * 10 + "1",
    "+".join(["1"] * 100),
]  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_what_is_wrong_is_told(text: str) -> None:
    with pytest.raises(ExpressionError) as error:
        parse(text, KNOWN)
    SAID.check(text[:20], [str(error.value)])


def test_of_json_nothing_is_known() -> None:
    assert parse("anything.at.all + 1") == ["+", ["field", "anything", "at", "all"], 1]
    assert parse("car.note.x == 'y'", KNOWN) == ["==", ["field", "car", "note", "x"], "y"]
    with pytest.raises(ExpressionError) as error:
        parse("anything - 'x'")
    SAID.check("anything - 'x'", [str(error.value)])


def test_in_a_file_it_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "query.yaml"
    path.write_text("sources:\n  a:\n    value: speeed > 3\n  b:\n    value: [1]\n  c:\n    value: 3\n")
    source = yaml_source.load(path)
    kept = [checked(source, ("sources", name, "value"), source.data["sources"][name]["value"], KNOWN) for name in "abc"]
    assert kept == [None, None, 3]
    with pytest.raises(BadInputError) as error:
        source.check()
    assert error.value.exit_code == 2
    assert error.value.lines() == [
        f"{path}:3: value: 'speeed > 3', column 1: there is no field 'speeed'; did you mean 'speed'?",
        f"{path}:5: value is no expression; write one, like 'speed' or 'if(car.speed > 3, 2, 1)'",
    ]
