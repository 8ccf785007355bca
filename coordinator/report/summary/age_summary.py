"""Ages of data behind results, and reactions to sources: figured out once, from what each engine finds behind them.

An instant of another node's clock is an interval here, so an age or a reaction is one; what counts is its upper end,
and its lower one for what was too long for certain.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from coordinator.report.counts import INSTANT_LIMIT, Behind, Counts, Number, Origin, nearest_rank
from coordinator.report.facts.clock_intervals import ClockIntervals, RunClocks
from coordinator.report.facts.data_ways import COUNT, WINDOW, DataWays, data_ways, positions
from coordinator.report.facts.plan_view import Freshness as Asked
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.report_document import DataAge, Freshness, OldResult, Reaction, Share, Spread
from coordinator.report.summary.records_behind import RecordsBehind

WORST = 20  # of each output
NO_NUMBER: Number = (-1, -1)
ANY_NUMBER: Number = (1 << 64, 0)  # beyond all


class _Age(NamedTuple):
    """oldest: the source, by its id, that `most_ns` counts from; None: nobody knows of any."""

    most_ns: int
    least_ns: int
    oldest: int | None


class _Took(NamedTuple):
    """A reaction."""

    least_ns: int
    most_ns: int


class _Latest(NamedTuple):
    """What the results up to each have shown of a source: the newest number, and the youngest origin of such numbers. A
    fusion by stamps and windows leave out a tuple that comes behind a younger one: then that one shows instead."""

    numbers: Sequence[Number]
    lo_ns: Sequence[int]
    hi_ns: Sequence[int]

    @classmethod
    def of(cls, numbers: Sequence[Number], origins: Sequence[Origin]) -> _Latest:
        """numbers: of each result, in order."""
        known = {each.number: each for each in origins}
        known[NO_NUMBER] = Origin(NO_NUMBER, -INSTANT_LIMIT, -INSTANT_LIMIT)
        known[ANY_NUMBER] = Origin(ANY_NUMBER, INSTANT_LIMIT, INSTANT_LIMIT)
        found = [known.get(each, known[NO_NUMBER]) for each in numbers]
        return cls(
            list(accumulate(numbers, max)),
            list(accumulate((each.lo_ns for each in found), max)),
            list(accumulate((each.hi_ns for each in found), max)),
        )

    def reached(self, number: Number, youngest_ns: Sequence[int], origin_ns: int) -> int:
        """The first result that shows that number or a later one, or an origin that is not older."""
        return min(bisect_left(self.numbers, number), bisect_left(youngest_ns, origin_ns))


def freshness(plan: PlanView, counts: Counts) -> dict[str, Freshness]:
    """By the output's name; of those that ask."""
    if counts.clocks is None:
        return {}
    ways, found = data_ways(plan), {}
    for output, asked in sorted(plan.freshness.items()):
        records = RecordsBehind.of(plan, ways, output, counts.traces, counts.clocks)
        one = _Output(plan, ways, counts, counts.clocks, output, asked, records)
        found[plan.outputs[output].name] = one.summary()
    return found


