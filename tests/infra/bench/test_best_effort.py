"""More load than there is time for: no urgent result is missed where a bare EDF loop misses none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from infra.bench.shedding import best_effort
from infra.bench.shedding.best_effort import Overload

SHORT = 1.5  # seconds: backlogs reach the deadline of bulk after one
ONE, TWO = Overload(1, 15, 200, seconds=SHORT), Overload(2, 30, 200, seconds=SHORT)


@pytest.mark.parametrize(
    ("of", "seed"),
    [
        (ONE, 3),
        (replace(ONE, units="operator", jitter="uniform:0.5,1.5"), 5),
        (replace(TWO, units="operator", jitter="uniform:0.5,1.5", drops=True), 7),
    ],
)
def test_nothing_urgent_is_missed(of: Overload, seed: int) -> None:
    found = best_effort.row(of, seed)
    assert found.bare.bulk > 10  # the load is too much
    assert found.edf.urgent == found.slack.urgent == 0
    assert found.slack.bulk < found.dropping.bulk + 2  # and not at the cost of what could be served
    if of.drops:
        assert found.edf.bulk < found.dropping.bulk + 2


def test_the_loop_is_edf() -> None:
    """Two tuples of one instant, the later one the more urgent: by hand."""
    of = replace(ONE, bulk_ms=500)
    made = best_effort.planned(of)
    came = [best_effort.Arrival(0, "bulk0"), best_effort.Arrival(1, "bulk1"), best_effort.Arrival(2, "urgent0")]
    assert list(best_effort.edf_loop(of, made, came, False, 1)) == ["bulk0", "urgent0", "bulk1"]
    assert list(best_effort.edf_loop(replace(of, urgent_ms=5), made, came, False, 1)) == ["bulk0", "bulk1"]
    assert list(best_effort.edf_loop(replace(of, bulk_ms=9), made, came, True, 1)) == ["bulk0", "urgent0"]


@pytest.mark.soak
@pytest.mark.parametrize("of", best_effort.workloads())
def test_the_goal(of: Overload) -> None:
    for seed in (1001, 1002, 1003):
        assert best_effort.row(of, seed).excess == 0, f"{of}, seed {seed}"
