"""Causes in words."""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.report.blame.causes import Found, Spell
from coordinator.report.blame.planned import Planned
from coordinator.report.blame.shares import SUSPENDED, Subject, largest
from coordinator.report.blame.way import UNKNOWN_NS
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.report_document import Cause, CauseKind
from coordinator.units import show_ns
from protos import records as rec

MOST_USERS = 3
OF_A_SOURCE = ("burst", "admission_age", "policed", "rate")
# of: what the cause names; node; ns: how long it took
WORDS: Mapping[CauseKind, str] = {
    "cost_above_plan": "instances of {of} on {node} ran {ns} longer in all than the plan counts",
    "blocked": "it waited {ns} on {node} for {of}, within what the plan allows",
    "batch": "several tuples ran as one batch on {node}, which took {ns} of its time",
    "running": "{of} on {node} ran for {ns}, as planned",
    "link": "link {of} took {ns} of its time",
    "admission_age": "it was {ns} old as {node} admitted it to source {of}",
    "pause": "the process on {node} stood still for {ns} of its time",
    "inputs": "{of} on {node} waited {ns} for its other inputs",
    "restart": "the runtime on {node} was away for {ns} of its time",
    "window": "window {of} closed {ns} after its end",
    "unknown": "the traces do not tell what it waited for, {ns} of its time",
}
# The same of what time has nothing to do with: it was shed or lost.
OUTRIGHT: Mapping[CauseKind, str] = {
    "partner": "join {of} on {node} gave up waiting for a partner",
    "inputs": "{of} on {node} had no side input that is young enough",
    "policed": "{of} gave more than it declares, and what is beyond is shed on {node}",
    "rate": "source {of} has a limit, and the tuple was above it",
    "queue_full": "a queue on {node} was full, at {of}",
    "overloaded_core": "{node} had more than it can do, and {of} was relieved of it",
    "operator_failed": "{of} on {node} failed",
    "link": "link {of} lost it",
    "window": "window {of} gave no result{why}",
    "restart": "the runtime on {node} ended, with the tuple in it or on its way there",
    "stopped": "the plan took nothing more on {node}",
    "unknown": "the trace of {node} does not tell",
}
# Why a window gave no result, by the word of its WINDOW record.
WINDOW_WORDS = {
    "removed": ": a tuple of it was shed, lost or refused before",
    "deadline": ": it would have been too late",
    "crowded": ": too many were open",
    "value": ": a tuple of it lacks a field, or has no number there",
}
SHORT: Mapping[CauseKind, str] = {
    "cost_above_plan": "cost above plan", "burst": "a burst beyond what was declared",
    "overloaded_core": "an overloaded core", "blocked": "waiting for others", "batch": "a batch",
    "running": "its own running time", "link": "a link", "admission_age": "age at admission", "clock": "clocks",
    "pause": "a pause of the process", "partner": "a partner that did not come", "inputs": "other inputs",
    "policed": "policing",
    "rate": "a source's limit", "queue_full": "a full queue", "operator_failed": "an operator that failed",
    "window": "a window", "restart": "a restart", "stopped": "the plan's end", "unknown": "not known",
}  # fmt: skip


class Words:
    """With the names of a plan."""

    def __init__(self, plan: PlanView, planned: Planned) -> None:
        self.plan, self.planned = plan, planned
        self._several = len(plan.made.queries) > 1

    def cause(self, found: Found) -> Cause:
        """As the report has it. A batch names nobody: operators that run as one were not asked."""
        subject, node = found.subject, self.plan.nodes.get(found.subject.node, "")
        unit = self.plan.units.get(subject.unit)
        name, query = ("" if subject.kind == "batch" else subject.name), ""
        if unit is not None and subject.kind != "batch":
            name, query = unit.label, self.planned.query_of_operators(unit.operators)
        elif subject.kind in OF_A_SOURCE:
            query = self.planned.query_of_source(name)
        of = f"{name} (query {query})" if query and self._several else name
        return Cause(subject.kind, node, name, query, found.ns, self._text(found, node, of))

    def _text(self, found: Found, node: str, of: str) -> str:
        subject = found.subject
        if subject.kind == "clock":
            return self._clock(found, node)
        if subject.name == SUSPENDED:
            return f"the machine of {node} was suspended for {show_ns(found.ns)}"
        if subject.kind == "cost_above_plan" and subject.unit < 0:
            return f"{node} took {show_ns(found.ns)} longer than its plan counts to choose what runs next"
        if subject.kind == "burst":
            return self._burst(found, node, of)
        if subject.kind == "overloaded_core" and found.spell is not None:
            return self._overloaded(found.spell, node)
        words = WORDS if found.ns and subject.kind in WORDS and not found.detail else OUTRIGHT
        why = WINDOW_WORDS.get(rec.WINDOW_CAUSES[found.detail] if found.detail < len(rec.WINDOW_CAUSES) else "", "")
        of, node = of or "what runs there", node or "a node"
        doubt = f", unless {node} stood still: it wrote nothing meanwhile" if found.doubted else ""
        return words[subject.kind].format(of=of, node=node, ns=show_ns(found.ns), why=why) + doubt

    def _clock(self, found: Found, node: str) -> str:
        subject = found.subject
        known = f"its latency is known within {show_ns(found.ns)} only"
        if found.ns >= UNKNOWN_NS // 2:
            known = "nobody knows how long it took at most"
        if subject.name == SUSPENDED:
            return f"{known}: the machine of {node} was suspended"
        return f"{known}: that is what is told of clocks at {subject.name or node}"

    def _burst(self, found: Found, node: str, of: str) -> str:
        curve = self.planned.curve(found.subject.name)
        declared = "" if curve is None else f", {curve.text}"
        return f"source {of} sent more than it declares{declared}; that took {show_ns(found.ns)} of {node}"

    def _overloaded(self, spell: Spell, node: str) -> str:
        whole_ns = max(1, spell.until_ns - spell.from_ns)
        users = [(each, ns) for each, ns in largest(spell.units) if each.unit in self.plan.units][:MOST_USERS]
        told = ", ".join(f"{self._user(each)} {ns / whole_ns:.0%}" for each, ns in users)
        return f"{node} was busy for {spell.busy:.0%} of {show_ns(whole_ns)}: {told}"

    def _user(self, subject: Subject) -> str:
        unit = self.plan.units[subject.unit]
        query = self.planned.query_of_operators(unit.operators)
        return f"{unit.label} (query {query})" if query and self._several else unit.label


__all__ = ["SHORT", "Words"]
