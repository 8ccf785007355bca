"""Missed results with their causes, each with a timeline of what the nodes did around it; else the slowest ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from coordinator.report.page.elements import PageRun, behind, bullets, folded, named, plot, row, section, table
from coordinator.report.page.run_labels import brief
from coordinator.report.page.sections.miss_windows import absences, end_of, span_of, under_way
from coordinator.report.page.verdict_sentences import CAUSES
from coordinator.report.report_document import Miss, MissHop
from coordinator.report.series.incidents import Incident
from coordinator.report.series.instances_around import Focus, UnitBars, instances_around
from coordinator.report.series.slowest_results import SlowResult
from protos.json_shape import Json

MOST_MISSES, MOST_BARS = 200, 20_000  # on the page, of all runs together
MOST_WAITED_FOR = 3  # of a hop, in words
AT_ONCE = 10  # listed; the others are folded
KINDS = (
    ("k-mine", "this tuple runs"), ("k-wait", "it waits"), ("k-link", "it is on a link or elsewhere"),
    ("k-other", "other tuples run"), ("k-away", "the node is away"),
)  # fmt: skip
MINE, WAIT, LINK, OTHER, AWAY = range(len(KINDS))
SLOWEST = "The results that took most of their deadline:"
NOTE = (
    "Each opens a timeline of the nodes from the tuple's origin to its end, on one clock. Zoom with the buttons, the "
    "keys + and −, or by pinching; move by dragging or with the arrow keys."
)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One result that can be looked at. of: its tuple; ahead: what is said first; hops: its way, where it is known."""

    output: str
    of: str
    outcome: str
    ahead: str
    deadline_ns: int
    focus: Focus
    causes: Sequence[str]
    hops: Sequence[tuple[MissHop, int, int]]


def misses_section(runs: Sequence[PageRun]) -> str:
    """Of each run: causes by output, the worst misses as stories, and a list to open."""
    return section("Missed results", "".join(_run(page_run, runs) for page_run in runs), NOTE)


