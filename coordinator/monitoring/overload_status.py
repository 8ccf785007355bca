"""Of `coordinator status`: what a node sheds, how many windows it gives of all, and the share it could give for long.

Counted since the runtime began, so rates are means since then; loads are what is measured now. A window here is given
when it closes: whether its result was in time, the report tells. Empty ones before and behind a feed are not counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from coordinator.monitoring import wording

if TYPE_CHECKING:
    from coordinator.report.facts.windows_view import WindowView
    from protos.plan_document import Plan

PPM = 1_000_000
SHED, WINDOWS, DEGRADED = "shed.", "windows.", "degraded."
ENDS = ("closed", "abandoned", "skipped")


def overload(node: Mapping[str, Any], place: str, plans: Mapping[str, Plan]) -> dict[str, Any]:
    """`queue_limit_bytes`, `shed`, `windows` and `degraded` of a node. plans: those that are known, by hash."""
    counters = node["counters"]
    known = [plans[status["hash"]] for status in node["plans"] if status["hash"] in plans]
    views = {view.name: view for plan in known for view in _views(plan, place)}
    counted = _windows(counters)
    seconds = node["uptime_ns"] / 1e9
    return {
        "queue_limit_bytes": node["queue_limit_bytes"] or _limit(known, place),
        "shed": {
            name.removeprefix(SHED): {"tuples": n, "per_s": n / seconds if seconds else None}
            for name, n in counters.items()
            if name.startswith(SHED) and n
        },
        "windows": {name: _window(counted.get(name, {}), views.get(name)) for name in {**views, **counted}},
        "degraded": {name.removeprefix(DEGRADED): n for name, n in counters.items() if name.startswith(DEGRADED) and n},
    }


def told_here(counter: str) -> bool:
    """Whether a counter is one of those that this tells."""
    return counter.startswith((SHED, WINDOWS, DEGRADED))


def _windows(counters: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """By operator, by what is counted: `windows.OPERATOR.WHAT`."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for name, n in counters.items():
        if name.startswith(WINDOWS) and "." in name.removeprefix(WINDOWS):
            operator, _, what = name.removeprefix(WINDOWS).rpartition(".")
            found[operator][what] = n
    return dict(found)


def _window(counted: Mapping[str, int], view: WindowView | None) -> dict[str, Any]:
    from coordinator.report.summary.best_share import window_bound

    ppm, idle = counted.get("load_ppm", 0), counted.get("empty", 0) - counted.get("empty_within", 0)
    every, given = sum(counted.get(end, 0) for end in ENDS) - idle, counted.get("closed", 0) - idle
    load = Fraction(ppm, PPM) if ppm else None
    best, why = (None, "give --plan") if view is None else window_bound(view, load, view.useful_ns)
    return dict(counted) | {
        "all": every,
        "given": given,
        "idle": idle,
        "share": given / every if every else None,
        "load": None if load is None else float(load),
        "long_run_share": None if best is None else float(best),
        "long_run_share_why": why,
    }


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


def lines(node: Mapping[str, Any]) -> Iterator[str]:
    """For people."""
    if node["shed"]:
        shed = (f"{n['tuples']} {policy} ({n['per_s']:.3g}/s)" for policy, n in node["shed"].items())
        yield f"shed: {', '.join(shed)}"
        yield "  " + "; ".join(f"{policy}: {wording.SHED.get(policy, policy)}" for policy in node["shed"])
    for name, found in node["windows"].items():
        yield f"windows of {name}: {_text(found)}"
        for line in wording.without_result(found):
            yield f"  {line}"
    if node["degraded"]:
        yield "degraded: " + ", ".join(f"{name} {n} times" for name, n in node["degraded"].items())


def _text(found: Mapping[str, Any]) -> str:
    """`40 of 50 given (80 %), 8 abandoned, 2 skipped; 9 not counted: nothing was fed into them; load 1.1`."""
    if not found["all"]:
        text = "none with tuples has ended" if found["idle"] else "none has ended"
    else:
        text = f"{found['given']} of {found['all']} given ({100 * found['share']:.3g} %)"
        text += "".join(f", {found[end]} {end}" for end in ENDS[1:] if found.get(end))
    if found["idle"]:
        text += f"; {found['idle']} not counted: nothing was fed into them"
    if found["load"] is not None:
        from coordinator.report.page.overload_tables import load_text

        text += f"; load {load_text(found['load'])}"
        if found["long_run_share"] is not None:
            text += f", of which in the long run at most {100 * found['long_run_share']:.3g} % can be had"
    return text
