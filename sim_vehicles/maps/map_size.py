"""How much a map may hold: what is read of a file is counted, and refused past the bounds."""

from __future__ import annotations

from pathlib import Path

from sim_vehicles.errors import bad_input

MAX_LANES = 100_000  # a large city's
MAX_POINTS = 2_000_000
MAX_FOLLOWING = 64  # of one lane


class MapSize:
    """Counts what one file holds. BadInputError, with the line, past a bound."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lanes = self._points = 0

    def lane(self, line: int) -> None:
        """One lane more begins."""
        self._lanes += 1
        if self._lanes > MAX_LANES:
            self._refuse("lanes", MAX_LANES, line)

    def points(self, count: int, line: int) -> None:
        """So many points more."""
        self._points += count
        if self._points > MAX_POINTS:
            self._refuse("points", MAX_POINTS, line)

    def _refuse(self, what: str, most: int, line: int) -> None:
        raise bad_input(
            "too_large", f"holds more than {most} {what}", "cut the map to the roads that matter",
            file=self._path, line=line,
        )  # fmt: skip
