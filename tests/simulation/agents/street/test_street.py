"""The street under faults: windows, a join, a side input, policing and ages, with whole agents in virtual time."""

from collections import Counter

import pytest

from tests.sampling import sample
from tests.simulation.agents.sometimes import ENOUGH
from tests.simulation.agents.street.street_campaign import STREET, run


@pytest.mark.parametrize("seed", sample((1, 2), of=2))
def test_seeds_hold(seed: int) -> None:
    outcome = run(seed)
    assert not outcome.problems, outcome.told
    assert outcome.counts["results of counted"] and outcome.counts["met"], outcome.told


def test_a_damaged_spool_on_a_disk_that_is_read_only_is_left_alone_until_it_can_be_mended() -> None:
    """Of that seed: the power goes in the middle of a write, and the disk comes back read-only."""
    outcome = run(97, ["power_cut_at_step", "read_only"])
    assert not outcome.problems, outcome.told
    assert outcome.counts["log spool_unusable"]


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
    for seed in range(1, 1 + ENOUGH):
        outcome = run(seed)
        assert not outcome.problems, outcome.told
        fired.update(outcome.fired)
        fired.update(outcome.counts)
    assert not STREET.missing(fired)


@pytest.mark.soak
def test_a_peer_that_moved_is_found_after_an_older_plan_is_told_again() -> None:
    """Of that seed: a runtime crashes while the plan drains whose routes have the peer's old address."""
    outcome = run(90025, ["crash_running", "freeze_supervisor", "redeploy", "moved"])
    assert not outcome.problems, outcome.told


def test_a_plan_whose_file_cannot_be_read_at_a_start_of_control_stays() -> None:
    """Of that seed: the disk fails for control as it starts, and no more as the runtime does."""
    outcome = run(91033, ["power_cut", "disk_error"])
    assert not outcome.problems, outcome.told


@pytest.mark.soak
def test_a_join_may_give_up_what_came_while_the_disk_was_full() -> None:
    """Of that seed: the partner died with its runtime, and the GAP of the next one counts what says when it came."""
    kinds = ["crash_supervisor", "power_cut_at_step", "lossy", "disk_full", "crash_sending", "late_commit"]
    outcome = run(900135, kinds)
    assert not outcome.problems, outcome.told
    assert outcome.counts["joins expired"]


@pytest.mark.soak
def test_a_plan_that_was_stopped_just_before_another_one_began_leaves_it_no_side_value() -> None:
    """Of that seed: the stop of a coordinator that is killed then comes 80 us before the commit of another one."""
    outcome = run(1000076, ["hang", "stop_killed"])
    assert not outcome.problems, outcome.told
    assert outcome.fired["stop_killed"]


@pytest.mark.soak
def test_a_value_under_the_plan_before_is_no_news_once_one_has_come_under_the_next() -> None:
    """Of that seed: a node gets its old disk back, and goes on under the plan before, which drains elsewhere."""
    outcome = run(1100037, ["two_coordinators", "old_state"])
    assert not outcome.problems, outcome.told
    assert outcome.fired["old_state"]
