"""Which cost each operator is counted with: the share of results that may be late is divided among them.

A result may be late only where one of the instances that can influence it took longer than was counted on. By the
union bound that is no likelier than the sum of runs * P(longer), and the instances may have anything to do with each
other. What is left of the budget goes step by step to where it saves the most time: time saved for a tuple of the
output, by the instances that it waits for at worst, over what the step adds to the sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coordinator.guarantee.confidence.quantile_limits import Limit


@dataclass(frozen=True)
class Spender:
    """An operator. `runs`: instances that can influence a result; `waited`: of how many of them it has to wait for the
    end, at worst; `choices`: the largest cost first."""

    runs: int
    waited: int
    choices: Sequence[Limit]


def least_late(spenders: Mapping[str, Spender]) -> float:
    """By the largest costs that are known."""
    return sum(one.runs * one.choices[0].exceeded for one in spenders.values())


def divided(spenders: Mapping[str, Spender], late: float) -> dict[str, Limit]:
    """By what it saves. The largest costs have to fit."""
    at = dict.fromkeys(spenders, 0)
    left = late - least_late(spenders)
    while True:
        best: tuple[float, str, int] | None = None
        for name, one in spenders.items():
            now = one.choices[at[name]]
            for position in range(at[name] + 1, len(one.choices)):
                then = one.choices[position]
                more = one.runs * (then.exceeded - now.exceeded)
                if more > left:
                    break
                saved = one.waited * (now.cost_ns - then.cost_ns)
                if saved > 0 and (best is None or saved > best[0] * more):
                    best = (saved / more if more > 0 else float("inf"), name, position)
        if best is None:
            return {name: one.choices[at[name]] for name, one in spenders.items()}
        _, name, position = best
        one = spenders[name]
        left -= one.runs * (one.choices[position].exceeded - one.choices[at[name]].exceeded)
        at[name] = position


def evenly(spenders: Mapping[str, Spender], late: float) -> dict[str, Limit]:
    """The same share for each that runs, for comparison; the largest cost where that is too little."""
    own = late / max(1, sum(one.runs > 0 for one in spenders.values()))
    return {
        name: min(
            (choice for choice in one.choices if one.runs * choice.exceeded <= own),
            key=lambda choice: choice.cost_ns,
            default=one.choices[0],
        )
        for name, one in spenders.items()
    }


__all__ = ["Spender", "divided", "evenly", "least_late"]
