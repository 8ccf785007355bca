"""Fusion against its definition: every set by brute force over all that waits, on random arrivals.

Stamps run backwards, come from the future and are equal; inputs fall silent; time passes without arrivals.
"""

from collections.abc import Iterable
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.core import plan as plans
from node_agent.core.fusion import Fired, Fusion, FusionEnd, Met, Unfused
from protos.records import POLICY_REPLACED, POLICY_UNMATCHED
from tests.node_agent.core.fusion_definition import Definition, Pairs, Told
from tests.sampling import examples

WAIT_NS = 40

EXAMPLES = examples(1500, 4)


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


@given(st.integers(0, 2**48))
@settings(max_examples=EXAMPLES // 3, deadline=None)
def test_each_tuple_meets_all_that_are_near_and_kept(seed: int) -> None:
    """So each pair within the tolerance is met once, by the later of the two, while the other one is kept."""
    how, ports, arrivals = drawn(Random(seed))
    fusion = Fusion(replace(how, by_stamp=True, timeout_ns=0, each=True), ports, WAIT_NS)
    at_ns, definition = 0, Pairs(how, ports)
    for number, (gap_ns, port, behind_ns) in enumerate(arrivals, start=1):
        at_ns += gap_ns
        if port == ports:
            assert fusion.expire(at_ns) == []
            continue
        stamp_ns = at_ns - behind_ns
        lineage = (port + 1, 0, number, 0, stamp_ns, stamp_ns)
        (end,) = fusion.arrive(at_ns, port, lineage, number)
        near = definition.comes(port, number, stamp_ns)
        if all(near):
            assert isinstance(end, Met) and end.held.lineage == lineage and list(end.values) == near
        else:
            assert end == Unfused(lineage, POLICY_UNMATCHED)
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
    fusion, definition = Fusion(sync, ports, WAIT_NS), Definition(sync, ports, WAIT_NS)
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
