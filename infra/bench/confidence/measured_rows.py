"""What the bench measures: how often results are beyond their bound, and how near it is to what they take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.bounds import deadline_claim
from coordinator.guarantee.confidence import late_budget
from coordinator.guarantee.confidence.confident_bounds import ConfidentBounds
from coordinator.guarantee.confidence.operator_costs import with_costs
from coordinator.guarantee.confidence.quantile_limits import lower_limit, upper_limit
from coordinator.guarantee.system import read
from coordinator.spec.quality import Confidence
from coordinator.spec.runtime_charges import NOTHING
from infra.bench.confidence import held_out
from infra.bench.confidence.cost_laws import LAWS
from infra.bench.confidence.drawn_plans import Measured, measured
from infra.bench.tightness.drawn_queries import PLAIN

AGE_NS = 1  # of every tuple, as the drawn queries declare
DOUBT = 0.05
Says = Literal["kept", "open", "broken"]
LEAST_RESULTS = 3000  # of which none may be late for the upper limit to be below 0.1 %


@dataclass(frozen=True)
class Bounds:
    """Of an output, in ns from its tuples' origins. `confident_ns`: with the confidence, of costs that may depend on
    each other, None: none, for `why`; `evenly_ns`: the same with even shares of what may be late; `independent_ns`: of
    independent costs; `certain_ns`: by the plan's costs; `largest_ns`: by the largest costs seen."""

    confident_ns: int | None
    evenly_ns: int | None
    independent_ns: int | None
    certain_ns: int
    largest_ns: int
    why: str = ""


@dataclass(frozen=True)
class Held:
    """A bound against held-out results: how many were beyond it. `least`, `most`: of the share that is, with 95 % each
    (Clopper and Pearson)."""

    exceeding: int
    results: int

    @property
    def least(self) -> float:
        """From below."""
        return lower_limit(self.results, self.exceeding, DOUBT) if self.exceeding else 0.0

    @property
    def most(self) -> float:
        """From above."""
        return upper_limit(self.results, self.exceeding, DOUBT)

    def says(self, late: float) -> Says:
        """Whether so many results show that no larger share is beyond, or that a larger one is."""
        return "kept" if self.most < late else "broken" if self.least > late else "open"


@dataclass(frozen=True)
class Row:
    """An output of the plan of (kind, load, seed), costs of a law. `seen_ns`: the quantile of the held-out results that
    the confidence names; `held`, `held_independent`: the two bounds against them, None: there is no bound."""

    kind: str
    load: float
    seed: int
    law: str
    output: str
    share: float
    bounds: Bounds
    seen_ns: int
    held: Held | None
    held_independent: Held | None

    @property
    def says(self) -> Says:
        """Of the two bounds, the worse."""
        late = 1 - self.share
        said = [each.says(late) for each in (self.held, self.held_independent) if each is not None]
        return "broken" if "broken" in said else "open" if "open" in said else "kept"


@dataclass(frozen=True)
class Setting:
    """`calls`: that a profile has measured of each operator; `runs`: held out; `asked`: the confidence."""

    calls: int
    runs: int
    asked: Confidence


def rows(kinds: Sequence[str], loads: Sequence[float], seeds: Sequence[int], setting: Setting) -> Iterator[Row]:
    """Of every class at every load, each with all laws in turn."""
    for kind in kinds:
        for load in loads:
            for seed in seeds:
                law = list(LAWS)[(seed + PLAIN.index(kind) + round(100 * load)) % len(LAWS)]
                yield from rows_of(kind, load, seed, law, setting)


def rows_of(kind: str, load: float, seed: int, law: str, setting: Setting, least: int = LEAST_RESULTS) -> Iterator[Row]:
    """Of one plan; `least`: results that an output needs."""
    given = f"{{confidence: {setting.asked.said}}}"
    found = measured(kind, load, seed, law, setting.calls, given)
    took = held_out.latencies(read(found.plan), found.samples, setting.runs, f"{kind} {load} {seed} {law} held out")
    for name, bounds in _bounds(found, setting.asked).items():
        if len(took[name]) >= least:
            share, seen = float(setting.asked.share), took[name]
            yield Row(
                kind, load, seed, law, name, share, bounds, _quantile_ns(seen, share),
                _held(seen, bounds.confident_ns), _held(seen, bounds.independent_ns),
            )  # fmt: skip


def _bounds(found: Measured, asked: Confidence) -> dict[str, Bounds]:
    """By output that has one by the plan's costs, and by the largest seen."""
    analysis = analyse(read(found.plan), NOTHING)
    calls = {name: (one.calls,) for name, one in found.samples.items()}
    divided = ConfidentBounds(found.plan, analysis, calls)
    evenly = ConfidentBounds(found.plan, analysis, calls, late_budget.evenly)
    seen = with_costs(analysis.system, {name: max(1, one.worst_ns) for name, one in found.samples.items()})
    by_largest = analyse(seen, NOTHING)
    made: dict[str, Bounds] = {}
    for name, claim in found.plan.guarantee.items():
        certain, largest = claim.bound_ns, deadline_claim(by_largest, name).bound_ns
        stated = claim.confident
        if certain is None or largest is None or stated is None:
            continue
        independent = divided.of_output(name, replace(asked, independent=True), claim)
        made[name] = Bounds(
            stated.bound_ns,
            evenly.of_output(name, asked, claim).bound_ns,
            independent.bound_ns,
            certain,
            largest,
            stated.why if stated.bound_ns is None else "",
        )
    return made


def _quantile_ns(took: Sequence[int], share: float) -> int:
    return sorted(took)[min(len(took) - 1, int(len(took) * share))]


def _held(took: Sequence[int], bound_ns: int | None) -> Held | None:
    if bound_ns is None:
        return None
    exceeding = sum(each + AGE_NS > bound_ns for each in took)
    return Held(exceeding, len(took))


@dataclass(frozen=True)
class Figures:
    """Of some rows. `bounded`: those with a bound of dependent costs; `together`, `together_independent`: all their
    results against the two bounds; `holding`, `open`, `broken`: rows, each by itself. The ratios are means of a bound
    over the quantile seen, of the bounded rows; None: there are none."""

    name: str
    outputs: int
    bounded: int
    together: Held
    together_independent: Held
    holding: int
    open: int
    broken: int
    confident: float | None
    evenly: float | None
    independent: float | None
    largest: float | None
    certain: float | None


def figures(name: str, found: Sequence[Row]) -> Figures:
    """Of one row at least."""
    bounded = [row for row in found if row.held is not None]
    said = [row.says for row in bounded]

    def ratio(of: Callable[[Bounds], int | None]) -> float | None:
        there = [bound / row.seen_ns for row in bounded if (bound := of(row.bounds)) is not None]
        return fmean(there) if there else None

    return Figures(
        name,
        len(found),
        len(bounded),
        _together(row.held for row in found),
        _together(row.held_independent for row in found),
        said.count("kept"),
        said.count("open"),
        said.count("broken"),
        ratio(lambda one: one.confident_ns),
        ratio(lambda one: one.evenly_ns),
        ratio(lambda one: one.independent_ns),
        ratio(lambda one: one.largest_ns),
        ratio(lambda one: one.certain_ns),
    )


def _together(found: Iterable[Held | None]) -> Held:
    there = [each for each in found if each is not None]
    return Held(sum(each.exceeding for each in there), sum(each.results for each in there))


__all__ = ["Bounds", "Figures", "Held", "Row", "Setting", "figures", "rows", "rows_of"]
