"""What the methods make of random queries, and why one of them may do what ours does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import fmean

from infra.papers.conventional.drawn_transactions import case
from infra.papers.conventional.methods import METHODS, OURS, OURS_HOLISTIC, Method, holds
from infra.papers.conventional.placed_query import PlacedQuery

IN_TIME = 1  # times the deadline: what is later is late


class Reason(Enum):
    """Why a conventional method holds a query that ours does not, the first that applies."""

    SEARCH = (
        "our nodes and our bounds hold it with that method's order, within (5): the search does not come to it "
        "(`Search.starts` and `_moves` in coordinator/solve/guaranteed/sub_deadlines.py)"
    )
    RULE_5 = (
        "they hold it with sub-deadlines that add up to more than the deadline, which the planner makes fit "
        "(`fitted` in coordinator/solve/guaranteed/unit_paths.py)"
    )
    SUMS = (
        "our bound adds up what each unit takes from its release on, at most (`Late.after` in "
        "coordinator/guarantee/streams.py); the holistic one counts from the event: where the jitter of a stream is "
        "above its period, jobs that were late come together, and the last of them waited less before"
    )
    CLOCKS = "only where deadlines count from the event on all nodes, which needs clocks in common"


@dataclass(frozen=True)
class Outcome:
    """Of one query at one utilisation. `shares`: by method, every bound over its deadline, empty: some output is late,
    or has none; `accepted`: whether [P]'s (6) has a solution; `reason`: see `Reason`."""

    seed: int
    utilisation: float
    shares: Mapping[str, Sequence[float]]
    accepted: bool
    reason: Reason | None = None

    def holds(self, method: Method) -> bool:
        """Every output within its deadline."""
        found = self.shares[method.name]
        return bool(found) and max(found) <= 1

    @property
    def all_hold(self) -> bool:
        """By every method."""
        return all(self.holds(method) for method in METHODS)


def outcomes(seeds: Sequence[int], utilisation: float) -> Iterator[Outcome]:
    """Of the queries of these seeds."""
    for seed in seeds:
        yield outcome(seed, utilisation, PlacedQuery.of(case(seed, utilisation)))


def outcome(seed: int, utilisation: float, query: PlacedQuery) -> Outcome:
    """Of one query."""
    shares = {method.name: _shares(query, method.bounds_ns(query, IN_TIME)) for method in METHODS}
    found = Outcome(seed, utilisation, shares, query.paper_dues_ns is not None)
    better = [method for method in METHODS if method.conventional and found.holds(method)]
    if not better or found.holds(OURS):
        return found
    return Outcome(seed, utilisation, shares, found.accepted, _reason(query, better))


def _shares(query: PlacedQuery, found: Mapping[str, int | None]) -> list[float]:
    shares = []
    for output in query.transactions.outputs:
        ns = found[output.name]
        if ns is None:
            return []
        shares.append(ns / output.deadline_ns)
    return shares


def _reason(query: PlacedQuery, better: Sequence[Method]) -> Reason:
    given = [dues_ns for method in better if (dues_ns := method.dues_ns(query)) is not None]
    if any(holds(query, query.our_bounds_ns(query.fitted_ns(dues_ns))) for dues_ns in given):
        return Reason.SEARCH
    if any(holds(query, query.our_bounds_ns(dues_ns)) for dues_ns in given):
        return Reason.RULE_5
    if given or holds(query, OURS_HOLISTIC.bounds_ns(query, IN_TIME)):
        return Reason.SUMS
    return Reason.CLOCKS


def share_held(of: Sequence[Outcome], method: Method) -> float:
    """Of the queries, in %."""
    return 100 * fmean(each.holds(method) for each in of)


def mean_share(of: Sequence[Outcome], method: Method) -> float | None:
    """Bound over deadline, of all outputs of the queries that every method holds; None: there is no such query."""
    found = [share for each in of if each.all_hold for share in each.shares[method.name]]
    return fmean(found) if found else None


__all__ = ["Outcome", "Reason", "mean_share", "outcome", "outcomes", "share_held"]
