"""The `sound` model against every placement of small random queries, and its proofs against many sub-deadlines."""

from __future__ import annotations

import random
import time
from functools import cache

import pytest

from coordinator.errors import InfeasibleError
from coordinator.model.limits import Limits
from coordinator.solve.guaranteed import large, lower_bounds
from coordinator.solve.guaranteed.candidate import Candidate, candidate
from coordinator.solve.guaranteed.objective_rank import objective_rank
from coordinator.solve.guaranteed.search import ANALYSES, Sound
from coordinator.solve.guaranteed.sub_deadlines import Effort, Search
from coordinator.spec.runtime_charges import MEASURED, NOTHING
from tests.coordinator.solve.guaranteed.sound_graphs import SECONDS, finder, placements
from tests.sampling import sample

GRAPHS = 60
EVERY = 5  # in `make test`: guaranteed ones, and one that is proven impossible
MOST = 8  # placements looked at per query
FEWER = 6  # choices of sub-deadlines for what is said to be impossible


def searched(draft: Candidate, analyses: int) -> bool:
    """Whether the search for sub-deadlines makes a placement hold."""
    found = Search(draft, NOTHING, Effort(analyses, time.monotonic() + SECONDS)).feasible()
    return found is not None and found.holds


def drawn(draft: Candidate, dice: random.Random, times: int) -> bool:
    """Whether random sub-deadlines do."""
    longest = max(output.deadline_ns for output in draft.system.outputs.values())
    for _ in range(times):
        due = {number: dice.randint(1, longest) for number in draft.system.units}
        if objective_rank(draft.with_deadlines(due), NOTHING).holds:
            return True
    return False


@cache
def planned(seed: int) -> Sound | InfeasibleError:
    try:
        return finder(seed).run(best_effort=False)
    except InfeasibleError as error:
        return error


@pytest.mark.parametrize("seed", sample(range(GRAPHS), EVERY))
def test_against_every_placement(seed: int) -> None:
    """A placement that can be made to hold is found, one of least traffic; a proof of impossibility is never wrong. Of
    many placements some are drawn."""
    found, every = planned(seed), list(placements(finder(seed)))
    dice = random.Random(seed)
    if isinstance(found, InfeasibleError):
        assert found.reasons
        impossible = [each for _, each in every]
    else:
        held = found.objective.holds
        cheaper = [each for traffic, each in every if traffic < found.traffic or not held]
        impossible = cheaper if found.proven else []
        if not found.proven:
            assert not any(searched(each, ANALYSES) for each in dice.sample(cheaper, min(len(cheaper), MOST)))
    for each in dice.sample(impossible, min(len(impossible), MOST)):
        assert not searched(each, FEWER) and not drawn(each, dice, FEWER), f"seed {seed}"


@pytest.mark.parametrize("seed", sample(range(GRAPHS, GRAPHS + 15), 3))
def test_what_is_late_with_every_unit_first_is_late_under_any_sub_deadlines(seed: int) -> None:
    dice = random.Random(seed)
    for _, each in list(placements(finder(seed)))[:5]:
        if lower_bounds.late(each.system, NOTHING) is not None:
            assert not searched(each, FEWER) and not drawn(each, dice, FEWER)


@pytest.mark.parametrize("number", sample(range(200), 8))
def test_no_bound_is_below_what_no_sub_deadlines_change(number: int, seed: int) -> None:
    """With these units, and however they are cut."""
    dice = random.Random(f"{seed} {number}")
    found = finder(dice.randrange(10**6), dice.choice([NOTHING, MEASURED]))
    for _, whole in list(placements(found))[:4]:
        cuts = frozenset(name for name in whole.place if dice.random() < 0.5)
        for laid, cut in (
            (whole, False),
            (whole, True),
            (candidate(found.setting, whole.place, whole.hops, cuts), True),
        ):
            least_ns = lower_bounds.least_bounds(whole.system, found.charges, cut)
            longest = max(output.deadline_ns for output in laid.system.outputs.values())
            due = {one: dice.randint(1, longest) for one in laid.system.units}
            rank = objective_rank(laid.with_deadlines(due), found.charges)
            for name, bound_ns in rank.bounds_ns.items():
                assert bound_ns is None or bound_ns >= least_ns.get(name, 0), f"seed {seed} {number}: {name}"


@pytest.mark.parametrize("seed", sample(range(GRAPHS), EVERY))
def test_the_bound_of_large_problems_is_no_more_than_what_crosses(seed: int) -> None:
    """Of a guaranteed plan: utilisations alone, mean ones within the caps and worst ones within 1, ask for no more."""
    found = planned(seed)
    if isinstance(found, InfeasibleError) or not found.objective.holds:
        return  # there is nothing to compare with
    least = large.traffic_bound(finder(seed).conditions, Limits(SECONDS), time.monotonic() + SECONDS)
    assert 0 <= least <= float(found.traffic) + 1e-6, f"seed {seed}"


@pytest.mark.parametrize(("every", "most", "many"), sample([(EVERY, 4, 1), (1, 16, 8)], 2))
def test_the_random_queries_are_of_all_kinds(every: int, most: int, many: int) -> None:
    """Some are guaranteed, some proven impossible, a few neither; so are those that `make test` looks at."""
    kinds = [planned(seed) for seed in range(0, GRAPHS, every)]
    held = sum(isinstance(found, Sound) and found.objective.holds for found in kinds)
    proven = sum(isinstance(found, InfeasibleError) for found in kinds)
    assert held >= most and proven >= many
