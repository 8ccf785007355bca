"""When instances ended, by incarnation and unit: found by one look at a run, if anything asks for it at all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coordinator.report.facts.mixing import Codes, mixed
from coordinator.report.witness.instants import instances
from coordinator.report.witness.keys import Bools, Ints
from coordinator.report.witness.rows import Rows


class InstanceEnds:
    """8 bytes of memory for each, once they are asked for."""

    def __init__(self, rows: Iterator[Rows]) -> None:
        self._rows = rows
        self._known: Codes | None = None

    def has(self, inc: Ints, unit: Ints, at_ns: Ints) -> Bools:
        """Whether an instance of that unit ended then."""
        if self._known is None:
            parts = [np.unique(_codes(rows)) for rows in self._rows]
            self._known = np.unique(np.concatenate([np.zeros(0, np.uint64), *parts]))
        found: Bools = np.isin(mixed(inc, unit, at_ns), self._known)
        return found


def _codes(rows: Rows) -> Codes:
    ran = instances(rows)
    return mixed(ran.rows.inc, ran.rows.ref, ran.end)


__all__ = ["InstanceEnds"]
