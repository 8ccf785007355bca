"""The comparison with the bound: every policy at or above it, on the paper's query and on generated ones."""

import pytest

from infra.bench.planner.instances import SHAPES
from infra.bench.shedding.regret import POLICIES, TWO, figure7, generated, table


@pytest.mark.parametrize("outputs", [None, TWO])
def test_figure_7_is_compared(outputs: tuple[str, ...] | None) -> None:
    found = figure7(28, 7, 1, outputs)
    assert all(missed >= found.bound for missed in found.missed)
    edf, slack = found.missed[POLICIES.index("edf")], found.missed[POLICIES.index("slack")]
    assert slack < edf


@pytest.mark.parametrize("shape", SHAPES)
def test_generated_queries_are_compared(shape: str) -> None:
    rows = [generated(shape, scale, 7, 1) for scale in (1.0, 3.0)]
    assert all(missed >= each.bound for each in rows for missed in each.missed)
    assert table("t", "n", ["a", "b"], rows, 1).row_count == 3
