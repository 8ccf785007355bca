"""The order of an incarnation's records: its tuples run on one thread.

Instances do not overlap, and each begins no earlier than its decision after the one before. And records are written in
the order of what they are about, but for what is drained from the sockets as an instance ends.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coordinator.report.facts.problems import Fault
from coordinator.report.witness.instants import Found, Instances, instances
from coordinator.report.witness.keys import Bools
from coordinator.report.witness.rows import Rows, joined
from protos import records as rec


class Order:
    """Takes the rows of one incarnation piece by piece. In memory are those of which it is not known yet what ran
    after the instance behind them."""

    def __init__(self) -> None:
        self._rows: Rows | None = None
        self._judged = 0  # rows at the beginning that are there for those behind them

    def take(self, rows: Rows) -> Iterator[Found]:
        """The rows that are out of order, of all that can be judged now."""
        self._rows = rows if self._rows is None else joined([self._rows, rows])
        ran = instances(self._rows)
        last = np.searchsorted(ran.turn, ran.turn[-1]) if len(ran.turn) else 0  # the first of the last turn
        if last > 0:
            yield from self._judge(ran, int(ran.at[last - 1]) + 1)

    def end(self) -> Iterator[Found]:
        """Those of the rest."""
        if self._rows is not None:
            yield from self._judge(instances(self._rows), len(self._rows))

    def _judge(self, ran: Instances, until: int) -> Iterator[Found]:
        """The rows up to a place; the last of them is an instance, but at the end of the trace."""
        assert self._rows is not None
        rows, here = self._rows, np.arange(len(self._rows))
        asked = (here >= self._judged) & (here < until)
        overlapping = np.zeros(len(rows), np.bool_)
        overlapping[ran.at] = _overlapping(ran)
        yield Fault.OVERLAP, rows.where(overlapping & asked)
        yield Fault.OUT_OF_ORDER, rows.where(_out_of_order(rows, ran) & asked)
        self._rows, self._judged = rows.where(here >= until - 1), 1


def _overlapping(ran: Instances) -> Bools:
    """Instances that began before the one before them had ended; and these."""
    wrong = np.zeros(len(ran.at), np.bool_)
    late = (ran.since[1:] < ran.end[:-1]) & (np.diff(ran.turn) > 0)
    wrong[1:] |= late
    wrong[:-1] |= late
    return wrong


def _out_of_order(found: Rows, ran: Instances) -> Bools:
    """Written behind an instance that ended later, or before the one that precedes an instance which began earlier."""
    if not len(ran.at):
        return np.zeros(len(found), np.bool_)
    instant = found.at_ns
    behind = np.searchsorted(ran.at, np.arange(len(found)), side="left")  # instances that were written before
    early = (behind > 0) & (instant < ran.end[np.maximum(behind - 1, 0)])
    first_of_turn = np.flatnonzero(np.diff(ran.turn, prepend=0) > 0)
    second = ran.turn[np.minimum(behind, len(ran.at) - 1)]  # turns count from 1: the place of the turn after that
    has_second = (behind < len(ran.at)) & (second < len(first_of_turn))
    then = first_of_turn[np.minimum(second, len(first_of_turn) - 1)]
    late = has_second & (instant > ran.start[then])
    wrong: Bools = (early | late) & (found.kind != rec.RAN)
    return wrong


__all__ = ["Order"]
