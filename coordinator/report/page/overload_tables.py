"""Tables of the cost of overload, as rows of text for the page and the terminal. Nothing here is escaped yet."""

from collections.abc import Iterator, Mapping, Sequence

from coordinator.report.report_document import Report, ShedTuples, Windows

Reports = Sequence[tuple[str, Report]]  # name of the run, report

LEAST_LOAD = 0.001  # that is worth a figure
WINDOWS = ("output", "windows of", "all", "given", "in time", "share", "f*", "load", "without a result")
SHED = ("at", "tuples", "shed of them, by policy")
AWAY = {
    "never_opened": "never opened while their node was away",
    "unended": "open as their node crashed",
    "unknown": "due on a node of which records are missing",
}
COUNT_AS = "They count as lost, or where records are missing as undecidable."
WINDOWS_NOTE = (
    "Share: of all windows that were fed, those whose result was exact and in time, or was filtered behind them. f*: "
    "the most that any policy can give in the long run under that load; a finite run may have more, since it begins "
    "without backlog. Load: work per time, of the tuples that come, on their way to these windows; what else the node "
    "does is not in it, and may be why tuples were shed."
)


def percent(ratio: float | None) -> str:
    """A ratio for people; a dash where there is none."""
    return "–" if ratio is None else f"{100 * ratio:.4g} %"


def window_rows(reports: Reports) -> Iterator[tuple[str, ...]]:
    """Cells as in WINDOWS, led by the run's name; one row per output, operator and run."""
    outputs = dict.fromkeys(output for _, report in reports for output in report.outputs)
    for output in outputs:
        for run, report in reports:
            if output in report.outputs:
                for operator, found in report.outputs[output].windows.items():
                    yield run, output, operator, *_window(found)


def window_sentences(report: Report) -> list[str]:
    """On windows that have no result because their node was away or crashed, and where they cannot be counted."""
    sentences: dict[str, None] = {}
    for output in report.outputs.values():
        for operator, found in output.windows.items():
            gone = [f"{n:,} {AWAY[key]}" for key, n in away(found).items() if n]
            if gone:
                sentences[f"Windows of {operator}: {', '.join(gone)}. {COUNT_AS}"] = None
            sentences.update({f"Windows of {operator}: {note}.": None for note in found.not_counted})
    return list(sentences)


def away(found: Windows) -> dict[str, int]:
    """Windows that have no result because of their node, by the key of AWAY."""
    return {"never_opened": found.never_opened, "unended": found.unended, "unknown": found.unknown}


def load_text(load: float) -> str:
    """Three digits; not 9.3e-05."""
    return f"{load:.3g}" if load >= LEAST_LOAD or not load else f"< {LEAST_LOAD}"


def _window(found: Windows) -> tuple[str, ...]:
    kinds = {
        "skipped": found.skipped,
        "unended": found.unended,
        "never_opened": found.never_opened,
        "unknown": found.unknown,
    }
    without = {**found.abandoned, **{kind: n for kind, n in kinds.items() if n}}
    counts = f"{found.all:,}", f"{found.given:,}", f"{found.on_time:,}"
    load = "–" if found.load is None else load_text(found.load)
    causes = ", ".join(f"{n:,} {cause.replace('_', ' ')}" for cause, n in without.items())
    return *counts, percent(found.share), percent(found.long_run_share), load, causes or "–"


def shed_rows(reports: Reports) -> Iterator[tuple[str, ...]]:
    """Cells as in SHED, led by the run's name: by source, then by unit; and what ran in a cheaper variant."""
    for run, report in reports:
        for name, source in report.shed.sources.items():
            if source.policies:
                yield run, f"source {name}", f"{source.admitted:,}", ", ".join(_policies(source.policies))
        for name, unit in report.shed.units.items():
            if unit.policies:
                yield run, name, f"{unit.came:,}", ", ".join(_policies(unit.policies))
        if report.degraded:
            yield run, "degraded", "–", ", ".join(f"{n:,} at {name}" for name, n in report.degraded.items())


def _policies(policies: Mapping[str, ShedTuples]) -> Iterator[str]:
    for policy, n in policies.items():
        yield f"{n.tuples:,} {policy} ({percent(n.rate)})"
