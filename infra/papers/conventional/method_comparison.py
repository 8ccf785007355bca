"""[P] 7, the work it leaves: conventional methods for distributed real-time systems, [P]'s assignment, and ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from infra.papers.conventional.collision_query import collision_query
from infra.papers.conventional.holistic import WORTH_HAVING
from infra.papers.conventional.method_outcomes import IN_TIME, Outcome, Reason, mean_share, outcomes, share_held
from infra.papers.conventional.methods import METHODS, OURS, OURS_HOLISTIC, PAPER, Family, Method, holds
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


def collision(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """[P]'s own query: bounds at n = 15."""
    query = collision_query(15)
    found = {method: method.bounds_ns(query, WORTH_HAVING) for method in METHODS}
    yield Figure(
        name="conventional: [P]'s query, n = 15 (bounds in ms, out1/out2/out3)",
        printed={},
        measured={method.name: "/".join(_ms(each) for each in found[method].values()) for method in METHODS},
        reproduces=None,
        why=_of_collision(found),
        reading=COLLISION,
    )


def largest(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """How far each method goes with [P]'s own query."""
    found = {}
    for method in METHODS:
        tell(method.name)
        found[method] = _largest_n(method)
    yield Figure(
        name="conventional: [P]'s query, the largest n with every bound in time",
        printed={},
        measured={method.name: n for method, n in found.items()},
        reproduces=None,
        why=_of_largest(found),
        reading="As in the row before.",
    )


def _ms(ns: int | None) -> str:
    return "none" if ns is None else f"{ns / MS:.4g}"


def _of_collision(found: Mapping[Method, Mapping[str, int | None]]) -> str:
    query = collision_query(15)
    late = [method.name for method, bounds in found.items() if not holds(query, bounds)]
    warning = {method: ns for method, bounds in found.items() if (ns := bounds["warning"]) is not None}
    least = min((each for each in warning if each.conventional), key=lambda method: warning[method])
    ours, same = warning[OURS], warning[OURS_HOLISTIC]
    return (
        f"In time by all{f' but {_named(late)}' if late else ''}. The least bound of out2 is "
        f"{_ms(min(warning.values()))} ms, by {min(warning, key=lambda method: warning[method]).name}; of the "
        f"conventional methods {_ms(warning[least])}, by {least.name}. With our sub-deadlines the holistic bound is "
        f"{_ms(same)} and ours {_ms(ours)}: "
        + (
            "ours also counts that O2 takes 1 ms for each tuple, so that O3 gets them no more densely."
            if ours < same
            else "ours is not the sharper one."
        )
    )


def _largest_n(method: Method) -> int:
    """More tuples only add work: where n is in time, fewer are."""
    low, high = 0, LARGEST_N
    while low < high:
        n = (low + high + 1) // 2
        low, high = (
            (n, high) if holds(collision_query(n), method.bounds_ns(collision_query(n), IN_TIME)) else (low, n - 1)
        )
    return low


def _of_largest(found: Mapping[Method, int]) -> str:
    most = max(n for method, n in found.items() if method.conventional)
    farthest = [method.name for method, n in found.items() if method.conventional and n == most]
    best = max(found.values())
    return (
        f"{_named([method.name for method, n in found.items() if n == best])} "
        f"{'goes' if sum(n == best for n in found.values()) == 1 else 'go'} farthest, to n = {best}. Of the "
        f"conventional methods {_named(farthest)}, to {most}; [P] to {found[PAPER]}, ours to {found[OURS]}."
    )


def random_queries(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """Shares of random queries, bounds over deadlines, and where a conventional method is better, why."""
    found: dict[float, list[Outcome]] = {}
    for level, seeds in SEEDS[effort].items():
        found[level] = []
        for each in outcomes(seeds, level):
            found[level].append(each)
            tell(f"utilisation {level:g}, query {len(found[level])} of {len(seeds)}")
    reading = (
        f"Queries by utilisation, the seeds from the first on: {_by_level(found, [len(of) for of in found.values()])}; "
        "on 2 to 4 nodes, of odd seeds trees, of even ones chains; bursts of 1 to 3 and periods "
        "with jitter of up to two of them; deadlines of 0.4 to 1 period per operator on the way; every operator where "
        "the draw has put it; costs scaled until every node is as full as said. Seeds used while this was built: "
        f"{BUILT_WITH}. {ALIKE}"
    )
    given = sorted({each.seed for of in found.values() for each in of})
    yield _shares(found, reading, given)
    yield _means(found, given)
    yield _accepted(found, given)
    yield _better(found, given)


def _shares(found: Mapping[float, Sequence[Outcome]], reading: str, seeds: list[int]) -> Figure:
    shares = {method: [share_held(each, method) for each in found.values()] for method in METHODS}
    return Figure(
        name="conventional: random queries with every output in time (%)",
        printed={},
        measured={method.name: _by_level(found, shares[method]) for method in METHODS},
        reproduces=None,
        why=_of_shares(found),
        reading=reading,
        seeds=seeds,
        plots=[_plot(family, list(found), shares, "queries with every output in time, %") for family in FAMILIES],
    )


def _of_shares(found: Mapping[float, Sequence[Outcome]]) -> str:
    every = [each for of in found.values() for each in of]
    held = {method: sum(each.holds(method) for each in every) for method in METHODS}
    said = []
    for family in FAMILIES:
        most = max(held[method] for method in METHODS if method.family == family)
        best = [method.name for method in METHODS if method.family == family and held[method] == most]
        said.append(f"{_named(best)} ({family}: {most})")
    first = max((method for method in METHODS if method.conventional), key=lambda m: held[m])
    than_first = _compared(held[OURS], held[first])
    than_rule = _compared(held[PAPER], held[_named_method("EDF EQF")])
    return (
        f"Of {len(every)}, the most are in time by {_named(said)}. Ours has {held[OURS]}, {than_first} the best "
        f"conventional method, and {held[OURS_HOLISTIC]} by the holistic "
        f"analysis of the same sub-deadlines. [P] has {held[PAPER]}, {than_rule} EDF EQF, which is its (1) without "
        "the demand rows."
    )


def _compared(one: int, other: int) -> str:
    if one == other:
        return "as many as"
    return f"{abs(one - other)} {'more' if one > other else 'fewer'} than"


def _means(found: Mapping[float, Sequence[Outcome]], seeds: list[int]) -> Figure:
    means = {method: [mean_share(each, method) for each in found.values()] for method in METHODS}
    counts = [sum(each.all_hold for each in of) for of in found.values()]
    every = [each for of in found.values() for each in of]
    whole = {method: mean_share(every, method) for method in METHODS}
    known = {method: mean for method, mean in whole.items() if mean is not None}
    ranked = sorted(known, key=lambda method: known[method])
    why = f"Over the outputs of the queries that every method holds, which are {_by_level(found, counts)}. "
    if ranked:
        why += f"All levels together the lowest is {ranked[0].name} ({known[ranked[0]]:.3f}), the highest "
        why += (
            f"{ranked[-1].name} ({known[ranked[-1]]:.3f}); ours is {known[OURS]:.3f}, and {known[OURS_HOLISTIC]:.3f} "
        )
        why += "by the holistic analysis of the same sub-deadlines. Our planner stops where all outputs are in time "
        why += "and does not look for less."
    why = why.strip()
    return Figure(
        name="conventional: random queries, mean bound over deadline",
        printed={},
        measured={method.name: _by_level(found, means[method]) for method in METHODS},
        reproduces=None,
        why=why,
        reading=SAME,
        seeds=seeds,
        plots=[_plot(family, list(found), means, "mean bound over deadline") for family in FAMILIES],
    )


def _accepted(found: Mapping[float, Sequence[Outcome]], seeds: list[int]) -> Figure:
    every = [each for of in found.values() for each in of]
    accepted = [each for each in every if each.accepted]
    beyond = [each for each in accepted if not each.holds(PAPER)]
    held = [each for each in every if not each.accepted and any(each.holds(method) for method in METHODS)]
    return Figure(
        name="conventional: random queries that [P]'s demand rows (6) accept",
        printed={},
        measured={
            f"utilisation {level:g}": f"{sum(each.accepted for each in of)} of {len(of)} accepted, "
            f"{sum(each.holds(PAPER) for each in of)} in time by holistic analysis"
            for level, of in found.items()
        },
        reproduces=None,
        why=f"(6) counts one burst of each stream, released at one instant: of the {len(accepted)} queries that it "
        f"accepts {len(beyond)} have an output whose bound is beyond its deadline, since jobs come again, late ones "
        f"close to the next, and what is due later blocks. Of the {len(every) - len(accepted)} that it refuses "
        f"{len(held)} are in time by another method: (6) takes all of a node's streams for released together and all "
        "due after their own sub-deadlines, and a sub-deadline that does not hold is no late output yet.",
        reading=SAME,
        seeds=seeds,
    )


def _better(found: Mapping[float, Sequence[Outcome]], seeds: list[int]) -> Figure:
    every = [each for of in found.values() for each in of]
    better = [each for each in every if each.reason is not None]
    only = [
        each
        for each in every
        if each.holds(OURS) and not any(each.holds(method) for method in METHODS if method.conventional)
    ]
    same = [each for each in better if each.holds(OURS_HOLISTIC)]
    by_reason = Counter(each.reason for each in better)
    sums = [each for each in better if each.reason is Reason.SUMS]
    said = [f"{by_reason[reason]}: {reason.value}" for reason in Reason if by_reason[reason]]
    return Figure(
        name="conventional: random queries where a conventional method is better than ours",
        printed={},
        measured={
            "in time by some conventional method, not by ours": len(better),
            "of these by our sub-deadlines under holistic analysis": len(same),
            "of these by our analysis of whole ways, with either's sub-deadlines": sum(
                each.by_whole_ways for each in sums
            ),
            "in time by ours, by no conventional method": len(only),
            "seeds": ", ".join(f"{each.seed} at {each.utilisation:g}" for each in better) or "none",
        },
        reproduces=None,
        why=f"{'; '.join(said)}.{WHOLE_WAYS if sums else ''}" if better else "No query is.",
        reading=SAME,
        seeds=seeds,
    )


WHOLE_WAYS = (
    " `analyse(..., ways=True)` counts that wait once as well, but plans do not use it (docs/explanation/guarantee.md)."
)
FAMILIES: tuple[Family, ...] = ("fixed priorities", "EDF", "EDF, clocks in common")


@cache
def _named_method(name: str) -> Method:
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


def _named(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


__all__ = ["collision", "largest", "random_queries"]
