"""Pages are short where a reader begins, and their links and the files that they name are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ROOMS = ("protos", "node_agent", "coordinator", "sim_vehicles", "infra", "docs")
PAGES = sorted([*ROOT.glob("*.md"), *(page for room in ROOMS for page in (ROOT / room).rglob("*.md"))])
READMES = [page for page in PAGES if page.name == "README.md" and page.parent != ROOT]
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
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _lines(page: Path) -> int:
    return len(page.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_to_files(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []


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


@pytest.mark.parametrize("page", READMES, ids=_name)
def test_a_room_is_told_on_a_page(page: Path) -> None:
    assert _lines(page) <= 60
    assert "**May import**" in page.read_text(encoding="utf-8") or page.parent.name in _WITHOUT_IMPORTS


_WITHOUT_IMPORTS = frozenset({"infra", "examples", "lab", "observability"})
