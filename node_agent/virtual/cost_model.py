"""Costs of operators in virtual time: max(cost / speed, emulated cost) x scale x jitter, in whole nanoseconds."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist

from node_agent.core.lineage import Lineage
from node_agent.core.plan import Plan
from node_agent.virtual import random_draws
from node_agent.virtual.errors import bad_input

Quantile = Callable[[float], float]  # (0, 1) -> a factor with mean 1 (uniform: as given)

_NORMAL = NormalDist()
_COST = 1  # what a draw is for


@dataclass(frozen=True)
class Jitter:
    """How the cost of a tuple varies. `quantile` None: not at all."""

    text: str = "none"
    quantile: Quantile | None = None


NO_JITTER = Jitter()


def parse_jitter(text: str) -> Jitter:
    """`none`, `exp`, `lognormal:cv=C` or `uniform:LOW,HIGH`. Raises BadInputError with the mend."""
    kind, _, rest = text.strip().partition(":")
    if kind == "none" and not rest:
        return NO_JITTER
    if kind == "exp" and not rest:
        return Jitter("exp", lambda u: -math.log1p(-u))
    if kind == "lognormal":
        return Jitter(text, _lognormal(_number(rest.removeprefix("cv="), text)))
    if kind == "uniform":
        low, _, high = rest.partition(",")
        return Jitter(text, _uniform(_number(low, text), _number(high, text), text))
    raise bad_input(
        "unknown_jitter",
        f"--jitter: {text!r} is unknown",
        "use none, exp, lognormal:cv=1 or uniform:0.5,1.5",
        subject="--jitter",
    )


def _lognormal(cv: float) -> Quantile:
    """Mean 1, coefficient of variation cv: ln X is normal with variance ln(1 + cv^2) and mean minus half of that."""
    variance = math.log1p(cv * cv)
    deviation, mean = math.sqrt(variance), -variance / 2
    return lambda u: math.exp(mean + deviation * _NORMAL.inv_cdf(u))


def _uniform(low: float, high: float, text: str) -> Quantile:
    if low > high:
        raise bad_input(
            "factors_in_wrong_order",
            f"--jitter: {text!r}: the lower factor is above the higher",
            "write uniform:LOW,HIGH",
            subject="--jitter",
        )
    return lambda u: low + (high - low) * u


def _number(text: str, whole: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e6:
        raise bad_input(
            "no_factor",
            f"--jitter: {whole!r}: {text!r} is no factor",
            "write lognormal:cv=1 or uniform:0.5,1.5",
            subject="--jitter",
        )
    return value


@dataclass(frozen=True)
class Numbers:
    """One number per name in a simulation of several plans: of operators by name, of a plan's source ids."""

    operators: Mapping[str, int]
    sources: Mapping[int, int]


class Costs:
    """The costs of one node's operators in one trial.

    A factor depends on (seed, trial, operator, source, seq, ordinal) only: not on node, policy or order. known:
    numbers that stand for the plan's operators and sources by name, where several plans know the same; else their ids.
    """

    __slots__ = ("_base", "_keys", "_quantile", "_sources")

    def __init__(
        self, plan: Plan, speed: float, jitter: Jitter, scale: float, seed: int, trial: int,
        known: Numbers | None = None,
    ) -> None:  # fmt: skip
        self._quantile = jitter.quantile
        declared = {operator.id: operator.cost_ns for operator in plan.operators}
        declared |= {-operator.id: operator.late.cost_ns for operator in plan.operators if operator.late is not None}
        self._base: Mapping[int, int] = {
            number: round(max(cost_ns / speed, plan.emulate_cost_ns) * scale) for number, cost_ns in declared.items()
        }
        numbers = {} if known is None else known.operators
        self._keys = {
            operator.id: random_draws.key(_COST, seed, trial, numbers.get(operator.name, operator.id))
            for operator in plan.operators
        }
        self._sources: Mapping[int, int] = {} if known is None else known.sources

    def cost_ns(self, operator: int, lineage: Lineage) -> int:
        """CPU time of that operator on that tuple; of what runs in its place for what is late, by its negative id."""
        base = self._base[operator]
        if self._quantile is None:
            return base
        source, _, seq, ordinal, _, _ = lineage
        named = random_draws.key(self._sources.get(source, source), seq, ordinal)
        bits = random_draws.mix((self._keys[abs(operator)] + named) & random_draws.MASK)
        return round(base * self._quantile(random_draws.uniform(bits)))
