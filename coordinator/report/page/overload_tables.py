"""Tables of the cost of overload, as rows of text for the page and the terminal. Nothing here is escaped yet."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Reports = Sequence[tuple[str, Mapping[str, Any]]]  # name of the run, report

LEAST_LOAD = 0.001  # that is worth a figure
WINDOWS = ("output", "windows of", "all", "given", "in time", "share", "f*", "load", "without a result")
SHED = ("at", "tuples", "shed of them, by policy")
KINDS = ("skipped", "unended", "never_opened", "unknown")
AWAY = (
    ("never_opened", "never opened while their node was away"),
    ("unended", "open as their node crashed"),
    ("unknown", "due on a node of which records are missing"),
)
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
    outputs = dict.fromkeys(output for _, report in reports for output in report["outputs"])
    for output in outputs:
        for run, report in reports:
            for operator, found in report["outputs"].get(output, {}).get("windows", {}).items():
                yield run, output, operator, *_window(found)


def window_sentences(report: Mapping[str, Any]) -> list[str]:
    """On windows that have no result because their node was away or crashed, and where they cannot be counted."""
    told: dict[str, None] = {}
    for output in report["outputs"].values():
        for operator, found in output.get("windows", {}).items():
            gone = [f"{found[key]:,} {text}" for key, text in AWAY if found[key]]
            if gone:
                told[f"Windows of {operator}: {', '.join(gone)}. {COUNT_AS}"] = None
            told.update({f"Windows of {operator}: {note}.": None for note in found["not_counted"]})
    return list(told)


def load_text(load: float) -> str:
    """Three digits; not 9.3e-05."""
    return f"{load:.3g}" if load >= LEAST_LOAD or not load else f"< {LEAST_LOAD}"


def _window(found: Mapping[str, Any]) -> tuple[str, ...]:
    without = dict(found["abandoned"]) | {kind: found[kind] for kind in KINDS if found[kind]}
    counts = (f"{found[key]:,}" for key in ("all", "given", "on_time"))
    load = "–" if found["load"] is None else load_text(found["load"])
    causes = ", ".join(f"{n:,} {cause.replace('_', ' ')}" for cause, n in without.items())
    return *counts, percent(found["share"]), percent(found["long_run_share"]), load, causes or "–"


def shed_rows(reports: Reports) -> Iterator[tuple[str, ...]]:
    """Cells as in SHED, led by the run's name: by source, then by unit; and what ran in a cheaper variant."""
    for run, report in reports:
        for kind, total in (("sources", "admitted"), ("units", "came")):
            for name, found in report["shed"][kind].items():
                if found["policies"]:
                    where = f"source {name}" if kind == "sources" else name
                    yield run, where, f"{found[total]:,}", ", ".join(_policies(found["policies"]))
        if report["degraded"]:
            yield run, "degraded", "–", ", ".join(f"{n:,} at {name}" for name, n in report["degraded"].items())


def _policies(policies: Mapping[str, Any]) -> Iterator[str]:
    for policy, n in policies.items():
        yield f"{n['tuples']:,} {policy} ({percent(n['rate'])})"
