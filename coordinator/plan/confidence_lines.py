"""Bounds with a confidence in sentences: what is promised of how many results, and which measurements that rests on."""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.spec.quality import show_share
from coordinator.units import counted, show_ns
from protos.plan.guarantee import Claim, ConfidentBound

SHOWN = 4  # operators, those of which the fewest calls were measured


def status(found: ConfidentBound) -> str:
    """Of a bound that holds."""
    return f"guaranteed with {show_share(found.share)}"


def lines(claim: Claim) -> list[str]:
    """Nothing where the output asks for none."""
    found = claim.confident
    if found is None:
        return []
    share = show_share(found.share)
    if found.bound_ns is None:
        return [f"with {share}: no bound: {found.why}"]
    said = status(found) if found.guaranteed else f"not guaranteed with {share}"
    every = f" (all of them {show_ns(found.certain_ns)})" if found.certain_ns is not None else ""
    told = f"{share} of the results take at most {show_ns(found.bound_ns)}{every}: {said}: {found.why}"
    return [told, *_rests(found)]


def _rests(found: ConfidentBound) -> list[str]:
    """Operators with the fewest calls first."""
    ordered = sorted(found.costs.items(), key=lambda item: (item[1].samples, item[0]))
    told = [
        f"{name} {show_ns(one.cost_ns)} ({counted(one.samples, 'call')}, {counted(one.runs, 'instance')} at most)"
        for name, one in ordered[:SHOWN]
    ]
    more = f" and {counted(len(ordered) - SHOWN, 'more operator')}" if len(ordered) > SHOWN else ""
    of_one = "the longest of one" if found.independent else "costs"
    sure = f"what the samples say is so with {show_share(found.measured_with)}"
    return [f"it counts on {of_one}: {', '.join(told)}{more}; {sure}"]


def with_less(claims: Mapping[str, Claim]) -> str:
    """How many of those that hold do so for a share of the results: `, 2 of them with 99.9 %`; empty: none."""
    shares: dict[str, int] = {}
    for claim in claims.values():
        if claim.confident is not None and claim.confident.guaranteed:
            share = show_share(claim.confident.share)
            shares[share] = shares.get(share, 0) + 1
    return "".join(f", {n} of them with {share}" for share, n in shares.items())


__all__ = ["lines", "status", "with_less"]
