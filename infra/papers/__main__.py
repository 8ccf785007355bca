"""`make papers`: `python -m infra.papers [NAME...] [--quick]` writes runs/papers/PAPER.json and PAPER.html."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from rich.console import Console
from rich.status import Status

from infra.papers import results
from infra.papers.page import WORDS, page
from infra.papers.registry import PAPERS, REPRODUCTIONS, named
from infra.papers.reproduction import OUT, Effort, Figure, Reproduction, Tell, forget, keep, read, said, spoken


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 for any figures; 1: --check finds that the page tells others; 2: a bad name."""
    options = _options(arguments)
    console = Console()
    if options.write or options.check:
        return _results(console, options.write)
    try:
        chosen = named(options.names)
    except ValueError as error:
        console.print(str(error))
        return 2
    effort: Effort = "quick" if options.quick else "full"
    done = _run(console, chosen, effort)
    for paper in sorted({each.paper for each in done}):
        (OUT / f"{paper}.html").write_text(page(PAPERS[paper], read(OUT / f"{paper}.json")))
        console.print(f"written: {(OUT / paper).relative_to(OUT.parents[1])}.json and .html")
    if effort == "full":
        _results(console, write=False)
    return 0 if len(done) == len(chosen) else 130


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.papers", description="the papers' figures, beside ours")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(each.key for each in REPRODUCTIONS))
    parser.add_argument("--quick", action="store_true", help="within a minute: fewer points and trials")
    parser.add_argument("--write", action="store_true", help="write the page's tables from runs/papers")
    parser.add_argument("--check", action="store_true", help="compare the page's tables with runs/papers")
    return parser.parse_args(arguments)


def _run(console: Console, chosen: Sequence[Reproduction], effort: Effort) -> list[Reproduction]:
    """All that end before Ctrl-C; each is kept as soon as it has ended."""
    done: list[Reproduction] = []
    made: dict[str, list[str]] = {each.paper: [] for each in chosen}
    try:
        for number, each in enumerate(chosen, start=1):
            began = time.monotonic()
            head = f"{number} of {len(chosen)}: {each.key}"
            with console.status(head) as status:
                figures = list(each.run(effort, _teller(status, head)))
            keep(each.paper, figures, effort)
            made[each.paper] += [figure.name for figure in figures]
            done.append(each)
            console.print(f"[bold]{each.key}[/bold], {time.monotonic() - began:.1f} s")
            for figure in figures:
                _tell(console, figure)
    except KeyboardInterrupt:
        console.print(f"stopped; {len(done)} of {len(chosen)} are kept")
    for paper, names in made.items():
        if effort == "full" and all(each in done for each in REPRODUCTIONS if each.paper == paper):
            forget(paper, names)
    return done


def _teller(status: Status, head: str) -> Tell:
    return lambda what: status.update(f"{head}: {what}")


def _tell(console: Console, figure: Figure) -> None:
    seeds = f" (seeds {spoken(figure.seeds)})" if figure.seeds else ""
    console.print(f"  {figure.name}: {WORDS[figure.reproduces]}{seeds}", highlight=False, markup=False)
    for each in (*figure.claims, *figure.findings):
        if each.verdict == "no":
            console.print(f"    {said(each)}", style="dim", highlight=False, markup=False)


def _results(console: Console, write: bool) -> int:
    try:
        if write:
            results.write()
    except ValueError as error:
        console.print(str(error))
        return 1
    different = results.differences()
    if different:
        console.print(
            "docs/explanation/papers.md tells otherwise: "
            + "; ".join(different)
            + " (`python -m infra.papers --write` writes it)"
        )
        return 1
    console.print("docs/explanation/papers.md tells the figures of these runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
