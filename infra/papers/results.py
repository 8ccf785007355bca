"""The tables of docs/explanation/papers.md: made from what the runs wrote, and compared with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from infra.papers.registry import PAPERS
from infra.papers.reproduction import OUT, Figure, KeptFigure, finding, read, said, spoken, text

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "papers.md"
BEGIN, END = "<!-- {}: made by `python -m infra.papers --write` -->", "<!-- {}: end -->"
WORDS = {"yes": "yes", "no": "**no**", "not determined": "not determined", None: "–"}
HEAD = "| figure | the paper says | measured | reproduces | we find |\n|---|---|---|---|---|\n"


def row(figure: Figure) -> str:
    """One figure as a line of its paper's table."""
    seeds = f"Seeds {spoken(figure.seeds)}." if figure.seeds else ""
    reading = f"*Reading:* {figure.reading}" if figure.reading else ""
    cells = (
        figure.name,
        "; ".join(map(said, figure.claims)) or "nothing to compare with",
        text(figure.measured),
        WORDS[figure.reproduces],
        " ".join(each for each in (*map(finding, figure.findings), reading, seeds) if each) or "–",
    )
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def table(figures: Mapping[str, KeptFigure]) -> str:
    """A paper's table. Raises ValueError for figures of a short run."""
    short = [name for name, each in figures.items() if each.effort != "full"]
    if short:
        raise ValueError(f"{short[0]}: from a run with --quick; the page holds full runs only")
    return HEAD + "".join(row(each.figure) + "\n" for each in figures.values())


def rows() -> dict[str, str]:
    """The page's rows by the figure's name."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines}


def write(directory: Path = OUT) -> None:
    """Put the runs' tables into the page. Raises ValueError."""
    content = PAGE.read_text()
    for paper in PAPERS:
        figures = read(directory / f"{paper}.json")
        if not figures:
            continue
        before, _, rest = content.partition(BEGIN.format(paper) + "\n")
        _, _, after = rest.partition(END.format(paper))
        content = f"{before}{BEGIN.format(paper)}\n\n{table(figures)}\n{END.format(paper)}{after}"
    PAGE.write_text(content)


def differences(directory: Path = OUT) -> list[str]:
    """Figures of full runs that the page tells otherwise, or does not tell."""
    told = rows()
    return [
        name
        for paper in PAPERS
        for name, each in read(directory / f"{paper}.json").items()
        if each.effort == "full" and told.get(name) != row(each.figure)
    ]
