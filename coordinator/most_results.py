"""How many results one tuple can have at an operator, by its declared selectivity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

MOST_GIVEN = 1 << 20  # results of one tuple; more count as that


def most_results(selectivity: Mapping[str, Any] | None) -> int:
    """The most results of one input, as policing lets pass; without `at_most`, the mean for want of a limit."""
    if not selectivity:
        return 1
    pairs = selectivity.get("at_most") or ()
    if not pairs:
        mean: float = selectivity.get("mean", 1)
        return max(1, min(MOST_GIVEN, math.ceil(mean)))
    most: int = min(out for _, out in pairs)
    return 1 if all(out <= into for into, out in pairs) else most
