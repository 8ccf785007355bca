"""[P] 7, the work it leaves: conventional methods for distributed real-time systems, [P]'s assignment, and ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from statistics import fmean

from infra.papers.claims import Claim, always
from infra.papers.conventional.collision_query import collision_query
from infra.papers.conventional.holistic import WORTH_HAVING
from infra.papers.conventional.method_outcomes import IN_TIME, Outcome, Reason, mean_share, outcomes, share_held
from infra.papers.conventional.methods import METHODS, OURS, OURS_HOLISTIC, PAPER, Bounds, Family, Method, holds
from infra.papers.reproduction import Curve, Effort, Figure, Plot, Tell

MS = 1_000_000
LARGEST_N = 40  # beyond any that node 2 has time for
BUILT_WITH = "1 to 12 and 101 to 103"
SEEDS: Mapping[Effort, Mapping[float, range]] = {  # by utilisation: near 1 a query may take a minute of CPU time
    "tiny": {0.5: range(1, 4)},
    "quick": {0.3: range(1, 11), 0.5: range(1, 11)},
    "full": {0.3: range(201, 301), 0.5: range(201, 301), 0.7: range(201, 211), 0.9: range(201, 211)},
}
ALIKE = (
    "RM, DM: fixed priorities by period, by the deadline of the whole; DM EQS, DM EQF: by sub-deadlines; Audsley's "
    "assignment for those of EQF, with jitters as if these held; HOPA. EDF: sub-deadlines after releases, as on our "
    "nodes, by UD, ED, EQS, EQF (Kao and Garcia-Molina); common EDF: after the event, with clocks in common (Spuri). "
    "Holistic analysis without preemption, all jobs of a busy period; [P]: its model's sub-deadlines under the same. "
    "ours: the `sound` planner's sub-deadlines and bounds. The same task units, places and costs for all; nothing is "
    "charged for the runtime."
)
SAME = "Queries and methods as in the first of these rows."
COLLISION = (
    "A burst a second, so RM goes by place in the query; links without delay; O3 on node 2, where [P] puts it; bounds "
    "from admission on. " + ALIKE
)


Found = Mapping[float, Sequence[Outcome]]  # by utilisation


def collision(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """[P]'s own query: bounds at n = 15."""
    query = collision_query(15)
    yield bounds_of_collision({method: method.bounds_ns(query, WORTH_HAVING) for method in METHODS})


def bounds_of_collision(found: Mapping[Method, Bounds]) -> Figure:
    """By method, in ns; [P]'s query at n = 15."""
    query = collision_query(15)
    warning = {method: WORST if ns is None else ns for method, each in found.items() for ns in [each["warning"]]}
    return Figure(
        "conventional: [P]'s query, n = 15 (bounds in ms, out1/out2/out3)",
        [],
        {method.name: "/".join(_ms(each) for each in bounds.values()) for method, bounds in found.items()},
        [
            always("all but RM have every output in time, and RM has not",
                   [holds(query, bounds) == (method.name != "RM") for method, bounds in found.items()], "methods"),
            always("no method's bound of out2 is below ours",
                   [warning[OURS] <= each for each in warning.values()], "methods"),
            always("with our sub-deadlines the holistic bound of out2 is above ours, which also counts that O2 takes "
                   "1 ms for each tuple, so that O3 gets them no more densely",
                   [warning[OURS] < warning[OURS_HOLISTIC]], "bounds"),
        ],
        COLLISION,
    )  # fmt: skip


