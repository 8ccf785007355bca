"""Steps from a placement whose outputs are not all in time: what makes a late output wait goes elsewhere, or is cut.

A unit is never interrupted, and a node looks at its sockets between instances only. So an urgent stream waits for the
longest unit of a node, and for all that is read there, each time that it leaves the node, or comes to it, or runs
there. Four kinds of steps follow from where the longest way of a late output waits: long units of such a node are cut,
or leave it; what sends it many tuples comes to it; units that go first leave it; operators of the way itself go to
where it comes from or goes on to. A unit is cut only where it is in the way: every cut costs decisions, and a queue
more through which jitter grows.

Nothing here has to be right: every step is analysed before it is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from coordinator.calculus.response import ahead
from coordinator.guarantee.streams import Part
from coordinator.guarantee.system import Stage, Unit
from coordinator.model.problem import Problem
from coordinator.solve.guaranteed.objective_rank import ObjectiveRank

MOST_AWAY = 3  # nodes tried for what leaves one
MOST_AHEAD = 3  # units that go first, tried one by one
MOST_COMING = 4  # units that come to where their streams go, together
SHARES = (Fraction(9, 10), Fraction(1, 2), Fraction(1, 4))  # of the longest unit: what may stay, or is cut down to
NEAR = 2  # times the deadline of a late output: an output with less is as urgent


@dataclass(frozen=True)
class Step:
    """`place`: the node of every item; `cuts`: operators that begin a unit wherever they are."""

    place: Mapping[int, int]
    cuts: frozenset[str]

    @property
    def key(self) -> tuple[object, ...]:
        """To know it again."""
        return tuple(sorted(self.place.items())), self.cuts


@dataclass(frozen=True)
class Relief:
    """Steps from one that was analysed. `problem`: with worst-case utilisations."""

    problem: Problem
    step: Step
    objective: ObjectiveRank

    def steps(self) -> Iterator[Step]:
        """For every late output, the one nearest to its deadline first, where its longest way waits longest first."""
        for name in sorted(self.objective.late, key=lambda one: (self.objective.late[one], one)):
            parts = self._parts(name)
            waits: dict[str, int] = {}
            for part in parts:
                waits[part.node] = waits.get(part.node, 0) + part.ns - part.work_ns
            for node in sorted(waits, key=lambda one: (-waits[one], one)):
                yield from self._shorter(node, urgent=self._urgent(name, parts))
            for node in sorted(waits, key=lambda one: (-waits[one], one)):
                yield from self._fewer(node)
            for part in parts:
                yield from self._after(part)
            yield from self._along(parts)

    def _shorter(self, node: str, urgent: frozenset[int]) -> Iterator[Step]:
        """No unit of a node longer than a share of the longest: cut, and moved where that does not do; or moved."""
        here = [unit for unit in self._units if unit.node == node]
        longest_ns = max((longest(unit.stages) for unit in here), default=0)
        for share in SHARES:
            room_ns = int(longest_ns * share)
            for cutting in (True, False):
                for choice in range(MOST_AWAY):
                    step = self._within(here, room_ns, cutting, choice, urgent)
                    if step is not None:
                        yield step

    def _within(
        self, here: list[Unit], room_ns: int, cutting: bool, choice: int, urgent: frozenset[int]
    ) -> Step | None:
        """Units of a node that are longer than that, cut, or moved to the choice-th best node, as far as they can be.
        None: none can."""
        place, cuts = dict(self.step.place), set(self.step.cuts)
        for unit in here:
            if longest(unit.stages) <= room_ns:
                continue
            pieces = cut(unit.stages, room_ns) if cutting else None
            if pieces is not None:
                cuts |= pieces
            else:
                self._leave(unit, place, choice, urgent)
        step = Step(place, frozenset(cuts))
        return None if step.key == self.step.key else step

    def _fewer(self, node: str) -> Iterator[Step]:
        """Less to read at a node: what makes the streams that come there most densely comes itself, the densest alone,
        or several together, cut so that no piece is longer than what is there."""
        analysis = self.objective.analysis
        nodes = {one.name: one.index for one in self.problem.nodes}
        made = {stage.operator: unit for unit in self._units for stage in unit.stages}
        dense: dict[int, int] = {}
        for stream, hops in analysis.system.hops.items():
            flow = analysis.streams.flows.get((stream, node))
            if stream in made and flow is not None and any(end == node for _, end in hops):
                number = made[stream].id
                dense[number] = dense.get(number, 0) + flow.curve.count(0)
        room_ns = max((longest(unit.stages) for unit in self._units if unit.node == node), default=0)
        place, cuts = dict(self.step.place), set(self.step.cuts)
        for number in sorted(dense, key=lambda one: (-dense[one], one))[:MOST_COMING]:
            unit = analysis.system.units[number]
            items = {self._item[stage.operator] for stage in unit.stages} - set(self.problem.held)
            items = {i for i in items if nodes[node] in self.problem.items[i].nodes}
            begins = cut(unit.stages, room_ns)
            if not items or begins is None:
                continue
            alone = Step({**self.step.place, **dict.fromkeys(items, nodes[node])}, self.step.cuts | begins)
            place.update(dict.fromkeys(items, nodes[node]))
            cuts |= begins
            for step in (alone, Step(dict(place), frozenset(cuts))):
                if self._has_room(step.place, node):
                    yield step

    def _leave(self, unit: Unit, place: dict[int, int], choice: int, urgent: frozenset[int]) -> bool:
        """Moves what is free of a unit, all to one node; whether anything is, and finds room."""
        nodes = {node.name: node.index for node in self.problem.nodes}
        here = nodes[unit.node]
        items = sorted({self._item[stage.operator] for stage in unit.stages})
        free = [i for i in items if i not in self.problem.held and len(self.problem.items[i].nodes) > 1]
        if not free:
            return False
        load = self._loads(place)
        open_to = set.intersection(*(set(self.problem.items[i].nodes) for i in free)) - {here}
        fits = [
            n
            for n in open_to
            if load[n] + sum(float(self.problem.items[i].load[n]) for i in free) <= float(self.problem.nodes[n].cap)
        ]
        beside = {place[one] for i in free for one in self._neighbours[i]}
        fits.sort(key=lambda n: (n in urgent, n not in beside, load[n], n))
        if choice >= len(fits):
            return False
        for i in free:
            place[i] = fits[choice]
        return True

    def _after(self, part: Part) -> Iterator[Step]:
        """Units that go before a late one leave its node, one by one."""
        analysis = self.objective.analysis
        response = analysis.delays.units.get(part.unit)
        if part.kind != "unit" or response is None or not response.moments or part.node not in analysis.loads:
            return
        unit = analysis.system.units[part.unit]
        before = ahead(analysis.loads[part.node], unit.name, response.moments[part.stage])
        named = {one.name: one for one in self._units}
        rivals = [named[name] for name, _, _ in sorted(before, key=lambda one: -one[2]) if name in named]
        for rival in [one for one in rivals if one.id != unit.id][:MOST_AHEAD]:
            for choice in range(MOST_AWAY):
                place = dict(self.step.place)
                if self._leave(rival, place, choice, frozenset()):
                    yield Step(place, self.step.cuts)

    def _along(self, parts: list[Part]) -> Iterator[Step]:
        """Units of the way to the nodes that it comes from or goes on to: each hop is two looks at sockets."""
        nodes = {node.name: node.index for node in self.problem.nodes}
        ways = [part.node for part in parts]
        for position, part in enumerate(parts):
            if part.kind != "unit":
                continue
            unit = self.objective.analysis.system.units[part.unit]
            items = {self._item[stage.operator] for stage in unit.stages}
            free = [i for i in items if i not in self.problem.held]
            for other in dict.fromkeys([*reversed(ways[:position]), *ways[position:]]):
                if other == part.node or not free:
                    continue
                place = {**self.step.place, **dict.fromkeys(free, nodes[other])}
                if all(nodes[other] in self.problem.items[i].nodes for i in free) and self._has_room(place, other):
                    yield Step(place, self.step.cuts)

    def _parts(self, name: str) -> list[Part]:
        """Of the longest way to an output; of one without a bound, every node that has none."""
        analysis = self.objective.analysis
        output = analysis.system.outputs[name]
        flow = analysis.streams.flows.get((output.stream, output.node))
        if flow is None or not flow.late:
            return [Part("socket", why, 1, node) for node, why in analysis.delays.broken.items()]
        return list(max(flow.late.values(), key=lambda each: each.most_ns).parts)

    def _urgent(self, name: str, parts: list[Part]) -> frozenset[int]:
        """Nodes on the ways of outputs as urgent as that one."""
        outputs = self.objective.analysis.system.outputs
        limit_ns = NEAR * outputs[name].deadline_ns
        found = {part.node for part in parts}
        for other, output in outputs.items():
            if output.deadline_ns <= limit_ns:
                found |= {part.node for part in self._parts(other)}
        return frozenset(node.index for node in self.problem.nodes if node.name in found)

    @cached_property
    def _units(self) -> list[Unit]:
        return list(self.objective.analysis.system.units.values())

    @cached_property
    def _item(self) -> dict[str, int]:
        return self.problem.item_of()

    @cached_property
    def _neighbours(self) -> dict[int, list[int]]:
        """Items that an item reads from or is read by."""
        found: dict[int, list[int]] = {i: [] for i in range(len(self.problem.items))}
        for stream in self.problem.streams:
            if stream.item is None:
                continue
            for reader in stream.readers:
                found[stream.item].append(reader)
                found[reader].append(stream.item)
        return found

    def _has_room(self, place: Mapping[int, int], name: str) -> bool:
        """Whether what is placed on a node is within its cap."""
        node = next(node for node in self.problem.nodes if node.name == name)
        return self._loads(place)[node.index] <= float(node.cap)

    def _loads(self, place: Mapping[int, int]) -> dict[int, float]:
        load = {node.index: 0.0 for node in self.problem.nodes}
        for item, node in place.items():
            load[node] += float(self.problem.items[item].load[node])
        return load


def longest(stages: tuple[Stage, ...]) -> int:
    """The longest run of one instance, in ns."""
    return sum(_runs(stages))


def _runs(stages: tuple[Stage, ...]) -> list[int]:
    """What each stage takes of it."""
    jobs, found = 1, []
    for stage in stages:
        found.append(jobs * stage.cost_ns)
        jobs = stage.selectivity(jobs)
    return found


def cut(stages: tuple[Stage, ...], room_ns: int) -> set[str] | None:
    """Where to cut so that no piece takes longer; None: some operator alone does."""
    begins: set[str] = set()
    first = 0
    for position in range(len(stages)):
        if position > first and longest(stages[first : position + 1]) > room_ns:
            begins.add(stages[position].operator)
            first = position
        if longest(stages[first : position + 1]) > room_ns:
            return None
    return begins
