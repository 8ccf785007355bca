"""Random systems, and what may happen in them: a program of its own that knows the data behind every tuple.

It takes of the analysis only what latency bounds promise: how long a unit's instance may take from its release on, how
long a link may take, and how long an instance runs once it has started. Within these it draws, at the ends as a rule.
What it draws of one unit knows nothing of the next one, so whole ways take as long as the sum of their stretches:
the analysis has no limits of whole ways.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from coordinator.guarantee.analysis import Analysis, unit_by_unit
from coordinator.guarantee.system import Side, Source, Unit
from protos.plan.operators import Sync
from tests.coordinator.guarantee.written_systems import MS, analysed, source, timer, unit

LENGTH_NS = 6_000 * MS
END_NS = 5_000 * MS  # until here every source goes on
NODES = "abc"


@dataclass(frozen=True)
class Datum:
    """The oldest and the newest origin of a source's data behind a tuple."""

    oldest_ns: int
    newest_ns: int


Data = Mapping[str, Datum]


@dataclass(frozen=True)
class Tuple:
    """At an instant at a place. `key`: its lineage; `origin_ns`: that it counts from."""

    at_ns: int
    key: tuple[str, int]
    origin_ns: int
    data: Data


def merged(several: Sequence[Data]) -> Data:
    """What is behind a result of several."""
    found: dict[str, Datum] = {}
    for data in several:
        for name, one in data.items():
            other = found.get(name, one)
            found[name] = Datum(min(one.oldest_ns, other.oldest_ns), max(one.newest_ns, other.newest_ns))
    return found


