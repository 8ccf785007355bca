"""The bench of bounds with a confidence, in small: rows say what was seen, and bounds hold on held-out runs."""

from __future__ import annotations

from fractions import Fraction

from coordinator.spec.quality import Confidence
from infra.bench.confidence.measured_rows import Setting, figures, rows_of

SETTING = Setting(calls=40_000, runs=30, asked=Confidence(Fraction(95, 100)))


def test_rows_hold_on_held_out_runs_and_bounds_are_in_order() -> None:
    found = list(rows_of("mixed", 0.6, 3, "gamma", SETTING, least=500))
    assert found
    for row in found:
        bounds = row.bounds
        assert row.says != "broken"
        assert bounds.largest_ns <= bounds.certain_ns
        assert bounds.confident_ns is not None and row.seen_ns <= bounds.confident_ns <= bounds.certain_ns
        assert bounds.independent_ns is not None and bounds.independent_ns <= bounds.confident_ns
    whole = figures("all", found)
    assert whole.outputs == len(found) and whole.broken == 0
    assert whole.together.results == sum(row.held.results for row in found if row.held is not None)
    assert max(whole.together.most, whole.together_independent.most) < 0.05
