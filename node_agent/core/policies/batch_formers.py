"""Batch formers."""

from node_agent.core.job_queues import ArrivalQueue
from node_agent.core.model import Job, Queue
from node_agent.core.policies.policy_parts import BatchFormer

COMPILED = not __file__.endswith(".py")
MOST = 1 << 32  # jobs of a batch without a limit


class Burst(BatchFormer):
    """All jobs behind the head that stem from the same burst: same source, same origin ([P] 4.1, batch by batch), with
    no more than `largest` jobs in one instance; the rest of the burst makes the next one. 0: no limit."""

    __slots__ = ("_most",)

    def __init__(self, largest: int) -> None:
        self._most = (largest or MOST) - 1

    def behind(self, head: Job, queue: Queue) -> int:
        """By what the jobs say of themselves."""
        origin_ns, count = head.origin_ns, 0
        if COMPILED:
            arrivals: ArrivalQueue = queue  # type: ignore[assignment]  # where batches are formed
            if not arrivals or arrivals.head().origin_ns != origin_ns:
                return 0  # mostly; nothing is made that goes through the queue
        source = head.lineage[0]
        for job in queue:
            if count >= self._most or job.origin_ns != origin_ns or job.lineage[0] != source:
                break
            count += 1
        return count


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
