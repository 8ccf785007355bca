"""Pages are short where a reader begins, and their links lead to files that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("protos", "node_agent", "coordinator", "sim_vehicles", "infra", "docs")
PAGES = sorted([*ROOT.glob("*.md"), *(page for room in ROOMS for page in (ROOT / room).rglob("*.md"))])
READMES = [page for page in PAGES if page.name == "README.md" and page.parent != ROOT]
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _lines(page: Path) -> int:
    return len(page.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_to_files(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []


def test_the_readme_is_short() -> None:
    assert _lines(ROOT / "README.md") <= 150


def test_the_changelog_is_short() -> None:
    assert _lines(ROOT / "CHANGELOG.md") <= 30


@pytest.mark.parametrize("page", READMES, ids=_name)
def test_a_room_is_told_on_a_page(page: Path) -> None:
    assert _lines(page) <= 60
    assert "**May import**" in page.read_text(encoding="utf-8") or page.parent.name in _WITHOUT_IMPORTS


_WITHOUT_IMPORTS = frozenset({"infra", "examples", "lab", "observability"})
