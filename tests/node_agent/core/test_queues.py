"""A unit's queue, of both kinds, against a list that is searched."""

from collections import deque
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.core.jobs import Job, KeyQueue, Queue, new_job
from node_agent.core.queues import by_age, find, in_order, take, take_all, take_oldest, take_youngest, withdraw
from tests.sampling import examples

KINDS: dict[str, Callable[[], Queue]] = {"deque": deque, "heap": KeyQueue}


def job(number: int, release_ns: int, key_ns: int) -> Job:
    return new_job(key_ns, release_ns, number, None, (1, 1, number, 0, 0, 0), None)


def filled(kind: str, gaps: list[tuple[int, int]]) -> tuple[Queue, list[Job]]:
    """Jobs as they arrive: in the deque keys do not decrease, in the heap they are any."""
    queue, jobs, release_ns = KINDS[kind](), list[Job](), 0
    for number, (gap_ns, key_ns) in enumerate(gaps, 1):
        release_ns += gap_ns
        jobs.append(job(number, release_ns, release_ns + 10 if kind == "deque" else key_ns))
        queue.append(jobs[-1])
    return queue, jobs


ARRIVALS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=12)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(100, 3), deadline=None)
@given(ARRIVALS, st.integers(0, 14), st.data())
def test_what_is_taken_off_is_what_was_asked_for_and_the_rest_stays(
    kind: str, gaps: list[tuple[int, int]], most: int, data: st.DataObject
) -> None:
    queue, jobs = filled(kind, gaps)
    assert in_order(queue) == (kind == "deque")
    assert by_age(queue) == jobs and len(queue) == len(jobs)
    what = data.draw(st.sampled_from(("oldest", "youngest", "lineages", "one")))
    if what == "oldest":
        taken, left = jobs[:most], jobs[most:]
        assert take_oldest(queue, most) == taken
    elif what == "youngest":
        kept = max(0, len(jobs) - most)
        taken, left = jobs[kept:], jobs[:kept]
        assert take_youngest(queue, most) == taken
    elif what == "lineages":
        wanted = {each.lineage for each in jobs if each.number % 3 == most % 3}
        left = [each for each in jobs if each.lineage not in wanted]
        assert take(queue, wanted) == [each for each in jobs if each.lineage in wanted]
    else:
        found = find(queue, most, most)
        assert found is (jobs[most - 1] if 1 <= most <= len(jobs) else None)
        left = [each for each in jobs if each is not found]
        if found is not None:
            withdraw(queue, found)
    assert take_all(queue) == sorted(left, key=lambda each: (each.key_ns, each.release_ns, each.number))
    assert not queue


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50, deadline=None)
@given(ARRIVALS)
def test_jobs_come_out_with_the_least_key_first(kind: str, gaps: list[tuple[int, int]]) -> None:
    queue, jobs = filled(kind, gaps)
    out = []
    while queue:
        assert queue[0] is min(queue)
        out.append(queue.popleft())
    assert out == sorted(jobs)


def test_a_job_is_ordered_by_key_then_release_then_arrival() -> None:
    jobs = [job(3, 5, 20), job(4, 4, 20), job(1, 9, 10), job(2, 4, 20)]
    assert [each.number for each in sorted(jobs)] == [1, 2, 4, 3]
