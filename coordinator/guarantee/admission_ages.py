"""The ages that sources which declare no `max_age` may declare: the largest with which outputs are guaranteed.

First the largest age that is common to all of them, where one that can take less takes what it can; then each in the
file's order as much more as the others leave. So the least is as large as can be, and no single one can be raised by
another step (`units.step_of`, about a thousandth). The plan stays as it is: only its analysis is made again.

Where ages are a summand of bounds and nothing else, what an output leaves is the answer, and one analysis shows it. A
fusion `within` waits by the ages of its other inputs: there it is found by bisection. A larger age makes no bound
smaller; but at an age below the wait for a look at the sockets fresh tuples are refused, so that is the least.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from coordinator.guarantee.analysis import Analysis, analyse, never
from coordinator.guarantee.bounds import claims
from coordinator.guarantee.losses import behind
from coordinator.units import step_of
from protos.plan.analysis import ProposedAges

MOST_LOOKS = 8  # until the waits for a look at the sockets grow no more


def proposed(analysis: Analysis, stop: Callable[[], bool] = never) -> ProposedAges | None:
    """None: no output gains by any age of a source that declares none. `stop`: where it says so, the ages that were
    found until then, which hold as well."""
    before = _guaranteed(analysis)
    names = _ageless(analysis, set(analysis.system.outputs) - before)
    if not names or (least := _least(analysis, names, stop)) is None:
        return None
    gained = _guaranteed(least) - before
    names = [name for name in names if name in _ageless(analysis, gained)]
    if not gained or (least := _least(analysis, names, stop)) is None or not gained <= _guaranteed(least):
        return None
    search = _Search(least, names, gained | before, stop)
    ages_ns = search.largest()
    return ProposedAges(max_age_ns=ages_ns, outputs=tuple(name for name in least.system.outputs if name in gained))


def with_ages(analysis: Analysis, ages_ns: Mapping[str, int], stop: Callable[[], bool] = never) -> Analysis:
    """Made again with these ages; `stop` as of `analyse`."""
    sources = {
        name: replace(source, max_age_ns=ages_ns.get(name, source.max_age_ns))
        for name, source in analysis.system.sources.items()
    }
    system = replace(analysis.system, sources=sources)
    return analyse(system, analysis.charges, reuse=analysis.delays.reuse, stop=stop)


def holds(analysis: Analysis, ages: ProposedAges) -> bool:
    """Whether what is proposed is so: its outputs are guaranteed, and no fresh tuple is refused."""
    found = with_ages(analysis, ages.max_age_ns)
    return set(ages.outputs) <= _guaranteed(found) and _readable(found, ages.max_age_ns)


def _guaranteed(analysis: Analysis) -> set[str]:
    return {name for name, claim in claims(analysis).items() if claim.guaranteed}


def _ageless(analysis: Analysis, outputs: set[str]) -> list[str]:
    """Sources of any age that lead to these outputs, in the file's order. A timer's ticks have an age that is known."""
    system = analysis.system
    leading = {name for output in outputs for name in behind(analysis, system.outputs[output].stream)[1]}
    return [
        name
        for name, source in system.sources.items()
        if name in leading and not source.max_age_ns and not source.timer
    ]


def _least(analysis: Analysis, names: list[str], stop: Callable[[], bool]) -> Analysis | None:
    """With the least ages at which no fresh tuple is refused. None: these grow with themselves, or it was stopped."""
    found = analysis
    for _ in range(MOST_LOOKS):
        ages_ns = {name: found.delays.drains.get(found.system.sources[name].node, 0) + 1 for name in names}
        found = with_ages(found, ages_ns, stop)
        if stop():
            return None
        if _readable(found, ages_ns):
            return found
    return None


def _readable(analysis: Analysis, ages_ns: Mapping[str, int]) -> bool:
    """Whether sockets are looked at before a fresh tuple is too old."""
    at = {name: analysis.system.sources[name].node for name in ages_ns}
    return all(age_ns > analysis.delays.drains.get(at[name], 0) for name, age_ns in ages_ns.items())


@dataclass(frozen=True)
class _Search:
    """From `least`, with which all `goals` hold. What is stopped does not hold."""

    least: Analysis
    names: list[str]
    goals: set[str]
    stop: Callable[[], bool] = never

    def largest(self) -> dict[str, int]:
        """By source."""
        floors_ns = {name: self.least.system.sources[name].max_age_ns for name in self.names}
        caps_ns = {name: max(floors_ns[name], _rounded(self._room_ns(name))) for name in self.names}
        if self._hold(caps_ns):
            return caps_ns

        def common(age_ns: int) -> dict[str, int]:
            return {name: min(caps_ns[name], max(floors_ns[name], age_ns)) for name in self.names}

        found_ns = common(_last(lambda age_ns: self._hold(common(age_ns)), 0, max(caps_ns.values())))
        for name in self.names:

            def alone(age_ns: int, name: str = name) -> bool:
                return self._hold({**found_ns, name: age_ns})

            found_ns[name] = _last(alone, found_ns[name], caps_ns[name] + 1)
        return found_ns

    def _room_ns(self, name: str) -> int:
        """What the outputs leave at the least ages: none is larger."""
        analysis, left = self.least, []
        for output in (analysis.system.outputs[goal] for goal in self.goals):
            flow = analysis.streams.flows[output.stream, output.node]
            left += [output.deadline_ns - late.most_ns for source, late in flow.late.items() if source == name]
        return min(left, default=analysis.system.sources[name].max_age_ns)

    def _hold(self, ages_ns: Mapping[str, int]) -> bool:
        if self.stop():
            return False
        found = with_ages(self.least, ages_ns, self.stop)
        return self.goals <= _guaranteed(found) and _readable(found, ages_ns)


def _rounded(ns: int) -> int:
    return ns // step_of(ns) * step_of(ns)


def _last(hold: Callable[[int], bool], good: int, bad: int) -> int:
    """The last round figure between the two that holds; else `good`, which is known to."""
    while True:
        middle, following = _rounded((good + bad) // 2), (good // step_of(good) + 1) * step_of(good)
        middle = max(middle, following)
        if middle >= bad:
            return good
        good, bad = (middle, bad) if hold(middle) else (good, middle)


__all__ = ["holds", "proposed", "with_ages"]
