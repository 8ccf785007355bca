"""The memory of a second of ITS time: the same as one that looks at all it holds each time it forgets."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from sim_vehicles.operators.models.its_time import MODULUS, since_ms
from sim_vehicles.operators.models.recent import KEEP_MS, MOST, Recent

KEYS = st.integers(0, 5)
STEPS_MS = st.integers(-1500, 1500) | st.sampled_from([-32768, -32767, 32766, 32767]) | st.integers(-32768, 32767)
EVENTS = st.lists(st.tuples(KEYS | st.none(), STEPS_MS), max_size=40)  # put a key, or forget: so much after the last


@given(st.integers(0, MODULUS - 1), EVENTS)
@example(0, [(1, 32767), (None, 2)])  # both are half of what ITS time wraps at away from where it begins
@example(0, [(1, 32000), (None, 500), (2, 32767), (3, 1), (None, 1)])
def test_it_holds_what_lies_within_a_second_modulo_its_time(at_ms: int, events: list[tuple[int | None, int]]) -> None:
    recent: Recent[int, int] = Recent()
    held: dict[int, tuple[int, int]] = {}
    for number, (key, step_ms) in enumerate(events):
        at_ms = (at_ms + step_ms) % MODULUS
        if key is None:
            recent.forget(at_ms)
            held = {each: one for each, one in held.items() if abs(since_ms(at_ms, one[0])) <= KEEP_MS}
        else:
            recent.put(key, at_ms, number)
            held.pop(key, None)
            held[key] = at_ms, number
        assert [(at % MODULUS, value) for at, value in recent.instants()] == list(held.values())
        assert {each: recent.get(each) for each in held} == {each: value for each, (_, value) in held.items()}


def test_the_oldest_insertion_goes_first_and_notes_are_bounded() -> None:
    recent: Recent[int, int] = Recent()
    for number in range(20 * MOST):
        recent.put(number % (2 * MOST), 0, number)
        assert len(recent._noted) <= 4 * MOST
    assert [value for _, value in recent.instants()] == list(range(19 * MOST, 20 * MOST))
