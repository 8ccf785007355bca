"""Windows that nothing was fed into: empty ones before the first and behind the last that has tuples, in plain Python.

Windows by time close as long as their plan runs, also when the feed has ended. What came of them says nothing of how
windows fared, so no share counts them. As columns in spark_counts.py.
"""

from collections.abc import Iterable, Sequence

from coordinator.report.ledger.balance_sheet import Row
from protos.records import WINDOW_CLOSED
from protos.records import Window as WindowRecord

Window = tuple[int, int, int]  # source, epoch, seq


def idle_windows(rows: Iterable[Row]) -> frozenset[Window]:
    """Of each incarnation and source of windows. rows: of the run's plans, facts among them."""
    closed = [(one, r) for one, r in rows if type(r) is WindowRecord and r.state == WINDOW_CLOSED]
    fed = _fed(closed)
    return frozenset(
        (r.source, r.epoch, r.seq) for incarnation, r in closed if not r.tuples and not _within(r, fed, incarnation)
    )


def _fed(closed: Sequence[tuple[int, WindowRecord]]) -> dict[tuple[int, int], tuple[int, int]]:
    """By incarnation and source: the first and the last window with tuples."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for incarnation, r in closed:
        if r.tuples:
            first, last = found.get((incarnation, r.source), (r.seq, r.seq))
            found[incarnation, r.source] = min(first, r.seq), max(last, r.seq)
    return found


def _within(r: WindowRecord, fed: dict[tuple[int, int], tuple[int, int]], incarnation: int) -> bool:
    first, last = fed.get((incarnation, r.source), (1, 0))
    return first <= r.seq <= last


__all__ = ["idle_windows"]
