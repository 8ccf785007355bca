"""The brake of a vehicle, with the driver's reaction where a driver brakes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log, sqrt
from random import Random
from typing import Literal

Kind = Literal["auto", "driver", "none"]
G_MPS2 = 9.81


@dataclass(frozen=True)
class Brake:
    """How a commanded vehicle brakes. kind "none": it ignores every command.

    deceleration_mps2: what is asked for; the tyres hold friction * 9.81 m/s2 at most. build_up_s: how long the
    deceleration takes to rise, linearly, from 0 to what is held. actuation_s: from the command, or the driver's foot,
    until it begins to rise. reaction_s, reaction_sd_s: mean and standard deviation of what a driver needs before that,
    log-normal; no deviation: always the mean.
    """

    kind: Kind
    deceleration_mps2: float
    actuation_s: float = 0.0
    build_up_s: float = 0.3
    friction: float = 0.8
    reaction_s: float = 0.0
    reaction_sd_s: float = 0.0

    @property
    def held_mps2(self) -> float:
        """The deceleration once it is built up, m/s2: what is asked for, or what the tyres hold."""
        return min(self.deceleration_mps2, self.friction * G_MPS2)

    @property
    def delay_s(self) -> float:
        """From the command until the deceleration begins to rise, at the mean reaction."""
        return self.reaction_s + self.actuation_s

    def drawn(self, seed: int, phase_ns: int) -> Brake:
        """With the reaction of one driver, who is another one for each seed and phase of the bursts, and for nothing
        else: two plans meet the same drivers."""
        if not self.reaction_s or not self.reaction_sd_s:
            return self
        variance = log(1 + (self.reaction_sd_s / self.reaction_s) ** 2)
        draw = Random(f"{seed}:{phase_ns}:driver")  # noqa: S311 (a driver, not secrets)
        reaction_s = draw.lognormvariate(log(self.reaction_s) - variance / 2, sqrt(variance))
        return replace(self, reaction_s=reaction_s, reaction_sd_s=0.0)

    def __str__(self) -> str:
        """As an account has it: what is held, when, and how slowly."""
        return f"{self.kind}: {self.held_mps2:.3g} m/s2 after {self.delay_s:.3g} s, built up in {self.build_up_s:g} s"


AUTO = Brake("auto", 7.0, actuation_s=0.2)  # emergency braking by machine
DRIVER = Brake("driver", 6.0, reaction_s=1.25, reaction_sd_s=0.46)  # a driver who is warned
NONE = Brake("none", 0.0)
