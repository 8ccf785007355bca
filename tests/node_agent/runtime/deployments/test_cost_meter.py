"""What is taken down of operators' costs: buckets, quantiles that are upper bounds, answers that fit a message."""

import time
from math import ceil
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from infra.bench.engine.runtime_loop import chain_plan
from node_agent.host import ipc
from node_agent.runtime.deployments.cost_meter import EARLY, Cost, bucket, rows, upper_ns
from node_agent.runtime.in_process import in_process, run_queued

DURATIONS = st.integers(0, 1 << 50)


@given(DURATIONS)
def test_a_bucket_is_a_sixteenth_of_its_value_wide_at_most(ns: int) -> None:
    number = bucket(ns)
    upper, below = upper_ns(number), upper_ns(number - 1) if number else -1
    assert below < ns <= upper and bucket(upper) == number and bucket(upper + 1) == number + 1
    assert upper - ns <= ns / 16


@given(st.lists(st.integers(0, 10**10), min_size=1, max_size=200), st.integers(1, 100))
def test_a_quantile_from_the_buckets_is_an_upper_bound_of_the_true_one(spent: list[int], hundredth: int) -> None:
    cost = Cost(1, "O")
    for ns in spent:
        cost.add(ns, ns + 1)
    _, _, _, tuples, total_ns, elapsed_ns, worst_ns, later_ns, squares, uppers, counts, _ = cost.row()
    assert (tuples, total_ns, elapsed_ns, worst_ns) == (len(spent), sum(spent), sum(spent) + len(spent), max(spent))
    assert sum(counts) == tuples and later_ns == max(spent[EARLY:], default=0)
    assert abs(squares - sum(ns * ns for ns in spent)) <= 1e-6 * squares
    rank = ceil(tuples * hundredth / 100)
    true_ns, seen, told_ns = sorted(spent)[rank - 1], 0, -1
    for upper, count in zip(uppers, counts, strict=True):
        seen += count
        if seen >= rank:
            told_ns = upper
            break
    assert true_ns <= told_ns <= true_ns * 17 / 16


@given(st.integers(0, 60), st.integers(1, 80))
def test_answers_fit_a_message_and_leave_nothing_out(operators: int, spread: int) -> None:
    costs = [Cost(number, "x" * 64) for number in range(operators)]
    for cost in costs:
        for power in range(spread):
            cost.add(int(1.3**power), 0)
    first, found = 0, list[Any]()
    while True:
        some, first = rows(costs, first)
        assert len(ipc.encode(ipc.Profile(1, some, first))) < ipc.MOST_BYTES // 2
        found += some
        if not first:
            break
    assert [row[0] for row in found] == list(range(operators))


def test_what_always_runs_behind_another_is_measured_as_well(tmp_path: Path) -> None:
    units = 5
    with in_process(chain_plan(units), tmp_path) as runtime:
        for _ in range(8 * units):
            run_queued(runtime, 1)
            time.sleep(0.002)  # idle, as it is where tuples are few: the first unit finds a measurement due
        (deployed,) = runtime.plans.by_hash.values()
        assert all(cost.tuples for cost in deployed.costs), [cost.tuples for cost in deployed.costs]
