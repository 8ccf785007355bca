"""Tuples that are offered to a source and not admitted: why, and the records that say how many.

Refusals of one source, plan and reason share a record until it is written. `settle` writes at most a thousand records
a second, with a burst of 256 at first, so that refusals, which cost next to nothing, cannot fill the trace. What is
`held` back must not be told to the senders of the tuples: if this process is killed, they come again and are counted by
the next one.
"""

from node_agent.core.facts import Facts
from node_agent.core.plan import Source
from protos.records import (
    REASON_AGE_UNKNOWN,
    REASON_FUTURE,
    REASON_TOO_OLD,
    REASON_WINDOWS_TOLD,
    REFUSED,
)  # fmt: skip

RECORD_NS = 1_000_000
BURST_RECORDS = 256
FAR_NS = 1 << 62  # an age beyond it is as good as that


def age_refused(source: Source, counted: bool, at_ns: int, lo_ns: int, hi_ns: int, promised_ns: int | None) -> int:
    """The reason to refuse a tuple whose origin lies in [lo_ns, hi_ns]; 0: there is none.

    counted: windows are made of the source's tuples. Heartbeats promise how old those can be, so their whole interval
    has to be young enough; of others it suffices that they may be. promised_ns: what heartbeats have promised that
    nothing older comes; None: nothing.
    """
    if lo_ns > at_ns:
        return REASON_FUTURE
    if not source.max_age_ns:
        return 0
    certain = at_ns - hi_ns > source.max_age_ns
    if certain or (counted and at_ns - lo_ns > source.max_age_ns):
        return REASON_AGE_UNKNOWN if not certain and lo_ns <= -FAR_NS else REASON_TOO_OLD
    return REASON_WINDOWS_TOLD if counted and promised_ns is not None and lo_ns < promised_ns else 0


def too_old(source: Source, at_ns: int, lo_ns: int, hi_ns: int) -> str:
    """REASON_TOO_OLD in words: by the lower bound of the age, or by the upper one where only that is too great."""
    least_ns = at_ns - hi_ns
    how, age_ns = ("at least", least_ns) if least_ns > source.max_age_ns else ("may be", at_ns - lo_ns)
    return f"{how} {age_ns / 1e6:.1f} ms old, at most {source.max_age_ns / 1e6:g} ms are allowed"


class _Shared:
    """A record that is not written yet."""

    __slots__ = ("count", "first_ns", "last_ns", "least_ns", "most_ns")

    def __init__(self, at_ns: int) -> None:
        self.count, self.first_ns, self.last_ns = 0, at_ns, at_ns
        self.least_ns, self.most_ns = FAR_NS, -FAR_NS

    def add(self, at_ns: int, age_lo_ns: int, age_hi_ns: int, tuples: int) -> None:
        self.count += tuples
        self.last_ns = at_ns
        self.least_ns = min(self.least_ns, max(-FAR_NS, age_lo_ns))
        self.most_ns = max(self.most_ns, min(FAR_NS, age_hi_ns))


class Refusals:
    """Of one node, into its facts. epoch: the lineage epoch that its tuples have.

    pressing: something was admitted beside them, whose sender waits; then nothing is held back.
    """

    __slots__ = ("_due_ns", "_facts", "_numbers", "_shared", "epoch", "pressing")

    def __init__(self, facts: Facts, epoch: int) -> None:
        self._facts, self.epoch = facts, epoch
        self._shared: dict[tuple[int, int, int], _Shared] = {}  # by flags, source and reason
        self._numbers: dict[tuple[int, int], int] = {}  # refused so far, by flags and source
        self._due_ns = 0
        self.pressing = False

    @property
    def held(self) -> bool:
        """Whether some refusals stand in no record yet."""
        return bool(self._shared)

    @property
    def due_ns(self) -> int:
        """When `settle` writes what is held."""
        return self._due_ns - BURST_RECORDS * RECORD_NS

    def add(
        self, at_ns: int, flags: int, source: int, reason: int, age_lo_ns: int, age_hi_ns: int, tuples: int = 1
    ) -> None:
        """A tuple of that age was refused, or several. flags: of its plan; 0: there is none any more."""
        key = flags, source, reason
        if key not in self._shared:
            self._shared[key] = _Shared(at_ns)
        self._shared[key].add(at_ns, age_lo_ns, age_hi_ns, tuples)

    def settle(self, at_ns: int) -> None:
        """Write what there is, unless too much was written of late."""
        if self._shared and (self.pressing or at_ns >= self.due_ns):
            self._due_ns = max(self._due_ns, at_ns) + len(self._shared) * RECORD_NS
            self.write()
        self.pressing = False

    def write(self) -> None:
        """Write everything: before a plan, or the process, ends."""
        for (flags, source, reason), shared in self._shared.items():
            number = self._numbers.get((flags, source), 0)
            self._numbers[flags, source] = number + shared.count
            self._facts.refused += shared.count
            self._facts.write(
                REFUSED, flags, source, source, self.epoch, number,
                shared.last_ns, reason, shared.count, shared.least_ns, shared.most_ns, shared.first_ns,
            )  # fmt: skip
        self._shared.clear()


__all__ = ["Refusals", "age_refused", "too_old"]
