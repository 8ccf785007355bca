"""Causes and misses in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coordinator.report.blame.causes import Found, Spell
from coordinator.report.blame.planned import Planned
from coordinator.report.blame.shares import Subject, largest
from coordinator.report.blame.way import UNKNOWN_NS
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.report_document import Cause, Miss, MissHop
from coordinator.units import counted, show_ns

KIND_WORDS = {
    "cost_above_plan": "cost above plan", "burst": "a burst beyond what was declared", "overloaded_core": "an overloaded core",
    "blocked": "waiting for others", "batch": "a batch", "running": "its own running time", "link": "a link",
    "admission_age": "age at admission", "clock": "clocks", "pause": "a pause of the process",
    "partner": "a partner that did not come", "policed": "policing", "rate": "a source's limit", "queue_full": "a full queue",
    "operator_failed": "an operator that failed", "window": "a window", "restart": "a restart", "stopped": "the plan's end",
    "unknown": "not known",
}  # fmt: skip
MOST_USERS = 3
UNBOUNDED = "nobody knows how long it took at most"


class Words:
    """With the names of a plan."""

    def __init__(self, plan: PlanView, planned: Planned) -> None:
        self.plan, self.planned = plan, planned

    def cause(self, found: Found) -> Cause:
        """As the report has it."""
        subject = found.subject
        unit = self.plan.units.get(subject.unit)
        name = subject.name if unit is None else unit.label
        query = "" if unit is None else self.planned.query_of_operators(unit.operators)
        if subject.kind in {"burst", "admission_age", "policed", "rate"} and unit is None:
            query = self.planned.query_of_source(name)
        node = self.plan.nodes.get(subject.node, "")
        shown = name if subject.kind != "batch" else ""
        return Cause(subject.kind, node, shown, query, found.ns, self._text(found, node, name, query))

    def _text(self, found: Found, node: str, name: str, query: str) -> str:
        subject, ns = found.subject, show_ns(found.ns)
        of = f"{name} (query {query})" if query else name
        match subject.kind:
            case "cost_above_plan":
                return f"{of} on {node} ran {ns} longer than its plan counts"
            case "burst":
                curve = self.planned.curve(name)
                declared = "" if curve is None else f", which declares {curve.text}"
                return f"tuples of source {of} beyond what it declares took {ns} of {node}{declared}"
            case "overloaded_core":
                return self._overloaded(found.spell, node, of)
            case "blocked":
                return f"it waited {ns} on {node} for {of or 'the choice of instances'}, within what the plan allows"
            case "batch":
                return f"several tuples ran as one batch on {node}, which took {ns} of its time"
            case "running":
                return f"{of} on {node} ran for {ns}, as planned"
            case "link":
                late = f"took {ns} of its time" if found.ns else "lost it"
                return f"link {name} {late}"
            case "admission_age":
                return f"it was {ns} old as {node} admitted it to source {of}"
            case "clock":
                about = (
                    "the machine was suspended"
                    if name == "suspended"
                    else f"so much is known of clocks at {name or node}"
                )
                known = f"its latency is known within {ns} only" if found.ns < UNKNOWN_NS // 2 else UNBOUNDED
                return f"{known}: {about}"
            case "pause":
                what = "the machine was suspended" if name == "suspended" else "the process stood still"
                return f"{what} on {node} for {ns}, as far as this result met it"
            case _:
                return self._outright(subject, node, of, found.ns)

    def _outright(self, subject: Subject, node: str, of: str, ns: int) -> str:
        match subject.kind:
            case "partner":
                return f"join {of} on {node} gave up waiting for a partner"
            case "policed":
                return f"{of} gave more than it declares; what is beyond is shed on {node}"
            case "rate":
                return f"source {of} has a limit, and the tuple was above it"
            case "queue_full":
                return f"a queue on {node} was full" + (f": that of {of}" if of else "")
            case "operator_failed":
                return f"{of or 'an operator'} failed on {node}"
            case "window":
                return f"window {of} closed {show_ns(ns)} after its end" if ns else f"window {of} gave no result"
            case "restart":
                gone = f"the runtime on {node} ended with the tuple in it"
                return f"the runtime on {node} was away for {show_ns(ns)} of its time" if ns else gone
            case "stopped":
                return f"the plan took nothing more on {node}"
            case _:
                return f"the trace of {node or 'its nodes'} does not tell"

    def _overloaded(self, spell: Spell | None, node: str, of: str) -> str:
        if spell is None:
            return f"{node} had more than it can do, so {of or 'its shedder'} let it go"
        whole = max(1, spell.until_ns - spell.from_ns)
        users = [
            f"{self.plan.units[each.unit].label} {ns / whole:.0%}"
            for each, ns in largest(spell.units)
            if each.unit in self.plan.units
        ]
        return f"{node} was busy for {spell.busy:.0%} of {show_ns(whole)}: {', '.join(users[:MOST_USERS])}"


def story(miss: Miss) -> str:
    """One miss, with instants from its first one on."""
    zero = miss.hops[0].from_ns if miss.hops else miss.at_ns
    parts = [f"{miss.output}: {miss.source} {miss.epoch}/{miss.seq}"]
    if miss.latency_ns is None:
        parts[0] += f" was {miss.outcome} on {miss.node}"
    else:
        over = show_ns(max(0, miss.latency_ns - miss.deadline_ns))
        ended = {"late": f"came {over} too late", "undecidable": "may have been late"}.get(
            miss.outcome, f"was {miss.outcome} {over} after its deadline"
        )
        parts[0] += f" {ended}, {show_ns(miss.latency_ns)} after its origin"
    parts += _told(miss.hops, zero)
    parts += [
        f"Cause: {each.text}" if number == 0 else f"Also: {each.text}" for number, each in enumerate(miss.causes[:2])
    ]
    return ". ".join(parts) + "."


def _told(hops: Sequence[MissHop], zero: int) -> Iterator[str]:
    clock = 0  # instants of several clocks are put one behind the other
    for hop in hops:
        since = clock
        clock += max(0, hop.until_ns - hop.from_ns)
        if clock - since < 1_000:
            continue
        at, place = f"At {since / 1e6:.3f} ms", ", ".join(hop.place)
        took = show_ns(clock - since)
        match hop.kind:
            case "admission":
                yield f"{at} {place} has it; {hop.node} admits it {took} later"
            case "queue":
                ahead = [
                    f"{counted(each.instances, 'instance')} of {'..'.join(each.operators[:1] + each.operators[1:][-1:])}"
                    for each in hop.waited_for
                ]
                yield f"{at} it waits {took} for {place} on {hop.node}" + (
                    f", behind {', '.join(ahead)}" if ahead else ""
                )
            case "run":
                yield f"{at} {place} runs {took} on {hop.node}"
            case "link":
                yield f"{at} it leaves over {place} and takes {took}"
            case _:
                yield f"{at} it is held back {took} on {hop.node}"


__all__ = ["KIND_WORDS", "Words", "story"]
