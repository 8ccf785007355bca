"""The records of some lineages as objects: those that lie near a miss, and no others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from coordinator.report.blame.missed import KINDS
from coordinator.report.blame.record_pieces import pieces
from coordinator.report.facts.merged_plans import moved
from coordinator.report.facts.mixing import Codes
from coordinator.report.facts.reader import Incarnation, Run
from protos.records import RECORD_BYTES, Record, unpack_record


class NearRecord(NamedTuple):
    """A record with the ids of the joined view, and who wrote it."""

    incarnation: Incarnation
    place: int
    record: Record


Near = Mapping[int, list[NearRecord]]  # by the code of a lineage, in the order of incarnations and places


def near(run: Run, epochs: Mapping[int, Mapping[int, int]], codes: Codes) -> Near:
    """All records of these lineages."""
    found: dict[int, list[NearRecord]] = defaultdict(list)
    if not len(codes):
        return found
    wanted = np.unique(codes)
    for incarnation in run.incarnations:
        for piece in pieces(incarnation, epochs[incarnation.number], KINDS):
            lineages = piece.lineage
            at = np.minimum(np.searchsorted(wanted, lineages), len(wanted) - 1)
            mine = piece.where(wanted[at] == lineages)
            data = mine.raw.tobytes()
            for place, number, code, where in zip(
                mine.place.tolist(), mine.number.tolist(), mine.lineage.tolist(), range(0, len(data), RECORD_BYTES),
                strict=True,
            ):  # fmt: skip
                record = unpack_record(data, where)
                found[code].append(
                    NearRecord(incarnation, place, moved(record, number, run.plan) if number else record)
                )
    return found
