"""What a report says of a bound that a share of the results is to keep."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from coordinator.report.page import bound_violation
from coordinator.report.summary.confidence_counts import held_share


def _report(results: int, exceeding: int, share: float | None) -> Any:
    output = SimpleNamespace(
        above_bound=exceeding,
        above_bound_by_ns=2_000_000 if exceeding else None,
        bound_ns=12_000_000,
        delivered=results,
        held=held_share(share, results, exceeding) if share is not None else None,
    )
    return cast(Any, SimpleNamespace(outputs={"arm": output}, earlier=(), cost_overruns=None))


@pytest.mark.parametrize(
    ("results", "exceeding", "said"),
    [
        (5000, 0, "at most 0.06 % do, with 95 %, and 0.1 % may"),
        (5000, 30, "at least 0.43 % do, with 95 %, and 0.1 % may: costs are not as they were measured"),
        (200, 0, "between 0.00 % and 1.49 % do, so this run does not tell; 2995 results without one beyond"),
        (5000, 5, "between 0.04 % and 0.21 % do, so this run does not tell"),
    ],
)
def test_a_run_says_as_much_as_its_size_can_tell(results: int, exceeding: int, said: str) -> None:
    (line,) = bound_violation.sentences(_report(results, exceeding, 0.999))
    assert f"{exceeding} of {results} results took longer than 12 ms" in line
    assert said in line


def test_without_a_confidence_only_results_beyond_a_bound_are_told() -> None:
    assert bound_violation.sentences(_report(200, 0, None)) == []
    assert (
        "took longer than the plan's bound, 12 ms, by up to 2 ms" in bound_violation.sentences(_report(200, 1, None))[0]
    )
