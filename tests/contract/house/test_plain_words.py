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
MODULES = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
PAGES = sorted([*ROOT.glob("*.md"), *(page for room in (*PACKAGES, "docs") for page in (ROOT / room).rglob("*.md"))])
RIDDLE = re.compile(r"\b(?:whoever|whatever)\b", re.IGNORECASE)
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

HOMONYMS = {  # retired words that are terms of another thing there, by the package
    "protos": {
        "cuts",  # Benders cuts
        "intact",  # a document against its hash
        "kept",  # a key of plan.json
        "mend",  # of a mistake: what its user does
    },
    "node_agent": {
        "alone",  # a plan that no change follows
        "carry",  # bytes over a simulated wire
        "draws",  # pseudo-random draws
        "mark",  # a field of tuple.proto; and the built-in operators are in plans by the hash of their code
        "mend",  # of a finding: what its user does
        "needs",  # tasks that a result depends on
        "parts",  # of a nanosecond, a field of plan.proto
        "places",  # an agent's core slots, a field of agent.proto
        "quiet",  # a loop that has nothing to do
        "sheddings", "spans",  # fields of plan.proto
        "trial",  # a repetition of a scenario
    },
    "coordinator": {
        "alone",  # an option of collect; and an output of windows only
        "beyond",  # a difference that is not below zero, in columns
        "child",  # a process
        "crossing",  # streams from one node to another
        "cuts",  # Benders cuts
        "hosts",  # machines, each with a place per core
        "joined",  # flows, and files, that become one
        "mend",  # of a mistake: what its user does
        "parts",  # of a delay, of a composed query, of files
        "places",  # where operators run: a host's core
        "promise",  # a key of what status says
        "running",  # processes
        "shape",  # of traffic, and of a node in its file
        "spans",  # of so many arrivals, the least
        "split",  # files by kind, an address by its colon
        "unknown",  # what nothing is known of
        "watch",  # signals; and the progress of a search
        "words",  # of a record; arguments of a program
    },
    "sim_vehicles": {
        "choice",  # an enumeration of a schema
        "course",  # a vehicle's
        "crossing",  # of two roads
        "inbound", "outbound",  # lanes of an arm
        "joined",  # stages drawn as one bar
        "placed",  # a pose on a lane
        "places",  # nodes of a plan
        "spans",  # of angles
        "split",  # a table into columns
        "standing",  # a vehicle that does not move
        "ways",  # of vehicles over a crossing: operators are in plans by the hash of their code
    },
    "infra": {
        "course",  # of a run's load
        "printed",  # in a paper
        "shape",  # of an instance
        "trial",  # of a release on one system
        "watch",  # the progress of a search
    },
}  # fmt: skip


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
    assert [line for line in lines if RIDDLE.search(line)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_sentences_that_are_printed_have_a_subject(package: str) -> None:
    files = [file for file in MODULES if file.is_relative_to(ROOT / package)]
    texts = [
        f"{_name(file)}:{node.lineno}: {node.value}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and RIDDLE.search(node.value)
    ]
    assert texts == []


def _names(file: Path) -> Iterator[str]:
    """Of classes, their fields, and functions."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (
                each.target.id
                for each in node.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            )


def _word(name: str) -> str:
    """`_Told` and `told` are the same word."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).strip("_").lower()


def _retired(package: str) -> dict[str, list[str]]:
    """Where the package has a retired word as a name, by the word."""
    found: dict[str, list[str]] = {}
    for file in (ROOT / package).rglob("*.py"):
        for name in () if file.stem.endswith(("_pb2", "_pb2_grpc")) else _names(file):
            if _word(name) in RETIRED:
                found.setdefault(_word(name), []).append(f"{_name(file)}: {name}")
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_classes_functions_and_fields_have_names_of_the_field(package: str) -> None:
    found = _retired(package)
    assert {word: at for word, at in found.items() if word not in HOMONYMS[package]} == {}
    assert HOMONYMS[package] - found.keys() == set(), "no longer used there"


def test_files_have_names_of_the_field() -> None:
    assert [_name(file) for file in MODULES if file.stem in RETIRED] == []
