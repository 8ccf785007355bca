"""Progress of a search while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """`nlr`, `traffic` (tuples per burst) of the best plan so far; `held` False: it misses a deadline, then `otherwise`
    is said; proven lower bounds of both, None while unknown."""

    seconds: float
    held: bool
    nlr: float
    traffic: float
    nlr_bound: float | None
    traffic_bound: float | None
    otherwise: str = "no plan yet"

    def sentence(self) -> str:
        """One line for people."""
        if not self.held:
            return self.otherwise
        text = f"traffic {self.traffic:g} tuples per burst"
        if self.traffic_bound is not None:
            text += f", at least {self.traffic_bound:g} (gap {relative_gap(self.traffic, self.traffic_bound):.2%})"
        if self.nlr or self.nlr_bound:
            text = f"NLR {self.nlr:g}, at least {self.nlr_bound or 0.0:g}; {text}"
        return text


def relative_gap(value: float, bound: float) -> float:
    """(value - bound) / value; 0 for 0."""
    return (value - bound) / value if value > bound else 0.0


Watch = Callable[[Progress], None]
