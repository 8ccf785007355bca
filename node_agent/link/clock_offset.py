"""The interval that holds the offset between a peer's clock and the local one. Pure, integers only.

`offset` = local - peer, for readings of both clocks at one moment. A probe asks at t0 (local), arrives at t1 (peer), is
answered at t2 (peer) and back at t3 (local). Since t1 was read after t0 and t2 before t3 (Cristian 1989; Marzullo and
Owicki 1983: intersect, do not average):

    t0 - t1 - 1 < offset(t1),   offset(t2) < t3 - t2 + 1

The 1 ns is for the rounding: a reading is a clock's time rounded down, so the time is less than the reading + 1. Bounds
of times, not of readings, are what may be intersected; of readings, two that hold can miss each other by a nanosecond.
Between two moments the offset moves by at most the sum of both declared drifts times the time between them, so an
interval is kept for one moment (`anchor`) and widened away from it. Widened intervals are intersected; the least round
trip thereby wins as long as it is young. Every batch is half a probe: it was sent before it was received, so its
`sent_ns` bounds the offset from above at no cost; this catches a local suspension before a verdict is drawn from it.

An empty intersection means that a clock jumped (suspension, live migration): a new era begins and nothing is said about
instants before it. Without any interval, `map` answers with the whole of time, and verdicts become undecidable.
"""

from typing import NamedTuple

from node_agent.problems import UnusableValueError

FAR_NS = 1 << 62  # beyond every reading of a monotonic clock, and so that differences still fit in 63 bits
MILLION = 1_000_000

FIRST_PROBES = 8
FIRST_EVERY_NS = 20_000_000
EVERY_NS = 1_000_000_000


class Question(NamedTuple):
    """A Probe to write now."""

    id: int
    t0_ns: int


class Offset(NamedTuple):
    """The interval at one instant, as the trace's CLOCK record has it."""

    lo_ns: int
    hi_ns: int
    rtt_ns: int
    era: int


