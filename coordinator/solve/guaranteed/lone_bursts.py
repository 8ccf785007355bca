"""The time that one burst of one source takes by itself, in any order of its jobs: no bound is below it.

All other sources are silent, operators and links take what they may at most, and filters let the last tuple pass. Take
the units of one node that the last tuple's result needs. Their jobs of the whole burst are done on that node, one at a
time, from when the first tuple comes there; and the job that ends last is one of the last tuple, since a unit runs its
tuples in their order. From there on its result takes the work of the units that follow. The same holds however units
are cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coordinator.calculus.selectivity import ONE
from coordinator.guarantee.system import Source, System, Unit
from coordinator.spec.runtime_charges import RuntimeOverhead


@dataclass(frozen=True)
class _Stream:
    """Of a burst: `first_ns`: when its first tuple is there; `tuples`: how many come before the last one, itself too;
    `unit`: that makes it, None: the source, with the `stage`."""

    first_ns: int
    tuples: int
    unit: int | None = None
    stage: int = 0


@dataclass
class _Burst:
    """Of one source: the streams that it reaches, the jobs of units, and the inputs by which it comes to each."""

    system: System
    source: Source
    decision_ns: Mapping[str, int]
    streams: dict[str, _Stream] = field(default_factory=dict)
    released_ns: dict[int, int] = field(default_factory=dict)
    inputs: dict[int, tuple[str, ...]] = field(default_factory=dict)
    work_ns: dict[int, list[int]] = field(default_factory=dict)  # of the whole burst, up to each operator
    own_ns: dict[int, list[int]] = field(default_factory=dict)  # of the last tuple

    def __post_init__(self) -> None:
        assert self.source.curve is not None
        tuples = self.source.curve.count(0)
        if self.source.limit is not None:
            tuples = min(tuples, self.source.limit.count(0))
        self.streams[self.source.name] = _Stream(0, tuples)
        for number in self.system.order:
            unit = self.system.units[number]
            if unit.sync is None and not unit.unsound:
                self._run(unit)

    def _run(self, unit: Unit) -> None:
        reached = [name for name in unit.inputs if name in self.streams]
        if not reached or (unit.join and len(reached) < len(unit.inputs)):
            return
        inputs = reached if unit.join else reached[:1]
        came = [self.streams[name].first_ns + self._links_ns(name, unit.node) for name in inputs]
        tuples = min(self.streams[name].tuples for name in inputs)
        self.inputs[unit.id], self.released_ns[unit.id] = tuple(inputs), max(came)
        own_ns = self.decision_ns[unit.node]
        work_ns = tuples * own_ns
        self.work_ns[unit.id], self.own_ns[unit.id] = [], []
        exits = {stage: name for name, stage in unit.exits.items() if name not in self.system.windows}
        for number, stage in enumerate(unit.stages):
            work_ns, own_ns = work_ns + tuples * stage.cost_ns, own_ns + stage.cost_ns
            self.work_ns[unit.id].append(work_ns)
            self.own_ns[unit.id].append(own_ns)
            if not stage.selectivity(1):
                return
            tuples = tuples if stage.selectivity == ONE else 1
            if number in exits:
                self.streams[exits[number]] = _Stream(max(came) + own_ns, tuples, unit.id, number)

    def _links_ns(self, stream: str, node: str) -> int:
        """Of the hops that bring it there."""
        before, total = {end: start for start, end in self.system.hops.get(stream, ())}, 0
        while node in before:
            total += self.system.links[before[node], node].latency_ns
            node = before.pop(node)
        return total

    def least_ns(self, stream: str, node: str) -> int | None:
        """From the burst to the last result there, at least; None: none is certain."""
        made = self.streams.get(stream)
        if made is None or made.unit is None:
            return None
        after_ns = {made.unit: self._links_ns(stream, node)}  # from a unit's last job to the result
        stages = {made.unit: made.stage}
        for number in reversed(self.system.order):
            if number in after_ns:
                self._before(number, after_ns, stages)
        found = 0
        for at in {self.system.units[number].node for number in after_ns}:
            here = [number for number in after_ns if self.system.units[number].node == at]
            work_ns = sum(self.work_ns[number][stages[number]] for number in here)
            first_ns = min(self.released_ns[number] for number in here)
            found = max(found, first_ns + work_ns + min(after_ns[number] for number in here))
        return found

    def _before(self, number: int, after_ns: dict[int, int], stages: dict[int, int]) -> None:
        """What makes the inputs of a unit."""
        unit = self.system.units[number]
        rest_ns = self.own_ns[number][stages[number]] + after_ns[number]
        for name in self.inputs[number]:
            made = self.streams[name]
            if made.unit is not None and made.stage >= stages.get(made.unit, 0):
                way_ns = rest_ns + self._links_ns(name, unit.node)
                same = made.stage == stages.get(made.unit)
                after_ns[made.unit] = max(after_ns[made.unit], way_ns) if same else way_ns
                stages[made.unit] = made.stage


def lone_bursts(system: System, charges: RuntimeOverhead) -> dict[str, int]:
    """By output, from a tuple's origin to its result: what the worst burst takes at least."""
    decision_ns = {name: charges.on(node.charges).decision_ns for name, node in system.nodes.items()}
    found: dict[str, int] = {}
    for source in system.sources.values():
        if source.curve is None or not source.curve.count(0):
            continue
        burst = _Burst(system, source, decision_ns)
        for name, output in system.outputs.items():
            least_ns = burst.least_ns(output.stream, output.node)
            if least_ns is not None:
                found[name] = max(found.get(name, 0), source.max_age_ns + least_ns)
    return found


__all__ = ["lone_bursts"]
