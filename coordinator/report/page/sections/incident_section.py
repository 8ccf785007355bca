"""Incidents: when each runtime was there, what went wrong when, and what was missed meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from coordinator.report.facts import began_anew
from coordinator.report.page.elements import PageRun, bullets, named, plot, row, section, table
from coordinator.report.page.run_labels import brief
from coordinator.report.report_document import BeganAnew
from coordinator.report.series.incidents import Cost, Incident, IncidentKind
from coordinator.report.series.run_series import NodeTime
from coordinator.units import counted
from protos.json_shape import Json

KINDS = (
    ("k-here", "a runtime ran"), ("k-away", "away"), ("k-asleep", "suspended"), ("k-refused", "refused tuples"),
    ("k-plan", "plan began"), ("k-shed", "tuples shed"), ("k-lost", "tuples lost"), ("k-late", "late results"),
)  # fmt: skip
HERE, AWAY, ASLEEP, REFUSED, PLAN, SHED, LOST, LATE = range(len(KINDS))
OF: dict[IncidentKind, int] = {
    "away": AWAY, "restarted": AWAY, "no_trace": AWAY, "asleep": ASLEEP, "refused": REFUSED, "new_plan": PLAN,
}  # fmt: skip
MOST_LANES = 8  # of nodes; with more of them those that nothing happened to are left out
QUIET = "Every runtime was there from the beginning to the end, and refused nothing."
NOTE = (
    "Nodes on one clock, by the middle of what is known of their offsets. What was missed is counted from an "
    "incident's beginning until the longest deadline after its end; what else happened then is in it."
)


def incidents_section(runs: Sequence[PageRun]) -> str:
    """A timeline per run, and a table of its incidents."""
    return section("Incidents", "".join(_run(page_run, runs) for page_run in runs), NOTE)


def _run(page_run: PageRun, runs: Sequence[PageRun]) -> str:
    series = page_run.series
    head = f"<h3>{named(page_run, runs)}</h3>" if len(runs) > 1 else ""
    anew: Sequence[BeganAnew] = page_run.report.began_anew or ()
    text = f'<p class="good">{QUIET}</p>' if not series.incidents else _table(series.incidents)
    if anew:
        text += f'<h3>Began anew</h3><div class="warn">{bullets(began_anew.sentences(anew))}</div>'
    if lost := _with_runtimes(page_run):
        text += f'<p class="warn">{lost}</p>'
    if quiet := len(series.nodes) - len(_eventful(page_run)):
        text += f"<p>Not drawn: {counted(quiet, 'node')} of {len(series.nodes)}, of which nothing is to be said.</p>"
    data: Json = {"length": series.length_ns, "kinds": KINDS, "rows": _rows(page_run)}
    if not data["rows"]:
        return head + text
    return head + text + plot("lanes", data, "When each node was there, and what went wrong when")


def _with_runtimes(page_run: PageRun) -> str:
    restart = page_run.report.conservation.by_cause.get("lost(restart)", 0)
    return f"{restart:,} tuples went with a runtime that crashed." if restart else ""


def _rows(page_run: PageRun) -> list[Json]:
    series, lanes = page_run.series, list[Json]()
    if any(series.late):
        ticks = [(n * series.bin_ns, series.bin_ns, late, LATE, "") for n, late in enumerate(series.late) if late]
        lanes.append(_lane("late results", ticks))
    return [*lanes, *(_node(page_run, node) for node in _eventful(page_run))]


def _eventful(page_run: PageRun) -> list[NodeTime]:
    nodes = page_run.series.nodes
    if len(nodes) <= MOST_LANES:
        return list(nodes)
    named_ = {one.node for one in page_run.series.incidents}
    return [node for node in nodes if node.node in named_ or any(node.shed) or any(node.lost)]


def _node(page_run: PageRun, node: NodeTime) -> Json:
    series = page_run.series
    bars = [(since, until - since, 1, HERE, "") for since, until in node.present]
    for one in series.incidents:
        if one.node == node.node and one.kind != "new_plan":
            until = series.length_ns if one.until_ns is None else one.until_ns
            bars.append((one.from_ns, max(1, until - one.from_ns), 1, OF[one.kind], one.what))
        elif one.node == node.node:
            bars.append((one.from_ns, 0, 1, PLAN, one.what))
    for counts, kind in ((node.shed, SHED), (node.lost, LOST)):
        bars += [
            (n * series.bin_ns + series.bin_ns // 2, 0, count, kind, "") for n, count in enumerate(counts) if count
        ]
    return _lane(node.node, bars)


def _lane(label: str, bars: Iterable[tuple[int, int, int, int, str]]) -> Json:
    """As page.js wants it."""
    flat, texts, last = list[int](), dict[str, str](), 0
    for n, (since, length, count, kind, text) in enumerate(bars):
        flat += [since - last, length, count, kind]
        last = since
        if text:
            texts[str(n)] = text
    return {"label": label, "bars": flat, "texts": texts}


def _table(incidents: Iterable[Incident]) -> str:
    rows = []
    for one in incidents:
        length = "to the end" if one.until_ns is None else brief(one.until_ns - one.from_ns)
        length = "–" if one.kind == "new_plan" else length
        what = f'<span class="wrap">{escape(one.what)}</span>'
        rows.append(row([escape(one.node), brief(one.from_ns), length, what, escape(_cost(one.cost))]))
    return table(["who", "from", "for", "what", "what it cost"], rows)


def _cost(cost: Cost) -> str:
    parts = [
        f"{n:,} {what}"
        for n, what in (
            (cost.late, "results late"), (cost.lost, "tuples lost"), (cost.shed, "tuples shed"),
            (cost.refused, "tuples refused"),
        )
        if n
    ]  # fmt: skip
    return ", ".join(parts) or "nothing that is recorded"


__all__ = ["incidents_section"]
