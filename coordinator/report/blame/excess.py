"""Tuples beyond what their source declares, as a leaky bucket finds them: those that a neighbour's burst is made of.

A source is held against its declared arrivals by the instants of admission, by its client's stamps and by the tuples'
origins, and the reading counts in which least is beyond: what a node takes late and all at once, as it stood still, was
not sent so. Half a burst more than declared is no accusation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from coordinator.report.blame.missed import Arrivals
from coordinator.report.blame.planned import SECOND_NS, Curve, Planned
from coordinator.report.blame.record_pieces import Bools, Ints
from coordinator.report.facts.mixing import Codes

MARGIN = 0.5  # of the declared burst


@dataclass(frozen=True, slots=True)
class Excess:
    """Lineages beyond what was declared, sorted, and the source of each."""

    code: Codes
    source: Ints

    def of(self, codes: Codes) -> Ints:
        """The source of each lineage that is beyond; -1 of others."""
        if not len(self.code):
            return np.full(len(codes), -1, np.int64)
        at = np.minimum(np.searchsorted(self.code, codes), len(self.code) - 1)
        found: Ints = np.where(self.code[at] == codes, self.source[at], -1)
        return found


def excess(arrivals: Mapping[int, Arrivals], planned: Planned) -> Excess:
    """Of all sources of a run."""
    codes, sources = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    for source, came in arrivals.items():
        curve = planned.curve(planned.source_name(source))
        beyond = None if curve is None else _beyond(came, curve)
        if beyond is not None and beyond.any():
            codes.append(came.code[beyond])
            sources.append(np.full(int(beyond.sum()), source, np.int64))
    code, source_ = np.concatenate(codes), np.concatenate(sources)
    order = np.argsort(code, kind="stable")
    return Excess(code[order], source_[order])


def _beyond(came: Arrivals, curve: Curve) -> Bools | None:
    readings = [came.at_ns, came.origin_ns] + ([came.sent_ns] if bool(came.sent_ns.all()) else [])
    found: Bools | None = None
    for instants in readings:
        order = np.argsort(instants, kind="stable")
        if not _violated(instants[order], curve):
            return None
        beyond = np.zeros(len(instants), np.bool_)
        beyond[order] = _bucket(instants[order], curve)
        if found is None or beyond.sum() < found.sum():
            found = beyond
    return found


def _most(curve: Curve) -> float:
    return curve.burst + max(1.0, MARGIN * curve.burst)


def _violated(instants: Ints, curve: Curve) -> bool:
    """Whether there is a span with more than declared, by the level of a bucket that nothing is kept out of."""
    drained = (instants - instants[0]) * (curve.rate / SECOND_NS) if len(instants) else np.zeros(0)
    number = np.arange(len(instants))
    level = number + 1 - drained - np.minimum.accumulate(number - drained) if len(instants) else drained
    return bool((level > _most(curve)).any())


def _bucket(instants: Ints, curve: Curve) -> Bools:
    """Those that find the bucket full and stay out."""
    beyond, level, before_ns, most = [], 0.0, 0, _most(curve)
    per_ns = curve.rate / SECOND_NS
    for at_ns in instants.tolist():
        level = max(0.0, level - (at_ns - before_ns) * per_ns) + 1
        before_ns = at_ns
        beyond.append(level > most)
        if level > most:
            level -= 1
    return np.array(beyond, np.bool_)
