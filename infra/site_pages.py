"""What the site of docs/ has beside the pages there: navigation from the folders, the changelog, links that stay within
it. MkDocs calls the functions `on_*` (mkdocs.yml)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
FRONT, CHANGES = "index.md", "changelog.md"
PARTS = {  # of the navigation: pages and folders of docs/
    "Tutorial": ("tutorial.md",),
    "How-to": ("how_to",),
    "Reference": ("glossary.md", "reference", "promises.md", "rules.md", CHANGES),
    "Explanation": ("explanation",),
    "Decisions": ("decisions",),
}
HEADING = re.compile(r"^# +(.+)$", re.MULTILINE)
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
ITEM = re.compile(r"- |\d+\. ")  # of a list
OPENING = re.compile(r"^```(\w+) .*$", re.MULTILINE)  # a block of code whose first line says more than its language
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation: what stands in the folders now, by title."""
    config.nav = navigation(DOCS)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the changelog, which stands at the root of the repository, where people look for it."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, CHANGES, abs_src_path=str(ROOT / "CHANGELOG.md")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links of the page lead into the site, or are text."""
    where = ROOT / "CHANGELOG.md" if page.file.src_uri == CHANGES else DOCS / page.file.src_uri
    return as_mkdocs_reads_it(within_site(markdown, where))


def navigation(docs: Path) -> list[Any]:
    """The front page, and the parts as MkDocs takes them; a part without pages is left out."""
    parts = [{part: list(_entries(docs, names))} for part, names in PARTS.items()]
    return [FRONT, *(part for part in parts if any(part.values()))]


def _entries(docs: Path, names: tuple[str, ...]) -> Iterator[Any]:
    for name in names:
        if (docs / name).is_dir():
            yield from _folder(docs, docs / name)
        elif name == CHANGES or (docs / name).exists():
            yield name


def _folder(docs: Path, folder: Path) -> Iterator[Any]:
    """Its pages by title, then its folders."""
    for page in sorted(folder.glob("*.md"), key=_title):
        yield page.relative_to(docs).as_posix()
    for each in sorted(path for path in folder.iterdir() if path.is_dir()):
        if found := list(_folder(docs, each)):
            yield {each.name.replace("_", " ").capitalize(): found}


def _title(page: Path) -> str:
    heading = HEADING.search(page.read_text(encoding="utf-8"))
    return (heading[1] if heading else page.stem).replace("`", "").lower()


def as_mkdocs_reads_it(markdown: str) -> str:
    """The text as the Markdown of repositories' sites reads it: lists and tables begin right below a paragraph, and
    two columns of indent are enough for what belongs to an item of a list."""
    return OPENING.sub(r"```\1", _outside_code(markdown, lambda text: "\n".join(_apart(text.split("\n")))))


def _apart(lines: list[str]) -> Iterator[str]:
    in_list, before = False, ""
    for line in lines:
        bare = line.lstrip()
        item = ITEM.match(line) is not None
        in_list = item or (in_list and (not bare or bare != line or bool(before)))
        row, belongs = bare.startswith("|"), in_list and bare != line
        after_row, in_item = before.lstrip().startswith("|"), ITEM.match(before) or before.startswith(" ")
        if before and ((row and not after_row) or (item and (after_row or not in_item))):
            yield ""
        yield f"  {line}" if belongs else line
        before = line


def within_site(markdown: str, page: Path) -> str:
    """The text of a page whose links to files outside docs/ are text; `page`: where it stands in the repository."""
    return _outside_code(markdown, lambda text: LINK.sub(lambda link: _link(link, page), text))


def _outside_code(markdown: str, change: Callable[[str], str]) -> str:
    pieces = FENCE.split(markdown)  # every second one is a block of code
    pieces[::2] = map(change, pieces[::2])
    return "".join(pieces)


def _link(link: re.Match[str], page: Path) -> str:
    text, target, anchor = link[1], (page.parent / link[2]).resolve(), link[3] or ""
    if target == ROOT / "CHANGELOG.md":
        return f"[{text}]({_relative(DOCS / CHANGES, page)}{anchor})"
    if not target.is_relative_to(DOCS):
        return text
    return link[0] if page.is_relative_to(DOCS) else f"[{text}]({target.relative_to(DOCS).as_posix()}{anchor})"


def _relative(target: Path, page: Path) -> str:
    return Path(os.path.relpath(target, page.parent)).as_posix()
