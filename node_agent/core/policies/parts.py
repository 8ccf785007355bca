"""The five parts of a policy.

deadline rule   when a job should be done; recorded with every instance
order           the key of a job: the smallest key runs first, ties go to the earlier release, then the earlier arrival
batch former    how many consecutive jobs of the chosen unit run as one instance
dropper         which jobs are not worth running any more
tuner           adapts the other parts from what is measured

A rule is either affine in the release (key = release + a constant of the unit) or a function of unit and lineage.
An affine key does not decrease along a unit's queue, so the queue is FIFO and the engine adds a number; any other key
orders the queue by a heap.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from node_agent.core.plan import Unit

Lineage = tuple[int, int, int, int, int, int]  # source, epoch, seq, ordinal, origin_lo_ns, origin_hi_ns
Job = tuple[int, int, int, Any, Lineage, Any]  # key, release_ns, arrival number, unit, lineage, payload
Queue = deque[Job] | list[Job]

Offset = Callable[[Unit], int]  # the constant that is added to the release
Key = Callable[[Unit, Lineage], int]  # a key that the release does not enter
BatchFormer = Callable[[Job, Queue], int]  # how many jobs behind the head join its instance
Dropper = Callable[[Job, int], bool]  # whether that job, about to start at that instant, is shed instead


class Tuner(Protocol):
    """Forms batches by what it has measured: it is told of every instance."""

    def batch(self, head: Job, queue: Queue) -> int:
        """As a batch former."""

    def ended(self, jobs: int, ran_ns: int, decision_ns: int) -> None:
        """An instance of that many jobs ran that long; choosing it took that long."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy by its parts. Exactly one of `offset` and `key` gives the order."""

    name: str
    offset: Offset | None = None
    key: Key | None = None
    batch: BatchFormer | None = None  # None: tuple by tuple
    dropper: Dropper | None = None  # None: every job runs
    tuner: Callable[[], Tuner] | None = None  # makes one per engine, which then forms the batches
    yields: bool = False  # may switch at an operator's boundary
    guaranteed: bool = False  # covered by the schedulability test, tuple by tuple

    def __post_init__(self) -> None:
        if (self.offset is None) == (self.key is None):
            raise ValueError("a policy has either an offset or a key")
        if self.batch is not None and self.tuner is not None:
            raise ValueError("batches are formed by a batch former or by a tuner, not by both")
        if (self.batch or self.tuner) and (self.yields or self.offset is None):
            raise ValueError("batches need an order by release, and instances that do not yield")
