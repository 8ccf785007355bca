"""The most results that one tuple can have at an operator, by its declared selectivity."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from protos.plan.operators import Selectivity

MOST_GIVEN = 1 << 20  # results of one tuple; more count as that


def most_results(selectivity: Selectivity | None) -> int:
    """The most results of one input, as policing lets pass; without `at_most`, the mean for want of a limit."""
    if selectivity is None:
        return 1
    pairs = selectivity.at_most
    if not pairs:
        return max(1, min(MOST_GIVEN, math.ceil(selectivity.mean)))
    most = min(results for _, results in pairs)
    return 1 if all(results <= inputs for inputs, results in pairs) else most
