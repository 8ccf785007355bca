"""Shares of a miss: how much of its time each possible cause took, on each stretch of its way."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from coordinator.report.blame import way
from coordinator.report.blame.core_timeline import STILL_NS, Span, Timeline
from coordinator.report.blame.excess import Excess
from coordinator.report.blame.missed import Looked
from coordinator.report.blame.planned import Planned
from coordinator.report.blame.way import Stretch
from coordinator.report.facts.merged_plans import ID_BITS
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.facts.reader import Incarnation, Run
from coordinator.report.report_document import CauseKind
from protos import records as rec

READ_NS = 1_000_000  # a tuple that is read so soon after an instance had ended may have waited for its end
ASKED_NS = 1_000_000_000  # after which a peer asks again for a node's clock
SILENT_NS = 20_000_000  # for so long a node that is at work writes something


SUSPENDED = "suspended"  # in place of a name: the machine was
ID_MASK = (1 << ID_BITS) - 1


class Subject(NamedTuple):
    """What a cause names. unit: of operators, else -1; name: of a source or a link."""

    kind: CauseKind
    node: int
    unit: int = -1
    name: str = ""


Shares = dict[Subject, int]  # ns


@dataclass
class Shared:
    """Of one miss. beyond: what goes beyond plan and declarations; within: what the plan allows; busiest: the stretch
    in which it waited longest for the core, and how long; unsure: of clocks; doubted: in whose place the node may
    have stood still, as it wrote nothing; ran: by stretch, what ran meanwhile."""

    beyond: Shares = field(default_factory=lambda: defaultdict(int))
    within: Shares = field(default_factory=lambda: defaultdict(int))
    busiest: Stretch | None = None
    busiest_ns: int = 0
    unsure: Shares = field(default_factory=lambda: defaultdict(int))
    doubted: set[Subject] = field(default_factory=set)
    ran: dict[int, Span] = field(default_factory=dict)


class Evidence:
    """What shares are told from."""

    def __init__(self, run: Run, looked: Looked, planned: Planned, excess: Excess) -> None:
        self.run, self.looked, self.planned, self.excess = run, looked, planned, excess
        self.plan: PlanView = run.plan
        self._timelines: dict[int, Timeline] = {}
        self._usual: dict[int, int] = {}

    def timeline(self, incarnation: Incarnation) -> Timeline:
        """Of an incarnation; kept."""
        found = self._timelines.get(incarnation.number)
        if found is None:
            number, looked = incarnation.number, self.looked
            found = Timeline(incarnation, looked.epochs[number], looked.notes[number], self.planned.unit_ns)
            self._timelines[incarnation.number] = found
        return found

    def usual_age_ns(self, source: int) -> int:
        """The median age of a source's tuples as they were admitted."""
        if source not in self._usual:
            came = self.looked.arrivals.get(source)
            ages = None if came is None or not len(came.at_ns) else came.at_ns - came.origin_ns
            self._usual[source] = 0 if ages is None else int(np.median(ages))
        return self._usual[source]

    def shares(self, stretches: Sequence[Stretch], output: str) -> Shared:
        """Of one miss."""
        found = Shared()
        for number, each in enumerate(stretches):
            if each.kind == way.QUEUE:
                self._queued(found, number, each)
            elif each.kind == way.RUN:
                self._ran(found, number, each)
            elif each.kind == way.LINK:
                self._linked(found, number, each)
            elif each.kind == way.ADMISSION:
                self._aged(found, number, each, output)
            elif (unit := self._fusion(stretches[number + 1 :])) is not None:
                found.within[Subject("inputs", each.at.node, unit)] += each.ns
            elif each.ns >= STILL_NS and self._batches(each.at):
                found.beyond[Subject("batch", each.at.node)] += each.ns
            elif each.ns >= STILL_NS and number + 1 < len(stretches) and stretches[number + 1].kind == way.LINK:
                self._unsent(found, each, stretches[number + 1])
            else:
                found.within[Subject("unknown", each.at.node)] += each.ns
            self._slept(found, each)
        return found

    def _fusion(self, following: Sequence[Stretch]) -> int | None:
        """The unit that it was released at next, where that fuses inputs."""
        unit = self.plan.units.get(following[0].unit) if following and following[0].kind == way.QUEUE else None
        return unit.id if unit is not None and unit.fuses else None

    def _batches(self, at: Incarnation) -> bool:
        """Whether several tuples run as one instance there, or the simulation held them back for one another."""
        return self.run.simulated_batch not in (None, "tuple") or bool((self.timeline(at).tuples > 1).any())

    # -- kinds of stretches

    def _queued(self, found: Shared, number: int, each: Stretch) -> None:
        span = self.timeline(each.at).span(each.from_ns, each.until_ns, (each.unit, each.started_ns))
        found.ran[number] = span
        self._worked(found, each, span)
        still_ns = sum(until - since for since, until in span.gaps if until - since >= STILL_NS)
        self._still(found, each.at, still_ns, each.ns)
        self._wait(found, each, span.busy_ns)

    def _wait(self, found: Shared, each: Stretch, ns: int) -> None:
        if ns > found.busiest_ns:
            found.busiest, found.busiest_ns = each, ns

    def _still(self, found: Shared, at: Incarnation, ns: int, of_ns: int) -> None:
        """Nothing ran although something was ready."""
        if ns <= 0:
            return
        if self._batches(at):
            found.beyond[Subject("batch", at.node)] += ns
        elif not at.virtual:
            found.beyond[Subject("pause", at.node)] += ns
        else:
            found.within[Subject("unknown", at.node)] += min(ns, of_ns)

    def _worked(self, found: Shared, each: Stretch, span: Span) -> None:
        """What ran in place of it."""
        node, sources = each.at.node, self.excess.of(span.code)
        timeline = self.timeline(each.at)
        for unit in np.unique(span.unit).tolist():
            mine = span.unit == unit
            above = int(span.above[mine].sum())
            if above and timeline.is_outlier(unit, (each.from_ns, each.until_ns)):
                found.beyond[Subject("pause", node)] += above
            elif above:
                found.beyond[Subject("cost_above_plan", node, unit)] += above
            if unit != each.unit:
                batch = int(span.batch[mine].sum())
                if batch:
                    found.beyond[Subject("batch", node)] += batch
            plain = span.plain[mine] + (span.batch[mine] if unit == each.unit else 0)
            for source in np.unique(sources[mine]).tolist():
                ns = int(plain[sources[mine] == source].sum())
                if source >= 0:
                    found.beyond[Subject("burst", node, -1, self.planned.source_name(source))] += ns
                else:
                    found.within[Subject("blocked", node, unit)] += ns
        above_ns = self._choosing_above(each.at, span)
        if above_ns:
            found.beyond[Subject("cost_above_plan", node)] += above_ns
        if span.deciding_ns > above_ns:
            found.within[Subject("blocked", node)] += span.deciding_ns - above_ns

    def _choosing_above(self, at: Incarnation, span: Span) -> int:
        """How much longer than its plan counts a node chose. A live one reads as well meanwhile."""
        planned_ns = span.choices * self.planned.decision_ns(at.node)
        return max(0, span.deciding_ns - planned_ns) if at.virtual else 0

    def _ran(self, found: Shared, number: int, each: Stretch) -> None:
        timeline = self.timeline(each.at)
        span = timeline.span(each.from_ns, each.until_ns)
        found.ran[number] = span
        above, batch = int(span.above.sum()), int(span.batch.sum())
        if above and timeline.is_outlier(each.unit, (each.from_ns, each.until_ns)):
            found.beyond[Subject("pause", each.at.node)] += above
        elif above:
            found.beyond[Subject("cost_above_plan", each.at.node, each.unit)] += above
        if batch:
            found.beyond[Subject("batch", each.at.node)] += batch
        found.within[Subject("running", each.at.node, each.unit)] += max(0, each.ns - above - batch)

    def _linked(self, found: Shared, number: int, each: Stretch) -> None:
        subject = Subject("link", each.at.node, -1, self._link(each))
        planned_ns = min(each.ns, self.planned.link_ns(each.sender, each.at.node, each.payload_bytes))
        found.within[subject] += planned_ns
        left_ns = self._unread(found, number, each, self._restarted(found, each, each.from_ns + planned_ns))
        left_ns = self._silent(found, each, each.until_ns - left_ns, subject)
        if left_ns > 0:
            found.beyond[subject] += left_ns
        if each.unsure_ns:
            found.unsure[Subject("clock", each.at.node, -1, self._link(each))] += each.unsure_ns

    def _unsent(self, found: Shared, each: Stretch, link: Stretch) -> None:
        """A tuple was ready to leave, and did not: its peer's runtime was away, or the link was not there."""
        first_ns, _ = self.looked.heard.get((link.at.number, each.at.node), (each.from_ns, 0))
        away = link.at.number in self.looked.began and each.from_ns < first_ns
        subject = Subject("restart", link.at.node) if away else Subject("link", link.at.node, -1, self._link(link))
        found.beyond[subject] += each.ns

    def _aged(self, found: Shared, number: int, each: Stretch, output: str) -> None:
        record = each.record
        assert isinstance(record, rec.Admitted)
        name = self.planned.source_name(record.source)
        if record.source in self.plan.windows:
            self._closed(found, number, each, name)
            return
        usual_ns = min(each.ns, self.usual_age_ns(record.source))
        limit_ns = self.planned.max_age_ns(record.source)
        if limit_ns and self.planned.guaranteed(output):
            usual_ns = min(each.ns, max(usual_ns, limit_ns))
        subject = Subject("admission_age", each.at.node, -1, name)
        found.within[subject] += usual_ns
        left_ns = self._unread(found, number, each, self._restarted(found, each, each.from_ns + usual_ns))
        left_ns = self._silent(found, each, each.until_ns - left_ns, subject)
        if left_ns > 0:
            found.beyond[subject] += left_ns
        if each.unsure_ns:
            found.unsure[Subject("clock", each.at.node, -1, name)] += each.unsure_ns

    def _closed(self, found: Shared, number: int, each: Stretch, name: str) -> None:
        """A window ended, and closed later: its last tuples waited for the core, or it waited for them."""
        span = self.timeline(each.at).span(each.from_ns, each.until_ns)
        found.ran[number] = span
        self._worked(found, each, span)
        self._wait(found, each, span.busy_ns)
        left_ns = self._silent(found, each, each.from_ns + min(each.ns, span.busy_ns + span.deciding_ns))
        if left_ns > 0:
            found.beyond[Subject("window", each.at.node, -1, name)] += left_ns

    def _restarted(self, found: Shared, each: Stretch, since_ns: int) -> int:
        """From when on a tuple could be read: the runtime was there again, and its client or peer connected."""
        began_ns = self.looked.began.get(each.at.number)
        if began_ns is None or each.record is None:
            return since_ns
        heard = self.timeline(each.at).channels.get((each.record.kind, each.record.ref & ID_MASK))
        back_ns = began_ns if heard is None or not len(heard) else max(began_ns, int(heard[0]))
        if since_ns < back_ns <= each.until_ns:
            found.beyond[Subject("restart", each.at.node)] += each.until_ns - since_ns
            return each.until_ns
        return since_ns

    def _unread(self, found: Shared, number: int, each: Stretch, since_ns: int) -> int:
        """What is left of a stretch at whose end a tuple was read, once the instance is counted that the node was busy
        with until just before."""
        timeline = self.timeline(each.at)
        last = int(np.searchsorted(timeline.end, each.until_ns, "right")) - 1
        if last < 0 or each.until_ns - timeline.end[last] > READ_NS or timeline.end[last] <= since_ns:
            return max(0, each.until_ns - since_ns)
        if each.at.virtual and timeline.tuples[last] == 1:  # listens while a single tuple runs
            return max(0, each.until_ns - since_ns)
        began_ns = max(since_ns, int(timeline.start[last]))
        span = timeline.span(began_ns, int(timeline.end[last]))
        found.ran[number] = span
        self._worked(found, each, span)
        self._wait(found, each, span.busy_ns)
        return max(0, began_ns - since_ns)

    def _silent(self, found: Shared, each: Stretch, since_ns: int, subject: Subject | None = None) -> int:
        """What is left of what is not explained from `since_ns` on, once it is known whether the node stood still: then
        what else should have come did not come either. subject: what it counts for otherwise."""
        left_ns = each.until_ns - since_ns
        if each.at.virtual or left_ns < SILENT_NS:
            return left_ns
        from_ns, until_ns = self.timeline(each.at).silence(since_ns, each.until_ns)
        met_ns = min(until_ns, each.until_ns) - max(from_ns, since_ns)
        if met_ns >= SILENT_NS and self.stood_still(each.at, from_ns, until_ns):
            found.beyond[Subject("pause", each.at.node)] += met_ns
            return left_ns - met_ns
        if subject is not None and 2 * met_ns >= left_ns:
            found.doubted.add(subject)
        return left_ns

    def stood_still(self, at: Incarnation, from_ns: int, until_ns: int) -> bool:
        """Whether it wrote nothing in a span when its own time had come, or two at least of those that it hears of
        regularly, or that ask for its clock, are missing."""
        timeline, ns, missing = self.timeline(at), until_ns - from_ns, self._unanswered(at, from_ns, until_ns)
        if timeline.overslept(from_ns, until_ns, SILENT_NS):
            return True
        for instants in timeline.channels.values():
            before = np.searchsorted(instants, from_ns, "right") - np.searchsorted(instants, from_ns - 2 * ns, "left")
            within = np.searchsorted(instants, until_ns, "left") - np.searchsorted(instants, from_ns, "right")
            missing += int(before) >= 4 and int(within) <= 0
        return missing >= 2

    def _unanswered(self, at: Incarnation, from_ns: int, until_ns: int) -> int:
        """How many peers asked for its clock in a span, as they do each second, and heard nothing until it was over."""
        found = 0
        for number, news in self.looked.clocks.items():
            known = [each.at_ns - (each.lo_ns + each.hi_ns) // 2 for each in news if each.peer == at.node]
            place = bisect_right(known, from_ns)
            if not self.run.incarnations[number].virtual and 0 < place < len(known):
                due_ns = known[place - 1] + ASKED_NS
                found += known[place] >= until_ns and from_ns < due_ns <= until_ns - SILENT_NS
        return found

    def _slept(self, found: Shared, each: Stretch) -> None:
        for stood in self.looked.stood.get(each.at.number, ()):
            if stood.since_ns < each.until_ns and each.from_ns < stood.at_ns:
                subject = Subject("pause", each.at.node, -1, SUSPENDED)
                found.beyond[subject] = max(found.beyond[subject], stood.slept_ns)

    def _link(self, each: Stretch) -> str:
        return f"{self.plan.nodes.get(each.sender, '?')} -> {self.plan.nodes.get(each.at.node, '?')}"


def largest(shares: Mapping[Subject, int]) -> Iterator[tuple[Subject, int]]:
    """The largest first; equal ones by name."""
    return iter(sorted(((each, ns) for each, ns in shares.items() if ns > 0), key=lambda one: (-one[1], one[0])))


def total(shares: Mapping[Subject, int], kinds: Iterable[CauseKind]) -> int:
    """ns of these kinds."""
    wanted = frozenset(kinds)
    return sum(ns for each, ns in shares.items() if each.kind in wanted)
