"""What the reference system is judged by: latency and drops on the hot path, and how even the planner's cycle is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, pstdev

from infra.reference_system.reference_graph import DEADLINES_MS, HOT_PATH, MS, PERIODS_MS, TIMER

DEADLINE_NS = DEADLINES_MS[HOT_PATH] * MS


@dataclass(frozen=True)
class HotResult:
    """One update of the object collision estimator. front_ns, older_ns: when its front sample, and the older of its two
    samples, were due; stamp_ns: of the younger, as its sensor wrote it; start_ns: of the estimator; end_ns: the result
    is delivered."""

    front_ns: int
    older_ns: int
    stamp_ns: int
    start_ns: int
    end_ns: int

    @property
    def latency_ns(self) -> int:
        """End to end, as bounds count it."""
        return self.end_ns - self.older_ns


@dataclass(frozen=True)
class Observed:
    """Of one run. front_ns: when samples of the front lidar were due; planner_ns: starts of the behaviour planner.
    dropped: messages by the callback that did not get them, or the sensor whose timer was skipped. until_ns: how long
    it was looked at. oldest_ns: the age of the oldest datum behind a command to drive; 0: not looked for."""

    front_ns: Sequence[int]
    hot: Sequence[HotResult]
    planner_ns: Sequence[int]
    dropped: Mapping[str, int]
    until_ns: int
    oldest_ns: int = 0


@dataclass(frozen=True)
class Spread:
    """Mean, standard deviation and the largest, in ms."""

    mean: float
    std: float
    max: float

    @staticmethod
    def of(values_ns: Sequence[int]) -> Spread:
        """Zeros of none."""
        if not values_ns:
            return Spread(0.0, 0.0, 0.0)
        return Spread(fmean(values_ns) / MS, pstdev(values_ns) / MS, max(values_ns) / MS)


@dataclass(frozen=True)
class Kpis:
    """Of runs together. latency: of the hot path as the reference system counts it, from the younger lidar's stamp to
    the estimator's start; end_to_end: from the older one's instant to the result; age: of the newest result when the
    next one comes. samples: of the front lidar; updates: of the estimator; missed: samples without a result within the
    deadline. planner: its period; jitter_ms: the worst distance from it. oldest_ms: of the data behind commands to
    drive; 0: not looked for. Milliseconds."""

    latency: Spread
    end_to_end: Spread
    age: Spread
    planner: Spread
    jitter_ms: float
    samples: int
    updates: int
    missed: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    oldest_ms: float = 0.0

    @property
    def hot_drops(self) -> int:
        """Samples of the front lidar that gave no update."""
        return self.samples - self.updates


def kpis(runs: Sequence[Observed]) -> Kpis:
    """All of them."""
    hot = [each for run in runs for each in run.hot]
    periods = [after - before for run in runs for before, after in pairwise(run.planner_ns)]
    ages = [after.end_ns - before.older_ns for run in runs for before, after in pairwise(run.hot)]
    wanted = PERIODS_MS[TIMER] * MS
    dropped: Counter[str] = Counter()
    for run in runs:
        dropped.update(run.dropped)
    judged = [_judged(run) for run in runs]
    return Kpis(
        Spread.of([each.start_ns - each.stamp_ns for each in hot]),
        Spread.of([each.latency_ns for each in hot]),
        Spread.of(ages),
        Spread.of(periods),
        max((abs(period - wanted) for period in periods), default=0) / MS,
        sum(samples for samples, _, _ in judged),
        sum(updates for _, updates, _ in judged),
        sum(missed for _, _, missed in judged),
        dict(dropped),
        max(run.oldest_ns for run in runs) / MS,
    )


def _judged(run: Observed) -> tuple[int, int, int]:
    """Samples of which it is known what came of them, how many of these gave an update, and how many none in time."""
    latency = {each.front_ns: each.latency_ns for each in run.hot}
    known = [at_ns for at_ns in run.front_ns if at_ns in latency or at_ns + DEADLINE_NS <= run.until_ns]
    updates = sum(at_ns in latency for at_ns in known)
    return len(known), updates, sum(latency.get(at_ns, DEADLINE_NS + 1) > DEADLINE_NS for at_ns in known)
