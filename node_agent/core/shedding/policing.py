"""Keeps sources and operators to what they declared, so that a guarantee stays true when one breaks its promise.

A guarantee rests on arrival curves of the sources and selectivity curves of the operators ([Q] definition 6; a mean
bounds nothing). What is beyond them is shed here, and what passes conforms for any input: each police admits as long
as what it has let pass still conforms (so nothing that conforms is ever shed), and what it sheds it forgets.

Told the time, never asking for it; nothing is allocated per tuple. `shed` counts what did not pass.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence

from node_agent.core.plan import Operator, Pace, Source

LONG_AGO = -1  # before any instant


class PacePolice:
    """Any k n + 1 tuples in a row span at least (k interval - slack) / parts, for k up to `most`.

    Tuple i may not be earlier than tuple i - k n allows, for every k. So the tuples with one remainder modulo n make a
    row of their own, and of it only the latest of all `then + k interval` has to be known: the generic cell rate
    algorithm, n times side by side. With `most` what is older is forgotten: a second row begins every `most` rounds and
    takes over when it has seen as many. Then a source whose clock runs a little fast is not held to account for all its
    drift since the beginning, and a test that looks at no longer stretch is served as well.
    """

    __slots__ = ("due", "interval", "most", "parts", "position", "rounds", "slack", "tuples", "young")

    def __init__(self, pace: Pace) -> None:
        self.tuples, self.interval, self.slack = pace.tuples, pace.interval, pace.slack
        self.parts, self.most = pace.parts, pace.most
        self.due = [LONG_AGO] * pace.tuples  # per remainder: not before this, but for the slack
        self.young = [LONG_AGO] * pace.tuples if pace.most else self.due
        self.position = self.rounds = 0

    def conforms(self, at_ns: int) -> bool:
        """Whether a tuple may come now."""
        return at_ns * self.parts + self.slack >= self.due[self.position]

    def count(self, at_ns: int) -> None:
        """It has come."""
        at, position, due = at_ns * self.parts, self.position, self.due
        earlier = due[position]
        due[position] = (at if at > earlier else earlier) + self.interval
        if self.most:
            young = self.young
            earlier = young[position]
            young[position] = (at if at > earlier else earlier) + self.interval
        self.position = position + 1
        if self.position == self.tuples:
            self.position = 0
            if self.most:
                self._next_round()

    def _next_round(self) -> None:
        self.rounds += 1
        if self.rounds == self.most:
            self.rounds = 0
            self.due, self.young = self.young, self.due
            for position in range(self.tuples):
                self.young[position] = LONG_AGO

    def inherit(self, other: "PacePolice") -> None:
        """Go on where another one is that knows the same tuples."""
        self.due, self.young = list(other.due), list(other.young) if self.most else self.due
        self.position, self.rounds = other.position, min(other.rounds, max(0, self.most - 1))

    @property
    def same(self) -> tuple[int, int, int]:
        """What two of them have to have in common for one to go on where the other is."""
        return self.tuples, self.interval, self.parts


class SpanPolice:
    """Any n tuples in a row span at least s(n), for some n: from recordings.

    A stretch that ends now is the longer the more tuples it has, so one look back settles every n whose span is no
    longer than what it found: few looks for a source well within its curve, one per n at worst.
    """

    __slots__ = ("at", "counts", "held", "latest", "least")

    def __init__(self, spans: Sequence[tuple[int, int]]) -> None:
        self.counts: list[int] = []
        self.least: list[int] = []  # of each count, ascending
        for tuples, span_ns in sorted(spans):
            if span_ns > (self.least[-1] if self.least else 0):  # else a smaller count says as much
                self.counts.append(tuples)
                self.least.append(span_ns)
        size = self.counts[-1] - 1 if self.counts else 1
        self.latest = array("q", bytes(8 * size))  # instants that passed, a ring
        self.at = self.held = 0  # where the next one goes; how many are known

    def conforms(self, at_ns: int) -> bool:
        """Whether a tuple may come now."""
        latest, least, at, i = self.latest, self.least, self.at, 0
        while i < len(least):
            tuples = self.counts[i]
            if tuples > self.held + 1:
                return True
            first = at - tuples + 1
            stretch_ns = at_ns - latest[first if first >= 0 else first + len(latest)]
            if stretch_ns < least[i]:
                return False
            i = bisect_right(least, stretch_ns, i + 1)
        return True

    def count(self, at_ns: int) -> None:
        """It has come."""
        self.latest[self.at] = at_ns
        self.at += 1
        if self.at == len(self.latest):
            self.at = 0
        if self.held < len(self.latest):
            self.held += 1

    def inherit(self, other: "SpanPolice") -> None:
        """Go on with the instants that another one knows."""
        known = [*other.latest[other.at :], *other.latest[: other.at]][len(other.latest) - other.held :]
        self.at = self.held = 0
        for at_ns in known[-len(self.latest) :]:
            self.count(at_ns)


class ArrivalPolice:
    """Of one source: `passes` is asked for each tuple, in the order of admission."""

    __slots__ = ("_declared", "name", "paces", "shed", "spans")

    def __init__(self, source: Source) -> None:
        self.name, self._declared = source.name, (source.paces, source.spans)
        self.paces = tuple(PacePolice(pace) for pace in source.paces)
        self.spans = SpanPolice(source.spans) if source.spans else None
        self.shed = 0

    def passes(self, at_ns: int) -> bool:
        """Whether a tuple that is admitted now conforms together with those that passed; if so it has passed."""
        for pace in self.paces:
            if not pace.conforms(at_ns):
                self.shed += 1
                return False
        if self.spans is not None:
            if not self.spans.conforms(at_ns):
                self.shed += 1
                return False
            self.spans.count(at_ns)
        for pace in self.paces:
            pace.count(at_ns)
        return True

    def inherit(self, other: "ArrivalPolice") -> None:
        """A new plan has the same source: what the old one let pass counts, as far as both police the same. From now on
        only this one is asked, so it may have what the other one knows instead of a copy of it."""
        if self._declared == other._declared:
            self.paces, self.spans = other.paces, other.spans
            return
        before = {pace.same: pace for pace in other.paces}
        for pace in self.paces:
            if pace.same in before:
                pace.inherit(before[pace.same])
        if self.spans is not None and other.spans is not None:
            self.spans.inherit(other.spans)


class SelectivityPolice:
    """Of one operator: of any k inputs in a row at most m results, for several (k, m) at once.

    `every`: it has to be told of every input, also of those without a result; not where one result per input is always
    allowed and nothing else is said.
    """

    __slots__ = ("_at", "_made", "_pairs", "_sums", "every", "name", "operator_id", "shed")

    def __init__(self, operator: Operator) -> None:
        self.name, self.operator_id, self.shed = operator.name, operator.id, 0
        self._pairs = operator.at_most
        self.every = any(inputs > 1 or results < 1 for inputs, results in operator.at_most)
        self._made = bytearray(max(inputs for inputs, _ in operator.at_most))  # per input, a ring; the latest
        self._sums = [0] * len(operator.at_most)  # over the latest inputs - 1 of each pair
        self._at = [0]  # where the next input goes

    def inherit(self, other: "SelectivityPolice") -> None:
        """A new plan has the same operator, with the same limits: from now on both remember together. Until the old
        plan has drained inputs of both come by turns, and the one instance that both call sees them as one row."""
        if self._pairs == other._pairs:
            self._made, self._sums, self._at = other._made, other._sums, other._at

    def passes(self, results: int) -> int:
        """How many of the results of the next input pass: at most so many (255 at most)."""
        pairs, sums = self._pairs, self._sums
        passed = results
        for i, (_, most) in enumerate(pairs):
            if sums[i] + passed > most:
                passed = max(0, most - sums[i])
        made, at = self._made, self._at[0]
        made[at] = passed
        size = len(made)
        for i, (inputs, _) in enumerate(pairs):
            oldest = at - inputs + 1
            sums[i] += passed - made[oldest if oldest >= 0 else oldest + size]
        self._at[0] = at + 1 if at + 1 < size else 0
        self.shed += results - passed
        return passed


def arrival_police(source: Source) -> ArrivalPolice | None:
    """None where nothing is policed."""
    return ArrivalPolice(source) if source.paces or source.spans else None


def selectivity_police(operator: Operator) -> SelectivityPolice | None:
    """None where nothing is policed."""
    return SelectivityPolice(operator) if operator.at_most else None


__all__ = ["ArrivalPolice", "SelectivityPolice", "arrival_police", "selectivity_police"]