def _run(page_run: PageRun, runs: Sequence[PageRun]) -> str:
    misses = page_run.report.misses
    worst = misses.worst[: MOST_MISSES // len(runs)] if misses is not None else ()
    head = f"<h3>{named(page_run, runs)}</h3>" if len(runs) > 1 else ""
    entries = [_missed(page_run, miss) for miss in worst]
    about = ""
    if not entries:
        entries = [_slow(page_run, slow) for slow in page_run.series.slowest]
        late = any(entry.outcome == "late" for entry in entries)
        about = SLOWEST if late else f"No result is known to be missed. {SLOWEST}"
        if not entries:
            return f"{head}<p>Nothing was delivered, and no result is known to be missed.</p>"
    focuses = [one.focus for one in entries]
    bars = instances_around(
        page_run.run, page_run.series.records, page_run.series.clock, focuses, MOST_BARS // len(runs)
    )
    items = [_item(page_run, one, found) for one, found in zip(entries, bars, strict=True)]
    told = _by_cause(page_run) + _stories(page_run) + (f"<p>{about}</p>" if about else _count(page_run, len(entries)))
    more = "".join(items[AT_ONCE:])
    rest = folded(f"{len(items) - AT_ONCE} more", f'<div class="misses">{more}</div>') if more else ""
    return f'{head}{told}<div class="misses">{"".join(items[:AT_ONCE])}</div>{rest}'


def _count(page_run: PageRun, listed: int) -> str:
    misses = page_run.report.misses
    whole = sum(sum(found.values()) for found in misses.by_cause.values()) if misses else listed
    return f"<h3>The worst {listed:,} of {whole:,}</h3>" if whole > listed else f"<h3>All {listed:,}</h3>"


def _stories(page_run: PageRun) -> str:
    misses = page_run.report.misses
    if misses is None or not misses.stories:
        return ""
    told = []
    for n, story in enumerate(misses.stories):
        first, _, rest = story.partition(". ")
        told.append(
            folded(f"{escape(first)}.", f"<p>{escape(rest)}</p>", opened=not n) if rest else f"<p>{escape(first)}</p>"
        )
    return f'<h3>The worst, told</h3><div class="misses">{"".join(told)}</div>'


def _by_cause(page_run: PageRun) -> str:
    misses = page_run.report.misses
    by_cause: Mapping[str, Mapping[str, int]] = misses.by_cause if misses is not None else {}
    if not any(by_cause.values()):
        return ""
    kinds = sorted({kind for found in by_cause.values() for kind in found}, key=lambda k: -_sum(by_cause, k))
    colour = {kind: f"u{n}" if n < 6 else "urest" for n, kind in enumerate(kinds)}
    keys = "".join(
        f'<li><span class="key {colour[kind]}"></span><span>{escape(text)}: {_sum(by_cause, kind):,}</span></li>'
        for kind in kinds
        for text in [CAUSES.get(kind, kind)]
    )
    parts, rows = [], []
    for output, found in by_cause.items():
        whole = sum(found.values())
        if whole:
            shares = "".join(
                f'<i class="{colour[kind]}" style="width:{100 * n / whole:.2f}%"></i>' for kind, n in found.items()
            )
            parts.append(f'<div>{escape(output)}: {whole:,}<div class="causes">{shares}</div></div>')
            rows += [row([escape(output), escape(kind.replace("_", " ")), f"{n:,}"]) for kind, n in found.items()]
    shown_table = behind(table(["output", "main cause", "results"], rows))
    return f'<h3>By main cause</h3>{"".join(parts)}<ul class="legend">{keys}</ul>{shown_table}'


def _sum(by_cause: Mapping[str, Mapping[str, int]], kind: str) -> int:
    return sum(found.get(kind, 0) for found in by_cause.values())


def _missed(page_run: PageRun, miss: Miss) -> _Entry:
    from_ns, until_ns = under_way(page_run, miss)
    over = "" if miss.latency_ns is None else f"{brief(miss.latency_ns - miss.deadline_ns)} late"
    return _Entry(
        output=miss.output,
        of=f"{miss.source}/{miss.epoch}/{miss.seq}",
        outcome=miss.outcome,
        ahead=over or miss.outcome,
        deadline_ns=miss.deadline_ns,
        focus=Focus(_source(page_run, miss.source), miss.epoch, miss.seq, from_ns, until_ns),
        causes=[cause.text for cause in miss.causes],
        hops=[(hop, *span_of(page_run, hop)) for hop in miss.hops],
    )


def _slow(page_run: PageRun, slow: SlowResult) -> _Entry:
    until_ns = page_run.series.clock.at(page_run.run.incarnations[slow.trace], slow.at_ns)
    deadline_ns = next(one.deadline_ns for one in page_run.run.plan.outputs.values() if one.name == slow.output)
    late = slow.least_ns > deadline_ns
    return _Entry(
        output=slow.output,
        of=f"{_source_name(page_run, slow.source)}/{slow.epoch}/{slow.seq}",
        outcome="late" if late else "delivered",
        ahead=f"{brief(slow.least_ns - deadline_ns)} late"
        if late
        else f"{100 * slow.share:.0f} % of {brief(deadline_ns)}",
        deadline_ns=deadline_ns,
        focus=Focus(slow.source, slow.epoch, slow.seq, until_ns - slow.took_ns, until_ns),
        causes=(),
        hops=(),
    )


def _source(page_run: PageRun, name: str) -> int:
    graph = page_run.run.plan.made.graph
    if name in graph.sources:
        return graph.sources[name].id
    return next((one.source for each, one in graph.windows.items() if name in (each, one.add)), -1)


def _source_name(page_run: PageRun, id_: int) -> str:
    graph = page_run.run.plan.made.graph
    named_ = {one.id: name for name, one in graph.sources.items()}
    return named_.get(id_) or next((name for name, one in graph.windows.items() if one.source == id_), str(id_))


def _item(page_run: PageRun, entry: _Entry, found: Sequence[UnitBars]) -> str:
    focus = entry.focus
    main = f": {escape(entry.causes[0])}" if entry.causes else ""
    summary = (
        f"<b>{escape(entry.ahead)}</b> <code>{escape(entry.output)}</code> "
        f'<span class="soft">{escape(entry.of)}, at {brief(max(0, focus.from_ns))}</span>{main}'
    )
    body = bullets(entry.causes[1:]) if entry.causes[1:] else ""
    left_out = sum(each.left_out for each in found)
    more = f'<p class="soft">{left_out:,} more stretches are left out.</p>' if left_out else ""
    absent = absences(page_run, focus.from_ns, focus.until_ns)
    if absent:
        body += f"<p>Meanwhile: {escape('; '.join(f'{one.node}: {one.what}' for one in absent))}.</p>"
    rows: list[Json] = [
        *_way(page_run, entry),
        *(_away(page_run, one, focus) for one in absent),
        *(_unit(page_run, each) for each in found),
    ]
    if not rows:
        return folded(summary, f'{body}<p class="soft">No instance of that time is kept on the page.</p>')
    since_ns, until_ns = focus.window
    origin_ns = focus.from_ns - since_ns
    marks: list[Json] = [{"at": origin_ns, "css": "plan", "text": "origin"}]
    if origin_ns + entry.deadline_ns < until_ns - since_ns:
        marks.append({"at": origin_ns + entry.deadline_ns, "css": "deadline", "text": "deadline"})
    data: Json = {
        "from": -origin_ns, "length": until_ns - since_ns, "kinds": KINDS, "rows": rows, "marks": marks,
    }  # fmt: skip
    return folded(summary, f"{body}{plot('lanes', data, f'What the nodes did around {entry.of}')}{more}")


def _away(page_run: PageRun, one: Incident, focus: Focus) -> Json:
    since_ns, until_ns = focus.window
    from_ns, end_ns = max(one.from_ns, since_ns), min(end_of(page_run, one), until_ns)
    return {"label": one.node, "bars": [from_ns - since_ns, end_ns - from_ns, 1, AWAY], "texts": {"0": one.what}}


def _way(page_run: PageRun, entry: _Entry) -> Iterator[Json]:
    """The tuple's own way, in as many lanes as it has branches."""
    since_ns = entry.focus.window[0]
    lanes: list[list[tuple[MissHop, int, int]]] = []
    for hop in sorted(entry.hops, key=lambda one: one[1]):
        lane = next((each for each in lanes if each[-1][2] <= hop[1]), None)
        if lane is None:
            lanes.append([hop])
        else:
            lane.append(hop)
    for lane in lanes:
        bars: list[int] = []
        texts: dict[str, str] = {}
        last = 0
        for step, from_ns, until_ns in lane:
            for kind, at_ns, length_ns in _parts(step, from_ns - since_ns, until_ns - since_ns):
                texts[str(len(bars) // 4)] = _hop_text(step)
                bars += [at_ns - last, length_ns, 1, kind]
                last = at_ns
        yield {"label": "the way of this tuple", "bars": bars, "texts": texts}


def _parts(hop: MissHop, from_ns: int, until_ns: int) -> Iterator[tuple[int, int, int]]:
    if hop.kind in ("link", "admission", "rest"):
        yield LINK, from_ns, until_ns - from_ns
    elif hop.kind == "queue":
        yield WAIT, from_ns, until_ns - from_ns
    else:
        waited_ns = min(max(0, hop.waited_ns), until_ns - from_ns)
        if waited_ns:
            yield WAIT, from_ns, waited_ns
        yield MINE, from_ns + waited_ns, until_ns - from_ns - waited_ns


def _hop_text(hop: MissHop) -> str:
    between = hop.kind == "link" or (hop.kind == "rest" and hop.place)
    place = " to ".join(hop.place) if between else f"{', '.join(hop.place)} on {hop.node}"
    waited = [
        f"for {one.instances:,} of {', '.join(one.operators)}{f' ({one.query})' if one.query else ''}: {brief(one.ns)}"
        for one in hop.waited_for[:MOST_WAITED_FOR]
    ]
    parts = [f"{hop.kind}: {place}", *([f"waited {brief(hop.waited_ns)}"] if hop.waited_ns else []), *waited]
    return "\n".join([*parts, *([f"ran {brief(hop.ran_ns)}"] if hop.ran_ns else [])])


def _unit(page_run: PageRun, each: UnitBars) -> Json:
    bars: list[int] = []
    last = 0
    for bar in each.bars:
        bars += [bar.from_ns - last, bar.run_ns, bar.instances, MINE if bar.mine else OTHER]
        last = bar.from_ns
    return {"label": f"{each.node}: {page_run.run.plan.units[each.unit].label}", "bars": bars}


__all__ = ["misses_section"]
