"""Adaptive batch scheduling as printed ([A] algorithm 2): k by PI control on the stream deadline miss ratio.

    k <- k - floor(Kp dSDMR + KI SDMR), at least 1; Kp = 1, KI = 10, k from 1

SDMR is that of all instances so far, [A] 3.2: "the present total". It is never negative, so k can grow only in one
execution that makes the ratio fall to less than an eleventh, by as many tuples: from k = 1 that does not happen, and
`ats` is `bts` with k = 1. `adaptive` is what works; this one is for comparison.

A tuple misses where its instance ends after its sub-deadline, or where it is shed. All arithmetic is exact.
"""

from node_agent.core.meters import NodeMeter
from node_agent.core.model import Unit
from node_agent.core.plan import Parameters
from node_agent.core.policies.edf import sub_deadline
from node_agent.core.policies.fixed_batches import Fixed
from node_agent.core.policies.papers.bts import statistics
from node_agent.core.policies.policy_parts import Asked, Policy

PROPORTIONAL, INTEGRAL = 1, 10


class Control(Fixed):
    """The printed controller. `grown`: how often k has grown."""

    __slots__ = ("_ended", "_missed", "grown")

    def __init__(self, meter: NodeMeter, parameters: Parameters) -> None:
        super().__init__(meter, parameters)
        self._missed, self._ended = 0, 1  # the ratio before
        self.grown = 0

    def ended(self, unit: Unit, jobs: int, ran_ns: int, decision_ns: int) -> None:
        """One step of (3), after every execution. As Kp is 1 it is the floor of (Kp + KI) SDMR - the SDMR before."""
        node = self.meter
        missed, ended = node.missed, max(1, node.ended)
        weighted = (PROPORTIONAL + INTEGRAL) * missed
        less, rest = weighted // ended, weighted % ended
        if self._missed and _below(rest, ended, self._missed, self._ended):
            less -= 1
        self._missed, self._ended = missed, ended
        self.grown += less < 0
        self.k = max(1, self.k - less)


def _below(part: int, whole: int, other: int, others: int) -> bool:
    """Whether one ratio is less than another one; the products may take more than 64 bits."""
    return part * others < other * whole


ATS = Policy(name="ats", offset=sub_deadline, tuner=Control, asks=Asked.COSTS)
ATS1 = Policy(name="ats1", offset=sub_deadline, tuner=Control, sifter=statistics, asks=Asked.COSTS)
