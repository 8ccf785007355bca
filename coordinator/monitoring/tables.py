"""Tables of nodes and outputs, column by column: the same live, as text, and in `coordinator status`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from coordinator.monitoring.metrics import Node, Output, Unit
from coordinator.report import missed_share

NONE = "-"
FULL = 0.95  # of a core, or of what queues may hold

Row = TypeVar("Row")


@dataclass(frozen=True)
class Column(Generic[Row]):
    """title: at most 9 characters wide where it can be. key: to sort by; None stands last. bad: whether a cell is to
    be looked at: it is marked with an exclamation mark, in colour as well where there is any."""

    title: str
    text: Callable[[Row], str]
    key: Callable[[Row], Any]
    meaning: str
    right: bool = True
    bad: Callable[[Row], bool] = lambda _: False

    def cell(self, row: Row) -> str:
        """With its mark."""
        return self.text(row) + ("!" if self.bad(row) else "")


def ordered(rows: Sequence[Row], column: Column[Row], most_first: bool) -> list[Row]:
    """Sorted by a column; what has no value there stands last either way."""
    there = [row for row in rows if column.key(row) is not None]
    there.sort(key=column.key, reverse=most_first)
    return there + [row for row in rows if column.key(row) is None]


def duration(ns: int | None) -> str:
    """Three digits: `12.3 ms`."""
    return NONE if ns is None else _scaled(ns, (("s", 10**9), ("ms", 10**6), ("us", 10**3)), "ns", " ")


def size(n: int | None) -> str:
    """`3.2M`: bytes, binary."""
    return NONE if n is None else _scaled(n, (("G", 2**30), ("M", 2**20), ("k", 2**10)), "")


def count(n: int | None) -> str:
    """`12.3k`; below ten thousand every digit."""
    return NONE if n is None else str(n) if n < 10**4 else _scaled(n, (("G", 10**9), ("M", 10**6), ("k", 10**3)), "")


def _scaled(value: int, units: tuple[tuple[str, int], ...], least: str, gap: str = "") -> str:
    unit, scale = next(((unit, at) for unit, at in units if abs(value) >= at), (least, 1))
    return f"{digits(value / scale)}{gap}{unit}"


def digits(value: float) -> str:
    """Three of them, not 1.2e+03."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def rate(per_s: float | None) -> str:
    """Three digits."""
    if per_s is None:
        return NONE
    return count(round(per_s)) if per_s >= 1000 else digits(per_s)


def percent(share: float | None) -> str:
    """`12.3%`."""
    return NONE if share is None else f"{digits(100 * share)}%"


def _filled(node: Node) -> bool:
    return bool(node.queue_limit_bytes) and node.queue_bytes >= FULL * (node.queue_limit_bytes or 1)


def _of_reachable(text: Callable[[Node], str]) -> Callable[[Node], str]:
    return lambda node: text(node) if node.reachable else ""


