"""The way of a missed result, backwards: at each step what came last, since nothing earlier kept it waiting.

From the result, or from where its tuple was given up, to the admission: the instance that made it, the tuple that this
one waited for, the link that it came over. So stretches follow one another and do not overlap, also behind joins.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from coordinator.report.blame.missed import ClockNews
from coordinator.report.blame.near import NearRecord
from coordinator.report.blame.record_pieces import BEYOND_NS
from coordinator.report.facts.plan_view import OUTPUT, PlanView, consumer_id
from coordinator.report.facts.reader import Incarnation
from protos import records as rec

MOST_STEPS = 64
UNKNOWN_NS = BEYOND_NS  # width of what is not known at all
ADMISSION, QUEUE, RUN, LINK, REST = "admission", "queue", "run", "link", "rest"


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the way, on the clock of `at`. unit: of QUEUE and RUN; sender: of LINK; unsure_ns: how much longer a
    LINK or an ADMISSION may be, for all that is known of the other clock; started_ns: of QUEUE and RUN: the instance;
    record: of ADMISSION and LINK, that of its end; payload_bytes: of LINK: as its source had it."""

    kind: str
    at: Incarnation
    from_ns: int
    until_ns: int
    unit: int = -1
    sender: int = -1
    unsure_ns: int = 0
    started_ns: int = 0
    record: rec.Record | None = None
    payload_bytes: int = 0

    @property
    def ns(self) -> int:
        """Its length."""
        return max(0, self.until_ns - self.from_ns)


class Arrived(NamedTuple):
    """Where a tuple came to a place: by an instance there, over a link, or from its client."""

    at_ns: int
    near: NearRecord


