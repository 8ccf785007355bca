"""The site of docs/: navigation follows the folders, links stay within the site, no page asks another host."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
from pathlib import Path

import pytest

from infra.site_pages import DOCS, ROOT, as_mkdocs_reads_it, navigation, within_site
from node_agent import sdk, testing

TOOL = ROOT / ".venv-docs" / "bin" / "mkdocs"
LOADED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=[\"']?(?:https?:)?//[^\"' >]+")
OF_STYLE = re.compile(r"url\([\"']?(?:https?:)?//[^)]+|@import[^;]+//")


def test_navigation_is_what_stands_in_the_folders(tmp_path: Path) -> None:
    for name, heading in (
        ("tutorial", "T"), ("how_to/b", "A first"), ("how_to/a", "`B` second"), ("reference/commands/plan", "plan"),
        ("reference/files", "Files"), ("decisions/one_queue", "One queue"),
    ):  # fmt: skip
        page = tmp_path / f"{name}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"# {heading}\n")
    (tmp_path / "explanation").mkdir()
    assert navigation(tmp_path) == [
        "index.md",
        {"Tutorial": ["tutorial.md"]},
        {"How-to": ["how_to/b.md", "how_to/a.md"]},
        {"Reference": ["reference/files.md", {"Commands": ["reference/commands/plan.md"]}, "changelog.md"]},
        {"Decisions": ["decisions/one_queue.md"]},
    ]


def test_every_page_is_in_the_navigation() -> None:
    def pages(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        found = entry.values() if isinstance(entry, dict) else entry
        return [page for each in found for page in pages(each)]  # type: ignore[attr-defined]

    assert sorted(pages(navigation(DOCS))) == sorted(
        [*(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")), "changelog.md"]
    )


@pytest.mark.parametrize(
    ("page", "written", "shown"),
    [
        ("docs/tutorial.md", "[rooms](../node_agent/README.md), [x](how_to/a.md#y)", "rooms, [x](how_to/a.md#y)"),
        ("docs/how_to/two_pis.md", "[code](../../node_agent/sdk.py)", "code"),
        ("docs/how_to/two_pis.md", "[changes](../../CHANGELOG.md)", "[changes](../changelog.md)"),
        ("CHANGELOG.md", "[rules](docs/rules.md#a), [start](README.md)", "[rules](rules.md#a), start"),
        ("docs/rules.md", "[out](https://example.org/a), [here](#b)", "[out](https://example.org/a), [here](#b)"),
        ("docs/rules.md", "```\n[code](../infra/setup.sh)\n```\n", "```\n[code](../infra/setup.sh)\n```\n"),
    ],
)  # fmt: skip
def test_links_stay_within_the_site(page: str, written: str, shown: str) -> None:
    assert within_site(written, ROOT / page) == shown


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("so:\n- a\n  b\n- c\n", "so:\n\n- a\n    b\n- c\n"),
        ("so:\n1. a\n2. b", "so:\n\n1. a\n2. b"),
        ("so:\n| a |\n|---|\n", "so:\n\n| a |\n|---|\n"),
        ("- so:\n  | a |\n  |---|\n- b\n", "- so:\n\n    | a |\n    |---|\n\n- b\n"),
        ("- a\n\n  b\n\nc\n  d", "- a\n\n    b\n\nc\n  d"),
        ("```\nso:\n- a\n```\n", "```\nso:\n- a\n```\n"),
        ("```python operators\nx\n```\n", "```python\nx\n```\n"),
    ],
)
def test_lists_tables_and_code_are_read_as_on_repositories_sites(written: str, read: str) -> None:
    assert as_mkdocs_reads_it(written) == read


def test_the_page_of_the_python_api_has_all_that_is_imported() -> None:
    page = (DOCS / "reference" / "python_api.md").read_text(encoding="utf-8")
    paths = re.findall(r"^::: ([\w.]+)$", page, re.MULTILINE)
    for path in paths:
        module, _, name = path.rpartition(".")
        assert hasattr(importlib.import_module(module), name), path
    documented = {path.rpartition(".")[2] for path in paths}
    constants = {"SECOND_NS", "START_NS"}
    assert {*sdk.__all__, *testing.__all__} - constants <= documented


def test_the_front_page_is_short() -> None:
    assert (DOCS / "index.md").stat().st_size < 2500


@pytest.mark.soak
def test_the_site_is_built_strictly_and_asks_no_other_host(tmp_path: Path) -> None:
    if not TOOL.exists():
        pytest.skip("the tools of the site are not installed: `make docs` installs them")
    command = [str(TOOL), "build", "--quiet", "--strict", "--site-dir", str(tmp_path / "site")]
    seen = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=seen, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) > len(list(DOCS.rglob("*.md")))  # these, the changelog and 404
    assert [found for page in pages for found in LOADED.findall(page.read_text(encoding="utf-8"))] == []
    styles = (tmp_path / "site").rglob("*.css")
    assert [found for style in styles for found in OF_STYLE.findall(style.read_text(encoding="utf-8"))] == []
