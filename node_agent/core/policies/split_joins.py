"""Streams that are split into branches and joined again: a result needs all of the branches, one after the other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from node_agent.core.model import Route, Unit


@dataclass(frozen=True, slots=True)
class SplitJoin:
    """before: the units between a split and where its branches come together; join: the unit that begins there."""

    before: tuple[Unit, ...]
    join: Unit


def after(route: Route) -> Iterator[Unit]:
    """The units that a stream leads to."""
    yield from route.units
    for join, _ in route.joins:
        yield join.unit


def splits(backwards: Sequence[Unit]) -> dict[Route, SplitJoin]:
    """By the stream that is split. backwards: each unit after all that it leads to.

    A unit is a bit; its mask has it and all that it leads to. Branches come together at the first unit that all of
    them lead to, which is the last one in that order.
    """
    masks: dict[Unit, int] = {}
    found: dict[Route, SplitJoin] = {}
    for place, unit in enumerate(backwards):
        mask = 1 << place
        for exit_ in unit.exits:
            reached = [masks.get(each, 0) for each in after(exit_.route)]
            every, common = 0, -1
            for each in reached:
                every, common = every | each, common & each
            mask |= every
            if exit_.route.marked and len(reached) > 1 and common:
                join = common.bit_length() - 1
                places = range(join + 1, place)
                before = [backwards[i] for i in places if every >> i & 1 and masks[backwards[i]] >> join & 1]
                found[exit_.route] = SplitJoin(tuple(before), backwards[join])
        masks[unit] = mask
    return found
