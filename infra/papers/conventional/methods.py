"""What is compared: how priorities or sub-deadlines are given, and which analysis judges them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from infra.papers.conventional import holistic, priorities, sub_deadlines
from infra.papers.conventional.edf import Edf
from infra.papers.conventional.fixed_priority import FixedPriorities
from infra.papers.conventional.holistic import bounds_ns, least_releases_ns
from infra.papers.conventional.placed_query import Dues, PlacedQuery
from infra.papers.conventional.sub_deadlines import Rule, from_releases
from infra.papers.conventional.transactions import Transactions

Family = Literal["fixed priorities", "EDF", "EDF, clocks in common", "[P]", "ours"]
Bounds = Mapping[str, int | None]


@dataclass(frozen=True)
class Method:
    """`bounds_ns`: per output of a query, from the event on, as far as so many deadlines are worth having; None: no
    bound, or no plan. `dues_ns`: sub-deadlines with
    which our nodes would do the same, None: there are none."""

    name: str
    family: Family
    bounds_ns: Callable[[PlacedQuery, int], Bounds]
    dues_ns: Callable[[PlacedQuery], Dues | None]

    @property
    def conventional(self) -> bool:
        """Neither [P]'s nor ours."""
        return self.family not in ("[P]", "ours")


def holds(query: PlacedQuery, found: Bounds) -> bool:
    """Whether every output is within its deadline."""
    return holistic.holds(query.transactions, found)


def _fixed(name: str, given: Callable[[Transactions], FixedPriorities]) -> Method:
    def judged(query: PlacedQuery, worth: int) -> Bounds:
        return bounds_ns(query.transactions, given(query.transactions), worth)

    def apart(query: PlacedQuery) -> Dues:
        """So far apart that the rank decides."""
        step_ns = APART * query.transactions.longest_ns
        return tuple((rank + 1) * step_ns for rank in given(query.transactions).rank)

    return Method(name, "fixed priorities", judged, apart)


def _deadline_monotonic(name: str, rule: Rule) -> Method:
    return _fixed(f"DM {name}", lambda of: priorities.by(from_releases(of, rule)))


def _audsley(of: Transactions) -> FixedPriorities:
    return priorities.audsley(of, from_releases(of, sub_deadlines.equal_flexibility))


def _edf(name: str, rule: Rule) -> Method:
    def judged(query: PlacedQuery, worth: int) -> Bounds:
        return bounds_ns(query.transactions, Edf(from_releases(query.transactions, rule)), worth)

    return Method(f"EDF {name}", "EDF", judged, lambda query: from_releases(query.transactions, rule))


def _edf_in_common(name: str, rule: Rule) -> Method:
    def judged(query: PlacedQuery, worth: int) -> Bounds:
        of = query.transactions
        after = zip(sub_deadlines.from_events(of, rule), least_releases_ns(of), strict=True)
        return bounds_ns(of, Edf(tuple(due_ns - least_ns for due_ns, least_ns in after), "global"), worth)

    return Method(f"common EDF {name}", "EDF, clocks in common", judged, lambda query: None)


def _nothing(query: PlacedQuery) -> Bounds:
    return dict.fromkeys(output.name for output in query.transactions.outputs)


def _paper(query: PlacedQuery, worth: int) -> Bounds:
    dues_ns = query.paper_dues_ns
    return _nothing(query) if dues_ns is None else bounds_ns(query.transactions, Edf(dues_ns), worth)


def _ours_holistic(query: PlacedQuery, worth: int) -> Bounds:
    return bounds_ns(query.transactions, Edf(query.sound.dues_ns), worth)


APART = 3  # times the longest deadline: no response is longer that is worth having
RULES = {
    "UD": sub_deadlines.ultimate,
    "ED": sub_deadlines.effective,
    "EQS": sub_deadlines.equal_slack,
    "EQF": sub_deadlines.equal_flexibility,
}
PAPER = Method("[P]", "[P]", _paper, lambda query: query.paper_dues_ns)
OURS = Method("ours", "ours", lambda query, _: query.sound.bounds_ns, lambda query: query.sound.dues_ns)
OURS_HOLISTIC = Method("ours, holistic bound", "ours", _ours_holistic, lambda query: query.sound.dues_ns)
METHODS = (
    _fixed("RM", priorities.rate_monotonic),
    _fixed("DM", priorities.deadline_monotonic),
    _deadline_monotonic("EQS", sub_deadlines.equal_slack),
    _deadline_monotonic("EQF", sub_deadlines.equal_flexibility),
    _fixed("Audsley EQF", _audsley),
    _fixed("HOPA", priorities.hopa),
    *(_edf(name, rule) for name, rule in RULES.items()),
    *(_edf_in_common(name, rule) for name, rule in RULES.items()),
    PAPER,
    OURS,
    OURS_HOLISTIC,
)

__all__ = ["METHODS", "OURS", "OURS_HOLISTIC", "PAPER", "Bounds", "Family", "Method", "holds"]
