"""Pages are short where a reader begins, and their links and the files that they name are there. A room has a README,
the packages in it have docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("protos", "node_agent", "coordinator", "sim_vehicles", "infra")
ROOMS = (*PACKAGES, "docs")
PAGES = sorted([*ROOT.glob("*.md"), *(page for room in ROOMS for page in (ROOT / room).rglob("*.md"))])
DRAWERS = sorted(file for room in PACKAGES for file in (ROOT / room).glob("*/**/__init__.py"))
OPENED = (
    "infra/observability",  # no package: files for Prometheus
    "sim_vehicles/operators",  # its docstring points there, and plans have the hash of its code
)
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")
NAMED = re.compile(r"`([\w/.]*\w\.py)`")
CELL = re.compile(r"`([a-z_][\w/.]*)`")
NOT_OURS = frozenset({"xml2csv.py", "robot.py"})  # a tool of SUMO; what a reader writes
FILES = frozenset(
    f"/{path.relative_to(ROOT)}"
    for room in (*ROOMS, "tests")
    for path in (ROOT / room, *(ROOT / room).rglob("*"))
    if "__pycache__" not in path.parts
)
IN_DOCSTRING = re.compile(r"(?<![\w/.])[\w/]+\.(?:py|md)\b")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _lines(page: Path) -> int:
    return len(page.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_to_files(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_no_page_has_two_texts_of_a_merge(page: Path) -> None:
    assert re.findall(r"^(?:<{7}|>{7}) .*", page.read_text(encoding="utf-8"), re.MULTILINE) == []


def _missing(names: list[str]) -> list[str]:
    """Those that are no end of the path of a file or folder."""
    ends = tuple(f"/{name.rstrip('/')}" for name in names if name not in NOT_OURS)
    return [end[1:] for end in ends if not any(path.endswith(end) for path in FILES)]


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_named_files_are_there(page: Path) -> None:
    assert _missing(NAMED.findall(FENCE.sub("", page.read_text(encoding="utf-8")))) == []


def _listed(page: Path) -> Iterator[str]:
    """What tables of files name in their first column."""
    of_files, before = False, ""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            first = line.split("|")[1]
            if not before.startswith("|"):
                of_files = first.strip() in {"file", "folder", "room", "room, file"}
            elif of_files:
                yield from CELL.findall(first)
        before = line


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_tables_of_files_list_files(page: Path) -> None:
    assert _missing(list(_listed(page))) == []


def test_the_readme_is_short() -> None:
    assert _lines(ROOT / "README.md") <= 150


def test_the_changelog_is_short() -> None:
    assert _lines(ROOT / "CHANGELOG.md") <= 30


@pytest.mark.parametrize("room", PACKAGES)
def test_a_room_is_described_on_a_page(room: str) -> None:
    page = ROOT / room / "README.md"
    text = page.read_text(encoding="utf-8")
    assert _lines(page) <= 60
    assert len(text.encode()) <= 2500
    assert "**May import**" in text and "**Begin at**" in text
    inside = {file.parent.name for file in (ROOT / room).glob("*/__init__.py")}
    assert inside - {name.rstrip("/") for name in _listed(page)} == set()


def test_no_other_folder_has_a_readme() -> None:
    found = {_name(page.parent) for room in (*ROOMS, "tests") for page in (ROOT / room).rglob("README.md")}
    assert found == {*PACKAGES, *OPENED}


@pytest.mark.parametrize("file", DRAWERS, ids=_name)
def test_a_drawer_is_described_in_its_docstring(file: Path) -> None:
    """It begins with a sentence, and the files that it names are there."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    first = text.partition("\n\n")[0]
    assert re.match(r"[\w`\[].*\.$", first, re.DOTALL), "no sentence"
    named = [name for name in IN_DOCSTRING.findall(text) if name not in NOT_OURS]
    assert [name for name in named if not any(path.endswith(f"/{name}") for path in FILES)] == []
