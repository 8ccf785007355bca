"""Random systems in all that may happen within bounds: no datum is older than its bound, no change shows later."""

from collections.abc import Sequence
from random import Random

import pytest

from coordinator.guarantee.freshness.judgement import checks
from tests.coordinator.guarantee.data_age.data_worlds import END_NS, World, ages, random_system, reactions
from tests.coordinator.guarantee.written_systems import MS
from tests.seeds import seeds

SETTLED_NS = 2_000 * MS  # all sources have come, and what waits for them has run
RUNS = 4


@pytest.mark.parametrize("seed", seeds(range(40)))
def test_nothing_is_beyond_its_bound(seed: int) -> None:
    assert all(share <= 1 for share in shares(seed, RUNS)), f"seed {seed}"


def test_some_come_near() -> None:
    found = [share for seed in range(40) for share in shares(seed, RUNS)]
    assert len(found) > 200 and max(found) > 0.97


def shares(seed: int, runs: int) -> Sequence[float]:
    """What was measured, as parts of the bounds, of a random system: ages and reactions of all its outputs."""
    random = Random(seed)
    analysis = random_system(random)
    asked = checks(analysis)
    found: dict[tuple[str, str, str], float] = {}
    for _ in range(runs):
        world = World(analysis, random)
        world.run()
        for output, both in asked.items():
            place = (output, analysis.system.outputs[output].node)
            for fresh in both:
                for name, path in fresh.paths.items():
                    if path.ns is None:
                        continue
                    if fresh.name == "age":
                        measured = ages(world, place).get(name)
                    else:
                        end_ns = END_NS - path.ns
                        measured = reactions(world, place, name, SETTLED_NS, end_ns)
                    if measured is not None and path.ns:
                        key = (fresh.name, output, name)
                        found[key] = max(found.get(key, 0.0), measured / path.ns)
    return list(found.values())
