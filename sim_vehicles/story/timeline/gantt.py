"""Gantt chart of the nodes around the deciding tuple: every stretch of running in a window, on one clock."""

from __future__ import annotations

from dataclasses import dataclass

from protos.records import Admitted, Output, Ran
from sim_vehicles.story.timeline.clocks import Offsets, UnknownOffsetError
from sim_vehicles.story.timeline.deciding_tuple import DecidingTuple
from sim_vehicles.story.timeline.lineage_trace import MissingRecordError
from sim_vehicles.story.timeline.run_trace import Lineage, RunTrace

MOST_ROWS = 1500
BEFORE_NS = 10_000_000  # the centre's burst comes 5 ms before V2V's
MARGIN = 20  # and a 20th of the window after the delivery


@dataclass(frozen=True)
class Row:
    """One stretch of running; instants in ns since the deciding tuple's origin (its measurement)."""

    node: str
    unit: str
    operators: tuple[str, ...]
    start_ns: int
    end_ns: int
    lineage: tuple[str, int, int, int]  # source's name, epoch, seq, ordinal
    is_deciding: bool


@dataclass(frozen=True)
class Gantt:
    """rows: by start, at most `most`; left_out: how many more there are, the farthest from the deciding instances.

    admitted_ns, delivered_ns: of the deciding tuple, since its origin. nodes: all of the plan's, by number.
    unplaced: nodes whose clock's offset is not known; they have no rows.
    """

    rows: tuple[Row, ...]
    left_out: int
    admitted_ns: int
    delivered_ns: int
    nodes: tuple[str, ...]
    unplaced: tuple[str, ...] = ()


def gantt(trace: RunTrace, deciding: DecidingTuple, most: int = MOST_ROWS) -> Gantt:
    """From BEFORE_NS before the tuple's admission to a little after its delivery. Raises MissingRecordError where
    neither is in the trace."""
    lineage, ordinal = deciding.lineage(trace.plan), int(deciding.ordinal or 0)
    records = trace.of(lineage)
    node, last = _output(trace, lineage, ordinal)
    delivered_ns = last.latency.middle_ns
    origin_ns = last.at_ns - delivered_ns
    clocks = {one.node: one.clock for one in trace.incarnations}
    offsets, unplaced = Offsets(trace.plan, records, clocks), []
    to_origin: dict[str, int] = {}  # node -> what to take from its instants
    for other in trace.plan.index:
        try:
            to_origin[other] = origin_ns - offsets.of(node, other, last.at_ns)
        except UnknownOffsetError:
            unplaced.append(other)
    admitted_ns = min(
        (r.at_ns - to_origin[one.node] for one, r in records if isinstance(r, Admitted) and one.node in to_origin),
        default=0,
    )
    since_ns, until_ns = admitted_ns - BEFORE_NS, delivered_ns + (delivered_ns - admitted_ns) // MARGIN
    ancestors = {_parent(ordinal, back) for back in range(5)}
    windows = {name: (since_ns + shift_ns, until_ns + shift_ns) for name, shift_ns in to_origin.items()}
    rows = []
    for one, record in trace.ran(windows):
        mine = (record.source, record.epoch, record.seq) == lineage and record.ordinal in ancestors
        rows.append(_row(trace, one.node, record, to_origin[one.node], mine))
    kept = sorted(rows, key=lambda row: (not row.is_deciding, _away(row, admitted_ns, delivered_ns)))[:most]
    nodes = tuple(name for _, name in sorted(trace.plan.nodes.items()))
    kept.sort(key=lambda row: (row.start_ns, row.node))
    return Gantt(tuple(kept), len(rows) - len(kept), admitted_ns, delivered_ns, nodes, tuple(unplaced))


def _output(trace: RunTrace, lineage: Lineage, ordinal: int) -> tuple[str, Output]:
    found = [(one.node, r) for one, r in trace.of(lineage) if isinstance(r, Output) and r.ordinal == ordinal]
    if not found:
        raise MissingRecordError(
            "no_output_record", f"no OUTPUT record of tuple {'/'.join(map(str, lineage))}.{ordinal}"
        )
    return min(found, key=lambda each: each[1].at_ns)


def _parent(ordinal: int, back: int) -> int:
    """The ordinal of the tuple that this one is a result of, so many operators with several results back."""
    for _ in range(back):
        ordinal = (ordinal - 1) >> 8 if ordinal else 0
    return ordinal


def _away(row: Row, since_ns: int, until_ns: int) -> int:
    """How far outside the span between admission and delivery."""
    return max(0, since_ns - row.end_ns, row.start_ns - until_ns)


def _row(trace: RunTrace, node: str, record: Ran, shift_ns: int, mine: bool) -> Row:
    unit = trace.plan.units[record.unit]
    source = trace.plan.sources.get(record.source, (str(record.source), "", 0))[0]
    lineage = (source, record.epoch, record.seq, record.ordinal)
    return Row(node, unit.label, unit.operators, record.start_ns - shift_ns, record.end_ns - shift_ns, lineage, mine)
