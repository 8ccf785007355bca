"""Records as arrays, a piece at a time: those that belong to the run's plans, with the joined view's ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coordinator.report.facts.merged_plans import ID_BITS
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.facts.reader import Incarnation
from coordinator.report.landing.record_array import RECORD_DTYPE, Raw, usable_records, value
from protos.record_layout import Field
from protos.records import PLAN_EPOCH_MASK, RECORD_BYTES

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
PIECE = 1 << 18  # records
MOST_NS = 1 << 60  # instants beyond it are damage; clamped, so that differences fit


def pieces(incarnation: Incarnation) -> Iterator[Raw]:
    """All usable records, in order."""
    for chunk in incarnation.chunks:
        for at in range(0, len(chunk), PIECE * RECORD_BYTES):
            raw = np.frombuffer(chunk[at : at + PIECE * RECORD_BYTES], RECORD_DTYPE)
            yield raw[usable_records(raw)]


@dataclass(frozen=True, slots=True)
class Own:
    """Records of the run's plans. number: the plan of each."""

    raw: Raw
    number: Ints

    def __len__(self) -> int:
        return len(self.raw)

    def of(self, kind: int) -> Own:
        """Those of one kind."""
        return self.where(self.raw["kind"] == kind)

    def where(self, chosen: Bools | Ints) -> Own:
        """Some of them."""
        return Own(self.raw[chosen], self.number[chosen])

    def __getitem__(self, field: Field) -> Ints:
        """What records that are all of the field's kind have there, instants within bounds."""
        found = value(self.raw, field)
        if found.dtype.kind == "u":
            found = np.minimum(found, np.uint64(MOST_NS))
        return np.clip(found.astype(np.int64), -MOST_NS, MOST_NS)

    def id(self, field: Field) -> Ints:
        """An id as the joined view has it."""
        return self[field] | self.number << ID_BITS

    def outputs(self, field: Field, plan: PlanView) -> Ints:
        """Ids of outputs, which several plans may share."""
        ids = self.id(field)
        for moved, known in plan.same.items():
            ids[ids == moved] = known
        return ids


def own(raw: Raw, epochs: Mapping[int, int]) -> Own:
    """Those of the run's plans. epochs: the number of the plan that each plan epoch stands for."""
    table = np.full(PLAN_EPOCH_MASK + 1, -1, np.int64)
    for epoch, number in epochs.items():
        table[epoch] = number
    numbers = table[raw["flags"] & PLAN_EPOCH_MASK]
    return Own(raw[numbers >= 0], numbers[numbers >= 0])


__all__ = ["MOST_NS", "Bools", "Ints", "Own", "own", "pieces"]
