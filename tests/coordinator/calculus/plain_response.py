"""Response bounds as `coordinator.calculus.response` says that they are, look by look and without a short cut."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.calculus.curves import Time
from coordinator.calculus.demand import Load, Steps
from coordinator.calculus.response import Moment, Response


def plain_responses(loaded: Load) -> dict[str, Response]:
    """Of every unit."""
    return {each.task.name: _response(each, loaded) for each in loaded.steps if not each.task.chore}


def _response(own: Steps, loaded: Load) -> Response:
    unit, others = own.task, [each for each in loaded.steps if each is not own]
    chores = [each for each in others if each.task.chore]
    worst: list[Time] = [0] * len(unit.stages)
    moments = [Moment()] * len(unit.stages)
    for a in _looks(own, others, loaded.busy):
        due, jobs = a + unit.deadline, own.count(a)
        blocked = max((one.task.longest for one in others if one.task.deadline > due and one.counts[-1]), default=0)
        before = unit.work(jobs - 1)
        start = _start(blocked + before, due, others)
        if start < a:
            continue
        last = unit.work(min(jobs + unit.batch - 1, max(jobs, own.count(start)))) - before
        for stage in range(len(unit.stages)):
            runs = min(unit.work(unit.batch, stage + 1), last)
            found = _end(start, runs, chores) - a
            if found > worst[stage]:
                moved = max(0, min(unit.work(1, stage + 1) - last, before, start - a))
                worst[stage], moments[stage] = found, Moment(a, start, blocked, runs + moved, moved)
    return Response(worst[-1], tuple(worst), tuple(moments))


def _looks(own: Steps, others: Sequence[Steps], busy: Time) -> list[Time]:
    units = [each for each in others if not each.task.chore]
    shifted = {at + each.task.deadline - own.task.deadline for each in units for at in each.times}
    return sorted(at for at in {0, *own.times, *shifted} if 0 <= at <= busy)


def _start(fixed: Time, due: Time, others: Sequence[Steps]) -> Time:
    start: Time = 0
    while True:
        grown = fixed
        for each in others:
            by = start if each.task.chore else min(due - each.task.deadline, start)
            grown += each.at(by, start)
        if grown <= start:
            return start
        start = grown


def _end(start: Time, runs: Time, chores: Sequence[Steps]) -> Time:
    end = start + runs
    while (grown := start + runs + sum(one.at(end, end) - one.at(start, start) for one in chores)) != end:
        end = grown
    return end
