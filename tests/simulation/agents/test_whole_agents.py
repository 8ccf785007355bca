"""Whole agents under faults, in virtual time, with the coordinator's own deployment and collection."""

from collections import Counter

import pytest

from tests.sampling import sample
from tests.simulation.agents.agent_campaign import LINE, RING, Drawn, Outcome, play, run
from tests.simulation.agents.agent_faults import BURST_PART, END_NS, KINDS
from tests.simulation.agents.agents_line import MS
from tests.simulation.agents.sometimes import ENOUGH
from tests.simulation.faults.draws import sent
from tests.simulation.faults.fault import Fault

SEED_OF_PART = (13, 3, 13, 0)  # with which each kind of fault finds something to do

NOWHERE = ("127.0.0.1", "127.0.0.2")  # of faults that happen to a node
ONCE_FAILED = {  # what seeds of earlier draws were made of: each has found a defect that is mended
    106: Drawn(
        RING,
        [
            Fault("bit_rot", 3_630_854_679, 817_080_629, "b", NOWHERE, 131),
            Fault("freeze_runtime", 5_478_611_134, 1_298_443_206, "a", NOWHERE, 232),
            Fault("bit_rot", 7_261_107_423, 1_094_288_258, "a", NOWHERE, 268),
            Fault("freeze_runtime", 8_210_317_157, 2_923_945_750, "b", NOWHERE, 650),
            Fault("bit_rot", 8_447_461_650, 297_995_281, "b", NOWHERE, 875),
        ],
        {
            "s": sent(2_007_623_168, 30 * MS, END_NS, (), BURST_PART),
            "t": sent(2_028_312_064, 200 * MS, END_NS, (), BURST_PART),
        },
    ),
}


@pytest.mark.parametrize("seed", sample((1, 2), of=2))
def test_seeds_hold(seed: int) -> None:
    outcome = run(seed)
    assert not outcome.problems, outcome.told
    assert outcome.counts["met"] > 0, outcome.told


def test_each_kind_of_fault_fires_and_what_mends_it_as_well() -> None:
    """A kind that never happens would prove nothing."""
    fired, counts, kinds = Counter[str](), Counter[str](), list(KINDS)
    for part, seed in enumerate(SEED_OF_PART):
        outcome = run(seed, kinds[part :: len(SEED_OF_PART)], once=True)
        assert not outcome.problems, outcome.told
        fired.update(outcome.fired)
        counts.update(outcome.counts)
    fired["cut"] += fired["cut_one_way"]
    assert not [kind for kind in KINDS if not fired[kind]], fired
    branches = {event for event, count in counts.items() if event.startswith("log ") and count}
    assert {"log stood_still", "log crashed", "log not_started", "log trace_problem", "log agents"} <= branches


@pytest.mark.soak
def test_everything_happens_in_some_seed() -> None:
    fired = Counter[str]()
    for seed in range(1, 1 + ENOUGH):
        outcome = run(seed)
        assert not outcome.problems, outcome.told
        fired.update(outcome.fired)
        fired.update(outcome.counts)
    assert not LINE.missing(fired)


@pytest.mark.parametrize("seed", ONCE_FAILED)
def test_what_once_failed_holds(seed: int) -> None:
    outcome = play(Outcome(seed, ()), ONCE_FAILED[seed])
    assert not outcome.problems, outcome.told


def test_a_seed_gives_the_same_bytes_again() -> None:
    first, again = run(1), run(1)
    assert first.digest == again.digest and first.counts == again.counts and first.lines == again.lines


def test_without_faults_every_result_is_met_and_there_is_one_of_each() -> None:
    outcome = run(5, [])
    assert not outcome.problems, outcome.told
    assert not outcome.counts["tuples unknown"] + outcome.counts["tuples refused"] + outcome.counts["duplicates"]
    assert outcome.counts["met"] == outcome.counts["results"] > outcome.counts["tuples admitted"]
    assert not outcome.counts["late"] and not outcome.counts["log crashed"] + outcome.counts["log stood_still"]


@pytest.mark.soak
def test_a_deployment_that_is_stopped_while_another_coordinator_carries_it_out_ends_everywhere() -> None:
    """Of that seed: the last node commits when the others have been told to stop."""
    outcome = run(90150, ["suspend", "coordinator_paused", "stop_cut"])
    assert not outcome.problems, outcome.told


def test_control_that_cannot_read_its_plans_says_so_and_reads_them_at_the_next_start() -> None:
    """Of that seed: the disk fails for the state, then for its directory."""
    outcome = run(90068, ["crash_control", "disk_error", "stop_half_done", "late_prepare"])
    assert not outcome.problems, outcome.told
    assert outcome.counts["log plans_unreadable"]


@pytest.mark.soak
def test_a_coordinator_that_was_paused_cannot_use_the_epoch_of_a_plan_that_has_ended_meanwhile() -> None:
    """Of that seed: records of two plans would have one epoch."""
    outcome = run(95036, ["freeze_control", "coordinator_paused"])
    assert not outcome.problems, outcome.told
    assert outcome.fired["epoch refused"]


@pytest.mark.soak
def test_an_agent_that_is_killed_at_the_instant_of_its_boot_may_start_two_seconds_later() -> None:
    """Of that seed: its service manager starts it again, and what is expected of the boot does not hold."""
    outcome = run(200289, ["crash_at_step", "collects_power_cut"])
    assert not outcome.problems, outcome.told
    assert outcome.fired["crash_at_step"]


@pytest.mark.soak
def test_what_a_tuple_proved_while_control_was_away_is_on_the_disk_soon() -> None:
    outcome = run(5, ["proof_unheard"])
    assert not outcome.problems, outcome.told
    assert outcome.fired["proof_unheard"] and outcome.counts["log crashed"]


@pytest.mark.soak
def test_a_proof_that_the_disk_refused_does_not_leave_another_plan_committed() -> None:
    """Of that seed: the plan before was deployed again, and taken for running."""
    kinds = ["disk_error", "two_coordinators", "deploy_cut", "cut_and_crash", "hang", "collect_power_cut"]
    outcome = run(201230, kinds)
    assert not outcome.problems, outcome.told


def test_a_disk_that_was_put_back_and_loses_its_power_then_has_not_what_was_accepted_in_between() -> None:
    """Of that seed: a commit, the disk of before it, and the power goes as the agent boots."""
    outcome = run(900765, ["power_cut_at_step", "late_prepare", "old_state"])
    assert not outcome.problems, outcome.told
    assert outcome.fired["old_state"] and outcome.fired["power_cut_at_step"]
