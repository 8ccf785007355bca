"""[P] 5.1's load shedder: of one source at most so many tuples per span, and above that the least valuable go first.

Of the tuples that survive, any `most` + 1 in a row span at least `span_ns`: the arrival curve that a plan takes a
limited source to have. A source that has kept within its limit for a while loses nothing. Each tuple is decided when
it comes, and none is held:

- **Displacing.** Where the limit is reached, it takes the place of the least valuable tuple that passed within the
  span and still waits, if it is worth more. The place is then counted from its own instant, or survivors could come
  closer together than allowed.
- **Free places.** What has begun cannot be displaced, so a better tuple would find a place taken that the one before
  it got. While a quarter of the limit waits, a new tuple will wait too, can be displaced, and may have a free place.
  Else one of three rules gives it: to any tuple; to one that is among the best most / arrivals of what came lately;
  or, with few places left, only to one than which fewer better ones come within a span than there are places
  (protection levels: Littlewood 1972). What each would have kept is added up beside and slowly forgotten; the rule
  that is ahead decides. The second is best where values differ little, the third where few tuples are worth most.

Pure: told the time, never asking for it. A decision costs O(log most) on average (one after a pause forgets
up to `most` at once), memory is bounded by `most`.
"""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Protocol

from node_agent.core.shedding.utility import LEAST
from node_agent.problems import UnusableValueError

PASS, SHED = -1, -2
MOST = 65_536
FEWEST_KEPT, MOST_KEPT = 32, 128  # values that the threshold is taken from: two spans' arrivals, within these
FORGETS = 64  # spans: for so long what was kept counts, and a source is watched that was above its limit
MANY_WAIT = 4  # a quarter of the limit
_SPARE = 16  # entries that are no longer valid, before a queue is cleared of them


def _always(number: int) -> bool:
    """Every tuple waits until `taken` is called for it."""
    del number
    return True


class _Places:
    """At most `most` instants per span, in the order of time."""

    __slots__ = ("instants", "most", "span_ns")

    def __init__(self, most: int, span_ns: int) -> None:
        self.most, self.span_ns = most, span_ns
        self.instants: deque[int] = deque()

    def free(self, at_ns: int) -> int:
        """How many there are now."""
        instants, ended = self.instants, at_ns - self.span_ns
        while instants and instants[0] <= ended:
            instants.popleft()
        return self.most - len(instants)

    def take(self, at_ns: int) -> bool:
        """A place from now on, if there is one."""
        if self.free(at_ns) < 1:
            return False
        self.instants.append(at_ns)
        return True


class Threshold:
    """Whether a value is among the best of what came lately, as many as there are places for."""

    __slots__ = ("_credit", "_latest", "_now", "_rate", "_sorted", "_span", "_then", "most", "span_ns")

    def __init__(self, most: int, span_ns: int) -> None:
        self.most, self.span_ns = most, span_ns
        self._latest: deque[float] = deque()
        self._sorted: list[float] = []
        self._span = self._now = self._then = 0  # number of this span; arrivals in it, and in the one before
        self._rate = 0.0  # arrivals within a span, smoothed
        self._credit = 0.5  # of values that all equal the threshold a part passes, evenly spread

    def passes(self, at_ns: int, value: float) -> bool:
        """Told of every tuple."""
        span, within = divmod(at_ns, self.span_ns)
        if span != self._span:
            self._then = self._now if span == self._span + 1 else 0
            self._now, self._span = 0, span
        self._now += 1
        arrivals = self._now + self._then * (self.span_ns - within) / self.span_ns  # in a span that ends now
        self._rate += (arrivals - self._rate) / FEWEST_KEPT
        self._remember(value, min(MOST_KEPT, max(FEWEST_KEPT, int(2 * arrivals))))
        known = self._sorted
        above = len(known) - bisect_right(known, value)
        equal = len(known) - above - bisect_left(known, value)
        best = self.most * len(known) / arrivals
        if above + equal <= best:
            return True
        if above >= best:
            return False
        self._credit += (best - above) / equal
        if self._credit < 1:
            return False
        self._credit -= 1
        return True

    def better(self, value: float) -> float:
        """How many better tuples come within a span, by what came lately."""
        known = self._sorted
        return self._rate * (len(known) - bisect_right(known, value)) / len(known)

    def _remember(self, value: float, kept: int) -> None:
        latest, known = self._latest, self._sorted
        latest.append(value)
        insort(known, value)
        while len(latest) > kept:
            del known[bisect_left(known, latest.popleft())]

    @property
    def lowest(self) -> float:
        """The least value known that is one."""
        known = self._sorted
        first = bisect_right(known, LEAST)
        return known[first] if first < len(known) else 0.0


