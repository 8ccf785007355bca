"""Fusion against its definition: every set by brute force over all that waits, on random arrivals.

Stamps run backwards, come from the future and are equal; inputs fall silent; time passes without arrivals.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.core import plan as plans
from node_agent.core.fusion import Fired, Fusion, FusionEnd, Met, Unfused
from protos.records import POLICY_REPLACED, POLICY_UNMATCHED
from tests.sampling import examples

WAIT_NS = 40
Waits = tuple[int, int, int, int]  # port, number, stamp, when it came
Told = tuple[str, tuple[int | None, ...]]  # "fired", "replaced" or "unmatched", and numbers

EXAMPLES = examples(1500, 3)


def drawn(chance: Random) -> tuple[plans.Sync, int, list[tuple[int, int, int]]]:
    """A fusion, how many inputs it has, and arrivals: since the one before, at which input (one that there is not: time
    passes only), how much its stamp is behind."""
    sync = plans.Sync(
        chance.random() < 0.7, chance.choice((0, 2, 5, 12)), chance.choice((0, 0, 3, 9, 25)), chance.randint(1, 5)
    )
    ports, gap_ns, behind_ns = chance.randint(2, 3), chance.choice((1, 4, 9)), chance.choice((0, 4, 12))
    weights = [chance.random() for _ in range(ports)] + [0.1]
    arrivals = [
        (chance.randint(0, gap_ns), chance.choices(range(ports + 1), weights)[0], chance.randint(-behind_ns, behind_ns))
        for _ in range(chance.randint(0, 80))
    ]
    return sync, ports, arrivals


class Definition:
    """All that waits, in one list in the order of arrival; sets are looked for among all combinations."""

    def __init__(self, sync: plans.Sync, ports: int) -> None:
        self.sync, self.ports = sync, ports
        self.waiting: list[Waits] = []
        self.began_ns = 0

    def passes(self, at_ns: int) -> Iterator[Told]:
        sync = self.sync
        while self.waiting:
            first = self.waiting[0]
            began_ns = first[3] if sync.by_stamp or not sync.timeout_ns else self.began_ns
            if began_ns + (sync.timeout_ns or WAIT_NS) > at_ns:
                return
            if sync.timeout_ns:
                yield from self.fires(self.partial(first))
            else:
                self.waiting.remove(first)
                yield "unmatched", (first[1],)

    def comes(self, at_ns: int, port: int, number: int, stamp_ns: int) -> Iterator[Told]:
        yield from self.passes(at_ns)
        if not self.waiting:
            self.began_ns = at_ns
        if not self.sync.by_stamp:
            yield from self.replaces([each for each in self.waiting if each[0] == port])
        self.waiting.append((port, number, stamp_ns, at_ns))
        if sets := list(self.complete()):
            yield from self.fires(min(sets, key=self.rank))
            return
        mine = [each for each in self.waiting if each[0] == port]
        if self.sync.by_stamp and len(mine) > self.sync.keep:
            yield from self.replaces(mine[:1])

    def complete(self) -> Iterator[tuple[Waits, ...]]:
        of = [[each for each in self.waiting if each[0] == port] for port in range(self.ports)]
        for parts in product(*of):
            if not self.sync.by_stamp or self.span(parts) <= self.sync.within_ns:
                yield parts

    def span(self, parts: tuple[Waits, ...]) -> int:
        return max(each[2] for each in parts) - min(each[2] for each in parts)

    def rank(self, parts: tuple[Waits, ...]) -> tuple[object, ...]:
        return self.span(parts), min(each[2] for each in parts), [(each[2], each[1]) for each in parts]

    def partial(self, first: Waits) -> tuple[Waits | None, ...]:
        parts: list[Waits | None] = []
        for port in range(self.ports):
            there = [each for each in parts if each is not None] + [first]
            fit = [first] if port == first[0] else [each for each in self.waiting if each[0] == port]
            if self.sync.by_stamp:
                fit = [each for each in fit if self.span((each, *there)) <= self.sync.within_ns]
            parts.append(min(fit, key=lambda each: (abs(each[2] - first[2]), each[2], each[1]), default=None))
        return tuple(parts)

    def fires(self, parts: tuple[Waits | None, ...]) -> Iterator[Told]:
        for part in parts:
            if part is not None:
                older = [each for each in self.waiting if each[0] == part[0] and each[2] < part[2]]
                yield from self.replaces(sorted(older, key=lambda each: (each[2], each[1])))
        self.waiting = [each for each in self.waiting if each not in parts]
        yield "fired", tuple(None if part is None else part[1] for part in parts)

    def replaces(self, gone: list[Waits]) -> Iterator[Told]:
        for each in gone:
            self.waiting.remove(each)
            yield "replaced", (each[1],)


@given(st.integers(0, 2**48))
@settings(max_examples=EXAMPLES // 3, deadline=None)
def test_each_tuple_meets_all_that_are_near_and_kept(seed: int) -> None:
    """So each pair within the tolerance is met once, by the later of the two, while the other one is kept."""
    how, ports, arrivals = drawn(Random(seed))
    fusion = Fusion(replace(how, by_stamp=True, timeout_ns=0, each=True), ports, WAIT_NS)
    at_ns, came = 0, list[tuple[int, int, int]]()  # port, stamp, number
    for number, (gap_ns, port, behind_ns) in enumerate(arrivals, start=1):
        at_ns += gap_ns
        if port == ports:
            assert fusion.expire(at_ns) == []
            continue
        stamp_ns = at_ns - behind_ns
        lineage = (port + 1, 0, number, 0, stamp_ns, stamp_ns)
        (end,) = fusion.arrive(at_ns, port, lineage, number)
        near: list[list[int]] = []
        for other in range(ports):
            kept = [each for each in came if each[0] == other][-how.keep :]
            near.append([n for _, stamp, n in sorted(kept) if abs(stamp - stamp_ns) <= how.within_ns])
        near[port] = [number]
        if all(near):
            assert isinstance(end, Met) and end.held.lineage == lineage and list(end.values) == near
        else:
            assert end == Unfused(lineage, POLICY_UNMATCHED)
        came.append((port, stamp_ns, number))
        assert len(fusion) == 0 and fusion.due_ns is None
    assert fusion.stop() == []


def told(ends: Iterable[FusionEnd]) -> list[Told]:
    """Of sets; no tuple meets others here."""
    names = {POLICY_REPLACED: "replaced", POLICY_UNMATCHED: "unmatched"}
    return [
        ("fired", tuple(None if part is None else part.lineage[2] for part in end.parts))
        if isinstance(end, Fired)
        else (names[end.policy], (end.lineage[2],))
        for end in ends
        if not isinstance(end, Met)
    ]


@given(st.integers(0, 2**48))
@settings(max_examples=EXAMPLES, deadline=None)
def test_sets_are_those_of_the_definition_and_every_tuple_ends_once(seed: int) -> None:
    sync, ports, arrivals = drawn(Random(seed))
    fusion, definition = Fusion(sync, ports, WAIT_NS), Definition(sync, ports)
    at_ns, ended = 0, list[int | None]()
    for number, (gap_ns, port, behind_ns) in enumerate(arrivals, start=1):
        at_ns += gap_ns
        if port < ports:
            stamp_ns = at_ns - behind_ns
            ends = list(fusion.arrive(at_ns, port, (port + 1, 0, number, 0, stamp_ns, stamp_ns), number))
            expected = list(definition.comes(at_ns, port, number, stamp_ns))
        else:
            ends, expected = fusion.expire(at_ns), list(definition.passes(at_ns))
        assert told(ends) == expected
        assert all(end.lead.lineage[4] == min(held.stamp_ns for held in end.present) for end in fired(ends))
        assert len(fusion) == len(definition.waiting) <= ports * (sync.keep if sync.by_stamp else 1)
        assert fusion.due_ns is None or fusion.due_ns > at_ns  # what was due has ended
        ended += [each for _, numbers in expected for each in numbers if each is not None]
    ended += [number for _, numbers in told(fusion.stop()) for number in numbers]
    assert sorted(each for each in ended if each) == [n for n, (_, p, _) in enumerate(arrivals, start=1) if p < ports]
    assert len(fusion) == 0 and fusion.due_ns is None


def fired(ends: Iterable[FusionEnd]) -> list[Fired]:
    return [end for end in ends if isinstance(end, Fired)]