def random_system(random: Random) -> Analysis:
    """A few sources and timers, units that read what was made before them, on up to three nodes."""
    nodes = NODES[: random.randint(1, 3)]
    sources: list[Source] = []
    for number in range(random.randint(1, 3)):
        period, age = random.choice([10, 20, 30, 50, 100]), random.choice([1, 5, 20])
        jitter = random.choice([0, 0, period // 5])
        sources.append(source(f"s{number}", random.choice(nodes), period, age, jitter))
    for number in range(random.randint(0, 2)):
        sources.append(timer(f"t{number}", random.choice(nodes), random.choice([20, 40, 100])))
    made: dict[str, str] = {one.name: one.node for one in sources}
    behind: dict[str, frozenset[str]] = {one.name: frozenset([one.name]) for one in sources}
    whole: dict[str, bool] = {one.name: True for one in sources}
    units: list[Unit] = []
    for number in range(1, random.randint(2, 6)):
        added = _unit(random, number, random.choice(nodes), list(made), behind, whole)
        units.append(added)
        name = added.stages[0].operator
        made[name] = added.node
        behind[name] = frozenset().union(*(behind[one] for one in added.inputs))
        plain = added.sync is None and not added.stages[0].drops and not any(one.shed for one in added.stages[0].sides)
        whole[name] = plain and all(whole[one] for one in added.inputs)
    hops: dict[str, list[tuple[str, str]]] = {}
    for each in units:
        for stream in (*each.inputs, *(side.stream for side in each.stages[0].sides)):
            if made[stream] != each.node and (made[stream], each.node) not in hops.setdefault(stream, []):
                hops[stream].append((made[stream], each.node))
    outputs = {one.stages[0].operator: one.node for one in units}
    return analysed(sources, units, outputs, hops, random.choice([0, 1, 7]), analysis=unit_by_unit)


def _unit(
    random: Random,
    number: int,
    node: str,
    made: Sequence[str],
    behind: Mapping[str, frozenset[str]],
    whole: Mapping[str, bool],
) -> Unit:
    name, cost = f"o{number}", random.choice([1, 1, 2, 4])
    first = random.choice(made)
    sides = []
    for port in range(random.choice([0, 1, 1, 2])):
        limit = random.choice([0, 0, 30, 200]) * MS
        sides.append(Side(f"p{port}", random.choice(made), limit, random.random() < 0.2))
    drops = "it drops" if random.random() < 0.05 else ""
    others = [one for one in made if not behind[one] & behind[first]]
    if others and random.random() < 0.4:
        inputs = [first, random.choice(others)]
        kind = random.choice(["all", "all", "timeout", "union"])
        sync = None
        if kind != "union":
            sync = Sync(within_ns=None, timeout_ns=30 * MS if kind == "timeout" else 0, keep=1)
        return unit(number, name, node, inputs, cost, sides, sync, [whole[one] for one in inputs], drops=drops)
    alike = [one for one in made if one != first and behind[one] == behind[first] and len(behind[one]) == 1]
    if alike and random.random() < 0.5:
        inputs = [first, random.choice(alike)]
        return unit(number, name, node, inputs, cost, sides, join=random.random() < 0.7, drops=drops)
    return unit(number, name, node, [first], cost, sides, drops=drops)


@dataclass
class World:
    """One run of a system."""

    analysis: Analysis
    random: Random
    places: dict[tuple[str, str], list[Tuple]] = field(default_factory=dict)
    changes: dict[str, list[int]] = field(default_factory=dict)

    def run(self) -> None:
        """Everything in the order of what leads to what."""
        for each in self.analysis.system.sources.values():
            self._spread(each.name, each.node, list(self._offered(each)))
        for number in self.analysis.system.order:
            one = self.analysis.system.units[number]
            if number in self.analysis.delays.units and number in self.analysis.streams.triggers:
                self._spread(one.stages[0].operator, one.node, self._results(one, self._released(one)))

    def _draw(self, most_ns: int) -> int:
        """Mostly one of the ends."""
        return self.random.choice([0, most_ns, most_ns, self.random.randint(0, most_ns)])

    def _offered(self, one: Source) -> Iterator[Tuple]:
        period_ns = int(1 / one.curve.rate) if one.curve is not None else 0
        phase_ns, jitter_ns, before_ns = self.random.randrange(period_ns), one.gap_ns - period_ns, -(10**12)
        self.changes[one.name] = []
        for number in range(LENGTH_NS // period_ns):
            at_ns = phase_ns + number * period_ns + self._draw(jitter_ns)
            origin_ns = max(before_ns, at_ns - self._draw(one.max_age_ns))
            before_ns = origin_ns
            self.changes[one.name].append(origin_ns)
            yield Tuple(at_ns, (one.name, number), origin_ns, {one.name: Datum(origin_ns, origin_ns)})

    def _spread(self, stream: str, node: str, tuples: list[Tuple]) -> None:
        """Along the hops, first in, first out."""
        self.places[stream, node] = sorted(tuples, key=lambda one: one.at_ns)
        for start, end in self.analysis.system.hops.get(stream, ()):
            most_ns, last_ns, there = self.analysis.delays.links.get((start, end), 0), 0, []
            for one in self.places[stream, start]:
                last_ns = max(last_ns, one.at_ns + self._draw(most_ns))
                there.append(Tuple(last_ns, one.key, one.origin_ns, one.data))
            self.places[stream, end] = there

    def _released(self, one: Unit) -> list[Tuple]:
        inputs = [self.places.get((stream, one.node), []) for stream in one.inputs]
        came = sorted(
            ((each.at_ns, port, each) for port, tuples in enumerate(inputs) for each in tuples),
            key=lambda each: each[:2],
        )
        if one.sync is not None:
            return list(_fused(came, len(inputs), one.sync.timeout_ns))
        if not one.join:
            return [each for _, _, each in came]
        waiting: dict[tuple[str, int], list[Tuple]] = {}
        found = []
        for at_ns, _, each in came:
            parts = waiting.setdefault(each.key, [])
            parts.append(each)
            if len(parts) == len(inputs):
                found.append(Tuple(at_ns, each.key, each.origin_ns, merged([part.data for part in parts])))
        return found

    def _results(self, one: Unit, released: Sequence[Tuple]) -> list[Tuple]:
        """Instances one after the other, each read at its start."""
        stage, response = one.stages[0], self.analysis.delays.units[one.id]
        most_ns, runs_ns, end_ns, found = int(response.end), stage.cost_ns, 0, []
        for each in released:
            before_ns, end_ns = end_ns, max(end_ns, each.at_ns + self._draw(most_ns))
            start_ns = max(before_ns, each.at_ns, end_ns - self._draw(runs_ns))
            read = [self._read(one, side, start_ns) for side in stage.sides]
            shed = any(data is None and side.shed for data, side in zip(read, stage.sides, strict=True))
            if shed or (stage.drops and self.random.random() < 0.5):
                continue
            data = merged([each.data, *(part for part in read if part is not None)])
            found.append(Tuple(end_ns, each.key, each.origin_ns, data))
        return found

    def _read(self, one: Unit, side: Side, at_ns: int) -> Data | None:
        """The latest value; None: there is none that is young enough."""
        tuples = self.places.get((side.stream, one.node), [])
        place = bisect_right(tuples, at_ns, key=lambda each: each.at_ns)
        if not place:
            return None
        latest = tuples[place - 1]
        return None if side.max_age_ns and at_ns - latest.origin_ns > side.max_age_ns else latest.data


def _fused(came: Sequence[tuple[int, int, Tuple]], ports: int, timeout_ns: int) -> Iterator[Tuple]:
    """`on: all`: the latest of each, when all have come or the first has waited for the timeout."""
    waiting: dict[int, Tuple] = {}
    first_ns = 0
    for at_ns, port, each in came:
        if waiting and timeout_ns and first_ns + timeout_ns <= at_ns:
            yield _set(first_ns + timeout_ns, waiting)
            waiting = {}
        first_ns = first_ns if waiting else at_ns
        waiting[port] = each
        if len(waiting) == ports:
            yield _set(at_ns, waiting)
            waiting = {}


def _set(at_ns: int, waiting: Mapping[int, Tuple]) -> Tuple:
    lead = min(waiting.values(), key=lambda one: one.origin_ns)
    return Tuple(at_ns, lead.key, lead.origin_ns, merged([one.data for one in waiting.values()]))


def ages(world: World, place: tuple[str, str]) -> dict[str, int]:
    """The greatest age of each source's data when a result was delivered."""
    found: dict[str, int] = {}
    for one in world.places.get(place, []):
        for name, datum in one.data.items() if one.at_ns < END_NS else ():
            found[name] = max(found.get(name, 0), one.at_ns - datum.oldest_ns)
    return found


def reactions(world: World, place: tuple[str, str], name: str, begin_ns: int, end_ns: int) -> int | None:
    """The longest from a change until it showed, of those in that time; None where there was none, beyond all bounds
    where one never showed."""
    shown: list[tuple[int, int]] = []  # newest origin so far, from when on
    for one in world.places.get(place, []):
        newest_ns = one.data[name].newest_ns if name in one.data else None
        if newest_ns is not None and (not shown or newest_ns > shown[-1][0]):
            shown.append((newest_ns, one.at_ns))
    longest = None
    for origin_ns in world.changes[name]:
        if begin_ns <= origin_ns < end_ns:
            place_ = next((at_ns for newest_ns, at_ns in shown if newest_ns >= origin_ns), 10**15)
            longest = max(longest or 0, place_ - origin_ns)
    return longest


__all__ = ["END_NS", "World", "ages", "random_system", "reactions"]
