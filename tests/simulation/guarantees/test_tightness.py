"""End-to-end bounds against an adversary: none is broken, few are far away, and a bound that is too small is found.

`make test` takes a few plans, `make soak` a thousand. Sets of one node are in `test_guarantee_soundness`.
"""

from statistics import fmean

import pytest

from coordinator.calculus.passage import fold
from coordinator.guarantee.whole_ways import passages
from infra.bench.tightness.drawn_queries import CLASSES, LOADS
from infra.bench.tightness.measured import Measured, measured, sweep

FIRST = 1000  # seeds that no figure was measured with


def broken(found: list[Measured]) -> list[Measured]:
    """Beyond their bounds."""
    return [each for each in found if each.ratio > 1]


@pytest.mark.parametrize("kind", CLASSES)
def test_no_bound_is_broken(kind: str, seed: int) -> None:
    found = list(measured(kind, LOADS[seed % 3], FIRST + seed, runs=12))
    assert found
    assert not broken(found)


def test_a_bound_that_is_too_small_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if each tuple came to a unit when the one two places before it does."""
    monkeypatch.setattr(passages, "fold", lambda came, *given: fold([*came[2:], came[-1], came[-1]], *given))
    found = [each for kind in ("chain", "fan-out") for seed in (0, 1) for each in measured(kind, 0.6, seed, runs=40)]
    assert broken(found)


@pytest.mark.soak
def test_a_thousand_plans() -> None:
    """48 seeds of seven classes at three loads."""
    found = list(sweep(CLASSES, range(FIRST, FIRST + 48), 150))
    print(f"\n{len(found)} outputs: mean {fmean(each.ratio for each in found):.3f} of their bounds")
    assert not broken(found)
