"""A node, or an output, in full, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from coordinator.monitoring import metrics, overload_status, wording
from coordinator.monitoring.metrics import Node, Output, Plans, Unit
from coordinator.monitoring.monitor import Cost
from coordinator.monitoring.status_response import PlaceStatus, SourceStatus
from coordinator.monitoring.tables import INDICATION, TIMED, UNITS, Column, count, duration, percent, rate, size
from coordinator.monitoring.text import table
from coordinator.report import missed_share

SPOOL_SHARE, SPOOL_SOON_NS = 0.5, 3600 * 10**9  # from where on it is said


@dataclass(frozen=True)
class Source:
    """Of a plan on a node."""

    name: str
    counts: SourceStatus


@dataclass(frozen=True)
class Hop:
    """A unit on the way to an output; without one where its node does not answer."""

    place: str
    operators: tuple[str, ...]
    sub_deadline_ns: int | None
    unit: Unit | None


COSTS: tuple[Column[Cost], ...] = (
    Column("operator", lambda c: c.operator, lambda c: c.operator, "", right=False),
    Column("measured", lambda c: count(c.calls), lambda c: c.calls, "calls"),
    Column("mean", lambda c: duration(c.total_ns // c.calls if c.calls else None), lambda c: c.total_ns, ""),
    Column("worst", lambda c: duration(c.worst_ns if c.calls else None), lambda c: c.worst_ns, ""),
)
SOURCES: tuple[Column[Source], ...] = (
    Column("source", lambda s: s.name, lambda s: s.name, "", right=False),
    Column("admitted", lambda s: count(s.counts.admitted), lambda s: s.counts.admitted, "tuples"),
    Column(
        "refused",
        lambda s: count(s.counts.refused),
        lambda s: s.counts.refused,
        "",
        bad=lambda s: bool(s.counts.refused),
    ),
    Column("shed", lambda s: count(s.counts.shed), lambda s: s.counts.shed, "", bad=lambda s: bool(s.counts.shed)),
    Column(
        "policed",
        lambda s: count(s.counts.policed),
        lambda s: s.counts.policed,
        "of the shed",
        bad=lambda s: bool(s.counts.policed),
    ),
    Column("lost", lambda s: count(s.counts.lost), lambda s: s.counts.lost, "", bad=lambda s: bool(s.counts.lost)),
)
HOPS: tuple[Column[Hop], ...] = (
    Column("operators", lambda h: ", ".join(h.operators), lambda h: h.operators, "", right=False),
    Column("at", lambda h: h.place, lambda h: h.place, "", right=False),
    Column("sub-deadline", lambda h: duration(h.sub_deadline_ns), lambda h: h.sub_deadline_ns, ""),
    Column("mean", lambda h: duration(h.unit.mean_ns) if h.unit else "no answer", lambda h: h.place, ""),
    Column(
        "longest", lambda h: duration(h.unit.recent_ns) if h.unit else "", lambda h: h.place, "",
        bad=lambda h: bool(h.unit and h.unit.recent_ns and h.unit.recent_ns > h.unit.sub_deadline_ns),
    ),
    Column("ever", lambda h: duration(h.unit.worst_ns) if h.unit else "", lambda h: h.place, ""),
    Column("runs/s", lambda h: rate(h.unit.per_s) if h.unit else "", lambda h: h.place, ""),
    Column("queued", lambda h: count(h.unit.queued) if h.unit else "", lambda h: h.place, ""),
    Column(
        "shed", lambda h: count(h.unit.shed) if h.unit else "", lambda h: h.place, "",
        bad=lambda h: bool(h.unit and h.unit.shed),
    ),
)  # fmt: skip


def node(found: Node, plans: Plans, costs: Sequence[Cost], log: str) -> Iterator[str]:
    """A node: its plans, units, operators, sources, windows, counters. log: where its agent's is."""
    if not found.reachable:
        yield f"node {found.name} does not answer"
        yield found.why
        return
    values = found.values
    real_time = "in the real-time class" if found.rt else "not in the real-time class"
    yield f"node {found.name}, version {found.version or 'unknown'}, {real_time}, up {duration(found.uptime_ns)}"
    queue = f"{size(found.queue_bytes)} of {size(found.queue_limit_bytes)} bytes queued"
    yield f"use {percent(found.utilisation)}, {queue}, {found.restarts} restarts"
    if found.why:
        yield f"{'' if found.well else 'not well: '}{found.why}"
    yield from plans_of(values)
    yield from operators(values)
    if units := metrics.units(found):
        yield ""
        yield from table(UNITS, units)
        yield TIMED
    if costs:
        yield ""
        yield from table(COSTS, costs)
        yield "CPU time of a call, of those that were measured since the plan was loaded."
    sources = [Source(name, source) for status in values.plans for name, source in status.sources.items()]
    if sources:
        yield ""
        yield from table(SOURCES, sources)
    said = [
        *overload_status.lines(overload_status.overload(values, found.name, plans)),
        *others(values, log),
    ]
    if said:
        yield ""
        yield "since the runtime began:"
        yield from (f"  {line}" for line in said)


def plans_of(values: PlaceStatus) -> Iterator[str]:
    """Its plans, a line each."""
    if not values.plans:
        yield "no plan"
    for status in values.plans:
        yield (
            f"plan {status.hash[:8]} of {status.query}: {status.state}, epoch {status.epoch},"
            f" {status.ready} ready, {status.waiting} waiting, {status.unacknowledged} unacknowledged"
        )


