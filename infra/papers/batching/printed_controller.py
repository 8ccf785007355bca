"""[A] (3) with other factors and other readings of SDMR, for figures 5 and 6."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import floor
from typing import Literal

from infra.papers.policies import POLICIES
from node_agent.core.meters import NodeMeter
from node_agent.core.model import Unit
from node_agent.core.plan import Parameters
from node_agent.core.policies.fixed_batches import Fixed
from node_agent.core.policies.policy_parts import Policy

Ratio = Literal["total", "execution"]


class Controller(Fixed):
    """k <- k - floor(Kp dSDMR + KI SDMR), at least 1, after every execution. ratio: of all instances so far, as 3.2
    has it ("the present total"), or of the execution alone, SDMR(I) of definition 4 with the execution as I."""

    __slots__ = ("_before", "_counted", "factors", "grown", "ratio")

    def __init__(self, meter: NodeMeter, parameters: Parameters, factors: tuple[Fraction, Fraction], ratio: Ratio):
        super().__init__(meter, parameters)
        self.factors, self.ratio = factors, ratio
        self.grown = 0
        self._before = Fraction(0)
        self._counted = (0, 0)  # missed, ended

    def ended(self, unit: Unit, jobs: int, ran_ns: int, decision_ns: int) -> None:
        """One step of (3)."""
        missed, ended = self.meter.missed, self.meter.ended
        since = self._counted if self.ratio == "execution" else (0, 0)
        now = Fraction(missed - since[0], max(1, ended - since[1]))
        less = floor(self.factors[0] * (now - self._before) + self.factors[1] * now)
        self._before, self._counted = now, (missed, ended)
        self.grown += less < 0
        self.k = max(1, self.k - less)


def tuner(factors: tuple[Fraction, Fraction], ratio: Ratio) -> Callable[[NodeMeter, Parameters], Controller]:
    """For a policy."""
    return lambda meter, parameters: Controller(meter, parameters, factors, ratio)


def controlled(name: str, proportional: Fraction, integral: Fraction, ratio: Ratio, parameters: Parameters) -> Policy:
    """`ats` or `ats1` with these factors."""
    return replace(POLICIES[name], tuner=tuner((proportional, integral), ratio), parameters=parameters)
