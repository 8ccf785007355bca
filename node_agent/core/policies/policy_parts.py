"""The five parts of a policy: functions, and where they remember something objects of the classes here.

deadline rule   when a job should be done; recorded with every instance
order           what runs next: the job with the least deadline, or the unit of least rank; ties go to the earlier
                release, then the earlier arrival
batch former    how many consecutive jobs of the chosen unit run as one instance, or without another decision
dropper         which jobs are not worth running any more
tuner           adapts the other parts from what is measured

A deadline rule is affine in the release (release + a constant of the unit), a rule that remembers the unit's earlier
deadlines and does not decrease, or a function of unit and lineage. Under the first two a unit's queue is FIFO; under
the third it is a heap.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, auto
from typing import Protocol

from node_agent.core.lineage import Lineage
from node_agent.core.meters import NodeMeter
from node_agent.core.model import DeadlineRule, Job, Queue
from node_agent.core.model import Unit as TaskUnit
from node_agent.core.plan import DEFAULTS, Parameters, Unit
from node_agent.problems import UnusableValueError

Offset = Callable[[Unit], int]  # the constant that is added to the release
Rule = Callable[[Unit], DeadlineRule]  # makes one per unit
Sifter = Callable[[list[Job], int], int]  # how many of the first jobs of a batch are shed, at that instant


class Key:
    """A deadline that the release does not enter."""

    __slots__ = ()

    def key_ns(self, unit: TaskUnit, lineage: Lineage) -> int:
        """Of a tuple at that unit."""
        raise NotImplementedError


class Order:
    """Ranks units. A unit's rank is asked when a job becomes the head of its queue, and holds for as long as that job
    waits: one heap of heads, nothing is ranked anew."""

    __slots__ = ()

    def place(self, head: Job) -> None:
        """Gives it its rank, the least of which runs next, and if need be `tie`, by which the least of equal ranks
        does. Both are of 64 bits. `head.unit.meter` is the unit's meter."""
        raise NotImplementedError

    def chosen(self, rank: int) -> None:
        """The unit of that rank runs now. Nothing follows from it, if nothing is said here."""


class BatchFormer:
    """Forms batches."""

    __slots__ = ()

    def behind(self, head: Job, queue: Queue) -> int:
        """How many jobs of the queue, which are behind that head, join its instance."""
        raise NotImplementedError


class Tuner(Protocol):
    """Forms batches by what it has measured: it is asked and told of every instance. Compiled code takes `Fixed` of
    fixed_batches.py, and what has that base."""

    def loaded(self) -> None:
        """The units of the engine have changed."""

    def behind(self, head: Job, queue: Queue) -> int:
        """As a batch former."""

    def eligible_ns(self, head: Job) -> int:
        """When the batch of that head is complete. Until then complete ones of other units come first."""

    def ended(self, unit: TaskUnit, jobs: int, ran_ns: int, decision_ns: int) -> None:
        """An instance of that many of the unit's jobs ran that long; choosing it took that long. The meter knows it."""


class Dropper:
    """Sheds jobs that are not worth running any more."""

    __slots__ = ()

    def judge(self, job: Job, at_ns: int, ahead: int) -> int:
        """By which policy of a SHED record the job is shed, at that instant of a decision; 0: it runs. ahead: jobs
        before it in its instance. A head is asked first."""
        raise NotImplementedError


class Stay:
    """Whether the unit that has just run goes on with its next job without a decision."""

    __slots__ = ()

    def begins(self, job: Job, other: Job | None, at_ns: int) -> None:
        """This job was chosen; `other`: the most urgent head of the other units."""

    def goes_on(self, head: Job, other: Job | None, at_ns: int) -> bool:
        """Asked after every instance, when all arrivals up to `at_ns` are in."""
        raise NotImplementedError


class Asked(Flag):
    """What the parts of a policy ask the meters, which record nothing else.

    COSTS: of tuples and decisions, and how many tuples ended and missed. GAPS: between a unit's arrivals. RESULTS: how
    many leave by each exit, and the work that is over."""

    COSTS = auto()
    GAPS = auto()
    RESULTS = auto()


EVERYTHING = Asked.COSTS | Asked.GAPS | Asked.RESULTS


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy by its parts. Exactly one of `offset`, `rule` and `key` gives the deadline."""

    name: str
    offset: Offset | None = None
    rule: Rule | None = None
    key: Key | None = None
    order: Callable[[NodeMeter], Order] | None = None  # makes one per engine; None: by deadline
    batch: BatchFormer | None = None  # None: tuple by tuple
    stays: Callable[[NodeMeter, Parameters], Stay] | None = None  # makes one per engine
    dropper: Dropper | None = None  # None: every job runs
    sifter: Sifter | None = None  # a dropper that looks at whole batches
    tuner: Callable[[NodeMeter, Parameters], Tuner] | None = None  # makes one per engine, which then forms the batches
    parameters: Parameters = DEFAULTS
    yields: bool = False  # may switch at an operator's boundary
    measures: bool = False  # units have meters; also where an order, a tuner or a stay gets those
    asks: Asked = EVERYTHING  # of what the meters may record
    guaranteed: bool = False  # covered by the schedulability test, tuple by tuple

    def __post_init__(self) -> None:
        if sum(each is not None for each in (self.offset, self.rule, self.key)) != 1:
            raise UnusableValueError("given_twice", "a policy has either an offset, a rule or a key")
        if sum(each is not None for each in (self.batch, self.tuner, self.stays)) > 1:
            raise UnusableValueError("given_twice", f"batches are formed by one part; {self.name} forms its own")
        formed = self.batch or self.tuner or self.stays
        if (formed or self.metered or self.rule) and (self.yields or self.key is not None):
            raise UnusableValueError(
                "not_in_batches", "batches need an order by release, and instances that do not yield; so does measuring"
            )

    @property
    def metered(self) -> bool:
        """Whether units have meters."""
        return bool(self.measures or self.order or self.tuner or self.stays)
