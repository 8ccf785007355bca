"""[P] 5.1's load shedder: of one source at most so many tuples per span, and above that the least valuable go first.

Of the tuples that survive, any `most` + 1 in a row span at least `span_ns`: the arrival curve that a plan takes a
limited source to have. A tuple that is, with those that came within the span before it, not above the limit always
passes. Each is decided when it comes, and none is held:

- **Displacing.** Where the limit is reached, it takes the place of the least valuable tuple that passed within the
  span and still waits, if it is worth more. The place is then counted from its own instant, or survivors could come
  closer together than allowed.
- **A threshold.** A place that is free goes to a tuple that is among the best most / arrivals of what came lately;
  a better one would find it taken, since what has begun cannot be displaced. While a quarter of the limit waits,
  a new tuple will wait too, can be displaced, and may have a free place.
- **The last places are for the best.** Of the places half, at most 8, go only to a tuple that is among the best so many
  of this span and the one before. Or the one tuple in a hundred that matters would come while all places are taken by
  what was merely good, and begun.
- **Drop-tail, where learning does not pay.** What the threshold and what first come first served would have kept is
  added up beside (forgotten by a sixteenth per span); while the latter is ahead, a free place goes to any tuple.

Pure: told the time, never asking for it. A decision costs O(log most), memory is bounded by `most`.
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
FORGETS = 16  # spans
MANY_WAIT = 4  # a quarter of the limit
MOST_FOR_BEST = 8  # places
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

    def take(self, at_ns: int) -> bool:
        """A place from now on, if there is one."""
        instants, ended = self.instants, at_ns - self.span_ns
        while instants and instants[0] <= ended:
            instants.popleft()
        if len(instants) >= self.most:
            return False
        instants.append(at_ns)
        return True


class Threshold:
    """Whether a value is among the best of what came lately, as many as there are places for."""

    __slots__ = ("_credit", "_latest", "_now", "_sorted", "_span", "_then", "most", "span_ns")

    def __init__(self, most: int, span_ns: int) -> None:
        self.most, self.span_ns = most, span_ns
        self._latest: deque[float] = deque()
        self._sorted: list[float] = []
        self._span = self._now = self._then = 0  # number of this span; arrivals in it, and in the one before
        self._credit = 0.5  # of values that all equal the threshold a part passes, evenly spread

    def passes(self, at_ns: int, value: float) -> bool:
        """Told of every tuple."""
        span, within = divmod(at_ns, self.span_ns)
        if span != self._span:
            self._then = self._now if span == self._span + 1 else 0
            self._now, self._span = 0, span
        self._now += 1
        arrivals = self._now + self._then * (self.span_ns - within) / self.span_ns  # in a span that ends now
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


class Best:
    """The greatest `most` values of this span and of the one before."""

    __slots__ = ("_now", "_span", "_then", "most", "span_ns")

    def __init__(self, most: int, span_ns: int) -> None:
        self.most, self.span_ns = most, span_ns
        self._span = 0
        self._now: list[float] = []
        self._then: list[float] = []

    def has(self, at_ns: int, value: float) -> bool:
        """Whether a value is among them. Told of every tuple."""
        span = at_ns // self.span_ns
        if span != self._span:
            self._then = self._now if span == self._span + 1 else []
            self._now, self._span = [], span
        now, then = self._now, self._then
        insort(now, value)
        if len(now) > self.most:
            del now[0]
        return len(now) + len(then) - bisect_right(now, value) - bisect_right(then, value) < self.most


class FreePlaces(Protocol):
    """Whether a tuple should have a place that is free."""

    def wanted(self, at_ns: int, value: float, waiting: int, free: int) -> bool:
        """Asked for every tuple. waiting: how many that passed can still be displaced; free: how many places are."""


class LearntPlaces:
    """By a threshold, where that keeps more than first come first served; the last ones to the best."""

    __slots__ = ("_best", "_came", "_first_served", "_lead", "_picked", "_span", "_threshold", "most", "span_ns")

    def __init__(self, most: int, span_ns: int) -> None:
        self.most, self.span_ns = most, span_ns
        self._threshold = Threshold(most, span_ns)
        self._best = Best(min(most // 2, MOST_FOR_BEST), span_ns)
        self._picked, self._first_served = _Places(most, span_ns), _Places(most, span_ns)
        self._came: deque[int] = deque(maxlen=most)  # instants, whether or not they passed
        self._lead = 0.0  # of the threshold over first come first served, in value
        self._span = 0

    def wanted(self, at_ns: int, value: float, waiting: int, free: int) -> bool:
        """Whether the tuple should have a free place."""
        good = self._threshold.passes(at_ns, value)
        span = at_ns // self.span_ns
        if span != self._span:
            self._lead *= (1 - 1 / FORGETS) ** min(span - self._span, 1000)
            self._span = span
        came = self._came
        below = len(came) < self.most or came[0] <= at_ns - self.span_ns
        came.append(at_ns)
        best, enough = self._best.has(at_ns, value), self._lead < 0 or good
        wanted = below or (best if free <= self._best.most else enough) or self.most <= MANY_WAIT * waiting
        picked = good and self._picked.take(at_ns)
        if picked != self._first_served.take(at_ns) and value != LEAST:
            worth = value - self._threshold.lowest
            self._lead += worth if picked else -worth
            if self._lead - self._lead != 0:  # values near the largest number there is
                self._lead = 0.0
        return wanted


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
