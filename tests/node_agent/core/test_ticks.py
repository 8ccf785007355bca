"""Ticks are those instants of the clock that the offset says, each taken once, however seldom they are looked at."""

from random import Random

import pytest

from node_agent.core.ticks import Due, Ticks
from tests.seeds import seeds


def test_the_first_is_the_next_instant_of_the_clock() -> None:
    assert Ticks(10, 3, 23).next_ns == 23
    assert Ticks(10, 3, 24).next_ns == 33
    assert Ticks(10, 0, -7).next_ns == 0


def test_what_is_due_is_taken_once() -> None:
    ticks = Ticks(10, 3, 0)
    assert ticks.take(2) == Due(3, 0)
    assert ticks.take(3) == Due(3, 1)
    assert ticks.take(3) == Due(13, 0)
    assert ticks.take(40) == Due(13, 3)
    assert ticks.next_ns == 43 and ticks.number(43) == 4


@pytest.mark.parametrize("seed", seeds(range(20)))
def test_every_instant_is_taken_once_whenever_one_looks(seed: int) -> None:
    random = Random(seed)
    every_ns, from_ns = random.randint(1, 50), random.randint(-1000, 1000)
    offset_ns = random.randrange(every_ns)
    ticks, taken, at_ns = Ticks(every_ns, offset_ns, from_ns), list[int](), from_ns
    for _ in range(100):
        at_ns += random.choice([0, 1, every_ns, random.randint(0, 300)])
        due = ticks.take(at_ns)
        taken += range(due.first_ns, due.first_ns + due.ticks * every_ns, every_ns)
    assert taken == [at for at in range(from_ns, at_ns + 1) if at % every_ns == offset_ns]
    assert [ticks.number(at) for at in taken] == list(
        range(ticks.number(taken[0]), ticks.number(taken[0]) + len(taken))
    )
