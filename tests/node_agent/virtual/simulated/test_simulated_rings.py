"""Rings in a simulated memory do what those of this computer do, but for the power."""

import pytest

from node_agent.host.ring_directory import MOST_RINGS
from node_agent.host.trace_ring import STATE, RingFacts
from node_agent.virtual.simulated.simulated_rings import SimulatedRings
from protos.records import LOAD, NO_REF, STATE_CRASHED, Header


def header(boot: int) -> Header:
    return Header("a", 0, boot, "clock", 50, 1, 2, 0, boot)


def test_a_ring_outlives_its_writer_and_is_gone_with_the_power() -> None:
    rings = SimulatedRings(8)
    ring = rings.create(header(7))
    facts = RingFacts(ring)
    facts.write(LOAD, 0, NO_REF, 0, 0, 1)
    facts.publish()
    ring.close()
    again = rings.open(rings.paths()[0])
    assert again.header == header(7) and again.pending_bytes == 64
    with pytest.raises(FileExistsError):
        rings.create(header(7))
    assert rings.mark_abandoned() == 1 and rings.mark_abandoned() == 0 and again.cells[STATE] == STATE_CRASHED
    rings.lose_power()
    assert rings.paths() == []
    with pytest.raises(FileNotFoundError):
        rings.open(ring.path)
    rings.full = True
    with pytest.raises(OSError, match="No space"):
        rings.create(header(8))


def test_the_oldest_make_room_but_not_those_that_live() -> None:
    rings = SimulatedRings(8)
    for boot in range(1, 2 * MOST_RINGS):
        rings.make_room((rings.paths()[0],) if boot > 1 else ())
        rings.create(header(boot))
    found = [int(path.stem, 16) for path in rings.paths()]
    assert found == [1, *range(2 * MOST_RINGS - MOST_RINGS, 2 * MOST_RINGS)]
    rings.remove(rings.paths()[0])
    rings.remove(rings.paths()[0].with_name("none"))
    assert len(rings.paths()) == MOST_RINGS
