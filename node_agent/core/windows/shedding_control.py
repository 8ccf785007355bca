"""Shedding in overload: `front` ([S], corrected), `random`, `drop-tail`, and the rate control.

All numbers are integers: shares in ppm, instants and costs in ns. The numbers of tuples
that are shed travel on as removed ranges, so a shedder can cost windows, but never make one wrong. `window-aware` is
in `window_aware`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from node_agent.problems import UnusableValueError

PPM = 1_000_000
SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class RemovedRange:
    """Numbers first..last are gone, with origins in least..greatest; one of them has the greatest."""

    first: int
    last: int
    least_ns: int
    greatest_ns: int


class RemovedRanges:
    """What was removed since the last survivor: [S]'s range, and its d = -1, which is the range that is handed out.

    A run of numbers is one range, however many shedders took them and in any order, as long as the span of its
    origins meets no window that could still be exact (`free`); else it is cut there. What is removed behind the last
    tuple waits for the next survivor, or for a heartbeat (`take`). At most `most` ranges wait: then they are due.
    What is late beside another tuple of its range is in no window, so its origin does not widen the span.
    """

    def __init__(self, lateness_ns: int, most: int = 256) -> None:
        self.lateness_ns, self.most = lateness_ns, most
        self._ranges: list[RemovedRange] = []

    def shed(self, number: int, origin_ns: int, free: Callable[[int, int], bool] | None = None) -> bool:
        """A tuple is removed. free(least, greatest): no window that is worth keeping meets that span; None: no run is
        ever cut. True: as many ranges wait as may, `take` them now."""
        ranges = self._ranges
        if ranges:
            old = ranges[-1]
            least_ns, greatest_ns = min(old.least_ns, origin_ns), max(old.greatest_ns, origin_ns)
            if origin_ns < old.greatest_ns - self.lateness_ns:
                least_ns = old.least_ns
            if number == old.last + 1 and (free is None or free(least_ns, greatest_ns)):
                ranges[-1] = RemovedRange(old.first, number, least_ns, greatest_ns)
                return False
        ranges.append(RemovedRange(number, number, origin_ns, origin_ns))
        return len(ranges) >= self.most

    def take(self) -> list[RemovedRange]:
        """With the next survivor, before it: the punctuation that travels, by number."""
        ranges, self._ranges = self._ranges, []
        return sorted(ranges, key=lambda each: each.first)


class RateControl:
    """PI control of the share that is shed, once per period ([S] gives none): e = q c - target, and
    r <- clip(r + Kp (e - e_prev) + Ki e, 0, 1). Gains in ppm of the stream per second of backlog."""

    def __init__(self, target_ns: int, kp_ppm: int = 200_000, ki_ppm: int = 50_000) -> None:
        if target_ns < 0 or kp_ppm < 0 or ki_ppm < 0:
            raise UnusableValueError("negative", f"target {target_ns} ns, gains {kp_ppm} and {ki_ppm} ppm: below 0")
        self.target_ns, self._kp, self._ki = target_ns, kp_ppm, ki_ppm
        self._before_ns: int | None = None
        self._rate = 0  # ppm of a second: nothing is lost to rounding from one period to the next

    def step(self, queued: int, cost_ns: int) -> int:
        """The rate from now on, in ppm: `queued` tuples wait, and each costs so much."""
        error_ns = queued * cost_ns - self.target_ns
        before_ns = error_ns if self._before_ns is None else self._before_ns
        self._before_ns = error_ns
        moved = self._rate + self._kp * (error_ns - before_ns) + self._ki * error_ns
        self._rate = max(0, min(moved, PPM * SECOND))
        return self.rate_ppm

    def inherit(self, other: "RateControl") -> None:
        """Where another one is that controls the same."""
        self._before_ns, self._rate = other._before_ns, other._rate

    @property
    def rate_ppm(self) -> int:
        """What is shed now."""
        return self._rate // SECOND


def excess(arrivals: int, rate_ppm: int, queued: int, most: int) -> int:
    """How many tuples go this period: n = max(r arrivals, q - M), for CPU and memory together; at most all of them."""
    return max(0, min(queued, max(rate_ppm * arrivals // PPM, queued - most)))


class Front:
    """[S]: what goes is the oldest of the queue, in one run. Returns how many; the owner of the queue takes them
    off its front and tells `RemovedRanges`. The first survivor carries the range; if it goes in a later period, the
    ranges are one."""

    def __init__(self, control: RateControl, most: int) -> None:
        self.control, self._most, self._arrivals = control, most, 0

    def arrived(self) -> None:
        """A tuple came into the queue."""
        self._arrivals += 1

    def period(self, queued: int, cost_ns: int, work_ns: int | None = None) -> int:
        """A period has passed: so many tuples of the front go. work_ns: what is queued costs, where it differs."""
        arrivals, self._arrivals = self._arrivals, 0
        rate_ppm = self.control.step(queued, cost_ns) if work_ns is None else self.control.step(1, work_ns)
        return excess(arrivals, rate_ppm, queued, self._most)


class AtRandom:
    """Each arriving tuple goes with the probability that the control says, or because the queue is full. The draws are
    the caller's, so that a journal gives the same again: uniform in 0..999 999, one per tuple."""

    def __init__(self, control: RateControl, most: int) -> None:
        self.control, self._most = control, most

    def period(self, queued: int, cost_ns: int) -> None:
        """A period has passed."""
        self.control.step(queued, cost_ns)

    def keeps(self, draw: int, queued: int) -> bool:
        """Whether an arriving tuple is kept."""
        return queued < self._most and draw >= self.control.rate_ppm


class DropTail:
    """What arrives at a full queue goes."""

    def __init__(self, most: int) -> None:
        self._most = most

    def keeps(self, queued: int) -> bool:
        """Whether an arriving tuple is kept."""
        return queued < self._most


__all__ = ["AtRandom", "DropTail", "Front", "RateControl", "RemovedRange", "RemovedRanges", "excess"]
