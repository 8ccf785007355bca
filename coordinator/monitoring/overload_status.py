"""Of `coordinator status`: what a node sheds, how many windows it gives of all, and the share it could give for long.

Counted since the runtime began, so rates are means since then; loads are what is measured now. A window here is given
when it closes: whether its result was in time, the report tells. Empty ones before and behind a feed are not counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from coordinator.monitoring import wording

if TYPE_CHECKING:
    from coordinator.monitoring.status_response import PlaceStatus
    from coordinator.report.facts.windows_view import WindowView
    from protos.plan_document import Plan

PPM = 1_000_000
SHED, WINDOWS, DEGRADED = "shed.", "windows.", "degraded."
ENDS = ("closed", "abandoned", "skipped")


@dataclass(frozen=True)
class ShedTuples:
    """Of one policy. per_s: None where the runtime has only just begun."""

    tuples: int
    per_s: float | None

    def document(self) -> dict[str, int | float | None]:
        """For --json."""
        return {"tuples": self.tuples, "per_s": self.per_s}


@dataclass(frozen=True)
class WindowStatus:
    """Of one window operator. counted: its counters by name; idle: windows that nothing was fed into.

    long_run_share_why: why there is no such share.
    """

    counted: Mapping[str, int]
    all: int
    given: int
    idle: int
    load: float | None
    long_run_share: float | None
    long_run_share_why: str | None

    @property
    def share(self) -> float | None:
        """Of all windows, those that were given. None where none has ended."""
        return self.given / self.all if self.all else None

    def document(self) -> dict[str, int | float | str | None]:
        """For --json."""
        return {
            **self.counted,
            "all": self.all,
            "given": self.given,
            "idle": self.idle,
            "share": self.share,
            "load": self.load,
            "long_run_share": self.long_run_share,
            "long_run_share_why": self.long_run_share_why,
        }


@dataclass(frozen=True)
class OverloadStatus:
    """Of one place. shed: by policy; windows: by operator; degraded: how often, by operator."""

    queue_limit_bytes: int | None
    shed: Mapping[str, ShedTuples]
    windows: Mapping[str, WindowStatus]
    degraded: Mapping[str, int]

    def document(self) -> dict[str, object]:
        """For --json."""
        return {
            "queue_limit_bytes": self.queue_limit_bytes,
            "shed": {policy: shed.document() for policy, shed in self.shed.items()},
            "windows": {name: window.document() for name, window in self.windows.items()},
            "degraded": dict(self.degraded),
        }


def overload(status: PlaceStatus, place: str, plans: Mapping[str, Plan]) -> OverloadStatus:
    """What a place sheds and how many windows it gives. plans: by hash, if known."""
    known = [plans[each.hash] for each in status.plans if each.hash in plans]
    views = {view.name: view for plan in known for view in _views(plan, place)}
    counted = _windows(status.counters)
    seconds = status.uptime_ns / 1e9
    return OverloadStatus(
        queue_limit_bytes=status.queue_limit_bytes or _limit(known, place),
        shed={
            name.removeprefix(SHED): ShedTuples(n, n / seconds if seconds else None)
            for name, n in status.counters.items()
            if name.startswith(SHED) and n
        },
        windows={name: _window(counted.get(name, {}), views.get(name)) for name in {**views, **counted}},
        degraded={
            name.removeprefix(DEGRADED): n for name, n in status.counters.items() if name.startswith(DEGRADED) and n
        },
    )


def is_overload(counter: str) -> bool:
    """Whether a counter is one of those that an OverloadStatus is made of."""
    return counter.startswith((SHED, WINDOWS, DEGRADED))


def _windows(counters: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """By operator, by what is counted: `windows.OPERATOR.WHAT`."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for name, n in counters.items():
        if name.startswith(WINDOWS) and "." in name.removeprefix(WINDOWS):
            operator, _, what = name.removeprefix(WINDOWS).rpartition(".")
            found[operator][what] = n
    return dict(found)


def _window(counted: Mapping[str, int], view: WindowView | None) -> WindowStatus:
    from coordinator.report.summary.best_share import window_bound

    ppm, idle = counted.get("load_ppm", 0), counted.get("empty", 0) - counted.get("empty_within", 0)
    every, given = sum(counted.get(end, 0) for end in ENDS) - idle, counted.get("closed", 0) - idle
    load = Fraction(ppm, PPM) if ppm else None
    best, why = (None, "give --plan") if view is None else window_bound(view, load, view.useful_ns)
    return WindowStatus(
        counted=counted,
        all=every,
        given=given,
        idle=idle,
        load=None if load is None else float(load),
        long_run_share=None if best is None else float(best),
        long_run_share_why=why,
    )


def _views(plan: Plan, place: str) -> Iterator[WindowView]:
    """The windows that a plan collects at a place."""
    from coordinator.report.facts.plan_view import PlanUnreadableError, read_plan

    if not plan.graph.windows:
        return
    try:
        view = read_plan(plan)
    except PlanUnreadableError:  # what it says of windows is not needed to tell the rest
        return
    yield from (each for each in view.windows.values() if view.nodes[each.node] == place)


def _limit(plans: list[Plan], place: str) -> int | None:
    """The most bytes that any of the plans lets the place queue, where one says so."""
    most = max((plan.nodes[place].memory_bytes for plan in plans if place in plan.nodes), default=0)
    return most or None


def lines(found: OverloadStatus) -> Iterator[str]:
    """For people."""
    if found.shed:
        shed = (f"{one.tuples} {policy}{_rate(one)}" for policy, one in found.shed.items())
        yield f"shed: {', '.join(shed)}"
        yield "  " + "; ".join(f"{policy}: {wording.SHED.get(policy, policy)}" for policy in found.shed)
    for name, window in found.windows.items():
        yield f"windows of {name}: {_text(window)}"
        for line in wording.without_result(window.counted):
            yield f"  {line}"
    if found.degraded:
        yield "degraded: " + ", ".join(f"{name} {n} times" for name, n in found.degraded.items())


def _rate(shed: ShedTuples) -> str:
    return "" if shed.per_s is None else f" ({shed.per_s:.3g}/s)"


def _text(window: WindowStatus) -> str:
    """`40 of 50 given (80 %), 8 abandoned, 2 skipped; 9 not counted: nothing was fed into them; load 1.1`."""
    if window.share is None:
        text = "none with tuples has ended" if window.idle else "none has ended"
    else:
        text = f"{window.given} of {window.all} given ({100 * window.share:.3g} %)"
        text += "".join(f", {window.counted[end]} {end}" for end in ENDS[1:] if window.counted.get(end))
    if window.idle:
        text += f"; {window.idle} not counted: nothing was fed into them"
    if window.load is not None:
        from coordinator.report.page.overload_tables import load_text

        text += f"; load {load_text(window.load)}"
        if window.long_run_share is not None:
            text += f", of which in the long run at most {100 * window.long_run_share:.3g} % can be had"
    return text
