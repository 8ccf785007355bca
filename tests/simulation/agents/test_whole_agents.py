"""Whole agents under faults, in virtual time, with the coordinator's own deployment and collection."""

from collections import Counter

import pytest

from tests.simulation.agents.agent_campaign import run
from tests.simulation.agents.agent_faults import KINDS

SEEDS = 8


@pytest.mark.parametrize("seed", range(1, 1 + SEEDS))
def test_seeds_hold(seed: int) -> None:
    outcome = run(seed)
    assert not outcome.problems, outcome.told
    assert outcome.counts["met"] > 0, outcome.told


def test_each_kind_of_fault_fires_and_what_mends_it_as_well() -> None:
    """A kind that never happens would prove nothing."""
    fired, counts = Counter[str](), Counter[str]()
    kinds = list(KINDS)
    for first in range(0, len(kinds), 3):
        some = kinds[first : first + 3]
        for seed in range(1, 20):
            outcome = run(seed, some)
            assert not outcome.problems, outcome.told
            fired.update(outcome.fired)
            counts.update(outcome.counts)
            if all(fired[kind] or (kind == "cut" and fired["cut_one_way"]) for kind in some):
                break
    assert {kind for kind in KINDS if not fired[kind]} <= {"cut"}
    assert counts["log stood_still"] and counts["log crashed"] and counts["log agents"] > 3


def test_a_seed_gives_the_same_bytes_again() -> None:
    first, again = run(3), run(3)
    assert first.digest == again.digest and first.counts == again.counts and first.lines == again.lines


def test_without_faults_every_result_is_met_and_there_is_one_of_each() -> None:
    outcome = run(5, [])
    assert not outcome.problems, outcome.told
    assert not outcome.counts["tuples unknown"] + outcome.counts["tuples refused"] + outcome.counts["duplicates"]
    assert outcome.counts["met"] == outcome.counts["results"] > outcome.counts["tuples admitted"]
    assert not outcome.counts["late"] and not outcome.counts["log crashed"] + outcome.counts["log stood_still"]