def largest(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """How far each method goes with [P]'s own query."""
    found = {}
    for method in METHODS:
        tell(method.name)
        found[method] = _largest_n(method)
    yield how_far(found)


def how_far(found: Mapping[Method, int]) -> Figure:
    """By method, the largest n."""
    conventional = max(n for method, n in found.items() if method.conventional)
    return Figure(
        "conventional: [P]'s query, the largest n with every bound in time",
        [],
        {method.name: n for method, n in found.items()},
        [
            always("ours goes farther than every conventional method and [P]",
                   [n < found[OURS] for method, n in found.items() if method.family != "ours"], "methods"),
            always("by the holistic analysis of our sub-deadlines ours goes as far as the farthest conventional method",
                   [found[OURS_HOLISTIC] == conventional], "methods"),
            always("the farthest conventional method goes farther than [P]", [conventional > found[PAPER]], "methods"),
        ],
        "As in the row before.",
    )  # fmt: skip


def _ms(ns: int | None) -> str:
    return "none" if ns is None else f"{ns / MS:.4g}"


def _largest_n(method: Method) -> int:
    """More tuples only add work: where n is in time, fewer are."""
    low, high = 0, LARGEST_N
    while low < high:
        n = (low + high + 1) // 2
        low, high = (
            (n, high) if holds(collision_query(n), method.bounds_ns(collision_query(n), IN_TIME)) else (low, n - 1)
        )
    return low


def random_queries(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """Shares of random queries, bounds over deadlines, and where a conventional method is better, why."""
    found: dict[float, list[Outcome]] = {}
    for level, seeds in SEEDS[effort].items():
        found[level] = []
        for each in outcomes(seeds, level):
            found[level].append(each)
            tell(f"utilisation {level:g}, query {len(found[level])} of {len(seeds)}")
    yield from of_random(found)


def of_random(found: Found) -> Iterator[Figure]:
    """All figures of one set of queries. No means where no query is in time by every method."""
    seeds = sorted({each.seed for of in found.values() for each in of})
    yield shares(found, seeds)
    if any(each.all_hold for each in _every(found)):
        yield means(found, seeds)
    yield accepted(found, seeds)
    yield better(found, seeds)


def _every(found: Found) -> list[Outcome]:
    return [each for of in found.values() for each in of]


def shares(found: Found, seeds: list[int]) -> Figure:
    """Queries that each method holds."""
    held = {method: [share_held(each, method) for each in found.values()] for method in METHODS}
    in_all = {method: sum(each.holds(method) for each in _every(found)) for method in METHODS}
    most = [max(each) for each in zip(*(held[method] for method in METHODS if method.conventional), strict=True)]
    return Figure(
        "conventional: random queries with every output in time (%)",
        [],
        {method.name: f"{_by_level(found, held[method])}; in all {in_all[method]}" for method in METHODS},
        [
            *(_first(in_all, family) for family in FAMILIES),
            always("ours holds as many as the best conventional method does, or more",
                   [ours >= best for ours, best in zip(held[OURS], most, strict=True)], "utilisations"),
            always("ours holds queries that the holistic analysis of the same sub-deadlines does not: a burst is "
                   "waited for once on its whole way",
                   [any(each.holds(OURS) and not each.holds(OURS_HOLISTIC) for each in _every(found))], "samples"),
            always("[P] holds no more than EDF EQF, which is its (1) without the demand rows",
                   [mine <= its for mine, its in zip(held[PAPER], held[_named("EDF EQF")], strict=True)],
                   "utilisations"),
        ],
        f"Queries by utilisation, the seeds from the first on: {_by_level(found, [len(of) for of in found.values()])}; "
        "on 2 to 4 nodes, of odd seeds trees, of even ones chains; bursts of 1 to 3 and periods "
        "with jitter of up to two of them; deadlines of 0.4 to 1 period per operator on the way; every operator where "
        "the draw has put it; costs scaled until every node is as full as said. Seeds used while this was built: "
        f"{BUILT_WITH}. {ALIKE}",
        seeds,
        [_plot(family, list(found), held, "queries with every output in time, %") for family in FAMILIES],
    )  # fmt: skip


def _first(held: Mapping[Method, int], family: Family) -> Claim:
    """Whether the method that we name as the best of its family holds the most queries, or as many."""
    best = _named(BEST[family])
    return always(f"of {family} none holds more than {best.name}",
                  [n <= held[best] for method, n in held.items() if method.family == family], "methods")  # fmt: skip


def means(found: Found, seeds: list[int]) -> Figure:
    """Bounds over deadlines of the queries that every method holds, at least one."""
    by_level = {method: [mean_share(each, method) for each in found.values()] for method in METHODS}
    counts = [sum(each.all_hold for each in of) for of in found.values()]
    whole = {method: fmean(_shares_of_all(found, method)) for method in METHODS}
    deadline_monotonic = _named("DM")
    return Figure(
        "conventional: random queries, mean bound over deadline",
        [],
        {method.name: f"{_by_level(found, by_level[method])}; in all {whole[method]:.3f}" for method in METHODS},
        [
            always("none is below DM", [whole[deadline_monotonic] <= each for each in whole.values()], "methods"),
            always("none is above ours: our planner stops where all outputs are in time and does not look for less",
                   [whole[OURS] >= each for each in whole.values()], "methods"),
            always("the holistic analysis of our sub-deadlines is below ours", [whole[OURS_HOLISTIC] < whole[OURS]],
                   "samples"),
        ],
        f"Over the outputs of the queries that every method holds, which are {_by_level(found, counts)}. {SAME}",
        seeds,
        [_plot(family, list(found), by_level, "mean bound over deadline") for family in FAMILIES],
    )  # fmt: skip


def _shares_of_all(found: Found, method: Method) -> list[float]:
    return [share for each in _every(found) if each.all_hold for share in each.shares[method.name]]


def accepted(found: Found, seeds: list[int]) -> Figure:
    """What [P]'s demand rows accept, beside what is in time."""
    every = _every(found)
    beyond = [each for each in every if each.accepted and not each.holds(PAPER)]
    held = [each for each in every if not each.accepted and any(each.holds(method) for method in METHODS)]
    return Figure(
        "conventional: random queries that [P]'s demand rows (6) accept",
        [],
        {
            f"utilisation {level:g}": f"{sum(each.accepted for each in of)} of {len(of)} accepted, "
            f"{sum(each.holds(PAPER) for each in of)} in time by holistic analysis"
            for level, of in found.items()
        }
        | {"accepted, with an output whose bound is beyond its deadline": len(beyond),
           "refused, in time by another method": len(held)},
        [
            always("(6) accepts queries that have an output whose bound is beyond its deadline: it counts one burst of "
                   "each stream, released at one instant, but jobs come again, late ones close to the next, and what "
                   "is due later blocks",
                   [any(each in beyond for each in of) for of in found.values()], "utilisations"),
            always("it refuses queries that are in time by another method: it takes all of a node's streams for "
                   "released together and all due after their own sub-deadlines, and a sub-deadline that does not hold "
                   "is no late output yet", [bool(held)], "samples"),
        ],
        SAME,
        seeds,
    )  # fmt: skip


def better(found: Found, seeds: list[int]) -> Figure:
    """Queries that a conventional method holds and ours does not, and why."""
    every = _every(found)
    late = [each for each in every if each.reason is not None]
    of = {reason: [each for each in late if each.reason is reason] for reason in Reason}
    only = [
        each.holds(OURS) and not any(each.holds(method) for method in METHODS if method.conventional) for each in every
    ]
    return Figure(
        "conventional: random queries where a conventional method is better than ours",
        [],
        {
            "in time by some conventional method, not by ours": len(late),
            **{f"of these {NAMES[reason]}": len(each) for reason, each in of.items()},
            "of these by our sub-deadlines under holistic analysis": sum(each.holds(OURS_HOLISTIC) for each in late),
            "in time by ours, by no conventional method": sum(only),
            "seeds": ", ".join(f"{each.seed} at {each.utilisation:g}" for each in late) or "none",
        },
        [
            always("more are in time by ours alone than by conventional methods alone", [sum(only) > len(late)],
                   "samples"),
            always("sums are no reason any more: limits of whole ways count each wait once", [not of[Reason.SUMS]],
                   "samples"),
        ],
        f"{'; '.join(f'{NAMES[reason]}: {reason.value}' for reason in Reason)}. {SAME}",
        seeds,
    )  # fmt: skip


WORST = 1 << 62  # ns: no bound
FAMILIES: tuple[Family, ...] = ("fixed priorities", "EDF", "EDF, clocks in common")
BEST: Mapping[Family, str] = {  # HOPA searches, the others are rules
    "fixed priorities": "HOPA", "EDF": "EDF ED", "EDF, clocks in common": "common EDF EQF",
}  # fmt: skip
NAMES = {Reason.SEARCH: "by search", Reason.RULE_5: "by (5)", Reason.SUMS: "by sums", Reason.CLOCKS: "by clocks"}


@cache
def _named(name: str) -> Method:
    return next(method for method in METHODS if method.name == name)


def _by_level(found: Mapping[float, Sequence[Outcome]], values: Sequence[float | None]) -> str:
    said = ["none" if value is None else f"{value:.3g}" for value in values]
    return ", ".join(f"{level:g}: {value}" for level, value in zip(found, said, strict=True))


def _plot(family: Family, levels: list[float], values: Mapping[Method, Sequence[float | None]], what: str) -> Plot:
    drawn = [method for method in METHODS if not method.conventional or method.family == family]
    return Plot(
        f"{family}, [P]'s and ours",
        "utilisation of every node",
        what,
        [Curve(method.name, levels, list(values[method])) for method in drawn],
    )


__all__ = ["collision", "largest", "random_queries"]
