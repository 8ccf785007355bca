"""Balance sheet of the admitted-tuples ledger: entries per consumer, task instance and link."""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from coordinator.report.counts import Rank
from coordinator.report.facts.completeness import Trace
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.facts.problems import Problem
from protos.records import Record

Row = tuple[int, Record]  # incarnation, record: of this plan and of a kind that the ledger reads


class Bucket(NamedTuple):
    """All that one consumer of one incarnation owes to one lineage; ordinals are counted inside."""

    incarnation: int
    consumer: int
    source: int
    epoch: int
    seq: int


@dataclass
class Cell:
    """Of one ordinal: arrivals with a recorded ordinal, arrivals that a RAN only counts, and ends."""

    fixed: int = 0
    free: int = 0
    ends: int = 0
    parents: set[int] = field(default_factory=set)  # ordinals of those RANs


@dataclass
class Instance:
    """What all RAN and LOST records of one task instance say together."""

    outputs: int = 0  # bytes of the outputs words, or-ed
    finals: int = 0
    lost: int = 0
    shed: int = 0  # results that policing shed


class Miss(NamedTuple):
    """A tuple that came to an early end: `reach` says which outputs miss it, and whether surely."""

    rank: Rank
    node: int
    consumer: int
    given_exits: int  # outputs word: exits that had given their output before
    source: int
    epoch: int
    seq: int
    ordinal: int


@dataclass
class Ledger:
    """The books of one run while they are written."""

    plan: PlanView
    traces: list[Trace]
    buckets: dict[Bucket, dict[int, Cell]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(Cell)))
    instances: dict[tuple[int, ...], Instance] = field(default_factory=lambda: defaultdict(Instance))
    # link and tuple -> records of each incarnation, of the sending and of the receiving node
    sent: dict[tuple[int, ...], dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    received: dict[tuple[int, ...], dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    outcomes: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    problems: list[Problem] = field(default_factory=list)
    misses: list[Miss] = field(default_factory=list)
    obligations: int = 0
    suspended: frozenset[tuple[int, int, int]] = frozenset()  # lineages that took longer than their clock says

    @cached_property
    def doubted(self) -> frozenset[tuple[int, int, int]]:
        """Once it is settled: the lineages that something contradicts."""
        return frozenset((p.source, p.epoch, p.seq) for p in self.problems)

    def node(self, incarnation: int) -> int:
        """The number of the node that an incarnation ran on."""
        return self.traces[incarnation].incarnation.node
