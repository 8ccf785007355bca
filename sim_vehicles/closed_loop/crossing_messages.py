"""What became of the messages about the crossing vehicle, until the ego knew of it.

A plan that misses no deadline may still have refused, shed or lost what mattered. So a verdict says beside the outcome
how many of these messages were offered, and how many of them the system did not work on to the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from protos.json_shape import omitted
from protos.records import POLICY_ARRIVALS, POLICY_SELECTIVITY, Lost, Ran, Record, Shed
from protos.vehicle_pb2 import Cpm
from sim_vehicles.world.sense import Burst

Lineage = tuple[int, int, int]  # source, epoch, seq
POLICED = (POLICY_ARRIVALS, POLICY_SELECTIVITY)


@dataclass(frozen=True, slots=True)
class CrossingMessages:
    """V2V tuples about the crossing vehicle that were offered until the ego knew of it; all, where it never did.
    admitted: their lineages. policed: beyond what a source or an operator declared; shed: by any other policy; lost: by
    a failure, a full queue, a partner that did not come; each tuple counts once, as the first of these. None: not known
    without the trace."""

    offered: int
    refused: int
    admitted: tuple[Lineage, ...]
    policed: int | None = None
    shed: int | None = None
    lost: int | None = omitted()

    @property
    def left_out(self) -> int:
        """Refused, policed, shed or lost, as far as it is known."""
        return self.refused + (self.policed or 0) + (self.shed or 0) + (self.lost or 0)

    @property
    def fates(self) -> Mapping[str, int | None]:
        """By what became of them, how many were not worked on to the end; None: not known."""
        return {"refused": self.refused, "policed": self.policed, "shed": self.shed, "lost": self.lost}


@dataclass(frozen=True, slots=True)
class Offered:
    """A V2V tuple about the crossing vehicle. at_ns: of the recording; admitted: its lineage, None: it was refused, or
    nobody answered."""

    at_ns: int
    admitted: Lineage | None
    refused: bool


def _about(burst: Burst, crossing: int | None) -> list[bool]:
    """Of each value of a burst, whether it is a V2V tuple about the vehicle of that number."""
    return [isinstance(value, Cpm) and value.object.object_id == crossing for value in burst.values]


def offered(bursts: Sequence[Burst], source: str, number: int, epoch: int, refused: Sequence[int], crossing: int | None
) -> list[Offered]:  # fmt: skip
    """Of a source that got these bursts in this order. number: the source's; refused: numbers of the tuples that it
    refused, counted from 1."""
    found: list[Offered] = []
    count, seq, without = 0, 0, frozenset(refused)
    for burst in bursts:
        if burst.source != source:
            continue
        for mine in _about(burst, crossing):
            count += 1
            seq += count not in without
            if mine:
                admitted = None if count in without else (number, epoch, seq)
                found.append(Offered(burst.at_ns, admitted, admitted is None))
    return found


def answered(burst: Burst, number: int, answers: Sequence[object], crossing: int | None) -> list[Offered]:
    """Of a burst that live agents were sent. number: its source's; answers: one per value, with a `seq` where it was
    admitted, with a `why` where it was refused."""
    found = []
    for mine, answer in zip(_about(burst, crossing), answers, strict=True):
        if mine:
            refused, seq = getattr(answer, "why", None) is not None, getattr(answer, "seq", None)
            admitted = None if refused or seq is None else (number, getattr(answer, "epoch", 0), seq)
            found.append(Offered(burst.at_ns, admitted, refused))
    return found


def until_known(tuples: Iterable[Offered], knew_s: float | None) -> CrossingMessages:
    """Of those that were offered until the ego knew of the crossing vehicle; None: it never did."""
    mine = [one for one in tuples if knew_s is None or one.at_ns <= knew_s * 1e9]
    lineages = tuple(one.admitted for one in mine if one.admitted is not None)
    return CrossingMessages(len(mine), sum(one.refused for one in mine), lineages)


def traced(messages: CrossingMessages, records: Iterable[Record]) -> CrossingMessages:
    """With what a trace says of them. records: of these lineages at least."""
    wanted = frozenset(messages.admitted)
    policed: set[Lineage] = set()
    shed: set[Lineage] = set()
    lost: set[Lineage] = set()
    for record in records:
        lineage = (record.source, record.epoch, record.seq)
        if lineage not in wanted:
            continue
        if isinstance(record, Ran) and record.policed_results:
            policed.add(lineage)
        elif isinstance(record, Shed):
            (policed if record.policy in POLICED else shed).add(lineage)
        elif isinstance(record, Lost):
            lost.add(lineage)
    return replace(messages, policed=len(policed), shed=len(shed - policed), lost=len(lost - shed - policed))


__all__ = ["CrossingMessages", "Lineage", "Offered", "answered", "offered", "traced", "until_known"]
