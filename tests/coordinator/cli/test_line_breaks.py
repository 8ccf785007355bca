"""Sentences are as wide as a terminal is; to a pipe each is one line, whose form is a contract."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.__main__ import main
from coordinator.cli import lines
from coordinator.cli.line_breaks import fitted, fitted_mistake
from coordinator.errors import BadInputError, Mistake, Problem
from tests.command_line import run

QUERY = """\
shimekiri: 1
query: one
sources: {s: {at: a, type: json, arrival: {burst: 1, period: 100 ms}}}
operators: {one: {run: pass, in: s, nodes: [b]}}
outputs: {o: {from: one, at: b, deadline: 20 ms}}
"""
CLUSTER = 'shimekiri: 1\nnodes: {a: {address: "127.0.0.1:7700"}, b: {address: "127.0.0.1:7710"}}\n'
STYLE = re.compile(r"\x1b\[\d*m")
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="';"), min_size=1)


class Terminal(io.StringIO):
    """A stream that shows what it gets."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(params=[80, 100])
def columns(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("COLUMNS", str(request.param))
    return int(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "query.yaml").write_text(QUERY)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    return tmp_path


@given(words=st.lists(WORDS, min_size=1), lead=st.integers(0, 12))
def test_nothing_is_lost_or_added_but_breaks(words: list[str], lead: int) -> None:
    text = " " * lead + " ".join(words)
    assert fitted(text, Terminal()).split() == text.split()
    assert fitted(text, io.StringIO()) == fitted_mistake(text, io.StringIO()) == text


def test_what_goes_on_is_further_in_and_commands_stay_whole(columns: int) -> None:
    command = (
        "'coordinator plan query.yaml cluster.yaml --allocator sqpr --policy fifo --place O3=a --place O4=a --json'"
    )
    said = fitted(f"  node a has little room left, so that what would help it is {command} and then more", Terminal())
    assert command in said.splitlines()[1]
    assert said.startswith("  node a") and said.splitlines()[1].startswith("      '")
    assert all(len(line) <= columns for line in said.splitlines() if command not in line)
    alone = f"  {command.strip(chr(39))}"
    assert fitted(alone, Terminal()) == alone


@pytest.mark.parametrize("words", ["plan query.yaml cluster.yaml --best-effort", "explain plan.json --time-limit 0"])
def test_plan_and_explain_fit(folder: Path, columns: int, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = run(folder, "coordinator plan query.yaml cluster.yaml --best-effort")
    assert plain.code == 0 and max(map(len, plain.out.splitlines())) > columns
    said = STYLE.sub("", _in_a_terminal(folder, words, monkeypatch))
    assert max(map(len, said.splitlines())) <= columns, said


@pytest.fixture
def two_mistakes() -> BadInputError:
    """One that fits in a line, and one that does not."""
    text, remedy = "operators.one.nodes names node 'bb', which is unknown", "write 'b'"
    short = Mistake("unknown_node", text, remedy)
    long = Mistake("unknown_node", f"{text}, as it was in the other file that names it", f"{remedy}, or add it")
    return BadInputError([Problem(long, "query.yaml", 4), Problem(short, "query.yaml", 5)])


def test_what_to_do_about_a_mistake_begins_a_line_where_both_do_not_fit(
    two_mistakes: BadInputError, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    lines.complain(two_mistakes)
    said = shown.getvalue().splitlines()
    assert max(map(len, said)) <= columns
    assert said[0].startswith("query.yaml:4: ") and "    write 'b', or add it" in said
    assert "query.yaml:5: operators.one.nodes names node 'bb', which is unknown; write 'b'" in said


def test_a_mistake_is_one_line_to_a_pipe(two_mistakes: BadInputError, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", piped := io.StringIO())
    lines.complain(two_mistakes)
    assert piped.getvalue().splitlines()[:2] == [str(each) for each in two_mistakes.problems]


def test_json_is_one_line_in_a_terminal_too(folder: Path, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    out = _in_a_terminal(folder, "plan query.yaml cluster.yaml --best-effort --json", monkeypatch)
    assert len(out.splitlines()) == 1 and len(out) > columns


def _in_a_terminal(folder: Path, words: str, monkeypatch: pytest.MonkeyPatch) -> str:
    out = Terminal()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["coordinator", *words.split()])
    monkeypatch.setattr(sys, "stdout", out)
    with pytest.raises(SystemExit):
        main()
    return out.getvalue()


def test_a_command_line_that_cannot_be_read_is_answered_within_the_width(
    folder: Path, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    _in_a_terminal(folder, "plan query.yaml cluster.yaml --time-limit 10s", monkeypatch)
    said = shown.getvalue().splitlines()
    assert max(map(len, said)) <= columns and said[-1] == "    write a number without a unit, like 10"
