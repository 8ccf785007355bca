"""Batch formers."""

from collections.abc import Iterable
from itertools import islice

from node_agent.core.model import Job, Queue
from node_agent.core.policies.policy_parts import BatchFormer


def whole_burst(head: Job, queue: Iterable[Job]) -> int:
    """All jobs behind the head that stem from the same burst: same source, same origin ([P] 4.1, batch by batch)."""
    source, origin_ns = head.lineage[0], head.lineage[4]
    count = 0
    for job in queue:
        lineage = job.lineage
        if lineage[0] != source or lineage[4] != origin_ns:
            break
        count += 1
    return count


class Burst(BatchFormer):
    """`whole_burst`, with no more than `largest` jobs in one instance; the rest of the burst makes the next one. 0: no
    limit."""

    __slots__ = ("_largest",)

    def __init__(self, largest: int) -> None:
        self._largest = largest

    def behind(self, head: Job, queue: Queue) -> int:
        """As many as `largest` leaves."""
        return whole_burst(head, islice(queue, self._largest - 1) if self._largest else queue)


def basic_batches(head: Job, queue: Queue, k: int, phi_ns: int) -> int:
    """All jobs behind the head in the first k basic batches ([A] definitions 6 and 7).

    A basic batch begins with its first tuple and holds what was released within phi after it. The last one may still be
    open.
    """
    end_ns, count = head.release_ns + phi_ns, 0
    for job in queue:
        if job.release_ns > end_ns:
            k -= 1
            if k <= 0:
                break
            end_ns = job.release_ns + phi_ns
        count += 1
    return count
