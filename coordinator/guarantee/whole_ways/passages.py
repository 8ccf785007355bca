"""When tuples leave units of a node that follow each other, within a budget of work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from coordinator.calculus.curves import Time, TooLongError
from coordinator.calculus.demand import Load, Steps
from coordinator.calculus.flow import jittered, total
from coordinator.calculus.passage import Ends, Passage, ends, fold
from coordinator.calculus.selectivity import Selectivity
from coordinator.guarantee.streams import Delays, Flow, Streams
from coordinator.guarantee.system import System, Unit
from coordinator.guarantee.whole_ways.dense_arrivals import Came
from coordinator.guarantee.whole_ways.limited_flows import entered

Origin = str | int  # a source, or the unit that brought streams together
Delayed = tuple[tuple[Flow, int], ...]  # streams, and by how much more or less their tuples are delayed
MOST_WORK = 600_000  # tasks that are looked at in one round, about
GROUPS = 24  # of tuples before one, about


@dataclass(frozen=True)
class Run:
    """Units of a node that follow each other: what comes to the first, by origin, and what it passed before; the units
    with the operator that the next one, or the stream, comes from, and what comes to them by other inputs."""

    came: Mapping[Origin, Came]
    passes: Mapping[Origin, tuple[Selectivity, ...]]
    units: tuple[tuple[Unit, int, tuple[Flow, ...]], ...] = ()

    def then(self, unit: Unit, stage: int, beside: tuple[Flow, ...] = ()) -> Run:
        """One more."""
        return replace(self, units=(*self.units, (unit, stage, beside)))


@dataclass(frozen=True, eq=False)
class _Found:
    """Empty: it takes too long to find."""

    ends: tuple[Ends, ...] = ()


@dataclass
class Passages:
    """Of one round. `steps`: of every unit, by node and name; `work`: done so far."""

    system: System
    delays: Delays
    streams: Streams
    loads: Mapping[str, Load]
    work: int = 0

    def __post_init__(self) -> None:
        self._steps = {node: {each.task.name: each for each in load.steps} for node, load in self.loads.items()}

    def steps(self, unit: Unit) -> Steps | None:
        """What releases a unit; None: its node has no bound."""
        return self._steps.get(unit.node, {}).get(unit.name)

    def left(self, run: Run, origin: Origin, wanted: int) -> Came:
        """When a tuple leaves at the latest, and those before it, `wanted` in all; empty where that takes too long to
        find, or is what the unit takes anyway."""
        (first, *_), (last, stage, _) = run.units[0], run.units[-1]
        load = self.loads[last.node]
        units = tuple(self._steps[last.node][unit.name] for unit, *_ in run.units)
        looks = sum(len(each.times) for each in load.steps)
        self.work += len(load.steps) * looks * min(units[0].counts[-1], GROUPS)
        if self.work > MOST_WORK or (len(units) == 1 and units[0].counts[-1] == 1):
            return ()
        after, at = list[Time](), 0
        for unit, exit_, _ in run.units:
            after.append(at)
            at += _whole(self.delays.units[unit.id].stages[exit_])
        others = self._others(first, run, origin)
        besides = tuple(beside for *_, beside in run.units)
        key = ("ends", load, *(unit.id for unit, *_ in run.units), stage, *after, others, besides)
        found = self.delays.reuse.of(key, partial(_found, load, units, after, stage, others, besides))
        came, passes = run.came[origin], run.passes.get(origin, ())
        return self.delays.reuse.of(("left", found, came, passes, wanted), partial(_left, found, came, passes, wanted))

    def _others(self, first: Unit, run: Run, origin: Origin) -> Delayed:
        """What comes to the first unit from other sources."""
        trigger = self.streams.triggers[first.id]
        names = [each for each in trigger.late if each != origin]
        if isinstance(origin, int) or not names:
            return ()
        if any(each not in run.came for each in names):
            return ((trigger, 0),)
        return tuple((entered(self.system, self.streams, each), trigger.late[each].spread_ns) for each in names)


def _found(
    load: Load,
    units: tuple[Steps, ...],
    after: Sequence[Time],
    stage: int,
    others: Delayed,
    besides: tuple[tuple[Flow, ...], ...],
) -> _Found:
    other = total([jittered(flow.curve, ns) for flow, ns in others]) if others else None
    beside = tuple(total([flow.curve for flow in each]) if each else None for each in besides)
    try:
        return _Found(tuple(ends(load, Passage(units, tuple(after), stage, other, beside))))
    except TooLongError:
        return _Found()


def _left(found: _Found, came: Came, passes: tuple[Selectivity, ...], wanted: int) -> Came:
    return tuple(fold(came, found.ends, passes, wanted)) if found.ends else ()


def _whole(t: Time) -> int:
    return int(-(-t // 1))


__all__ = ["Origin", "Passages", "Run"]
