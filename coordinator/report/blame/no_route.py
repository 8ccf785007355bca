"""Tuples that never left, as there was no connection to their peer: its runtime was away, or the link was.

LOST says no_route of both. A runtime was away where the sender's instant lies behind what one of the peer's
incarnations got last, and no later tuple came to that one.
"""

from __future__ import annotations

import numpy as np

from coordinator.report.blame.missed import LINK, LOST, RESTART, Looked, Rows
from coordinator.report.facts.reader import Incarnation, Run
from protos import records as rec


def explained(run: Run, looked: Looked, rows: Rows, crashed: frozenset[int]) -> Rows:
    """The same rows; those that had no route are lost with a runtime, then its own, or on the link."""
    for at in np.flatnonzero((rows["outcome"] == LOST) & (rows["why"] == rec.CAUSE_NO_ROUTE)).tolist():
        sender = run.incarnations[int(rows["incarnation"][at])].node
        away = _away(run, looked, sender, int(rows["peer"][at]), int(rows["at_ns"][at]), crashed)
        rows["why"][at] = LINK if away is None else RESTART
        if away is not None:
            rows["incarnation"][at] = away.number
    return rows


def _away(run: Run, looked: Looked, sender: int, peer: int, at_ns: int, crashed: frozenset[int]) -> Incarnation | None:
    """The peer's runtime that had ended by then; None: one was there. at_ns: on the sender's clock."""
    heard = [
        (*looked.heard[each.number, sender], each)
        for each in run.incarnations
        if each.node == peer and (each.number, sender) in looked.heard
    ]
    if any(first_ns <= at_ns <= last_ns for first_ns, last_ns, _ in heard):
        return None
    before = max((each for each in heard if each[1] < at_ns), key=lambda each: each[1], default=None)
    if before is None:
        return None
    ended = before[2]
    followed = any(first_ns > at_ns for first_ns, _, _ in heard)
    return ended if followed or ended.number in crashed else None


__all__ = ["explained"]
