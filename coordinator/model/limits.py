"""Limits of a solver, and its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Solver = Literal["highs", "gscip"]


@dataclass(frozen=True)
class Limits:
    """How long and with what to solve."""

    seconds: float = 60.0
    seed: int = 0
    solver: Solver = "highs"