@dataclass(frozen=True)
class _Output:
    plan: PlanView
    data_ways: DataWays
    counts: Counts
    clocks: RunClocks
    output: int
    asked: Asked
    records: RecordsBehind

    def summary(self) -> Freshness:
        results = [each for each in self.counts.behind if each.output == self.output]
        untold = tuple(self._untold())
        return Freshness(
            age=None if self.asked.age_ns is None else self._age(results, self.asked.age_ns, bool(untold)),
            reactions={}
            if self.asked.reaction_ns is None
            else self._reactions(results, self.asked.reaction_ns, bool(untold)),
            unread=sum(each.unread for each in results if self.records.are_there(each)),
            untold=(*untold, *self.records.lacking(results)),
        )

    def _name(self, source: int) -> str:
        return self.plan.streams[self.plan.sources[source][1]]

    def _counted(self, without: Sequence[str]) -> frozenset[int]:
        return frozenset(source for source in self.data_ways.behind(self.output) if self._name(source) not in without)

    def _on(self) -> tuple[ClockIntervals, int]:
        return self.clocks.clocks, self.plan.outputs[self.output].node

    def _untold(self) -> Iterable[str]:
        """Why records do not name all data."""
        for number in sorted(self.data_ways.places_behind(self.output)):
            place = self.data_ways.places[number]
            for unit in sorted(place.units):
                if self.plan.units[unit].unnamed:
                    yield f"no record names the tuples that {self.plan.units[unit].label} met ('each')"
            if place.kind == WINDOW:
                yield from self._unplaced(number)

    def _unplaced(self, number: int) -> Iterable[str]:
        place = self.data_ways.places[number]
        view = next(self.plan.windows[source] for source, each in self.data_ways.windows.items() if each == number)
        for source in sorted(place.sources - self.plan.windows.keys()) if view.kind != COUNT else ():
            node = self.plan.sources[source][0]
            if (view.source, node) not in positions(self.plan, self.data_ways, self.clocks.ahead):
                here, there = self.plan.nodes[place.node], self.plan.nodes[node]
                windows = f"the windows of {place.name} at {here}"
                yield f"no record tells which tuples from {there} are in {windows}, by their clocks"

    def _above(self, least_ns: Iterable[int], bound_ns: int | None) -> int | None:
        """None: there is no bound, or another one in a plan before."""
        return None if bound_ns is None or not self.asked.alike else sum(each > bound_ns for each in least_ns)

    # -- ages

    def _age(self, results: Sequence[Behind], limit_ns: int, untold: bool) -> DataAge:
        counted = self._counted(self.asked.age_without)
        ages: list[tuple[_Age, Behind]] = []
        for each in results:
            age = self._age_of(each, counted)
            if age is not None:
                ages.append((age._replace(most_ns=INSTANT_LIMIT) if untold else age, each))
        ages.sort(key=lambda one: (-one[0].most_ns, -one[0].least_ns, one[1].key))
        above = sum(age.least_ns > limit_ns for age, _ in ages)
        undecidable = sum(age.least_ns <= limit_ns < age.most_ns for age, _ in ages)
        bound_ns = self.asked.age_bound_ns
        return DataAge(
            limit_ns=limit_ns,
            bound_ns=bound_ns,
            above_bound=self._above([age.least_ns for age, _ in ages], bound_ns),
            results=len(ages),
            without_data=len(results) - len(ages),
            above=above,
            undecidable=undecidable,
            share=_share(above, undecidable, len(ages)),
            age_ns=_spread([age.most_ns for age, _ in ages]),
            worst=tuple(self._old(age, age.oldest, each) for age, each in ages[:WORST] if age.oldest is not None),
        )

    def _age_of(self, result: Behind, counted: frozenset[int]) -> _Age | None:
        """None: there is no datum that counts. Where records lack, its own tuple's alone is certain."""
        clocks, node = self._on()
        found: list[_Age] = []
        own = self.data_ways.canonical.get(result.source)
        if own in counted and own is not None and result.source not in self.plan.windows:
            found.append(_Age(result.most_ns, result.least_ns, own))
        if not self.records.are_there(result):
            least_ns = found[0].least_ns if found else -INSTANT_LIMIT
            return _Age(INSTANT_LIMIT, least_ns, own if found else None)
        for source, extent in result.extents.items():
            if source in counted and extent.oldest_lo_ns < INSTANT_LIMIT:
                there, hi_ns = self.plan.sources[source][0], extent.oldest_hi_ns
                most_ns = result.at_ns - clocks.on(node, there, extent.oldest_lo_ns).lo
                least_ns = -INSTANT_LIMIT if hi_ns is None else result.at_ns - clocks.on(node, there, hi_ns).hi
                found.append(_Age(most_ns, least_ns, source))
        if not found:
            return None
        most = max(found)
        unsure = result.most_ns >= INSTANT_LIMIT or most.most_ns >= INSTANT_LIMIT
        return _Age(INSTANT_LIMIT if unsure else most.most_ns, max(each.least_ns for each in found), most.oldest)

    def _old(self, age: _Age, oldest: int, result: Behind) -> OldResult:
        own = self.plan.windows.get(result.source)
        return OldResult(
            source=self._name(result.source) if own is None else own.name,
            epoch=result.epoch,
            seq=result.seq,
            ordinal=result.ordinal,
            age_least_ns=max(0, age.least_ns),
            age_ns=age.most_ns if age.most_ns < INSTANT_LIMIT else None,
            oldest=self._name(oldest),
        )

    # -- reactions

    def _reactions(self, results: Sequence[Behind], limit_ns: int, untold: bool) -> dict[str, Reaction]:
        ordered = sorted(results, key=lambda each: (each.at_ns, each.key))
        return {
            self._name(source): self._reaction(source, ordered, limit_ns, untold)
            for source in sorted(self._counted(self.asked.reaction_without))
        }

    def _reaction(self, source: int, ordered: Sequence[Behind], limit_ns: int, untold: bool) -> Reaction:
        origins = self.counts.origins.get(source, [])
        newest = _Latest.of([self._newest(source, each) for each in ordered], origins)
        sure = _Latest.of([self._newest_sure(source, each) for each in ordered], origins)
        took: list[_Took] = []
        early = unanswered = undecided = 0  # early: of the answered, those that came before the output's first result
        for origin in origins:
            first = sure.reached(origin.number, sure.lo_ns, origin.hi_ns)
            soonest = min(first, newest.reached(origin.number, newest.hi_ns, origin.lo_ns))
            if first < len(ordered):
                each = self._took(source, origin, ordered[first], ordered[soonest])
                unsure = untold or not self.records.are_there(ordered[soonest])
                took.append(each._replace(least_ns=-INSTANT_LIMIT) if unsure else each)
                early += self._came_before(source, origin, ordered[0])
            elif soonest == len(ordered) and not untold and self._passed(source, origin, limit_ns):
                unanswered += 1
            else:
                undecided += 1
        above = sum(each.least_ns > limit_ns for each in took)
        undecidable = sum(each.least_ns <= limit_ns < each.most_ns for each in took)
        bound_ns = self.asked.reaction_bounds_ns.get(self._name(source))
        return Reaction(
            limit_ns=limit_ns,
            bound_ns=bound_ns,
            above_bound=self._above([each.least_ns for each in took[early:]], bound_ns),
            tuples=len(origins),
            answered=len(took),
            unanswered=unanswered,
            undecided=undecided,
            above=above,
            undecidable=undecidable,
            share=_share(above + unanswered, undecidable + undecided, len(origins)),
            reaction_ns=_spread(sorted((each.most_ns for each in took), reverse=True)),
        )

    def _newest(self, source: int, result: Behind) -> Number:
        """Of a source's tuples that may be behind a result, the newest one."""
        extent = result.extents.get(source)
        if not self.records.are_there(result):
            return ANY_NUMBER
        return NO_NUMBER if extent is None else extent.newest

    def _newest_sure(self, source: int, result: Behind) -> Number:
        """Of those that are for certain. Where records lack, its own tuple is."""
        extent = result.extents.get(source)
        if not self.records.are_there(result):
            own = self.data_ways.canonical.get(result.source) == source and result.source not in self.plan.windows
            return (result.epoch, result.seq) if own else NO_NUMBER
        return (extent and extent.newest_sure) or NO_NUMBER

    def _took(self, source: int, origin: Origin, first: Behind, soonest: Behind) -> _Took:
        """first: the first result that it, or a later tuple, is behind for certain; soonest: or may be."""
        clocks, node = self._on()
        there = self.plan.sources[source][0]
        most_ns = first.at_ns - clocks.on(node, there, origin.lo_ns).lo
        least_ns = soonest.at_ns - clocks.on(node, there, origin.hi_ns).hi
        if self._is_of(first, source, origin):
            most_ns = first.most_ns
        if self._is_of(soonest, source, origin):
            least_ns = soonest.least_ns
        return _Took(least_ns, min(most_ns, INSTANT_LIMIT))

    def _came_before(self, source: int, origin: Origin, first: Behind) -> bool:
        """Whether it may have come before a result: a bound counts from when all that is read has come once."""
        clocks, node = self._on()
        return clocks.on(node, self.plan.sources[source][0], origin.lo_ns).lo < first.at_ns

    def _is_of(self, result: Behind, source: int, origin: Origin) -> bool:
        return self.data_ways.canonical.get(result.source) == source and (result.epoch, result.seq) == origin.number

    def _passed(self, source: int, origin: Origin, limit_ns: int) -> bool:
        """Whether the limit had passed as the output's node ended, and all that may have answered is known."""
        clocks, node = self._on()
        if self.records.until:
            return False
        there = self.plan.sources[source][0]
        end_ns = self.clocks.ends.get(node, -INSTANT_LIMIT)
        return end_ns - clocks.on(node, there, origin.hi_ns).hi > limit_ns


def _share(above: int, perhaps: int, of: int) -> Share:
    return (above / of, (above + perhaps) / of) if of else None


def _spread(falling: Sequence[int]) -> Spread:
    """Of values, the greatest first."""
    n = len(falling)

    def quantile(percent: int) -> int | None:
        found = falling[n - nearest_rank(n, percent, 100)] if n else INSTANT_LIMIT
        return found if found < INSTANT_LIMIT else None

    return Spread(quantile(50), quantile(99), quantile(100))


__all__ = ["freshness"]
