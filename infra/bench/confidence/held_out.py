"""Runs of a plan with costs that no sample has seen: every result of every output, in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import numpy as np

from coordinator.guarantee.system import Stage, System
from infra.bench.confidence.cost_laws import Sample
from infra.bench.tightness.attack import Attack
from infra.bench.tightness.edf_cluster import EdfCluster, Execution, Seen, Token

UNTIL_NS = 60_000_000_000
MOST_TUPLES = 250  # of a source, in a run
DRAWN = 256  # calls of an operator at a time
PATTERNS = 8  # of pauses, so that arrivals are made out seldom


class _Drawn(Execution):
    """A run whose instances cost what laws say; `found`: of every output, how long results took from admission."""

    def __init__(
        self, cluster: EdfCluster, attack: Attack, samples: Mapping[str, Sample], seed: int, found: dict[str, list[int]]
    ) -> None:
        super().__init__(cluster, attack)
        self._samples, self._found = samples, found
        self._dice = np.random.default_rng(seed)
        self._left: dict[str, list[int]] = {name: [] for name in samples}

    def cost_ns(self, stage: Stage, token: Token) -> int:
        """Of the operator's law; an emulated node takes as long as it emulates at least."""
        left = self._left[stage.operator]
        if not left:
            left += self._samples[stage.operator].law.costs_ns(self._dice, DRAWN)
        return max(left.pop(), stage.best_ns)

    def result(self, output: str, at_ns: int, token: Token) -> None:
        self._found[output].append(at_ns - self.seen.admitted_ns[token])


def latencies(system: System, samples: Mapping[str, Sample], runs: int, seed: str) -> dict[str, list[int]]:
    """Of all runs. Sources send as densely as they may, with a pause now and then; in every other run all begin at
    once."""
    found: dict[str, list[int]] = {name: [] for name in system.outputs}
    cluster = EdfCluster(system, UNTIL_NS, MOST_TUPLES)
    dice = Random(seed)
    for run in range(runs):
        together = run % 2 == 0
        _Drawn(cluster, _attack(system, dice, together), samples, dice.getrandbits(64), found).go()
    return found


def _attack(system: System, dice: Random, together: bool) -> Attack:
    """Links are as slow as declared; filters pass as many as they may, from the first tuple on or later."""
    phase = {name: 0 if together else dice.randrange(50_000_000) for name in system.sources}
    pauses = {name: _pauses(Random(dice.randrange(PATTERNS))) for name in system.sources}
    operators = [stage.operator for unit in system.units.values() for stage in unit.stages]
    return Attack(
        phase_ns=phase,
        pauses_ns=pauses,
        dropped=frozenset(name for name in operators if dice.random() < 0.5),
        first=frozenset(number for number in system.units if dice.random() < 0.5),
    )


def _pauses(dice: Random) -> dict[int, int]:
    return {dice.randrange(MOST_TUPLES): dice.randrange(40_000_000) for _ in range(dice.randint(0, 3))}


__all__ = ["Seen", "latencies"]
