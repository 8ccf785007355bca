"""Tuples that went over links: each number names one tuple, and its stamp is not before it was SENT."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coordinator.report.facts.problems import Fault
from coordinator.report.witness.instants import Found
from coordinator.report.witness.keys import MOST, Pairs, codes
from coordinator.report.witness.rows import Rows
from protos import records as rec
from protos.records import Received, Sent


def compare(found: Rows, by_number: Rows) -> Iterator[Found]:
    """Rows of links that contradict the other end. by_number: the SENT rows of some numbers."""
    sent, received = found.of(rec.SENT), found.of(rec.RECEIVED)
    if len(by_number):
        numbered = codes(by_number.inc, by_number.ref, by_number[Sent.link_seq])
        yield Fault.LINK_NUMBER, by_number.where(np.bincount(numbered)[numbered] > 1)
    here = (received.ref, received.node, received.stream, received.lineage, received.ordinal)
    there = (sent.node, sent.ref, sent.stream, sent.lineage, sent.ordinal)
    known = Pairs(here, there).any()
    left = Pairs((*here, received[Received.link_seq]), (*there, sent[Sent.link_seq])).least(sent.at_ns)
    yield Fault.LINK_NUMBER, received.where(known & (left == MOST))
    yield Fault.BEFORE_ITS_CAUSE, received.where((left != MOST) & (received[Received.sent_ns] < left))
