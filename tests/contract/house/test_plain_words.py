"""Words of code and pages: a sentence has a subject, and a file is called by a term of its field."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("protos", "node_agent", "coordinator", "sim_vehicles", "infra")
SHIPPED = ("protos", "node_agent", "coordinator", "sim_vehicles")
MODULES = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
PAGES = sorted([*ROOT.glob("*.md"), *(page for room in (*PACKAGES, "docs") for page in (ROOT / room).rglob("*.md"))])
RIDDLE = re.compile(r"\b(?:whoever|whatever)\b", re.IGNORECASE)
MADE_FROM_CODE = frozenset({"docs/explanation/papers.md"})  # with tables of printed words
RETIRED = frozenset({  # words that the glossary replaced
    "account", "agenda", "allot", "alone", "announced", "beats", "beyond", "blame", "board", "books", "branches",
    "carry", "child", "choice", "clairvoyant", "closings", "course", "crossing", "cuts", "deadline_parts", "dearer",
    "door", "doors", "draft", "draws", "entrance", "feeding", "found_agents", "fullness", "grant", "hosts", "in_short",
    "inbound", "inprocess", "intact", "joined", "kept", "kept_plan", "known_names", "limiting", "lone", "looked_up",
    "mail", "mark", "marks", "mend", "mends", "missing_agents", "needs", "noted", "outbound", "owed", "parts", "placed",
    "places", "printed", "promise", "protest", "quiet", "reply", "running", "seeing", "settling", "shape", "sheddings",
    "shown", "slices", "spans", "spent", "split", "standing", "strip", "survivors", "tally", "told", "trial", "unknown",
    "watch", "watching", "ways", "windowed", "words",
})  # fmt: skip


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _prose(file: Path) -> Iterator[tuple[int, str]]:
    """Comments and docstrings with their lines, of a file that has such a word at all."""
    source = file.read_text(encoding="utf-8")
    if not RIDDLE.search(source):
        return
    for token in tokenize.generate_tokens(iter(source.splitlines(keepends=True)).__next__):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""


def _riddles(files: list[Path]) -> list[str]:
    return [f"{_name(file)}:{line}: {text}" for file in files for line, text in _prose(file) if RIDDLE.search(text)]


def test_sentences_of_the_code_have_a_subject() -> None:
    assert _riddles(MODULES) == []


def test_sentences_of_the_tests_have_a_subject() -> None:
    assert _riddles(sorted((ROOT / "tests").rglob("*.py"))) == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_sentences_of_the_pages_have_a_subject(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    written = [line for line in lines if not (_name(page) in MADE_FROM_CODE and line.startswith("|"))]
    assert [line for line in written if RIDDLE.search(line)] == []


@pytest.mark.parametrize("package", SHIPPED)
def test_sentences_that_are_printed_have_a_subject(package: str) -> None:
    files = [file for file in MODULES if file.is_relative_to(ROOT / package)]
    texts = [
        f"{_name(file)}:{node.lineno}: {node.value}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and RIDDLE.search(node.value)
    ]
    assert texts == []


def test_files_have_names_of_the_field() -> None:
    assert [_name(file) for file in MODULES if file.stem in RETIRED] == []
