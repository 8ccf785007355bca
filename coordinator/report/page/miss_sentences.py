"""Why results were missed, in a few lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.report.blame.sentences import SHORT
from coordinator.report.report_document import Report

MOST_KINDS = 4


def sentences(report: Report) -> Iterator[str]:
    """Per output: how many results were missed for what; then three of the worst."""
    if report.misses is None:
        return
    for output, kinds in report.misses.by_cause.items():
        ordered = sorted(kinds.items(), key=lambda one: (-one[1], one[0]))
        words: dict[str, str] = dict(SHORT.items())
        told = [f"{n} for {words.get(kind, kind)}" for kind, n in ordered[:MOST_KINDS]]
        others = sum(n for _, n in ordered[MOST_KINDS:])
        told += [f"{others} for other causes"] if others else []
        yield f"{output}: missed or undecidable: {', '.join(told)}"
    yield from (f"  {each}" for each in report.misses.stories)


__all__ = ["sentences"]