class FreePlaces(Protocol):
    """Whether a tuple should have a place that is free."""

    def wanted(self, at_ns: int, value: float, waiting: int, free: int) -> bool:
        """Asked for every tuple. waiting: how many that passed can still be displaced; free: how many places are."""


class _Rule:
    """One way to give places away, played beside: what it would have let pass, and the value of that."""

    __slots__ = ("kept", "places")

    def __init__(self, most: int, span_ns: int) -> None:
        self.places = _Places(most, span_ns)
        self.kept = 0.0

    def play(self, at_ns: int, worth: float, wanted: bool) -> None:
        """A tuple has come."""
        if wanted and self.places.take(at_ns):
            self.kept += worth


class LearntPlaces:
    """By the rule that would have kept most value lately, if nothing ever waited: first come first served, a threshold,
    or places that are protected for better ones.

    A source that has kept within its limit for FORGETS spans gets each free place.
    """

    __slots__ = ("_above_ns", "_came", "_first", "_protected", "_span", "_strict", "_threshold", "most", "span_ns")

    def __init__(self, most: int, span_ns: int) -> None:
        self.most, self.span_ns = most, span_ns
        self._threshold = Threshold(most, span_ns)
        self._first, self._strict, self._protected = (_Rule(most, span_ns) for _ in range(3))
        self._came: deque[int] = deque(maxlen=most)  # instants, whether or not they passed
        self._above_ns: int | None = None  # when more came within a span than may pass
        self._span = 0

    def wanted(self, at_ns: int, value: float, waiting: int, free: int) -> bool:
        """Whether the tuple should have a free place."""
        self._forget(at_ns // self.span_ns)
        good, better = self._threshold.passes(at_ns, value), self._threshold.better(value)
        came = self._came
        if len(came) == self.most and came[0] > at_ns - self.span_ns:
            self._above_ns = at_ns
        came.append(at_ns)
        calm = self._above_ns is None or at_ns - self._above_ns > FORGETS * self.span_ns
        first, strict, protected = self._first, self._strict, self._protected
        most_kept = max(first.kept, strict.kept, protected.kept)
        if calm or first.kept == most_kept or self.most <= MANY_WAIT * waiting:
            wanted = True
        else:
            wanted = good if strict.kept == most_kept else free > better
        worth = 0.0 if value == LEAST else value - self._threshold.lowest
        first.play(at_ns, worth, True)
        strict.play(at_ns, worth, calm or good)
        protected.play(at_ns, worth, calm or protected.places.free(at_ns) > better)
        if most_kept - most_kept != 0:  # values near the largest number there is
            first.kept = strict.kept = protected.kept = 0.0
        return wanted

    def _forget(self, span: int) -> None:
        if span != self._span:
            share = (1 - 1 / FORGETS) ** min(span - self._span, 1000)
            for rule in (self._first, self._strict, self._protected):
                rule.kept *= share
            self._span = span


class RateLimiter:
    """Of one source. `decide` is asked for each tuple in the order of admission, before policing; `taken` is told when
    one that passed is no longer to be had back. free: which tuples should have a place that is free."""

    __slots__ = (
        "_admissions", "_at_ns", "_free", "_heap", "_held", "_waiting", "displaced", "most", "passed", "shed",
        "span_ns", "unjudged",
    )  # fmt: skip

    def __init__(self, most: int, span_ns: int, free: FreePlaces | None = None) -> None:
        if not 1 <= most <= MOST or span_ns < 1:
            raise UnusableValueError(
                "out_of_range", f"a load shedder of {most} tuples per {span_ns} ns; 1 to {MOST} per 1 ns or more"
            )
        self.most, self.span_ns = most, span_ns
        self._admissions: deque[tuple[int, int]] = deque()  # instants and numbers, also of what was displaced since
        self._held: set[int] = set()  # numbers of survivors within the span
        self._waiting: dict[int, float] = {}  # of them, what may be displaced, and its value
        self._heap: list[tuple[float, int, int]] = []  # value, - instant, number
        self._free = free or LearntPlaces(most, span_ns)
        self._at_ns = 0
        self.passed = self.shed = self.displaced = self.unjudged = 0

    def decide(self, at_ns: int, value: float, number: int, waits: Callable[[int], bool] = _always) -> int:
        """PASS, SHED, or the number of the tuple that has to go, and this one passes. Numbers are the caller's, from 0,
        no two the same within a span. A value that is no finite number counts as LEAST. waits: asked about the tuple
        that would have to go; if it does not wait any more it counts as taken."""
        at_ns = self._at_ns = max(at_ns, self._at_ns)
        if value - value != 0:
            value = LEAST
            self.unjudged += 1
        self._expire(at_ns)
        wanted = self._free.wanted(at_ns, value, len(self._waiting), self.most - len(self._held))
        if wanted and len(self._held) < self.most:
            self._admit(at_ns, value, number)
            return PASS
        least = self._least(waits) if len(self._held) <= self.most else None
        if least is None or self._waiting[least] >= value:
            self.shed += 1
            return SHED
        del self._waiting[least]
        self._held.remove(least)
        self.passed -= 1
        self.displaced += 1
        self._admit(at_ns, value, number)
        return least

    def taken(self, number: int) -> None:
        """A tuple that passed was begun, or sent, or has gone some other way: its place stays taken."""
        self._waiting.pop(number, None)

    def inherit(self, other: "RateLimiter") -> None:
        """A new plan has the same source: what the old one let pass holds its places, and where the limit is the same
        what was learned is known. From now on only this one is asked."""
        self._admissions, self._held, self._waiting, self._heap = (
            other._admissions,
            other._held,
            other._waiting,
            other._heap,
        )
        self._at_ns = other._at_ns
        if (self.most, self.span_ns) == (other.most, other.span_ns):
            self._free = other._free

    def _expire(self, at_ns: int) -> None:
        places, ended = self._admissions, at_ns - self.span_ns
        while places and places[0][0] <= ended:
            number = places.popleft()[1]
            self._held.discard(number)
            self._waiting.pop(number, None)

    def _admit(self, at_ns: int, value: float, number: int) -> None:
        self._admissions.append((at_ns, number))
        self._held.add(number)
        self._waiting[number] = value
        heappush(self._heap, (value, -at_ns, number))
        self.passed += 1
        if len(self._admissions) > 2 * len(self._held) + _SPARE:
            self._admissions = deque(place for place in self._admissions if place[1] in self._held)
        if len(self._heap) > 2 * len(self._waiting) + _SPARE:
            self._heap = [entry for entry in self._heap if entry[2] in self._waiting]
            heapify(self._heap)

    def _least(self, waits: Callable[[int], bool]) -> int | None:
        """The number of the least valuable tuple that waits; of several the youngest, which gives up the least time."""
        heap, waiting = self._heap, self._waiting
        while heap:
            number = heap[0][2]
            if number in waiting:
                if waits(number):
                    return number
                del waiting[number]
            heappop(heap)
        return None


__all__ = ["PASS", "SHED", "FreePlaces", "RateLimiter", "Threshold"]
