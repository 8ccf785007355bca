"""The runtime as it is, under faults, in virtual time. `make soak` runs as many seeds as one likes."""

from collections import Counter

import pytest

from tests.sampling import sample
from tests.simulation.faults.campaign import Outcome, draw, kinds_drawn, play, run
from tests.simulation.faults.checker import unexplained
from tests.simulation.faults.faulty_line import Load
from tests.simulation.faults.happened import ENOUGH, never
from tests.simulation.faults.once_failed import ONCE_FAILED

SEEDS = (189, 28, 1476)  # of which each kind of fault fires in some
MORE = 100


def test_seeds_hold() -> None:
    """Each fault fires in some of them: a kind that never happens would prove nothing."""
    fired: Counter[str] = Counter()
    for seed in SEEDS:
        outcome = _holds(seed)
        fired.update(outcome.fired + outcome.counts)
    assert never(fired) == [], fired


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 1 + MORE))
def test_more_seeds_hold(seed: int) -> None:
    _holds(seed)


@pytest.mark.soak
def test_everything_happens_in_some_seed() -> None:
    fired = Counter[str]()
    for seed in range(1, 1 + ENOUGH):
        outcome = _holds(seed)
        fired.update(outcome.fired + outcome.counts)
    assert never(fired) == []


def _holds(seed: int) -> Outcome:
    outcome = run(seed)
    assert not outcome.problems, outcome.told
    assert outcome.counts["met"] > 0, outcome.told
    return outcome


@pytest.mark.parametrize("seed", sample((256, 189, 5, 4), of=2))
def test_seeds_hold_where_tuples_go_in_chunks(seed: int) -> None:
    kinds = sorted(kinds_drawn(seed))
    outcome = play(Outcome(seed, kinds), draw(seed, kinds)._replace(load=Load(pad=100_000)))
    assert not outcome.problems, outcome.told
    assert outcome.counts["met"] > 0, outcome.told


def test_only_its_own_power_explains_that_a_node_never_answers() -> None:
    assert unexplained({"a": 0, "b": 23}, ["b"], Counter()) == []
    assert len(unexplained({"a": 1, "b": 23}, ["b", "c"], Counter())) == 1


def test_a_machine_that_is_down_has_lost_what_it_had_not_answered() -> None:
    outcome = run(900438, ["crash", "lossy", "down", "bit_flip"])
    assert not outcome.problems, outcome.told
    assert outcome.counts["tuples unanswered"], "its connection breaks between its hello and its answers, and again"


def test_a_seed_gives_the_same_bytes_again() -> None:
    first, again = run(3), run(3)
    assert first.digest == again.digest and first.counts == again.counts


def test_without_faults_every_result_is_met_and_there_is_one_of_each() -> None:
    outcome = run(5, [])
    assert not outcome.problems, outcome.told
    admitted, results = outcome.counts["tuples admitted"], outcome.counts["results"]
    assert not outcome.counts["tuples unknown"] + outcome.counts["tuples refused"] + outcome.counts["duplicates"]
    assert outcome.counts["met"] == results > admitted and not outcome.counts["late"]


@pytest.mark.parametrize("seed", sample(ONCE_FAILED, of=3))
def test_what_once_failed_holds(seed: int) -> None:
    outcome = play(Outcome(seed, ()), ONCE_FAILED[seed])
    assert not outcome.problems, outcome.told