def operators(values: PlaceStatus) -> Iterator[str]:
    """What its plans run, a line for each version and code."""
    alike: dict[tuple[str, str], list[str]] = {}
    for run, one in values.operators.items():
        alike.setdefault((one.version, one.code), []).append(run)
    for (version, code), runs in alike.items():
        yield f"operators {', '.join(runs)}: version {version}, code {code[:12]}"


def edited_operators(values: PlaceStatus) -> Iterator[str]:
    """What has been edited since it was loaded, in a line."""
    if edited := [run for run, one in values.operators.items() if one.edited]:
        yield f"{', '.join(edited)}: {wording.EDITED}"


def spool(values: PlaceStatus) -> Iterator[str]:
    """Trace records that nobody has collected, once they are much: at half of what there is room for, or within an
    hour of it."""
    found = values.spool
    if found is None or not found.limit_bytes:
        return
    full_in_ns, share = found.full_in_ns, found.bytes / found.limit_bytes
    age = f"the oldest record is {wording.lasting(found.oldest_ns)} old"
    if full_in_ns == 0:
        yield f"trace: no room for more, {found.dropped:,} records dropped; {age}: 'coordinator collect' makes room"
    elif share >= SPOOL_SHARE or (full_in_ns is not None and full_in_ns <= SPOOL_SOON_NS):
        when = f", full in {wording.lasting(full_in_ns)} at this rate" if full_in_ns is not None else ""
        yield f"trace: {percent(share)} of the room is used{when}; {age}: 'coordinator collect' makes room"


def others(values: PlaceStatus, log: str) -> Iterator[str]:
    """Counters that say something to people and that no other line tells; of those that have a reason which only the
    log tells, where that is."""
    yield from spool(values)
    yield from wording.counters(
        {name: n for name, n in values.counters.items() if not overload_status.is_overload(name)}
    )
    yield from wording.apart(values.connectors)
    if values.counters.get(wording.RAISED):
        yield f"  why operators raised, with a trace back: {log}"


def output(found: Output, nodes: Sequence[Node]) -> Iterator[str]:
    """An output: its promise, what came, and its path with the time that each unit takes."""
    of = f" of query {found.query}" if found.query else ""
    promise = f", {found.promise}: at most {duration(found.bound_ns)}" if found.bound_ns is not None else ""
    yield f"output {found.name}{of}, delivered at {found.place}: deadline {duration(found.deadline_ns)}{promise}"
    if found.silent:
        yield f"node {found.place} does not answer: what it has delivered is not known"
    else:
        yield from _delivered(found)
        yield from _shed(found, nodes)
    yield ""
    if found.path is None:
        yield "Its path is not known: give the plan that runs with --plan."
    else:
        yield from table(HOPS, list(_hops(found, nodes)))
        yield TIMED
    yield ""
    yield INDICATION


def _delivered(found: Output) -> Iterator[str]:
    missed, parts = missed_share.text(found.missed_of_offered), missed_share.reasons(found.between)
    unheard = f"what {', '.join(found.unheard)} would say" if found.unheard else ""
    between = f": between lie {', '.join(filter(None, (parts, unheard)))}" if parts or unheard else ""
    yield f"the last {found.span_s:.1f} s: {rate(found.per_s)} results/s, missed {missed} of what was offered{between}"
    if idle := missed_share.idle(found.missed_of_offered, found.met_idle):
        yield idle
    if found.results:
        yield (
            f"99 of 100 took at most {duration(found.p99_ns)}, all at most {duration(found.most_ns)}: "
            f"slack {duration(found.slack_ns)}"
        )
    met, late, undecidable = found.all_time
    yield (
        f"since the runtime of {found.place} began: {met:,} met, {late:,} late, {undecidable:,} undecidable"
        f", the longest {duration(found.worst_ns)}"
    )


def _shed(found: Output, nodes: Sequence[Node]) -> Iterator[str]:
    if found.path is None:
        return
    if found.shed_all_time:
        yield (
            f"shed before it: {found.shed_all_time:,} tuples, now {rate(found.shed_per_s)}/s; which of them would have "
            "become results is not known, and what leads to several outputs counts for each"
        )
    for name, counters in _windows(found, nodes):
        for line in wording.without_result(counters):
            yield f"windows of {name} before it: {line}"


def _windows(found: Output, nodes: Sequence[Node]) -> Iterator[tuple[str, Mapping[str, int]]]:
    assert found.path is not None
    for name in sorted(found.path.windows):
        for each in nodes:
            prefix = f"windows.{name}."
            counters = {
                counter.removeprefix(prefix): n
                for counter, n in each.values.counters.items()
                if counter.startswith(prefix)
            }
            if counters:
                yield name, counters


def _hops(found: Output, nodes: Sequence[Node]) -> Iterator[Hop]:
    """In the order of the path, one for each unit."""
    assert found.path is not None
    by_place = {each.name: {name: unit for unit in metrics.units(each) for name in unit.operators} for each in nodes}
    names = found.path.operators
    seen = set[tuple[str, int]]()
    for stage in found.path.stages:
        unit = by_place.get(stage.place, {}).get(stage.operator)
        if unit is None:
            yield Hop(stage.place, (stage.operator,), stage.sub_deadline_ns, None)
        elif (unit.place, unit.id) not in seen:
            seen.add((unit.place, unit.id))
            on_path = tuple(name for name in unit.operators if name in names)
            yield Hop(stage.place, on_path, unit.sub_deadline_ns, unit)
