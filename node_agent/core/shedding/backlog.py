"""Measures the backlog between a shedder's entries and the windows: queued tuples, cost per tuple, arrival rate.

The rate is taken twice, over a window's length and over a fraction of it, and the lower one counts: a burst that is
over is over at once, and a batch of tuples is no burst.

Integers only, from the instants of the events in their order, so a journal gives the same figures again. A tuple costs
the time that the units on its way were utilised by it, choosing included; before the first measurement, as declared.
While a backlog lasts a tuple costs no less than the time that passes per tuple, since the node also does other work.
"""

from collections.abc import Sequence

from node_agent.core.model import Route, Unit, UtilisationMeter
from node_agent.core.windows.shedding_control import PPM
from node_agent.core.windows.window_aware import Load

JOBS = 512  # how many samples a mean remembers at most; half of them at least
RECENT = 10  # the last so many-th of the span says whether fewer come now
FEWEST = 16  # tuples that say which share of the time the way has


def pieces(unit: Unit) -> list[Unit]:
    """All pieces of a unit that its policy cuts into operators."""
    found = [unit]
    while (rest := found[-1].rest) is not None:
        found.append(rest)
    return found


class _MeanGap:
    """Mean time between arrivals over a span; half of it is forgotten at a time."""

    __slots__ = ("_gaps", "_ns", "_span_ns")

    def __init__(self, span_ns: int) -> None:
        self._span_ns = max(1, span_ns)
        self._ns = self._gaps = 0

    def add(self, gap_ns: int) -> bool:
        """Returns whether half was forgotten."""
        self._ns += gap_ns
        self._gaps += 1
        if self._ns < self._span_ns:
            return False
        self._ns >>= 1
        self._gaps = self._gaps + 1 >> 1
        return True

    @property
    def ns(self) -> int:
        """0: not known yet."""
        return self._ns // self._gaps if self._gaps else 0

    def inherit(self, other: "_MeanGap") -> None:
        """Go on as another one."""
        self._ns, self._gaps = other._ns, other._gaps


