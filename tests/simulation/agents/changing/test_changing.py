"""Queries come and go and a node fails, with whole agents in virtual time and the coordinator's own commands."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from greenlet import GreenletExit

from coordinator.change import next_plan
from tests.simulation.agents.agent_campaign import Outcome
from tests.simulation.agents.changing.change_faults import CHANGE_KINDS
from tests.simulation.agents.changing.changing_campaign import CHANGES, run
from tests.simulation.agents.changing.make_change_plans import made
from tests.simulation.agents.changing.plan_chain import CHAIN, GROWN, REDUCED, WITH_MORE, following, plan
from tests.simulation.agents.desk import Desk
from tests.simulation.agents.sometimes import ENOUGH, OF_CHANGES

GENTLE = ("add", "remove", "add_killed")
ROUGH = ("add_half_told", "add_and_cut", "fail_over", "fail_over_cut")
BESIDE = ("add_beside_killed", "add_collected")
SAMPLE = ((26, GENTLE), (11, GENTLE), (3, ROUGH), (1, BESIDE), (5, BESIDE))  # in these few seeds all of it happens


@cache
def _ran(seed: int, kinds: tuple[str, ...]) -> Outcome:
    return run(seed, kinds, once=True)


def test_a_seed_with_changes_holds() -> None:
    outcome = _ran(*SAMPLE[0])
    assert not outcome.problems, outcome.told
    assert outcome.counts["adds with a first result"], outcome.told


def test_each_kind_of_change_fires() -> None:
    """A kind that never happens, or a branch that is never taken, would prove nothing."""
    fired = Counter[str]()
    for sampled in SAMPLE:
        outcome = _ran(*sampled)
        assert not outcome.problems, outcome.told
        fired.update(outcome.fired)
        fired.update(outcome.counts)
    assert not [kind for kind in CHANGE_KINDS if not fired[kind]], fired
    assert not [text for text, name in OF_CHANGES.items() if not fired[name]], fired


def test_a_further_plan_of_the_row_is_what_remove_makes() -> None:
    without = next_plan.removed(plan(CHAIN[3]), Path("plan.json"), ["more"]).after
    assert without is not None and without.hash == plan(CHAIN[4]).hash
    assert len({plan(name).hash for name in CHAIN}) == len(CHAIN)


def test_a_row_ends_and_nothing_is_added_twice() -> None:
    assert following(CHAIN[0], "add") == GROWN and following(GROWN, "remove") == REDUCED
    assert following(GROWN, "add") == GROWN and following(REDUCED, "remove") == REDUCED
    assert following(CHAIN[-1], "add") == following(CHAIN[-1], "remove") == CHAIN[-1]
    assert following("changes_spare", "add") == "changes_spare" and GROWN in WITH_MORE


def test_a_command_that_is_killed_at_a_step_leaves_its_files_as_they_were_then(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "desk")
    first, second = desk.folder / "first", desk.folder / "second"
    first.write_text("0")

    def command() -> None:
        try:
            first.write_text("1")
            second.write_text("2")
        finally:
            first.unlink()

    desk.kill_at_step(1, lambda: True)
    with pytest.raises(GreenletExit):
        command()
    assert not first.exists() and desk.after_kill() and not desk.after_kill()
    assert desk.files() == {first: b"1"}, "what a process does on its way out is undone, and nothing else"
    command()
    assert desk.files() == {second: b"2"}, "it is killed once"


def test_steps_are_counted_from_the_first_one_on_a_file_of_that_name(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "desk")
    first, second = desk.folder / "first", desk.folder / "second"
    desk.kill_at_step(1, lambda: True, "second")
    first.write_text("1")
    second.write_text("2")
    with pytest.raises(GreenletExit):
        first.write_text("3")
    assert desk.after_kill() and desk.files() == {first: b"1", second: b"2"}


@pytest.mark.soak
def test_the_stored_plans_are_those_of_the_planner() -> None:
    for name, planned in made().items():
        assert planned.hash == plan(f"changes_{name}").hash, name


@pytest.mark.soak
def test_everything_happens_in_some_seed() -> None:
    fired = Counter[str]()
    for seed in range(1, 1 + ENOUGH):
        outcome = run(seed)
        assert not outcome.problems, outcome.told
        fired.update(outcome.fired)
        fired.update(outcome.counts)
    assert not CHANGES.missing(fired)


@pytest.mark.soak
def test_commands_that_wait_until_they_try_again_are_over_when_all_is_mended() -> None:
    """Of that seed: the last command had ended well by then, and two of before went on to add what one adds."""
    outcome = run(1000065, ["remove", "add_killed", "add_beside_killed", "fail_over"])
    assert not outcome.problems, outcome.told
    assert outcome.fired["change refused"]