NODES: tuple[Column[Node], ...] = (
    Column("node", lambda n: n.name, lambda n: n.name, "the node, or one of its cores (a.1)", right=False),
    Column("version", _of_reachable(lambda n: n.version or NONE), lambda n: n.version, "of the agent", right=False),
    Column(
        "rt", _of_reachable(lambda n: "yes" if n.rt else "no"), lambda n: n.rt,
        "whether it runs in the real-time class ('node-agent doctor' says what keeps it from that)", right=False,
    ),
    Column(
        "plan", lambda n: n.state if n.reachable else "unknown", lambda n: n.state,
        "committed: tuples are admitted; draining: what is under way ends; no runtime: it is being started again",
        right=False, bad=lambda n: not n.well,
    ),
    Column(
        "use", _of_reachable(lambda n: percent(n.utilisation)), lambda n: n.utilisation,
        "of one core, by operators, choosing and sockets", bad=lambda n: (n.utilisation or 0) >= FULL,
    ),
    Column(
        "queue", _of_reachable(lambda n: size(n.queue_bytes)), lambda n: n.queue_bytes,
        "bytes that wait, about", bad=_filled,
    ),
    Column(
        "limit", _of_reachable(lambda n: size(n.queue_limit_bytes)), lambda n: n.queue_limit_bytes,
        "bytes that may; then sources are refused, or tuples shed",
    ),
    Column(
        "shed/s", _of_reachable(lambda n: rate(n.shed_per_s)), lambda n: n.shed_per_s,
        "tuples, results and windows that were not run or given", bad=lambda n: bool(n.shed_per_s),
    ),
    Column(
        "lost", _of_reachable(lambda n: count(n.lost)), lambda n: n.lost,
        "tuples lost, or given up on their way to another node, since the runtime began", bad=lambda n: bool(n.lost),
    ),
    Column(
        "rst", _of_reachable(lambda n: str(n.restarts)), lambda n: n.restarts,
        "restarts of its runtime since the agent began", bad=lambda n: bool(n.restarts),
    ),
    Column(
        "slack", _of_reachable(lambda n: duration(n.slack_ns)), lambda n: n.slack_ns,
        "the least that an instance had left of its unit's sub-deadline within the last seconds, of those that were "
        "timed; below 0 is late by the plan, not yet a miss",
        bad=lambda n: n.slack_ns is not None and n.slack_ns < 0,
    ),
)  # fmt: skip
OUTPUTS: tuple[Column[Output], ...] = (
    Column("output", lambda o: o.name, lambda o: o.name, "of a query", right=False),
    Column("at", lambda o: o.place, lambda o: o.place, "where it is delivered", right=False),
    Column("deadline", lambda o: duration(o.deadline_ns), lambda o: o.deadline_ns, "from origin to result"),
    Column(
        "bound", lambda o: duration(o.bound_ns), lambda o: o.bound_ns,
        "that the plan promises, or has from admission on; -: none, or the plan is not known (--plan)",
    ),
    Column(
        "results/s", lambda o: "no answer" if o.silent else rate(o.per_s), lambda o: o.per_s,
        "delivered; no answer: of its node", bad=lambda o: o.silent,
    ),
    Column(
        "missed", lambda o: missed_share.text(o.missed_of_offered),
        lambda o: o.missed_of_offered[1] if o.missed_of_offered else None,
        "of what was offered: from what came late to all that may be missing (refused, policed, shed, lost, unknown)",
        bad=lambda o: missed_share.is_missed(o.missed_of_offered),
    ),
    Column("p99", lambda o: duration(o.p99_ns), lambda o: o.p99_ns, "99 of 100 results took at most so long"),
    Column("max", lambda o: duration(o.most_ns), lambda o: o.most_ns, "and none longer"),
    Column(
        "slack", lambda o: duration(o.slack_ns), lambda o: o.slack_ns, "what the slowest had left of the deadline",
        bad=lambda o: o.slack_ns is not None and o.slack_ns < 0,
    ),
    Column(
        "shed/s", lambda o: rate(o.shed_per_s), lambda o: o.shed_per_s,
        "tuples shed before it; what leads to several outputs counts for each", bad=lambda o: bool(o.shed),
    ),
)  # fmt: skip
UNITS: tuple[Column[Unit], ...] = (
    Column("unit", lambda u: str(u.id), lambda u: u.id, "number in the plan"),
    Column("operators", lambda u: ", ".join(u.operators), lambda u: u.operators, "that it runs", right=False),
    Column("runs/s", lambda u: rate(u.per_s), lambda u: u.per_s, "tuples that ran to their end"),
    Column("queued", lambda u: count(u.queued), lambda u: u.queued, "tuples that wait"),
    Column("sub-deadl.", lambda u: duration(u.sub_deadline_ns), lambda u: u.sub_deadline_ns, "sub-deadline"),
    Column("mean", lambda u: duration(u.mean_ns), lambda u: u.mean_ns, "from release to end, waiting included"),
    Column(
        "longest", lambda u: duration(u.recent_ns), lambda u: u.recent_ns, "within the last seconds",
        bad=lambda u: (u.recent_ns or 0) > u.sub_deadline_ns,
    ),
    Column("ever", lambda u: duration(u.worst_ns), lambda u: u.worst_ns, "the longest since the plan was loaded"),
    Column("shed", lambda u: count(u.shed), lambda u: u.shed, "tuples", bad=lambda u: bool(u.shed)),
    Column("lost", lambda u: count(u.lost), lambda u: u.lost, "tuples", bad=lambda u: bool(u.lost)),
)  # fmt: skip
TIMED = "Times are of the instances that were timed: one in a millisecond at most, every one on an emulated node."
INDICATION = (
    "An indication while things run: each tuple that was refused, policed, shed or lost counts as a missing result, "
    "even where a filter would have removed it. "
    "The verdict is the report's ('coordinator collect', 'coordinator report')."
)
