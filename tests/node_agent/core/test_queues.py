"""A unit's queue, of both kinds, against a list that is searched."""

import heapq
from collections import deque
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from node_agent.core import job_queues as jobs_module
from node_agent.core.job_queues import ArrivalQueue, JobHeap, KeyQueue
from node_agent.core.model import Job, Queue, new_job
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
@settings(max_examples=examples(100, 4), deadline=None)
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


def test_a_job_is_in_a_set_by_itself() -> None:
    """Compiled as well, where a class with an order has a hash only if it says so."""
    one, other = job(1, 5, 20), job(1, 5, 20)
    assert one != other and len({one, other, one}) == 2


@pytest.mark.parametrize("kind", [ArrivalQueue, JobHeap])
def test_what_is_empty_has_no_job_to_give(kind: type[ArrivalQueue] | type[JobHeap]) -> None:
    empty = kind()
    with pytest.raises(IndexError):
        empty.popleft() if isinstance(empty, ArrivalQueue) else empty.pop()
    with pytest.raises(IndexError):
        empty.head() if isinstance(empty, ArrivalQueue) else empty.first()


@pytest.fixture
def few_spare() -> Iterator[None]:
    """Places are given up soon; compiled it stays as it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs_module, "SPARE", 2, raising=False)
        yield


@pytest.mark.usefixtures("few_spare")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(st.just("in"), st.just("out"), st.just("leaves"), st.integers(-40, 40)), max_size=300))
def test_a_compiled_queue_is_as_a_deque(steps: list[str | int]) -> None:
    """It is a Python class as well, so both can be compared here. A number looks at that place, or takes it out."""
    queue, twin = ArrivalQueue(), deque[Job]()
    for number, step in enumerate(steps):
        if step == "in":
            queue.append(came := job(number, number, number))
            twin.append(came)
        elif step == "out" and twin:
            assert queue.head() is twin[0]
            assert queue.popleft() is twin.popleft()
        elif step == "leaves":
            assert not queue.leaves(job(number, number, number))
            assert queue.leaves(twin.popleft()) if twin else True
        elif isinstance(step, int) and -len(twin) <= step < len(twin):
            assert queue[step] is twin[step]
            if step > 20:
                del queue[step]
                del twin[step]
        assert len(queue) == len(twin) and list(queue) == list(twin) and bool(queue) == bool(twin)


@pytest.fixture
def as_compiled() -> Iterator[None]:
    """The branches for compiled code, as Python."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs_module, "COMPILED", True, raising=False)
        yield


@pytest.mark.usefixtures("as_compiled", "few_spare")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-5, 5), st.integers(0, 3)), max_size=80))
def test_a_compiled_heap_is_as_heapq(steps: list[tuple[int, int, int]]) -> None:
    """What it does with jobs by their fields, `heapq` does with tuples."""
    heap, twin = JobHeap(), list[tuple[int, int, int]]()
    for number, (what, rank, tie) in enumerate(steps):
        came, entry = job(number, tie, rank), (rank, tie, number)
        if what == 0 and twin:
            first = heap.pop()
            assert (first.rank, first.tie, first.number) == heapq.heappop(twin)
        elif what == 1 and twin:
            heap.replace(came)
            heapq.heapreplace(twin, entry)
        elif what == 2:
            heap.keep(lambda each: each.tie != 0)
            twin = [each for each in twin if each[1] != 0]
            heapq.heapify(twin)
        else:
            heap.push(came)
            heapq.heappush(twin, entry)
        assert [(each.rank, each.tie, each.number) for each in heap.jobs()] == twin  # in the same places
        assert len(heap) == len(twin) and (not twin or heap.first().number == twin[0][2])


@pytest.mark.usefixtures("as_compiled", "few_spare")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-5, 5), st.integers(0, 3)), max_size=80))
def test_a_place_that_is_taken_is_free_for_what_comes_next(steps: list[tuple[int, int, int]]) -> None:
    """`take` leaves the first place of a compiled heap empty; nothing else shows it."""
    heap, twin = JobHeap(), list[tuple[int, int, int]]()
    for number, (what, rank, tie) in enumerate(steps):
        came, entry = job(number, tie, rank), (rank, tie, number)
        if what < 2 and twin:
            first = heap.take() if what else heap.pop()
            assert (first.rank, first.tie, first.number) == twin.pop(0)
        elif what == 2 and twin:
            heap.replace(came)
            twin = sorted([*twin[1:], entry])
        elif what == 3 and not tie:
            heap.keep(lambda each: each.tie != 0)
            twin = [each for each in twin if each[1] != 0]
        else:
            heap.push(came)
            twin = sorted([*twin, entry])
        assert sorted((each.rank, each.tie, each.number) for each in heap.jobs()) == twin
        assert len(heap) == len(twin) and (not twin or heap.first().number == twin[0][2])


@pytest.mark.usefixtures("as_compiled", "few_spare")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5), st.integers(0, 3)), max_size=60))
def test_a_compiled_queue_by_key_gives_the_least_first(steps: list[tuple[int, int, int]]) -> None:
    """As a queue of Python."""
    queue, twin = KeyQueue(), list[Job]()
    for number, (what, rank, tie) in enumerate(steps):
        if what < 2 and twin:
            assert queue.popleft() is twin.pop(0)
        elif what == 2 and not tie:
            queue.keep(lambda each: each.release_ns != 0)
            twin = [each for each in twin if each.release_ns != 0]
        else:
            queue.append(came := job(number, tie, rank + number // 2))
            twin = sorted([*twin, came])
        assert sorted(queue) == twin and len(queue) == len(twin)
        assert not twin or (queue.head() is twin[0] and queue[0] is twin[0])
