"""Results of the contest: crashes and impact speeds of each way at each load; the published ones lie beside this file.

`python -m infra.contest` computes them, `make bench-crossing PUBLISH=1` publishes them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from protos import json_shape
from protos.json_shape import ShapeError
from sim_vehicles.errors import bad_input

PUBLISHED = Path(__file__).with_name("published.json")


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate, and the 95 % interval around it."""

    value: float
    low: float
    high: float

    def apart_from(self, other: Interval) -> bool:
        """Whether the two intervals do not overlap."""
        return self.high < other.low or other.high < self.low


@dataclass(frozen=True, slots=True)
class Crashes:
    """Of one way at one load. share: of encounters with a crash; impact_kmh: the median of those that crashed, None
    without any; speed_kmh: the mean over all encounters, 0 for those that ended well."""

    encounters: int
    crashes: int
    share: Interval
    impact_kmh: Interval | None
    speed_kmh: Interval


@dataclass(frozen=True, slots=True)
class Pair:
    """Two ways in the same encounters: in how many both crashed, and each alone. by_chance: how likely the two that
    differ are split so unevenly if both were as good (McNemar's exact test, two-sided)."""

    both: int
    only_first: int
    only_second: int
    by_chance: float


@dataclass(frozen=True, slots=True)
class WayAtLoad:
    """A way's crashes at a load. pair: with the way that all are compared with, which is the first of the two; None
    for that way itself."""

    load: float
    way: str
    crashes: Crashes
    pair: Pair | None


@dataclass(frozen=True, slots=True)
class ContestResults:
    """date: of the run, ISO 8601; revision: of the code, shortened; seed: the encounters are drawn by; encounters: of
    all loads together; compared_with: the way that every pair begins with."""

    date: str
    revision: str
    seed: int
    encounters: int
    compared_with: str
    rows: tuple[WayAtLoad, ...]

    @property
    def loads(self) -> tuple[float, ...]:
        """All that were run, in the order of the rows."""
        return tuple(dict.fromkeys(row.load for row in self.rows))

    @property
    def ways(self) -> tuple[str, ...]:
        """All that were run, in the order of the rows."""
        return tuple(dict.fromkeys(row.way for row in self.rows))


def read_results(path: Path = PUBLISHED) -> ContestResults:
    """Raises BadInputError where the file is not there or not complete."""
    try:
        return json_shape.read(ContestResults, json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise bad_input("unreadable", f"cannot be read: {error.strerror}", "make bench-crossing", file=path) from None
    except (json.JSONDecodeError, ShapeError) as bad:
        raise bad_input("not_complete", f"is not complete: {bad}", "make bench-crossing", file=path) from None


def write_results(results: ContestResults, path: Path) -> None:
    """As `read_results` reads them."""
    path.write_text(json.dumps(json_shape.write(results), indent=1) + "\n", encoding="utf-8")


__all__ = [
    "PUBLISHED", "ContestResults", "Crashes", "Interval", "Pair", "WayAtLoad", "read_results", "write_results",
]  # fmt: skip
