"""The floor: earliest deadline first, and what it leaves out."""

from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from infra.peers.edf_loop import EdfQueue

DEADLINES = {"urgent": 15, "middle": 50, "bulk": 400}


def _item(stream: str, origin_ns: int, seq: int = 0, cost_ns: int = 0) -> dict[str, Any]:
    return {"stream": stream, "seq": seq, "origin_ns": origin_ns, "cost_ns": cost_ns}


@given(st.lists(st.tuples(st.sampled_from(sorted(DEADLINES)), st.integers(0, 1000)), max_size=40))
def test_it_takes_the_earliest_deadline_and_of_equals_the_first_that_came(offered: list[tuple[str, int]]) -> None:
    queue = EdfQueue(DEADLINES)
    items = [_item(stream, origin, seq) for seq, (stream, origin) in enumerate(offered)]
    for item in items:
        queue.offer(item)
    taken = [queue.next(0) for _ in items]
    assert taken == sorted(items, key=lambda each: each["origin_ns"] + DEADLINES[each["stream"]])
    assert queue.next(0) is None and not len(queue)


def test_it_never_misses_where_a_brute_force_search_finds_an_order_without_a_miss(seed: int) -> None:
    """All come at once: then EDF is optimal."""
    from itertools import permutations

    random = Random(seed)
    for _ in range(60):
        items = [_item(random.choice(sorted(DEADLINES)), 0, n, random.randrange(1, 30)) for n in range(5)]
        queue = EdfQueue(DEADLINES)
        for item in items:
            queue.offer(item)
        order = [each for each in (queue.next(0) for _ in items) if each is not None]
        assert _met(order) == any(_met(list(each)) for each in permutations(items))


def _met(order: list[dict[str, Any]]) -> bool:
    at = 0
    for item in order:
        at += item["cost_ns"]
        if at > DEADLINES[item["stream"]]:
            return False
    return True


def test_it_leaves_out_what_would_be_late_only_where_it_is_asked_to() -> None:
    for drops, expected in ((False, [0, 1]), (True, [1])):
        queue = EdfQueue(DEADLINES, drops)
        queue.offer(_item("urgent", 0, 0, cost_ns=6))
        queue.offer(_item("bulk", 0, 1, cost_ns=6))
        taken = [queue.next(10), queue.next(10)]
        assert [each["seq"] for each in taken if each is not None] == expected


def test_what_ends_at_its_deadline_is_run() -> None:
    queue = EdfQueue(DEADLINES, drops=True)
    queue.offer(_item("urgent", 0, cost_ns=5))
    assert queue.next(10) is not None
