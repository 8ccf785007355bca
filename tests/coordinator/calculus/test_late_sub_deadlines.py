"""Bounds where sub-deadlines do not hold, which the search for them passes through."""

from __future__ import annotations

from coordinator.calculus.curves import Bursts
from coordinator.calculus.demand import Task
from coordinator.calculus.response import responses
from coordinator.calculus.selectivity import ONE


def test_sockets_are_drained_before_a_late_job_too() -> None:
    """A job due after 1 waits for an instance of 20; drains of 2 come at 0, 10, 20, then it starts, and at 30."""
    late = Task("late", Bursts(1, 1000), 1, ((5, ONE),))
    blocker = Task("blocker", Bursts(1, 1000), 500, ((20, ONE),))
    drain = Task("drain", Bursts(1, 10), 0, ((2, ONE),), chore=True)
    assert responses([late, blocker, drain])["late"].end == 33
