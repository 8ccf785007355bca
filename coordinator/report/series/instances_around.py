"""The third pass over a run: which instances ran on which node around some results, a bounded number of them.

Instances of one unit that follow one another closer than can be seen are one bar; those of the tuple itself stay apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coordinator.report.facts.reader import Run
from coordinator.report.series.record_rows import Bools, Ints, Own, RunRecords
from coordinator.report.series.run_clock import RunClock
from protos import records as rec

SEEN = 1_500  # a gap below such a part of the window cannot be seen
MOST_BARS = 600  # of a window, per unit
WANTED = {rec.RAN: ("source", "epoch", "seq", "unit", "start_ns", "end_ns")}
MARGIN = 10  # a window is widened by such a part of it on both sides


@dataclass(frozen=True, slots=True)
class Focus:
    """A tuple, and when in the run it was under way."""

    source: int
    epoch: int
    seq: int
    from_ns: int
    until_ns: int

    @property
    def window(self) -> tuple[int, int]:
        """What is looked at."""
        margin = (self.until_ns - self.from_ns) // MARGIN + 1
        return self.from_ns - margin, self.until_ns + margin


@dataclass(frozen=True, slots=True)
class Bar:
    """Instances of one unit that ran one after another. from_ns: since the window's beginning; mine: of the tuple."""

    from_ns: int
    run_ns: int
    instances: int
    mine: bool


@dataclass(frozen=True, slots=True)
class UnitBars:
    """What one unit did. left_out: bars that there were beyond the most."""

    node: str
    unit: int
    bars: tuple[Bar, ...]
    left_out: int


def instances_around(
    run: Run, records: RunRecords, clock: RunClock, focuses: Sequence[Focus], most: int
) -> list[list[UnitBars]]:
    """Per focus, by unit. most: bars of all together; focuses behind those that take them have none."""
    kept: list[dict[int, list[_Found]]] = [{} for _ in focuses]
    begins = np.array([focus.window[0] for focus in focuses], np.int64)
    ends = np.array([focus.window[1] for focus in focuses], np.int64)
    for presence in clock.presences:
        if not focuses:
            break
        for piece in records.pieces(presence.incarnation, WANTED):
            ran = piece[rec.RAN].own(presence.epochs)
            if len(ran):
                start_ns, end_ns = (clock.many(presence.incarnation, ran[each]) for each in ("start_ns", "end_ns"))
                touched = (begins < int(end_ns.max())) & (ends > int(start_ns.min()))
                for n in np.flatnonzero(touched).tolist():
                    _collect(kept[n], focuses[n], ran, start_ns, end_ns)
    made, left = [], most
    for focus, found in zip(focuses, kept, strict=True):
        bars = _bars(run, focus, found) if left > 0 else []
        left -= sum(len(each.bars) for each in bars)
        made.append(bars)
    return made


@dataclass(frozen=True, slots=True)
class _Found:
    start_ns: Ints
    end_ns: Ints
    instances: Ints
    mine: Bools


def _collect(kept: dict[int, list[_Found]], focus: Focus, ran: Own, start_ns: Ints, end_ns: Ints) -> None:
    since_ns, until_ns = focus.window
    within = np.flatnonzero((start_ns < until_ns) & (end_ns > since_ns))
    if not len(within):
        return
    here = ran.where(within)
    ids = here.id("unit")
    mine = (here["seq"] == focus.seq) & (here["epoch"] == focus.epoch) & (here["source"] == focus.source)
    for unit in np.unique(ids).tolist():
        of = np.flatnonzero(ids == unit)
        starts, stops = np.maximum(start_ns[within][of], since_ns), np.minimum(end_ns[within][of], until_ns)
        ones = np.ones(len(of), np.int64)
        kept.setdefault(unit, []).append(_merged(_Found(starts, stops, ones, mine[of]), until_ns - since_ns))


def _merged(found: _Found, window_ns: int) -> _Found:
    """Bars between which no gap is seen are one. A batch's tuples have one start; their instances count once."""
    order = np.argsort(found.start_ns, kind="stable")
    start, end, n, mine = found.start_ns[order], found.end_ns[order], found.instances[order], found.mine[order]
    fresh = np.ones(len(start), np.bool_)
    fresh[1:] = (start[1:] - np.maximum.accumulate(end)[:-1] > window_ns // SEEN) | (mine[1:] != mine[:-1])
    at = np.flatnonzero(fresh)
    return _Found(start[at], np.maximum.reduceat(end, at), np.add.reduceat(n, at), mine[at])


def _bars(run: Run, focus: Focus, found: dict[int, list[_Found]]) -> list[UnitBars]:
    since_ns, until_ns = focus.window
    made = []
    for unit, parts in sorted(found.items()):
        if unit not in run.plan.units:
            continue
        whole = _merged(
            _Found(
                np.concatenate([each.start_ns for each in parts]),
                np.concatenate([each.end_ns for each in parts]),
                np.concatenate([each.instances for each in parts]),
                np.concatenate([each.mine for each in parts]),
            ),
            until_ns - since_ns,
        )
        kept = np.flatnonzero(whole.mine)[:MOST_BARS]
        others = np.flatnonzero(~whole.mine)[: MOST_BARS - len(kept)]
        shown = np.sort(np.concatenate([kept, others]))
        bars = tuple(
            Bar(int(whole.start_ns[n]) - since_ns, int(whole.end_ns[n] - whole.start_ns[n]), int(whole.instances[n]),
                bool(whole.mine[n]))
            for n in shown.tolist()
        )  # fmt: skip
        node = run.plan.nodes[run.plan.units[unit].node]
        made.append(UnitBars(node, unit, bars, len(whole.start_ns) - len(bars)))
    return made


__all__ = ["Bar", "Focus", "UnitBars", "instances_around"]
