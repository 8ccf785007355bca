"""What became of each output in one sentence, and why: what the page says first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from coordinator.report import missed_share
from coordinator.report.page.run_labels import brief
from coordinator.report.report_document import Cause, Output, Report
from coordinator.units import show_ns

State = Literal["missed", "perhaps", "met", "nothing"]
BADGES: Mapping[State, tuple[str, str]] = {  # how it looks, and what it says
    "missed": ("bad", "missed"),
    "perhaps": ("warn", "may be missed"),
    "met": ("good", "met"),
    "nothing": ("none", "no result"),
}
ORDER: tuple[State, ...] = ("missed", "perhaps", "nothing", "met")
CAUSES: Mapping[str, str] = {  # by CauseKind
    "cost_above_plan": "operators ran longer than planned",
    "burst": "tuples came in bursts beyond what was declared",
    "overloaded_core": "a core had more to do than it can",
    "blocked": "they waited for other work",
    "batch": "they waited for their batch",
    "running": "operators took the time",
    "link": "links took long, or lost them",
    "admission_age": "tuples were old when they were admitted",
    "clock": "clocks could not be compared",
    "pause": "a process stood still",
    "partner": "a join waited for its partner",
    "inputs": "operators waited for their other inputs, or lacked one",
    "policed": "tuples came beyond what was declared, and were left out",
    "rate": "tuples came above their source's limit",
    "queue_full": "queues were full",
    "operator_failed": "operators failed",
    "window": "windows gave no result",
    "restart": "a runtime was restarted",
    "stopped": "the plan was stopped",
    "unknown": "of what no record explains",
}


def state(found: Output) -> State:
    """By the interval of what was missed."""
    share = found.missed_of_offered
    if share is None:
        return "nothing"
    return "missed" if share[0] > 0 else "perhaps" if share[1] > 0 else "met"


def sentence(report: Report, name: str, away: tuple[int, str] = (0, "")) -> str:
    """Of one output, without its name. away: how many of its misses were under way while a node was away, and which."""
    found = report.outputs[name]
    deadline, share = show_ns(found.deadline_ns), found.missed_of_offered
    if share is None:
        return f"nothing was offered that leads to a result within {deadline}"
    if state(found) == "met":
        return f"{_all(found.met)} met the deadline of {deadline}{_room(found)}"
    undecided, text = sum(found.between.values()), missed_share.text(share)
    if not found.missed or not share[0]:
        return f"{undecided:,} results may have missed the deadline of {deadline} ({text}); {found.met:,} met it"
    whole = round(found.missed / share[0]) - undecided + found.between.get(missed_share.WINDOWS, 0)
    told = f"{found.missed:,} of {whole:,} {'result' if whole == 1 else 'results'} ({text})"
    told += f" missed the deadline of {deadline}"
    more = f"; {undecided:,} more may have" if undecided else ""
    return f"{told}{_ends(found)}{_while(found, *away) or because(report, name)}{more}"


def _while(found: Output, times: int, node: str) -> str:
    """Where it is most of what was missed, which says more than what else they waited for."""
    if 2 * times < found.missed or not times:
        return ""
    return f", {'all' if times == found.missed else f'{times:,}'} of them while {node} was away"


def _ends(found: Output) -> str:
    """How what was missed ended, where not all was late."""
    ends = {"late": found.late, "shed": found.shed, "lost": found.lost}
    there = [f"{n:,} {how}" for how, n in ends.items() if n]
    return "" if not there or found.late == found.missed else f" ({', '.join(there)})"


def _all(met: int) -> str:
    return "the only result" if met == 1 else f"all {met:,} results"


def _room(found: Output) -> str:
    if found.latency_ns.max is None:
        return ""
    return f"; the slowest took {brief(found.latency_ns.max)}"


def because(report: Report, name: str) -> str:
    """The most frequent main cause of what was missed, with an example; where no cause is known, what took longest."""
    kinds = report.misses.by_cause.get(name, {}) if report.misses is not None else {}
    if not kinds:
        return _longest(report, name)
    kind, times = max(kinds.items(), key=lambda item: item[1])
    whole = sum(kinds.values())
    mostly = "" if times == whole else f" mostly ({times:,} of {whole:,})"
    cause = _example(report, name, kind)
    text = CAUSES.get(kind, kind.replace("_", " "))
    where = f" ({cause.subject} on {cause.node})" if cause and cause.subject and cause.node else ""
    return f",{mostly} because {text}{where}"


def _example(report: Report, name: str, kind: str) -> Cause | None:
    assert report.misses is not None
    mains = (miss.causes[0] for miss in report.misses.worst if miss.output == name and miss.causes)
    return next((cause for cause in mains if cause.kind == kind), None)


def _longest(report: Report, name: str) -> str:
    split, found = report.latency_breakdowns.get(name), report.outputs[name]
    if 2 * found.late < found.missed:
        return ""  # how long results took says nothing of those that never came
    if split is None or not split.results:
        return ""
    hop = max(split.hops, key=lambda one: one.tail_share or 0.0, default=None)
    if hop is None or not hop.tail_share or hop.kind == "rest":
        return ""
    return f"; the slowest spent {100 * hop.tail_share:.0f} % of their time {_doing(hop.hop)}"


def _doing(hop: str) -> str:
    return hop if hop.startswith(("queued", "running")) else f"on the {hop}" if hop.startswith("link") else f"as {hop}"


def overall(report: Report) -> str:
    """Of all outputs."""
    states = [state(found) for found in report.outputs.values()]
    counts = {each: states.count(each) for each in ORDER}
    total = len(states)
    if not total:
        return "The plan has no output."
    if counts["met"] == total:
        return f"{_every(total)} met every deadline."
    if counts["nothing"] == total:
        return "Nothing was offered, so there is nothing to judge."
    if counts["missed"] == total > 1:
        return f"{_every(total)} missed deadlines."
    parts = [f"{counts['missed']} of {total} outputs missed deadlines" if total > 1 else ""]
    if total == 1:
        parts = ["Deadlines were missed" if counts["missed"] else "Deadlines may have been missed"]
    elif not counts["missed"]:
        parts = []
    if total > 1 and counts["perhaps"]:
        parts.append(f"{counts['perhaps']} may have")
    if total > 1 and counts["nothing"]:
        parts.append(f"{counts['nothing']} had nothing to do")
    if total > 1 and counts["met"]:
        parts.append(f"{counts['met']} met all of theirs")
    text = ", ".join(parts)
    return text[0].upper() + text[1:] + "."


def _every(total: int) -> str:
    return {1: "The output", 2: "Both outputs"}.get(total, f"All {total} outputs")


__all__ = ["BADGES", "CAUSES", "ORDER", "because", "overall", "sentence", "state"]
