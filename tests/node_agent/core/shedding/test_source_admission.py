"""Admission control by itself: what is decided of a tuple of a source that is limited, policed, or shed when full."""

import pytest

from node_agent.core import plan as plans
from node_agent.core import queues
from node_agent.core.lineage import Lineage
from node_agent.core.model import Decision, Route, new_job
from protos.records import POLICY_ARRIVALS, POLICY_MEMORY, POLICY_RATE
from tests.node_agent.core.engine.compiled import one_source

VALUE = '["field", "v"]'


def tuple_(number: int) -> Lineage:
    return 1, 1, number, 0, 0, 0


class Door:
    """Of one source; what goes on is queued."""

    def __init__(self, *, full: bool = False, **source: object) -> None:
        self.route: Route = one_source(**source).source_routes[1]
        self.full = full
        self.number = self.jobs = 0

    def offer(self, at_ns: int, value: int = 0) -> Decision:
        """One more tuple; it is settled as it was decided."""
        assert self.route.admission is not None
        self.number += 1
        decision = self.route.admission.decide(at_ns, {"v": value}, lambda: self.full)
        if decision.displaced is not None:
            for job in decision.displaced.jobs:
                queues.withdraw(job.unit.queue, job)
        lineage = tuple_(self.number)
        if decision.counted:
            self.route.admission.settle(self.jobs + 1, self.route, lineage, decision.policy)
        if not decision.policy:
            for unit in self.route.units:
                self.jobs += 1
                unit.queue.append(new_job(0, at_ns, self.jobs, unit, lineage, None))
        return decision


def test_a_source_without_any_of_it_has_no_entry() -> None:
    assert Door().route.admission is None


@pytest.mark.parametrize(
    ("on_full", "full", "expected"),
    [
        ("drop-tail", True, Decision(POLICY_MEMORY)),
        ("drop-tail", False, Decision()),
        ("front", True, Decision(makes_room=True)),
        ("front", False, Decision()),
    ],
)
def test_a_full_node_sheds_what_comes_or_what_waits(on_full: str, full: bool, expected: Decision) -> None:
    assert Door(on_full=on_full, full=full).offer(0) == expected


def test_what_is_beyond_what_was_declared_is_shed_and_makes_no_room() -> None:
    door = Door(on_full="front", full=True, spans=((2, 10),))
    assert [door.offer(at_ns) for at_ns in (0, 5, 10)] == [
        Decision(makes_room=True), Decision(POLICY_ARRIVALS), Decision(makes_room=True)
    ]  # fmt: skip


def test_above_the_limit_the_less_valuable_goes() -> None:
    door = Door(limit=plans.Limit(1, 100, VALUE))
    assert door.offer(0, 5) == Decision(counted=True)
    assert door.offer(1, 4) == Decision(POLICY_RATE)
    better = door.offer(2, 6)
    assert (better.policy, better.counted) == (0, True)
    assert better.displaced is not None and better.displaced.passed.lineage == tuple_(1)
    assert [job.unit.id for job in better.displaced.jobs] == [1, 2] and door.jobs == 4


def test_what_has_begun_is_not_displaced() -> None:
    door = Door(limit=plans.Limit(1, 100, VALUE))
    door.offer(0, 5)
    door.route.units[0].queue.popleft()
    assert door.offer(1, 9) == Decision(POLICY_RATE)


def test_what_takes_the_place_of_another_one_is_not_policed() -> None:
    """The survivors conform to what was declared, since the limit implies it."""
    door = Door(limit=plans.Limit(1, 100, VALUE), spans=((2, 100),))
    assert door.offer(0, 5).policy == 0
    assert door.offer(50, 6).displaced is not None
    assert door.offer(149, 1).policy == POLICY_RATE