class _Stage:
    """A unit on the way. weight_ns: the cost of a tuple that waits for it, up to the windows."""

    __slots__ = ("_made", "_seen", "after", "declared_ns", "ns", "tuples", "unit", "utilisation", "weight_ns")

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.utilisation = unit.utilisation = unit.utilisation or UtilisationMeter()
        for piece in pieces(unit):
            piece.utilisation, piece.has_end_hooks = self.utilisation, True
        self.declared_ns = sum(step.cost_ns for piece in pieces(unit) for step in piece.chain)
        self.after: list[tuple[int, _Stage]] = []  # exits, and where they lead
        self.ns = self.tuples = self.weight_ns = 0
        self._made = [0] * len(self.utilisation.made)  # by exit
        self._seen = (self.utilisation.ns, self.utilisation.tuples, list(self.utilisation.made))

    @property
    def routes(self) -> list[tuple[int, Route]]:
        """The routes behind the unit, by exit."""
        return [(each.index, each.route) for piece in pieces(self.unit) for each in piece.exits]

    def look(self) -> tuple[int, int]:
        """Add what was measured since the last look. Returns the new ns and tuples."""
        utilisation, (seen_ns, seen, made) = self.utilisation, self._seen
        new_ns, new = utilisation.ns - seen_ns, utilisation.tuples - seen
        self.ns += new_ns
        self.tuples += new
        self._made = [mine + now - then for mine, now, then in zip(self._made, utilisation.made, made, strict=True)]
        if self.tuples >= JOBS:
            half = self.tuples >> 1
            self.ns = self.ns * half // self.tuples
            self._made = [n * half // self.tuples for n in self._made]
            self.tuples = half
        self._seen = utilisation.ns, utilisation.tuples, list(utilisation.made)
        return new_ns, new

    def weigh(self) -> None:
        """Weigh the stage again, after the stages behind it."""
        if not self.tuples:
            self.weight_ns = self.declared_ns + sum(stage.weight_ns for _, stage in self.after)
            return
        later_ns = sum(self._made[exit_] * stage.weight_ns for exit_, stage in self.after)
        self.weight_ns = max(1, (self.ns + later_ns) // self.tuples)

    def inherit(self, other: "_Stage") -> None:
        """Inherit what was measured of the same unit of an older plan."""
        self.ns, self.tuples, self._made = other.ns, other.tuples, list(other._made)


class Backlog:
    """Of one shedder. entry_units: for each stream that it sheds of, the units that a tuple of it enters. span_ns: the
    time over which gaps between arrivals are averaged; its last part also by itself."""

    def __init__(self, entry_units: Sequence[Sequence[Unit]], path: Sequence[Unit], span_ns: int) -> None:
        units = list(dict.fromkeys([unit for each in entry_units for unit in each] + list(path)))
        self.stages = [_Stage(unit) for unit in units]
        by_unit = {stage.unit: stage for stage in self.stages}
        for stage in self.stages:
            for exit_, route in stage.routes:
                heads = (*route.units, *(join.unit for join, _ in route.joins))
                stage.after += [(exit_, by_unit[head]) for head in heads if head in by_unit]
        self._order = _backwards(self.stages)
        self._entry_units = [[by_unit[unit] for unit in each] for each in entry_units]
        self._beside = any(len(each) > 1 for each in entry_units)
        self._chains = _chains(self._entry_units)
        self.load = Load(0, 0, 0, 0)
        self._asked = [0] * len(entry_units)
        self._gap, self._recent_gap = _MeanGap(span_ns), _MeanGap(span_ns // RECENT)
        self._last_ns: int | None = None
        self._lasts = False  # no arrival has found nothing waiting since `_since_ns`
        self._since_ns = 0
        self._stretch = [0, 0, 0]  # elapsed ns, busy ns, tuples
        self._share = (1, 1)  # elapsed to busy
        self._weigh()

    def arrived(self, at_ns: int, stream: int) -> Load:
        """Count a tuple that came to that stream's entries. stream: its place among the streams. Returns the load."""
        load = self.load
        self._asked[stream] += 1
        if self._last_ns is not None:
            gap_ns = at_ns - self._last_ns
            if self._gap.add(gap_ns):
                self._asked = [n + 1 >> 1 for n in self._asked]
            self._recent_gap.add(gap_ns)
            load.gap_ns = max(self._gap.ns, self._recent_gap.ns)
        self._last_ns = at_ns
        self.look()
        if not load.queued:
            self._lasts = False
        return load

    def look(self) -> None:
        """Look at the queues."""
        queued = work_ns = 0
        for stage in self.stages:
            n = len(stage.unit.queue)
            if n:
                queued += n
                work_ns += n * stage.weight_ns
        if self._beside and queued:
            queued = sum(max(sum(len(unit.queue) for unit in chain) for chain in each) for each in self._chains)
        self.load.queued, self.load.work_ns = queued, work_ns

    def period(self) -> None:
        """End a period: its measurements count from now on."""
        busy_ns = tuples = 0
        for stage in self.stages:
            new_ns, new = stage.look()
            busy_ns += new_ns
            tuples += new
        end_ns = max(stage.utilisation.end_ns for stage in self.stages)
        stretch = self._stretch
        if not self._lasts:
            self._share = (1, 1)
            stretch[:] = 0, 0, 0
        elif end_ns:
            stretch[:] = stretch[0] + end_ns - self._since_ns, stretch[1] + busy_ns, stretch[2] + tuples
            if stretch[2] >= FEWEST and stretch[1]:
                self._share = (max(stretch[0], stretch[1]), stretch[1])
                stretch[:] = 0, 0, 0
        self._since_ns, self._lasts = end_ns, end_ns > 0
        self._weigh()
        self.look()

    def _weigh(self) -> None:
        for stage in self._order:
            stage.weigh()
        elapsed_ns, busy_ns = self._share
        if elapsed_ns > busy_ns:
            for stage in self.stages:
                stage.weight_ns = stage.weight_ns * elapsed_ns // busy_ns
        costs = [sum(stage.weight_ns for stage in each) for each in self._entry_units]
        asked = self._asked if any(self._asked) else [1] * len(costs)
        self.load.cost_ns = max(1, sum(n * cost for n, cost in zip(asked, costs, strict=True)) // sum(asked))

    @property
    def load_ppm(self) -> int:
        """rho, the offered work per time; 0: not known yet."""
        return self.load.cost_ns * PPM // gap_ns if (gap_ns := self._gap.ns) else 0

    def release_resources(self) -> None:
        """Release all references to units."""
        for each in (self.stages, self._order, self._entry_units, self._chains):
            each.clear()

    def inherit(self, other: "Backlog", pairs: Sequence[tuple[Unit, Unit]]) -> None:
        """Inherit the measurements of the same shedder of an older plan. pairs: units that are the same in both."""
        before = {stage.unit: stage for stage in other.stages}
        mine = {stage.unit: stage for stage in self.stages}
        for unit, old in pairs:
            if unit in mine and old in before:
                mine[unit].inherit(before[old])
        self._gap.inherit(other._gap)
        self._recent_gap.inherit(other._recent_gap)
        self._last_ns, self.load.gap_ns = other._last_ns, other.load.gap_ns
        self._share = other._share
        self._weigh()


def _backwards(stages: Sequence[_Stage]) -> list[_Stage]:
    """Each stage after all stages that it leads to: a plan has no cycles."""
    order: dict[_Stage, None] = {}
    waiting = list(stages)
    while waiting:
        stage = waiting[-1]
        open_ = [after for _, after in stage.after if after not in order]
        if open_:
            waiting += open_
        else:
            order[waiting.pop()] = None
    return list(order)


def _chains(entry_units: Sequence[Sequence[_Stage]]) -> list[list[list[Unit]]]:
    """For each stream, for each unit that it enters: the units that its tuples run through, each counted once."""
    seen: set[_Stage] = set()
    chains = []
    for each in entry_units:
        row = []
        for entry in each:
            chain, waiting = [], [entry]
            while waiting:
                stage = waiting.pop()
                if stage not in seen:
                    seen.add(stage)
                    chain.append(stage.unit)
                    waiting += [after for _, after in stage.after]
            row.append(chain)
        chains.append(row)
    return chains


__all__ = ["Backlog", "pieces"]
