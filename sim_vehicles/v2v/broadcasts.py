"""Everything that all stations of a recording broadcast, as arrays: computed once, saved, and read by many runs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sim_vehicles.v2v.congestion import CAM_BYTES, STATES, cpm_bytes
from sim_vehicles.v2v.stations import CAM, CPM

KINDS = (CAM, CPM)
AWAY = 255  # instead of a state: the station is not there

Numbers = NDArray[np.int64]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Broadcasts:
    """Messages by instant, station and kind; message i has the objects first[i] to before first[i + 1].

    names: the vehicles' ids; `station` and `objects` count in them, `kind` in `KINDS`. span_ns: from when on, up to
    before when. A CAM has one object, its station; a CPM may have none. measured_ns: when the objects were measured.
    Every 100 ms of the span and for every vehicle: `states`, of congestion control (places in `congestion.STATES`, or
    `AWAY`), and `busy_percent`, the busy ratio that it measured last.
    """

    names: NDArray[np.str_]
    span_ns: Numbers
    at_ns: Numbers
    station: Numbers
    kind: Bytes
    measured_ns: Numbers
    first: Numbers
    objects: Numbers
    states: Bytes
    busy_percent: Bytes

    def __len__(self) -> int:
        return len(self.at_ns)

    @property
    def counts(self) -> Numbers:
        """How many objects each message has."""
        return np.diff(self.first)

    @property
    def sizes(self) -> Numbers:
        """Bytes of each message."""
        return np.where(self.kind == KINDS.index(CAM), CAM_BYTES, cpm_bytes(self.counts))

    def state_shares(self) -> dict[str, float]:
        """Share of the time that stations are in each state of congestion control."""
        there = self.states[self.states != AWAY]
        return {name: float(np.mean(there == i)) for i, name in enumerate(STATES)}

    def save(self, path: Path) -> None:
        """Writes a compressed .npz."""
        np.savez_compressed(path, **{field.name: getattr(self, field.name) for field in fields(self)})


def load_broadcasts(path: Path) -> Broadcasts:
    """Reads what `save` wrote. OSError, ValueError or KeyError if it is no such file."""
    with np.load(path, allow_pickle=False) as stored:
        return Broadcasts(**{field.name: stored[field.name] for field in fields(Broadcasts)})
