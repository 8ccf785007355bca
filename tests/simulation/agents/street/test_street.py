"""The street under faults: windows, a join, a side input, policing and ages, with whole agents in virtual time."""

from collections import Counter

import pytest

from tests.simulation.agents.street.street_campaign import STREET, run

SEEDS, SOAKED = 2, 200


@pytest.mark.parametrize("seed", range(1, 1 + SEEDS))
def test_seeds_hold(seed: int) -> None:
    outcome = run(seed)
    assert not outcome.problems, outcome.told
    assert outcome.counts["results of counted"] and outcome.counts["met"], outcome.told


def test_without_faults_every_tuple_gives_its_results() -> None:
    outcome = run(4, [])
    assert not outcome.problems, outcome.told
    counts = outcome.counts
    assert not counts["late"] + counts["undecidable"] + counts["duplicates"] + counts["log crashed"]
    assert counts["results of near"] == counts["results of pair"]
    assert counts["results of near"] - 5 <= counts["results with a side value"], "the first come before any side value"
    assert counts["policed"] and counts["refused as too old"] and counts["windows with tuples"]


@pytest.mark.soak
def test_everything_happens_in_some_seed() -> None:
    fired = Counter[str]()
    for seed in range(1, 1 + SOAKED):
        outcome = run(seed)
        assert not outcome.problems, outcome.told
        fired.update(outcome.fired)
        fired.update(outcome.counts)
    assert not STREET.missing(fired)
