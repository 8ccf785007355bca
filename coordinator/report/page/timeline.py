"""Timeline of the nodes around one result: the RAN records of a window, for the page's timelines.

A node's bars are on its own clock. Nodes of one clock domain share an axis; another domain's window is the span of the
same tuple there, so nothing is compared across clocks.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from coordinator.report.facts.merged_plans import own
from coordinator.report.facts.reader import Incarnation, Run, records_of
from coordinator.report.report_document import Output as ReportedOutput
from coordinator.report.verdict import scan_trace
from protos.records import Output, Ran

BARS_PER_NODE = 400
MARGIN = 20  # a window is widened by 1/MARGIN of its length on both sides


@dataclass(frozen=True)
class Bar:
    """One stretch of running, in ns from the start of its window; `mine`: of the tuple that the window is about."""

    node: str
    unit: str
    start_ns: int
    run_ns: int
    tuple: str
    mine: bool


@dataclass(frozen=True)
class Timeline:
    """bars: at most BARS_PER_NODE of each node; left_out: how many more there were."""

    about: str
    bars: tuple[Bar, ...]
    left_out: int


@dataclass(frozen=True)
class _Focus:
    lineage: tuple[int, int, int]
    output: str
    late_ns: int  # latency's upper bound less the deadline
    clock: str
    since_ns: int
    until_ns: int


def timeline(run: Run, outputs: Mapping[str, ReportedOutput]) -> Timeline | None:
    """The window of the result that was latest against its deadline, in share of it. None: nothing was delivered.

    outputs: of the verdict; only names whether there is anything to look for.
    """
    if not any(output.delivered for output in outputs.values()):
        return None
    kept = {incarnation.number: list(_own(incarnation, run)) for incarnation in run.incarnations}
    focus = _worst(run, kept)
    if focus is None:
        return None
    bars: list[Bar] = []
    left_out = 0
    for incarnation in run.incarnations:
        rows = [r for r in kept[incarnation.number] if isinstance(r, Ran) and r.unit in run.plan.units]
        window = _window(focus, incarnation, rows)
        if window:
            found = list(_bars(run, incarnation, rows, focus, *window))
            found.sort(key=lambda bar: (not bar.mine, bar.start_ns))
            left_out += max(0, len(found) - BARS_PER_NODE)
            bars += found[:BARS_PER_NODE]
    kind = "latest" if focus.late_ns > 0 else "slowest"
    about = f"{kind} result of {focus.output}: tuple {'/'.join(map(str, focus.lineage))}"
    return Timeline(about, tuple(bars), left_out)


def _own(incarnation: Incarnation, run: Run) -> Iterator[Ran | Output]:
    records = list(records_of(incarnation))
    epochs = scan_trace(incarnation, records, run.plan).epochs
    wanted: Iterator[Ran | Output] = (r for _, r in records if isinstance(r, (Ran, Output)))
    return own(wanted, epochs, run.plan)


def _worst(run: Run, kept: Mapping[int, Iterable[Ran | Output]]) -> _Focus | None:
    worst: tuple[float, _Focus] | None = None
    for incarnation in run.incarnations:
        for r in kept[incarnation.number]:
            if not isinstance(r, Output):
                continue
            view, took_ns = run.plan.outputs.get(r.output), r.latency.most_ns
            if view is None or not 0 <= took_ns < 1 << 50:
                continue
            share = took_ns / max(1, view.deadline_ns)
            if worst is None or share > worst[0]:
                late = took_ns - view.deadline_ns
                lineage = (r.source, r.epoch, r.seq)
                worst = share, _Focus(lineage, view.name, late, incarnation.clock, r.origin_lo_ns, r.at_ns)
    return worst[1] if worst else None


def _window(focus: _Focus, incarnation: Incarnation, rows: Iterable[Ran]) -> tuple[int, int] | None:
    if incarnation.clock == focus.clock:
        since, until = focus.since_ns, focus.until_ns
    else:
        mine = [r for r in rows if (r.source, r.epoch, r.seq) == focus.lineage]
        if not mine:
            return None
        since, until = min(r.release_ns for r in mine), max(r.end_ns for r in mine)
    margin = (until - since) // MARGIN
    return since - margin, until + margin


def _bars(
    run: Run, incarnation: Incarnation, rows: Iterable[Ran], focus: _Focus, since: int, until: int
) -> Iterator[Bar]:
    node = run.plan.nodes[incarnation.node]
    for r in rows:
        start, end = max(r.start_ns, since), min(r.end_ns, until)
        if start < end:
            lineage = (r.source, r.epoch, r.seq)
            label = f"{'/'.join(map(str, lineage))}.{r.ordinal}"
            unit = run.plan.units[r.unit].label
            yield Bar(node, unit, start - since, end - start, label, lineage == focus.lineage)
