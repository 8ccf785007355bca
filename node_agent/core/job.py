"""A job: one tuple at one task unit, from its release until it has run or was shed."""

from typing import Any, final

Lineage = tuple[int, int, int, int, int, int]  # source, epoch, seq, ordinal, origin_lo_ns, origin_hi_ns


@final
class Job:
    """A task instance's tuple. key_ns: the deadline that the policy gives it, or what it orders by. number: of its
    arrival, unique on its engine. payload: what the unit's first operator gets.

    The fields are set where jobs are made (`made`, and the ready queue, which makes one per release): on the hot path
    an `__init__` costs more than all of them.
    """

    __slots__ = ("key_ns", "lineage", "number", "payload", "release_ns", "unit")

    key_ns: int
    release_ns: int
    number: int
    unit: Any
    lineage: Lineage
    payload: Any

    def __lt__(self, other: "Job") -> bool:
        """The order in which jobs run: total, since no two have the same number."""
        return (self.key_ns, self.release_ns, self.number) < (other.key_ns, other.release_ns, other.number)

    def __repr__(self) -> str:
        return f"Job({self.key_ns}, {self.release_ns}, {self.number}, unit {self.unit.id}, {self.lineage})"


def made(key_ns: int, release_ns: int, number: int, unit: Any, lineage: Lineage, payload: Any) -> Job:
    """A job with these fields."""
    job = Job()
    job.key_ns, job.release_ns, job.number = key_ns, release_ns, number
    job.unit, job.lineage, job.payload = unit, lineage, payload
    return job


__all__ = ["Job", "Lineage", "made"]
