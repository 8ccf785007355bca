"""Which vehicles come near an ego: asked of boxes around everybody's places, span by span, not of all pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim_vehicles.world.column_track import columns_of
from sim_vehicles.world.motion import MAX_GAP_S, Motion

SPAN_S = 2.0  # of a box; above MAX_GAP_S, so that a motion between two records lies in at most two spans
SLACK_M = 1.0  # for rounding: too many vehicles are found rather than too few

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Box = NDArray[np.float64]  # west, south, -east, -north: all four grow as the box shrinks


class Neighbourhood:
    """The boxes of one recording, made once in columns."""

    def __init__(self, motion: Motion) -> None:
        self._names = sorted(motion.tracks)
        tracks = [motion.tracks[name] for name in self._names]
        self._number = {name: k for k, name in enumerate(self._names)}
        self._radius_m = np.array([np.hypot(one.length_m, one.width_m) / 2 for one in tracks])
        columns = [columns_of(one) for one in tracks]
        of = np.repeat(np.arange(len(tracks)), [len(one) for one in columns])
        t_s = np.concatenate([one.t_s for one in columns])
        x_m = np.concatenate([one.x_m for one in columns])
        y_m = np.concatenate([one.y_m for one in columns])
        self._of, self._span, self._box = _boxes(of, t_s, np.stack([x_m, y_m, -x_m, -y_m]))
        begins = np.flatnonzero(np.diff(self._of, prepend=-1))
        self._boxes_of = np.append(begins, len(self._of))  # of each vehicle the first one
        self._whole = np.minimum.reduceat(self._box, begins, axis=1)
        self._order = np.lexsort((self._box[0], self._span))
        self._span_in_order, self._west_in_order = self._span[self._order], self._box[0][self._order]
        self._widest_m = float((-self._box[2] - self._box[0]).max())

    def within(self, ego: str, range_m: float) -> list[str]:
        """Those that are within range_m of the ego at one time, by id; perhaps some that just are not."""
        found = np.zeros(len(self._names), dtype=np.bool_)
        for k in self._own(ego):
            others = self._of_span(int(self._span[k]), self._box[:, k], range_m + SLACK_M)
            found[self._of[others[self._meet(k, others, range_m + SLACK_M)]]] = True
        return self._named(found, ego)

    def on_path(self, ego: str, before_s: float, after_s: float) -> list[str]:
        """Those of whom some ground of the ego's path is shared, from before_s before the ego's first record to after_s
        after the ego is there; by id, perhaps some that just are not."""
        own = self._own(ego)
        reach_m = self._radius_m + self._radius_m[self._number[ego]] + SLACK_M
        number = self._number[ego]
        whole = (self._whole + self._whole[(2, 3, 0, 1), number][:, None] <= reach_m).all(axis=0)
        boxes = np.flatnonzero(whole[self._of])
        boxes = boxes[self._span[boxes] >= np.floor(self._span[own[0]] - before_s / SPAN_S) - 1]
        shared = np.zeros(len(boxes), dtype=np.bool_)
        for k in own:
            in_time = self._span[boxes] <= self._span[k] + np.ceil(after_s / SPAN_S) + 1
            shared |= in_time & self._meet(k, boxes, reach_m[self._of[boxes]])
        found = np.zeros(len(self._names), dtype=np.bool_)
        found[self._of[boxes[shared]]] = True
        return self._named(found, ego)

    def _own(self, ego: str) -> Indices:
        number = self._number[ego]
        return np.arange(self._boxes_of[number], self._boxes_of[number + 1])

    def _of_span(self, span: int, box: Box, range_m: float) -> Indices:
        """The boxes of this span, of those that begin too far east or west only few."""
        begin, end = np.searchsorted(self._span_in_order, [span, span + 1])
        wests = self._west_in_order[begin:end]
        first, last = np.searchsorted(wests, [box[0] - range_m - self._widest_m, range_m - box[2]])
        return self._order[begin + first : begin + last]

    def _meet(self, k: int, others: Indices, range_m: float | Floats) -> NDArray[np.bool_]:
        """Whether these boxes and the k-th are nowhere further apart than range_m, east-west and north-south."""
        return np.asarray((self._box[:, others] + self._box[(2, 3, 0, 1), k][:, None] <= range_m).all(axis=0))

    def _named(self, found: NDArray[np.bool_], ego: str) -> list[str]:
        return [name for name in (self._names[k] for k in np.flatnonzero(found).tolist()) if name != ego]


def _boxes(of: Indices, t_s: Floats, corners: Box) -> tuple[Indices, Indices, Box]:
    """Vehicle, span and box, vehicle by vehicle. Each box holds also the way to the record before its span and to the
    one after it, where the vehicle was not away."""
    span = np.floor(t_s / SPAN_S).astype(np.int64)
    begins = np.flatnonzero((np.diff(of, prepend=-1) != 0) | (np.diff(span, prepend=span[0] - 1) != 0))
    box = np.minimum.reduceat(corners, begins, axis=1)
    after = begins[1:]
    goes_on = np.flatnonzero((of[after] == of[after - 1]) & (t_s[after] - t_s[after - 1] <= MAX_GAP_S))
    box[:, goes_on] = np.minimum(box[:, goes_on], corners[:, after[goes_on]])
    box[:, goes_on + 1] = np.minimum(box[:, goes_on + 1], corners[:, after[goes_on] - 1])
    return of[begins], span[begins], box
