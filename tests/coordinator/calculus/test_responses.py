"""Response bounds with short cuts against the same without any."""

from __future__ import annotations

from random import Random

from coordinator.calculus import demand
from coordinator.calculus.curves import Bursts, Jcp, Spanned
from coordinator.calculus.demand import Load, Task, UnboundedError
from coordinator.calculus.flow import jittered
from coordinator.calculus.response import load_responses
from coordinator.calculus.selectivity import ONE, Selectivity
from tests.coordinator.calculus.plain_response import plain_responses

SETS = 100
MOST_STEPS = 200  # of all tasks of a node: the plain way takes its time
PASSES = (ONE, ONE, Selectivity(((1, 1), (2, 1))), Selectivity(((2, 1),)), Selectivity(((1, 2),)))


def loaded(draw: Random) -> Load | None:
    """One to seven tasks, chores and batches among them; None: more than fits, or too much to look at."""
    tasks = []
    for number in range(draw.randint(1, 7)):
        curve: Spanned = Bursts(draw.randint(1, 5), draw.randint(20, 200))
        if draw.random() < 0.5:
            curve = Jcp(draw.randint(10, 100), draw.randint(0, 9), draw.randint(0, 300))
        stages = tuple((draw.randint(1, 9), draw.choice(PASSES) if i else ONE) for i in range(draw.randint(1, 3)))
        chore = draw.random() < 0.25
        deadline = 0 if chore else draw.randint(1, 150)
        late = jittered(curve, draw.choice([0, 0, draw.randint(1, 300)]))
        tasks.append(Task(f"t{number}", late, deadline, stages, draw.choice([1, 1, 1, 2, 3]), chore))
    try:
        found = demand.load(tasks)
    except UnboundedError:
        return None
    return found if sum(len(each.times) for each in found.steps) <= MOST_STEPS else None


def test_short_cuts_change_no_bound_and_no_moment(seed: int) -> None:
    draw, seen = Random(seed), 0
    while seen < SETS:
        found = loaded(draw)
        if found is not None:
            assert load_responses(found) == plain_responses(found)
            seen += 1


def test_deadlines_change_no_step(seed: int) -> None:
    draw, seen = Random(seed), 0
    while seen < SETS // 10:
        found = loaded(draw)
        if found is None:
            continue
        seen += 1
        given = [each.task for each in found.steps]
        other = [Task(one.name, one.curve, one.deadline + 7, one.stages, one.batch, one.chore) for one in given]
        again, made = demand.load(other), found.of_tasks(other)
        assert (made.steps, made.busy, made.utilisation) == (again.steps, again.busy, again.utilisation)
