"""The `sound` model against every placement of small random queries, and its proofs against many sub-deadlines."""

from __future__ import annotations

import random
import time

import pytest

from coordinator.errors import InfeasibleError
from coordinator.guarantee.charges import NOTHING
from coordinator.sound import alone
from coordinator.sound.draft import Draft
from coordinator.sound.search import ANALYSES, Sound
from coordinator.sound.standing import stand
from coordinator.sound.sub_deadlines import Effort, Search
from tests.coordinator.sound.sound_graphs import SECONDS, finder, placements

GRAPHS = 60


def searched(draft: Draft) -> bool:
    """Whether the search for sub-deadlines makes a placement hold."""
    found = Search(draft, NOTHING, Effort(ANALYSES, time.monotonic() + SECONDS)).feasible()
    return found is not None and found.holds


def drawn(draft: Draft, dice: random.Random, times: int) -> bool:
    """Whether random sub-deadlines do."""
    longest = max(output.deadline_ns for output in draft.system.outputs.values())
    for _ in range(times):
        due = {number: dice.randint(1, longest) for number in draft.system.units}
        if stand(draft.with_deadlines(due), NOTHING).holds:
            return True
    return False


def planned(seed: int) -> Sound | InfeasibleError:
    try:
        return finder(seed).run(best_effort=False)
    except InfeasibleError as error:
        return error


@pytest.mark.parametrize("seed", range(GRAPHS))
def test_against_every_placement(seed: int) -> None:
    """A placement that can be made to hold is found, one of least traffic; a proof of impossibility is never wrong."""
    found, every = planned(seed), list(placements(finder(seed)))
    dice = random.Random(seed)
    if isinstance(found, InfeasibleError):
        assert found.reasons
        for _, each in every:
            assert not searched(each) and not drawn(each, dice, 12), f"seed {seed}: {found.reasons}"
        return
    least = min((traffic for traffic, each in every if searched(each)), default=None)
    if least is None:
        assert not found.standing.holds
        return
    assert found.standing.holds and found.traffic <= least
    if found.proven:
        cheaper = [each for traffic, each in every if traffic < found.traffic]
        assert not any(drawn(each, dice, 12) for each in cheaper)


@pytest.mark.parametrize("seed", range(GRAPHS, GRAPHS + 20))
def test_what_is_late_with_every_unit_first_is_late_under_any_sub_deadlines(seed: int) -> None:
    dice = random.Random(seed)
    for _, each in list(placements(finder(seed)))[:8]:
        if alone.late(each.system, NOTHING) is not None:
            assert not searched(each) and not drawn(each, dice, 20)


def test_the_random_queries_are_of_all_kinds() -> None:
    """Some are guaranteed, some proven impossible, a few neither."""
    kinds = [found if isinstance(found, InfeasibleError) else found for found in map(planned, range(GRAPHS))]
    held = sum(isinstance(found, Sound) and found.standing.holds for found in kinds)
    proven = sum(isinstance(found, InfeasibleError) for found in kinds)
    assert held > GRAPHS // 4 and proven > GRAPHS // 8
