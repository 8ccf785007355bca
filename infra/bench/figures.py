"""Figures of a benchmark: a value, its unit, the goal, and how it was measured."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from statistics import median


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. goal: the largest value that is good enough; None: published without a goal."""

    name: str
    value: float
    unit: str
    goal: float | None
    how: str

    @property
    def ok(self) -> bool:
        """Whether the goal is met."""
        return self.goal is None or self.value <= self.goal


def paired_ratio(measured: Callable[[], float], floor: Callable[[], float], repetitions: int) -> tuple[float, float]:
    """(median of the ratios measured / floor, median of the floor), from alternating repetitions in one run.

    Each ratio is of two neighbours in time, so that a processor that changes its speed meanwhile changes both.
    """
    pairs = [(floor(), measured()) for _ in range(repetitions)]
    return median(pair[1] / pair[0] for pair in pairs), median(pair[0] for pair in pairs)


def percentile(values: list[int], share: float) -> int:
    """Nearest-rank percentile; share in (0, 1]."""
    ordered = sorted(values)
    return ordered[max(0, ceil(len(ordered) * share) - 1)]


def write(figures: list[Figure], path: Path) -> None:
    """bench.json: {name: {value, unit, goal, ok, how}}."""
    _write(_content(figures), path)


def merge(figures: list[Figure], path: Path) -> None:
    """As `write`, beside what the file has of other figures."""
    before = json.loads(path.read_text()) if path.exists() else {}
    _write(before | _content(figures), path)


def _content(figures: list[Figure]) -> dict[str, dict[str, object]]:
    return {
        each.name: {key: value for key, value in asdict(each).items() if key != "name"} | {"ok": each.ok}
        for each in figures
    }


def _write(content: dict[str, dict[str, object]], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n")