class PeerClock:
    """The clock of one peer, seen from here. It outlives the peer's connections, since its offset does.

    Domains: a peer in the same clock domain has offset 0 exactly and is never probed. drift_ppm: what each side
    declares as the most that its clock is fast or slow against true time, in parts per million.
    """

    def __init__(
        self, own_domain: str, own_drift_ppm: int, peer_domain: str, peer_drift_ppm: int, since_ns: int | None = None
    ) -> None:
        """since_ns: the local clock has not stood still since then; None: ever."""
        self._peer = peer_domain, peer_drift_ppm
        self.same = bool(own_domain) and own_domain == peer_domain
        # |d offset / d local| <= (a + b) / (1 - a); a margin of another (a + b) because the local instant that
        # belongs to a peer's instant is itself known only up to the drift.
        self._rate = own_drift_ppm + peer_drift_ppm
        self._per = MILLION - 2 * own_drift_ppm - peer_drift_ppm
        if self._rate < 0 or self._per <= 0:
            raise UnusableValueError(
                "out_of_range", f"drifts of {own_drift_ppm} and {peer_drift_ppm} ppm leave no clock to speak of"
            )
        self._lo_ns = 0
        self._hi_ns = 0
        self._anchor_ns = 0
        self._since_ns = -FAR_NS if since_ns is None else since_ns  # local instant at which the era began
        self._rtt_ns = 0
        self._asked: Question | None = None
        self._next_id = 1
        self._due_ns = -FAR_NS
        self._left = FIRST_PROBES
        self.known = self.same
        self.era = 0
        self._suspensions = 0

    def due_ns(self) -> int | None:
        """When to send the next probe; None: never (same clock domain)."""
        if self.same:
            return None
        return self._due_ns if self._asked is None else max(self._due_ns, self._asked.t0_ns + EVERY_NS)

    def ask(self, at_ns: int) -> Question | None:
        """The probe to write now, or None before it is due. An earlier one is waited for up to a second: over a slow
        link, questions that come faster than answers would leave no answer that fits."""
        due_ns = self.due_ns()
        if due_ns is None or at_ns < due_ns:
            return None
        self._asked = Question(self._next_id, at_ns)
        self._next_id += 1
        self._left = max(0, self._left - 1)
        self._due_ns = at_ns + (FIRST_EVERY_NS if self._left else EVERY_NS)
        return self._asked

    def on_answer(self, at_ns: int, question: Question, t1_ns: int, t2_ns: int) -> Offset | None:
        """A probe came back. The new interval (write it down as CLOCK), or None where it answers nothing asked.

        question: as the answer repeats it. An answer to another connection's question, sent again, has another t0.
        """
        asked = self._asked
        if asked is None or asked != question or t2_ns < t1_ns or at_ns < asked.t0_ns:
            return None
        self._asked = None
        rtt_ns = (at_ns - asked.t0_ns) - (t2_ns - t1_ns)
        slack = self._drift(at_ns - asked.t0_ns)
        lo_ns, hi_ns = asked.t0_ns - t1_ns - 1 - slack, at_ns - t2_ns + 1 + slack
        if hi_ns < lo_ns:
            return None  # it claims to have held the question for longer than we waited: no clock can do that
        if self.known:
            old_lo, old_hi = self._at(at_ns)
            both_lo, both_hi = max(old_lo, lo_ns), min(old_hi, hi_ns)
            if both_lo <= both_hi:
                self._lo_ns, self._hi_ns, self._anchor_ns = both_lo, both_hi, at_ns
                self._rtt_ns = min(self._rtt_ns, rtt_ns)
                return self.offset(at_ns)
            self.suspended(at_ns)
        if self.era:
            self._since_ns = asked.t0_ns
        self._lo_ns, self._hi_ns, self._anchor_ns, self._rtt_ns = lo_ns, hi_ns, at_ns, rtt_ns
        self.known = True
        return self.offset(at_ns)

    def on_batch(self, at_ns: int, sent_ns: int) -> None:
        """A batch that was sent at the peer's `sent_ns` was received now: the offset is at most the difference."""
        if self.same or not self.known:
            return
        most_ns = at_ns - sent_ns + 1
        lo_ns, hi_ns = self._at(at_ns)
        if most_ns < lo_ns:
            self.suspended(at_ns)
        elif most_ns < hi_ns:
            self._lo_ns, self._hi_ns, self._anchor_ns = lo_ns, most_ns, at_ns

    def speaks_like(self, peer_domain: str, peer_drift_ppm: int) -> bool:
        """Whether a peer that says so of its clock still has the one that is known here."""
        return self._peer == (peer_domain, peer_drift_ppm)

    def met(self, at_ns: int, suspensions: int) -> None:
        """A new connection: what was asked over the one before is not answered any more. suspensions: how often the
        peer's clock has stood still, as it says itself: over a slow link no answer would contradict what was known, and
        what an answer tells holds for nothing of before."""
        if suspensions != self._suspensions:
            self.suspended(at_ns)
        self._suspensions = suspensions
        self._ask_soon(at_ns)

    def _ask_soon(self, at_ns: int) -> None:
        self._asked = None
        self._due_ns = at_ns
        self._left = FIRST_PROBES

    def suspended(self, at_ns: int) -> None:
        """A clock may have jumped: nothing is known until the next answer, and nothing about the time before."""
        if self.same:
            return
        self.known = False
        self.era += 1
        self._since_ns = at_ns
        self._ask_soon(at_ns)

    def offset(self, at_ns: int) -> Offset:
        """The interval that holds local - peer at the local instant `at_ns`."""
        if self.same:
            return Offset(0, 0, 0, 0)
        if not self.known:
            return Offset(-FAR_NS, FAR_NS, 0, self.era)
        lo_ns, hi_ns = self._at(at_ns)
        return Offset(lo_ns, hi_ns, self._rtt_ns, self.era)

    def map(self, at_ns: int, lo_ns: int, hi_ns: int) -> tuple[int, int]:
        """The local interval for a past instant that lies in [lo_ns, hi_ns] of the peer; never later than `at_ns`.

        at_ns: now, when the message that told the instant has been received.
        """
        if self.same:
            return lo_ns, hi_ns
        if not self.known:
            return -FAR_NS, at_ns
        early, late = lo_ns + self._lo_ns, hi_ns + self._hi_ns
        early -= self._drift(abs(early - self._anchor_ns))
        late = min(late + self._drift(abs(late - self._anchor_ns)), at_ns)
        if early < self._since_ns:
            return -FAR_NS, late if late >= self._since_ns else at_ns
        return min(early, late), late

    def _at(self, at_ns: int) -> tuple[int, int]:
        """The interval for a local instant."""
        wider = self._drift(abs(at_ns - self._anchor_ns))
        return self._lo_ns - wider, self._hi_ns + wider

    def _drift(self, elapsed_ns: int) -> int:
        """How far the offset may have moved between two readings, rounded up; between them is less than 1 ns more."""
        return -(-(elapsed_ns + 1) * self._rate // self._per)
