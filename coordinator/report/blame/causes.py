"""The causes of a miss, the main one first: what goes beyond plan and declarations before what the plan allows.

A cause is the main one where the result would have been in time without it, or nearly. What lies beyond counts first:
a declaration that held is to blame for nothing as long as one that did not is enough. A core that was busy for longer
than periods and deadlines explain, without anything beyond, is overloaded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from coordinator.report.blame import way
from coordinator.report.blame.core_timeline import STILL_NS, Span
from coordinator.report.blame.missed import LINK, RESTART, SHED, UNDECIDABLE
from coordinator.report.blame.shares import SUSPENDED, Evidence, Shared, Shares, Subject, largest, total
from coordinator.report.blame.way import Stretch
from coordinator.report.facts.reader import Incarnation
from coordinator.report.report_document import CauseKind
from protos import records as rec

NEARLY = 0.5  # of what a result was late by
# Of its latency: what took less is no main cause, although the result was late by less than that. Links and ages vary,
# and nobody declares by how much; what is above plan elsewhere has a margin of its own.
MINOR, MINOR_VARIED = 0.02, 0.1
VARIED = ("link", "admission_age")
EARLY = 0.5  # of its deadline, before which a tuple was given up although it was not late yet
FULL = 0.95  # of a core's time
MOST_CAUSES = 6
LEAST_SHARE = 0.05  # of the latency, below which nothing is told beside the main cause
PERIODS, DEADLINES = 3, 2  # a busy spell longer than so many of the longest is an overload


@dataclass(frozen=True, slots=True)
class Spell:
    """A busy spell: how much of it was used, and by whom."""

    from_ns: int
    until_ns: int
    busy: float
    units: Shares  # ns by ("overloaded_core", node, unit)


@dataclass(frozen=True, slots=True)
class Found:
    """A cause as it is known here. spell: of an overloaded core; detail: of a window without a result: the cause of its
    WINDOW record; doubted: the node may have stood still in its place."""

    subject: Subject
    ns: int
    spell: Spell | None = None
    detail: int = 0
    doubted: bool = False


LOST_AS: dict[int, CauseKind] = {
    rec.CAUSE_OPERATOR_ERROR: "operator_failed", rec.CAUSE_OPERATOR_HUNG: "operator_failed",
    rec.CAUSE_DECODE: "operator_failed", rec.CAUSE_ENCODE: "operator_failed", rec.CAUSE_ORDINALS: "operator_failed",
    rec.CAUSE_QUEUE_FULL: "queue_full", rec.CAUSE_LINK_FULL: "queue_full", rec.CAUSE_JOIN_EXPIRED: "partner",
    rec.CAUSE_NO_ROUTE: "link", rec.CAUSE_STOPPED: "stopped", RESTART: "restart", LINK: "link",
}  # fmt: skip
SHED_AS: dict[int, CauseKind] = {
    rec.POLICY_RATE: "rate", rec.POLICY_MEMORY: "queue_full", rec.POLICY_ARRIVALS: "policed",
    rec.POLICY_SELECTIVITY: "policed", rec.POLICY_WINDOW: "window", rec.POLICY_WINDOW_AWARE: "overloaded_core",
    rec.POLICY_RANDOM: "overloaded_core", rec.POLICY_FRONT: "queue_full", rec.POLICY_DROP_TAIL: "queue_full",
    rec.POLICY_STALE: "inputs",
}  # fmt: skip
# Shed because time had gone by, or because there was not enough of it for all: looked at like a late result
BY_TIME = (rec.POLICY_LATE, rec.POLICY_OUTDATED, rec.POLICY_EXCESS)


WINDOW_AS: dict[int, CauseKind] = {
    rec.WINDOW_CAUSES.index("memory"): "queue_full", rec.WINDOW_CAUSES.index("error"): "operator_failed",
    rec.WINDOW_CAUSES.index("stopped"): "stopped",
}  # fmt: skip


TOO_LATE = rec.WINDOW_CAUSES.index("deadline")


def told_outright(outcome: int, why: int, detail: int) -> CauseKind | None:
    """The cause that a record says itself; None: time has to be looked at. detail: the cause of WINDOW."""
    if outcome == SHED and why == rec.POLICY_WINDOW:
        return None if detail == TOO_LATE else WINDOW_AS.get(detail, "window")
    if outcome == SHED:
        return None if why in BY_TIME else SHED_AS.get(why, "unknown")
    return LOST_AS.get(why, "unknown") if outcome > UNDECIDABLE else None


class Judge:
    """Names causes. unsound: incarnations whose traces may lack what kept a tuple waiting."""

    def __init__(self, evidence: Evidence, unsound: frozenset[int]) -> None:
        self.evidence, self.unsound = evidence, unsound

    def undecidable(self, stretches: Sequence[Stretch], shared: Shared, width_ns: int) -> list[Found]:
        """Of a result of which nobody knows whether it was in time."""
        slept = [
            Found(Subject("clock", each.node, -1, each.name), ns)
            for each, ns in shared.beyond.items()
            if each.name == SUSPENDED
        ]
        unsure = [Found(each, ns) for each, ns in largest(shared.unsure)]
        if slept or unsure:
            found = [replace(each, ns=min(each.ns, max(0, width_ns))) for each in (*slept, *unsure)]
            if not slept and 2 * sum(each.ns for each in found) < width_ns:  # more was unknown as it came
                found[0] = replace(found[0], ns=width_ns)
            return found[:MOST_CAUSES]
        at = stretches[-1].at.node if stretches else -1
        return [Found(Subject("clock" if width_ns > 0 else "unknown", at), width_ns)]

    def late(self, stretches: Sequence[Stretch], shared: Shared, latency_ns: int, over_ns: int) -> list[Found]:
        """Of a result that came too late, or was given up for that. over_ns: by how much."""
        unknown = self._unknown(stretches, latency_ns)
        if unknown is not None:
            return [unknown]
        if latency_ns < EARLY * (latency_ns - over_ns):
            return [self._given_up_early(stretches[-1])]
        main = self._main(shared, latency_ns, max(1, over_ns)) or self._allowed(shared, latency_ns)
        return self._with_others(main, shared, latency_ns)

    def given_up(self, stretches: Sequence[Stretch], shared: Shared, latency_ns: int) -> list[Found]:
        """Of what was shed for others although it could have been in time. Anything that goes beyond the plan is
        enough, of the time that it took or of what the node did for the others."""
        unknown = self._unknown(stretches, latency_ns)
        if unknown is not None:
            return [unknown]
        main = self._main(shared, latency_ns, 1) or self._crowded(stretches[-1])
        return self._with_others(main, shared, latency_ns)

    def _crowded(self, last: Stretch) -> Found:
        """What kept a node busy as it gave a tuple up: what goes beyond the plan, if the rest would have been no
        overload, else that there was too much."""
        node, timeline = last.at.node, self.evidence.timeline(last.at)
        from_ns, until_ns = timeline.spell(last.until_ns)
        span = timeline.span(from_ns, until_ns)
        roots = self._beyond_in(node, span)
        rest_ns = span.busy_ns + span.deciding_ns - sum(roots.values())
        if roots and rest_ns < FULL * (until_ns - from_ns):
            return Found(*next(largest(roots)))
        return Found(Subject("overloaded_core", node, last.unit), 0)

    def _unknown(self, stretches: Sequence[Stretch], latency_ns: int) -> Found | None:
        """Where traces lack something of the way."""
        lacking = [each.at.node for each in stretches if each.at.number in self.unsound]
        if stretches and not lacking and stretches[0].kind == way.ADMISSION:
            return None
        at = lacking[0] if lacking else (stretches[0].at.node if stretches else -1)
        known = sum(each.ns for each in stretches)
        return Found(Subject("unknown", at), max(0, latency_ns - (0 if lacking else known)))

    def _with_others(self, main: Found, shared: Shared, latency_ns: int) -> list[Found]:
        """The main cause, and what else took much of its time."""
        others = [
            Found(each, ns)
            for each, ns in largest({**shared.within, **shared.beyond})
            if each != main.subject and ns >= LEAST_SHARE * latency_ns and each.kind != "unknown"
        ]
        found = [replace(each, doubted=each.subject in shared.doubted) for each in (main, *others)]
        return found[:MOST_CAUSES]

    def _given_up_early(self, last: Stretch) -> Found:
        """Much of the time was left, and a policy expected more of the work that remains: no time that went by is the
        cause. Where the unit that it waited for is known to run longer than planned, that is."""
        timeline = self.evidence.timeline(last.at)
        above = timeline.above_of(last.unit)
        longest_ns = int(above.max(initial=0))
        kind: CauseKind = "cost_above_plan" if longest_ns > 0 else "unknown"
        return Found(Subject(kind, last.at.node, last.unit if longest_ns > 0 else -1), longest_ns)

    def _main(self, shared: Shared, latency_ns: int, over_ns: int) -> Found | None:
        """None: nothing beyond the plan is enough, and no core is overloaded."""
        beyond = _most_beyond(shared, latency_ns)
        if beyond is not None and beyond[1] >= over_ns:
            return Found(*beyond)
        spell = self._spell(shared)
        overloaded = spell is not None and self._overloaded(spell)
        if spell is not None:
            root = self._root(shared, spell, over_ns)
            if root is not None:
                return root
        if beyond is not None and beyond[1] >= NEARLY * over_ns:
            return Found(*beyond)
        if spell is not None and overloaded and shared.busiest_ns >= NEARLY * over_ns:
            top = next(largest(spell.units))
            return Found(top[0], shared.busiest_ns, spell)
        return None

    def _allowed(self, shared: Shared, latency_ns: int) -> Found:
        """Nothing beyond the plan is enough: its own waits and costs are too long for the deadline."""
        blocked = total(shared.within, ["blocked"])
        other = next(
            largest({each: ns for each, ns in shared.within.items() if each.kind not in {"blocked", "unknown"}}), None
        )
        running = total(shared.within, ["running"])
        if blocked > 0 and blocked >= max(running, 0 if other is None else other[1]):
            each, ns = next(largest({one: ns for one, ns in shared.within.items() if one.kind == "blocked"}))
            return Found(each, blocked if each.unit < 0 else ns)
        if other is not None:
            return Found(*other)
        beyond = _most_beyond(shared, latency_ns)
        return Found(*beyond) if beyond is not None else Found(Subject("unknown", -1), 0)

    def _spell(self, shared: Shared) -> Spell | None:
        """The whole busy spell that a miss waited in longest."""
        each = shared.busiest
        if each is None:
            return None
        timeline = self.evidence.timeline(each.at)
        began_ns, ended_ns = timeline.spell(min(each.until_ns, each.started_ns or each.until_ns) - 1)
        return self._used(each.at, min(began_ns, each.from_ns), max(ended_ns, each.until_ns))

    def _used(self, at: Incarnation, from_ns: int, until_ns: int) -> Spell:
        span = self.evidence.timeline(at).span(from_ns, until_ns)
        units: Shares = defaultdict(int)
        for unit in np.unique(span.unit).tolist():
            mine = span.unit == unit
            units[Subject("overloaded_core", at.node, unit)] = int((span.plain + span.batch + span.above)[mine].sum())
        return Spell(from_ns, until_ns, (span.busy_ns + span.deciding_ns) / max(1, until_ns - from_ns), units)

    def _overloaded(self, spell: Spell) -> bool:
        return spell.busy >= FULL and spell.until_ns - spell.from_ns >= self._long_ns()

    def _long_ns(self) -> int:
        deadlines = [each.deadline_ns for each in self.evidence.plan.outputs.values()]
        return max(PERIODS * self.evidence.planned.longest_period_ns, DEADLINES * min(deadlines, default=0))

    def _root(self, shared: Shared, spell: Spell, over_ns: int) -> Found | None:
        """What began or kept up the busy spell, if that goes beyond plan or declarations by enough."""
        each = shared.busiest
        assert each is not None
        timeline = self.evidence.timeline(each.at)
        pause = self._pause_before(each.at, spell.from_ns)
        if pause > NEARLY * over_ns:
            return Found(Subject("pause", each.at.node), pause)
        overloaded = self._overloaded(spell)
        span = timeline.span(spell.from_ns, spell.until_ns if overloaded else each.until_ns)
        roots = self._beyond_in(each.at.node, span)
        top = next(largest(roots), None)
        if top is None:
            return None
        whole_ns = max(1, spell.until_ns - spell.from_ns)
        subject, ns = top
        if overloaded:
            enough = (span.busy_ns + span.deciding_ns - sum(roots.values())) / whole_ns < FULL
        else:
            enough = ns >= over_ns
        return Found(subject, min(ns, shared.busiest_ns)) if enough else None

    def _beyond_in(self, node: int, span: Span) -> Shares:
        found: Shares = defaultdict(int)
        sources = self.evidence.excess.of(span.code)
        for source in np.unique(sources[sources >= 0]).tolist():
            name = self.evidence.planned.source_name(source)
            found[Subject("burst", node, -1, name)] += span.left_of((span.plain + span.batch) * (sources == source))
        for unit in np.unique(span.unit[span.above > 0]).tolist():
            found[Subject("cost_above_plan", node, unit)] += span.left_of(span.above * (span.unit == unit))
        return found

    def _pause_before(self, at: Incarnation, spell_ns: int) -> int:
        """How long the node had stood still before a spell began, if it had."""
        if at.virtual:
            return 0
        timeline = self.evidence.timeline(at)
        from_ns, until_ns = timeline.silence(spell_ns - 2_000_000_000, spell_ns + STILL_NS)
        if spell_ns - until_ns > STILL_NS or until_ns - from_ns < 4 * STILL_NS:
            return 0
        return until_ns - from_ns if self.evidence.stood_still(at, from_ns, until_ns) else 0


def _most_beyond(shared: Shared, latency_ns: int) -> tuple[Subject, int] | None:
    return next((each for each in largest(shared.beyond) if not _minor(each, latency_ns)), None)


def _minor(share: tuple[Subject, int], latency_ns: int) -> bool:
    """Whether it is too little to be a main cause."""
    return share[1] < (MINOR_VARIED if share[0].kind in VARIED else MINOR) * latency_ns
