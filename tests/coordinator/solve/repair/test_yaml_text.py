"""Values changed in the text of a file: nothing else changes, and a value that others share is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from coordinator.solve.repair.within_ranges.yaml_text import NewValue, NotInPlaceError, changed
from tests.sampling import examples

TEXT = """\
# the head
sources:   # in front
  s: {at: a,  type: json, arrival: {burst: 10,  period: 500 ms}}  # as measured
  t:
    at: a
    # above
    max_age: 5 ms    # behind

outputs:
  x: {from: X, deadline: "30 ms" , at: 'b'}   # tight
links: [{between: [a, b], latency: 1 ms}]
nodes: {a: {}}
"""


def _diff(before: str, after: str) -> list[tuple[str, str]]:
    return [pair for pair in zip(before.splitlines(), after.splitlines(), strict=True) if pair[0] != pair[1]]


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        (("sources", "s", "arrival", "burst"), "7", TEXT.splitlines()[2].replace("10", "7")),
        (("sources", "t", "max_age"), "4.5 ms", "    max_age: 4.5 ms    # behind"),
        (("outputs", "x", "deadline"), "40 ms", "  x: {from: X, deadline: \"40 ms\" , at: 'b'}   # tight"),
        (("links", 0, "latency"), "2 ms", "links: [{between: [a, b], latency: 2 ms}]"),
        (("outputs", "x", "wait"), "1 s", "  x: {from: X, deadline: \"30 ms\" , at: 'b', wait: 1 s}   # tight"),
        (("nodes", "a", "speed"), "2", "nodes: {a: {speed: 2}}"),
    ],
)
def test_one_line_changes(path: tuple[str | int, ...], value: str, line: str) -> None:
    ((_, after),) = _diff(TEXT, changed(TEXT, [NewValue(path, value)]))
    assert after == line


def test_a_key_more_in_lines_stands_first_there() -> None:
    after = changed(TEXT, [NewValue(("sources", "t", "tolerance"), "1 ms")])
    assert after == TEXT.replace("    at: a\n", "    tolerance: 1 ms\n    at: a\n")


def test_line_ends_and_the_last_line_stay() -> None:
    text = "a:\r\n  b: 1\r\n  c: 2 # no end"
    assert changed(text, [NewValue(("a", "b"), "30")]) == text.replace("1", "30")


@pytest.mark.parametrize("end_of_line", ["\n", "\r\n"])
def test_a_comment_stays_above_the_key_that_it_is_of(end_of_line: str) -> None:
    text = "nodes:\n  a:   # the hall's\n    # behind\n    # the firewall\n    address: x:1  # port\n"
    after = changed(text.replace("\n", end_of_line), [NewValue(("nodes", "a", "speed"), "1.5")])
    assert after == text.replace("hall's\n", "hall's\n    speed: 1.5\n").replace("\n", end_of_line)


@pytest.mark.parametrize(("comma", "added"), [(",", ", speed: 1.5,"), ("", ", speed: 1.5")])
def test_a_comment_may_stand_before_the_closing_brace(comma: str, added: str) -> None:
    text = f"nodes:\n  a: {{address: 'x:1'{comma}  # port\n     }}\n"
    after = changed(text, [NewValue(("nodes", "a", "speed"), "1.5")])
    assert after == text.replace(f"'x:1'{comma}", f"'x:1'{added}")


def test_a_file_that_is_json_stays_json() -> None:
    data = {"nodes": {"a": {"address": "x:1", "memory": "1 MiB", "cap": 0.5}}}
    values = {"memory": "2 MiB", "cap": "0.75", "speed": "1.5", "core_link": "1 ms"}
    after = changed(json.dumps(data), [NewValue(("nodes", "a", key), value) for key, value in values.items()])
    assert json.loads(after)["nodes"]["a"] == {
        "address": "x:1", "memory": "2 MiB", "cap": 0.75, "speed": 1.5, "core_link": "1 ms",
    }  # fmt: skip


@pytest.mark.parametrize("path", [("sources", "u", "max_age"), ("outputs", "x", "from", "y"), ("links", 4, "latency")])
def test_what_is_not_there_is_refused(path: tuple[str | int, ...]) -> None:
    with pytest.raises(NotInPlaceError) as raised:
        changed(TEXT, [NewValue(path, "1 ms")])
    assert raised.value.path == path


def test_a_value_that_others_share_is_refused() -> None:
    text = "sources:\n  s: &s {max_age: 1 ms}\n  t: *s\n"
    with pytest.raises(NotInPlaceError):
        changed(text, [NewValue(("sources", "t", "max_age"), "2 ms")])
    with pytest.raises(NotInPlaceError):
        changed(text, [NewValue(("sources", "s", "max_age"), "2 ms")])


def test_a_value_of_a_merge_key_becomes_an_own_one() -> None:
    text = "sources:\n  s: &s {max_age: 1 ms, at: a}\n  t: {<<: *s, at: b}\n"
    after = changed(text, [NewValue(("sources", "t", "max_age"), "2 ms")])
    data = YAML(typ="safe").load(after)["sources"]
    assert (data["s"]["max_age"], data["t"]["max_age"]) == ("1 ms", "2 ms")


SPACES = st.sampled_from(["", " ", "   "])
COMMENTS = st.sampled_from(["", " # one", "  # 'two' {x: 3}", " #"])


@settings(max_examples=examples(200, 20), deadline=None)
@given(st.lists(st.tuples(SPACES, COMMENTS, st.booleans()), min_size=1, max_size=5), st.data())
def test_every_other_byte_stays(parts: list[tuple[str, str, bool]], data: st.DataObject) -> None:
    """Mappings in lines and in braces, with comments and white space of any kind."""
    lines, own = ["outputs:"], []
    for number, (space, comment, in_braces) in enumerate(parts):
        if in_braces:
            lines.append(f"  o{number}: {{at: a,{space} deadline: @{number}@{space}, to: b}}{comment}")
        else:
            lines += [f"  o{number}:{comment}", f"    deadline:{space} @{number}@{comment}", "    at: a"]
        own.append(f"@{number}@")
    pattern = "\n".join(lines) + "\n"
    text = pattern
    for number, mark in enumerate(own):
        text = text.replace(mark, f"{number + 1} ms")
    chosen = data.draw(st.sets(st.integers(0, len(own) - 1), min_size=1))
    after = changed(text, [NewValue(("outputs", f"o{number}", "deadline"), "777 ms") for number in sorted(chosen)])
    expected = pattern
    for number, mark in enumerate(own):
        expected = expected.replace(mark, "777 ms" if number in chosen else f"{number + 1} ms")
    assert after == expected