class Way:
    """Finds it among the records of one lineage."""

    def __init__(self, plan: PlanView, mine: Sequence[NearRecord], clocks: Mapping[int, Sequence[ClockNews]]) -> None:
        self._plan, self._mine, self._clocks = plan, mine, clocks
        self._found: list[Stretch] = []

    def to_result(self, output: int, incarnation: int, at_ns: int, ordinal: int) -> tuple[Stretch, ...]:
        """Of a result that was delivered there; the first stretch first."""
        view = self._plan.outputs[output]
        streams = [
            stream
            for (node, stream), consumers in self._plan.consumers.items()
            if node == view.node and consumer_id(OUTPUT, output) in consumers
        ]
        return self.to_place(view.node, streams, at_ns, ordinal)

    def to_place(self, node: int, streams: Sequence[int], at_ns: int, ordinal: int) -> tuple[Stretch, ...]:
        """Of a tuple that came there by then, on one of these streams."""
        return self._back(self._arrived(node, streams, at_ns, ordinal), at_ns, ordinal)

    def to_unit(self, unit: int, incarnation: Incarnation, at_ns: int, ordinal: int) -> tuple[Stretch, ...]:
        """Of a tuple that was given up as it waited there."""
        ran = self._ran(unit, incarnation.node, at_ns, ordinal)
        if ran is not None and isinstance(ran.record, rec.Ran) and ran.record.end_ns >= at_ns > ran.record.start_ns:
            return self._back(Arrived(at_ns, ran), at_ns, ordinal)  # one of its results was given up
        inputs = self._plan.units[unit].inputs if unit in self._plan.units else ()
        came = self._arrived(incarnation.node, inputs, at_ns, ordinal)
        if came is not None:
            waited = Stretch(QUEUE, incarnation, came.at_ns, at_ns, unit=unit, started_ns=at_ns)
            self._found.append(waited)
        return self._back(came, at_ns if came is None else came.at_ns, ordinal)

    def to_window(self, incarnation: Incarnation, at_ns: int) -> tuple[Stretch, ...]:
        """Of a window that was given up there, as it would have been too late."""
        ends = (each for each in self._mine if each.incarnation is incarnation)
        end = next((each for each in ends if isinstance(each.record, rec.Admitted)), None)
        return self._back(None if end is None else Arrived(end.record.at_ns, end), at_ns, 0)

    def _back(self, came: Arrived | None, until_ns: int, ordinal: int) -> tuple[Stretch, ...]:
        for _ in range(MOST_STEPS):
            if came is None:
                break
            until_ns, came = self._step(came, until_ns, ordinal)
        return tuple(reversed(self._found))

    def _step(self, came: Arrived, until_ns: int, ordinal: int) -> tuple[int, Arrived | None]:
        incarnation, _, record = came.near
        if came.at_ns < until_ns:
            self._found.append(Stretch(REST, incarnation, came.at_ns, until_ns))
            until_ns = came.at_ns
        if isinstance(record, rec.Ran):
            return self._through(came.near, record, until_ns, ordinal)
        if isinstance(record, rec.Received):
            return self._over(came.near, record, until_ns, ordinal)
        if isinstance(record, rec.Admitted):
            unsure_ns = max(0, record.origin_hi_ns - record.origin_lo_ns)
            since_ns = min(record.origin_hi_ns, until_ns)
            self._found.append(Stretch(ADMISSION, incarnation, since_ns, until_ns, unsure_ns=unsure_ns, record=record))
        return until_ns, None

    def _through(self, told: NearRecord, last: rec.Ran, until_ns: int, ordinal: int) -> tuple[int, Arrived | None]:
        """Through an instance, or its stretches: what it ran, and what it waited before and in between."""
        every = (each.record for each in self._mine if each.incarnation is told.incarnation)
        same = (last.unit, last.ordinal, last.release_ns)
        own = [r for r in every if isinstance(r, rec.Ran) and (r.unit, r.ordinal, r.release_ns) == same]
        own.sort(key=lambda r: r.start_ns)
        stretches = [each for each in own if each.start_ns <= until_ns] or [last]
        release_ns = min(each.release_ns for each in stretches)
        for number in range(len(stretches) - 1, -1, -1):
            ran, before_ns = stretches[number], stretches[number - 1].end_ns if number else release_ns
            start_ns = min(ran.start_ns, until_ns)
            at, ready_ns = told.incarnation, min(before_ns, start_ns)
            end_ns = min(ran.end_ns, until_ns) if number < len(stretches) - 1 else until_ns
            self._found.append(Stretch(RUN, at, start_ns, end_ns, unit=last.unit, started_ns=ran.start_ns))
            self._found.append(Stretch(QUEUE, at, ready_ns, start_ns, unit=last.unit, started_ns=ran.start_ns))
            until_ns = start_ns
        unit = self._plan.units.get(last.unit)
        inputs = () if unit is None else unit.inputs
        return release_ns, self._arrived(told.incarnation.node, inputs, release_ns, ordinal)

    def _over(
        self, told: NearRecord, received: rec.Received, until_ns: int, ordinal: int
    ) -> tuple[int, Arrived | None]:
        node = told.incarnation.node
        sent = [
            each
            for each in self._mine
            if isinstance(each.record, rec.Sent)
            and each.incarnation.node == received.peer
            and (each.record.peer, each.record.stream) == (node, received.stream)
            and each.record.ordinal == received.ordinal
        ]
        left = max((each for each in sent), key=lambda each: each.record.at_ns, default=None)
        if left is None:
            return until_ns, None
        lo_ns, hi_ns = self._offset(told.incarnation, left.incarnation, received.at_ns)
        since_ns, unsure_ns = min(until_ns, left.record.at_ns + hi_ns), max(0, hi_ns - lo_ns)
        payload = max((r.payload_bytes for _, _, r in self._mine if isinstance(r, rec.Admitted)), default=0)
        link = Stretch(
            LINK, told.incarnation, since_ns, until_ns, sender=received.peer, unsure_ns=unsure_ns, record=received,
            payload_bytes=payload,
        )  # fmt: skip
        self._found.append(link)
        at_ns = left.record.at_ns
        unit = self._plan.producer.get(received.stream)
        streams = [received.stream]
        came = self._arrived(received.peer, streams, at_ns, ordinal, only=left.incarnation.number)
        if came is None and unit is not None:
            ran = self._ran(unit[0], received.peer, at_ns, ordinal)
            came = None if ran is None else Arrived(at_ns, ran)
        return at_ns, came

    def _offset(self, here: Incarnation, there: Incarnation, at_ns: int) -> tuple[int, int]:
        """By how much the clock here is ahead of that of the peer, at least and at most, as it is known then."""
        if here.clock == there.clock:
            return 0, 0
        news = [each for each in self._clocks.get(here.number, ()) if each.peer == there.node]
        place = bisect_right([each.at_ns for each in news], at_ns) - 1
        if place < 0:  # nothing was known by then; what was learnt first is as good as anything
            near = news[0].hi_ns if news else 0
            return near - UNKNOWN_NS, near
        return news[place].lo_ns, news[place].hi_ns

    def _arrived(
        self, node: int, streams: Sequence[int], by_ns: int, ordinal: int, only: int | None = None
    ) -> Arrived | None:
        """What came last on one of these streams, at a node, by then."""
        return max(self._arrivals(node, streams, by_ns, ordinal, only), key=lambda each: each.at_ns, default=None)

    def _arrivals(
        self, node: int, streams: Sequence[int], by_ns: int, ordinal: int, only: int | None
    ) -> Iterator[Arrived]:
        line = _line(ordinal)
        makers = {self._plan.producer[stream][0] for stream in streams if stream in self._plan.producer}
        for told in self._mine:
            record = told.record
            if told.incarnation.node != node or (only is not None and told.incarnation.number != only):
                continue
            if isinstance(record, rec.Ran):
                if record.unit in makers and record.ordinal in line and record.start_ns <= by_ns:
                    yield Arrived(min(record.end_ns, by_ns), told)
            elif isinstance(record, rec.Received):
                if record.stream in streams and record.ordinal in line and record.at_ns <= by_ns:
                    yield Arrived(record.at_ns, told)
            elif (
                isinstance(record, rec.Admitted)
                and record.at_ns <= by_ns
                and self._plan.sources.get(record.source_id, (0, -1))[1] in streams
            ):
                yield Arrived(record.at_ns, told)

    def _ran(self, unit: int, node: int, by_ns: int, ordinal: int) -> NearRecord | None:
        line, found, began_ns = _line(ordinal), None, -BEYOND_NS
        for each in self._mine:
            record = each.record
            if not isinstance(record, rec.Ran) or (each.incarnation.node, record.unit) != (node, unit):
                continue
            if record.ordinal in line and began_ns < record.start_ns <= by_ns:
                found, began_ns = each, record.start_ns
        return found


def _line(ordinal: int) -> set[int]:
    """The ordinals of the tuples that a result is made of."""
    found = {ordinal}
    while ordinal:
        ordinal = (ordinal - 1) >> 8
        found.add(ordinal)
    return found
