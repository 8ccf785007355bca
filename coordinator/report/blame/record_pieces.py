"""Records of the run's plans as columns, a piece at a time: what is in memory is a piece, for a run of any size.

Ids are those of the joined view (`merged_plans.py`). A lineage, or a result, is one number mixed from its parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coordinator.report.facts.merged_plans import ID_BITS, MOST_PLANS
from coordinator.report.facts.mixing import Codes, mixed
from coordinator.report.facts.raw import raw_pieces
from coordinator.report.facts.reader import Incarnation
from coordinator.report.landing.record_array import RECORD_DTYPE, Raw, usable_records, value
from protos import records as rec
from protos.record_layout import Field

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
BEYOND_NS = 1 << 60  # instants are clamped to it, so that damage cannot overflow


@dataclass(frozen=True, slots=True)
class Piece:
    """Some records. place: among all of the incarnation; number: of their plan."""

    raw: Raw
    place: Ints
    number: Ints

    def of(self, *kinds: int) -> Piece:
        """Those of these kinds."""
        return self.where(np.isin(self.raw["kind"], kinds))

    def where(self, chosen: Bools) -> Piece:
        """Those that are chosen."""
        return Piece(self.raw[chosen], self.place[chosen], self.number[chosen])

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, field: Field) -> Ints:
        """What a kind has there; ids are those of the record's own plan."""
        return value(self.raw, field).astype(np.int64)

    def instant(self, field: Field) -> Ints:
        """An instant, clamped."""
        return np.clip(self[field], -BEYOND_NS, BEYOND_NS)

    def id(self, field: Field) -> Ints:
        """An id as the joined view has it."""
        return self[field] | self.number << ID_BITS

    @property
    def ref(self) -> Ints:
        """`ref` as the joined view has it."""
        return self.raw["ref"].astype(np.int64) | self.number << ID_BITS

    @property
    def source(self) -> Ints:
        """Of the lineage, as the joined view has it."""
        return self.raw["source"].astype(np.int64) | self.number << ID_BITS

    @property
    def flagged(self) -> Bools:
        """Whether FLAG is set."""
        found: Bools = self.raw["flags"] >= rec.FLAG
        return found

    @property
    def lineage(self) -> Codes:
        """Of each record."""
        return mixed(self.source, self.raw["epoch"], self.raw["seq"])


def pieces(incarnation: Incarnation, epochs: Mapping[int, int], kinds: tuple[int, ...]) -> Iterator[Piece]:
    """The records of these kinds, of the run's plans, in the order in which they were written."""
    numbers = np.full(rec.PLAN_EPOCH_MASK + 1, -1, np.int64)
    for epoch, number in epochs.items():
        numbers[epoch] = number
    for before, raw in raw_pieces(incarnation):
        number = numbers[raw["flags"] & rec.PLAN_EPOCH_MASK]
        chosen = usable_records(raw) & np.isin(raw["kind"], kinds) & (number >= 0)
        if chosen.any():
            yield Piece(raw[chosen], before + np.flatnonzero(chosen), number[chosen])


@dataclass(frozen=True, slots=True)
class Notes:
    """What an incarnation tells beside tuples: its PLAN, CLOCK and LOAD records."""

    plans: Raw
    clocks: Raw
    loads: Raw

    @classmethod
    def of(cls, incarnation: Incarnation) -> Notes:
        """One look at all records."""
        found: dict[int, list[Raw]] = {rec.PLAN: [], rec.CLOCK: [], rec.LOAD: []}
        for _, raw in raw_pieces(incarnation):
            told = raw[usable_records(raw) & np.isin(raw["kind"], tuple(found))]
            for kind, parts in found.items():
                parts.append(told[told["kind"] == kind])
        return cls(*(np.concatenate([np.zeros(0, RECORD_DTYPE), *parts]) for parts in found.values()))

    def epochs(self, numbers: Mapping[int, int]) -> dict[int, int]:
        """Which of the run's plans each plan epoch stands for."""
        found: dict[int, int] = {}
        stamps, epochs = value(self.plans, rec.Plan.stamp).tolist(), value(self.plans, rec.Plan.plan_epoch).tolist()
        for epoch, stamp in zip(epochs, stamps, strict=True):
            if stamp in numbers:
                low = epoch & rec.PLAN_EPOCH_MASK
                found[low] = min(numbers[stamp], found.get(low, MOST_PLANS))
        return found
