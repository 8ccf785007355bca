"""The workload: loads, seeds, and the same for everybody."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.peers.workload import LEAD_S, LOADS, SECOND, Workload, chain, classes


@given(st.floats(0.05, 2), st.integers(0, 1 << 32))
def test_the_classes_ask_for_the_load_that_was_asked_for(load: float, seed: int) -> None:
    made = classes(load, 1, seed)
    assert made.load == pytest.approx(load, rel=1e-4)
    shares = [each.share / made.load for each in made.streams]
    assert shares == pytest.approx([10 / 48, 12 / 48, 26 / 48], rel=1e-4)


@given(st.floats(0.1, 1.5), st.integers(0, 1 << 32))
def test_tuples_come_late_by_the_jitter_at_most_and_each_stream_has_its_phase(load: float, seed: int) -> None:
    made = classes(load, 1, seed)
    for stream in made.streams:
        at_ns = [each.at_ns for each in made.arrivals() if each.stream == stream.name]
        late = [at - seq * stream.period_ns for seq, at in enumerate(at_ns)]
        assert min(late) >= 0 and max(late) - min(late) <= stream.jitter_ns
        assert min(late) < stream.period_ns + stream.jitter_ns
        gone_ns = (LEAD_S + 1) * SECOND - at_ns[-1]
        assert gone_ns + stream.jitter_ns >= 0 and gone_ns <= 2 * stream.period_ns


@pytest.mark.parametrize("load", LOADS)
def test_what_is_offered_in_the_counted_time_is_the_load(load: float) -> None:
    made = classes(load, 20, 3)
    work_ns = sum(made.stream(each.stream).cost_ns for each in made.arrivals() if each.counted)
    assert work_ns / (20 * SECOND) == pytest.approx(load, rel=0.02)


def test_a_seed_gives_one_order_and_another_seed_another(seed: int) -> None:
    assert classes(0.48, 2, seed).arrivals() == classes(0.48, 2, seed).arrivals()
    assert classes(0.48, 2, seed).arrivals() != classes(0.48, 2, seed + 1).arrivals()
    assert classes(0.48, 2, seed).arrivals() == sorted(classes(0.48, 2, seed).arrivals())


def test_each_tuple_has_a_number_of_its_own_and_none_is_left_out() -> None:
    for made in (classes(1.2, 2, 5), chain(2, 5)):
        seen = Counter((each.stream, each.seq) for each in made.arrivals())
        assert max(seen.values()) == 1
        for stream in made.streams:
            numbers = sorted(seq for name, seq in seen if name == stream.name)
            assert numbers == list(range(len(numbers)))


def test_it_is_the_same_after_a_trip_through_json() -> None:
    for made in (classes(0.48, 2, 7), chain(2, 7)):
        back = Workload.from_json(json.loads(json.dumps(made.to_json())))
        assert back == made and back.arrivals() == made.arrivals()
