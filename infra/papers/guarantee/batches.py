"""[Q] figure 8 and 4.1: batches of PQED, and how often its printed form misses in sets that the test admits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from coordinator.calculus.theorems import sharper
from infra.papers.claims import Band, always, holds
from infra.papers.guarantee.random_queries import Drawn, admitted, densest, draw, workload
from infra.papers.guarantee.table2 import FACTOR, WINDOW_NS
from infra.papers.one_node import run as simulate
from infra.papers.policies import POLICIES
from infra.papers.pool import spread
from infra.papers.reproduction import SEEDS, Curve, Effort, Figure, Plot, Tell

DECISION_US = 5  # of figure 8 (c); not printed, and only the direction is compared
COUNTS = (100, 250, 400, 450)  # of the paper's 10 to 450 queries
DRAWS = 10
FORMS = ("qed", "pqed", "pqed-printed")
SETS = 40  # of a draw


def small_set(random: Random) -> list[Drawn]:
    """Two to five queries in units of a ms, heavy enough for batches to hurt."""
    found = []
    for _ in range(random.randint(2, 5)):
        period = random.randint(8, 40)
        jcp, delay = random.random() < 0.5, random.random() < 0.5
        jitter = random.randint(0, 3 * period) if jcp else None
        found.append(
            Drawn(period, jitter, random.randint(4, 60) if delay else None, random.randint(4, 50), random.randint(1, 8))
        )
    return found


def unsound(sets: int, seed: int) -> tuple[int, dict[str, int]]:
    """(admitted sets tried, sets with a miss by policy): the densest arrivals from one instant, and with offsets."""
    random = Random(f"sets, {seed}")
    tried, missed = 0, dict.fromkeys(("pqed-printed", "pqed", "qed"), 0)
    while tried < sets:
        drawn = small_set(random)
        if not admitted(drawn, sharper):
            continue
        tried += 1
        tries = [densest(drawn, 200)]
        for _ in range(4):
            offsets = [random.randint(0, 30) for _ in drawn]
            curves = [each.curve() for each in drawn]
            tries.append(
                workload(
                    drawn,
                    [
                        [offset + int(curve.span(n)) for n in range(1, curve.count(200) + 1)]
                        for offset, curve in zip(offsets, curves, strict=True)
                    ],
                )
            )
        for policy in missed:
            missed[policy] += any(simulate(POLICIES[policy], each).missed > 0 for each in tries)
    return tried, missed


def run(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """The count of sets with a miss, then figure 8."""
    seeds = SEEDS[effort]
    tell("admitted sets")
    yield soundness(spread(unsound, [(SETS, seed) for seed in seeds]), seeds)
    tell("figure 8")
    few, counts = seeds[:DRAWS], COUNTS[:2] if effort == "tiny" else COUNTS
    found = iter(spread(one, [(count, name, seed) for seed in few for count in counts for name in FORMS]))
    yield from sizes_and_time([{count: {name: next(found) for name in FORMS} for count in counts} for _ in few], few)


def soundness(found: Sequence[tuple[int, dict[str, int]]], seeds: list[int]) -> Figure:
    """(admitted sets tried, sets with a miss by policy) of each draw."""
    total = {policy: sum(missed[policy] for _, missed in found) for policy in found[0][1]}
    return Figure(
        "section 4.1: PQED keeps what QED keeps",
        [always("no admitted set misses under PQED by (5)-(7)", [missed["pqed-printed"] == 0 for _, missed in found],
                "draws")],
        {"admitted sets": sum(tried for tried, _ in found)}
        | {f"with a miss under {policy}": count for policy, count in total.items()},
        [
            always("under QED none misses", [missed["qed"] == 0 for _, missed in found], "draws"),
            always("nor under `pqed`, which asks between two tuples whether its next one is still the most urgent of "
                   "all", [missed["pqed"] == 0 for _, missed in found], "draws"),
        ],
        f"{SETS} sets per draw, of two to five queries, admitted by the sharper test; the densest arrivals, together "
        "and with four random offsets. (5)-(7) compute the room for a batch as if the other queues were empty.",
        seeds,
    )  # fmt: skip


@dataclass(frozen=True)
class Batches:
    """One run: tasks per decision, the most of one, idle time in %, CPU of a task with its share of decisions in us,
    and missed, %."""

    mean: float
    largest: int
    idle: float
    task_us: float
    missed: float


def one(count: int, name: str, seed: int) -> Batches:
    """The first so many queries of table 2 as densely as they may come."""
    done = simulate(POLICIES[name], densest(draw(seed, FACTOR)[:count], WINDOW_NS), DECISION_US * 1000)
    ran = len(done.met) - done.shed
    return Batches(
        done.mean_batch,
        done.largest,
        100 * (1 - (done.busy_ns + done.overhead_ns) / max(done.ended_ns, WINDOW_NS)),
        (done.busy_ns + done.overhead_ns) / ran / 1000,
        done.missed,
    )


Runs = dict[int, dict[str, Batches]]  # by queries and form


def sizes_and_time(draws: Sequence[Runs], seeds: list[int]) -> Iterator[Figure]:
    """Figure 8 of each draw."""
    counts = list(draws[0])
    peak, ends = counts[-2], (counts[0], counts[-1])
    printed = [{count: each["pqed-printed"] for count, each in draw_.items()} for draw_ in draws]

    def row(count: int, value_of: Callable[[Batches], float], names: Sequence[str] = ("pqed-printed", "pqed")) -> str:
        return ", ".join(f"{name} {Band.of(value_of(each[count][name]) for each in draws)}" for name in names)

    how = (
        f"The first 300 ms of the densest arrivals, {DECISION_US} us per decision; axes lost. `pqed-printed`: (5)-(7); "
        "`pqed`: the sound form. "
    )
    yield Figure(
        "figure 8 (a), (b): tasks per batch, idle time",
        [
            holds(f"the mean batch grows, then falls (largest at {peak} of {', '.join(map(str, counts))} queries)",
                  [each[peak].mean > max(each[end].mean for end in ends) for each in printed]),
            holds("so does the largest batch",
                  [each[peak].largest > max(each[end].largest for end in ends) for each in printed]),
            holds("idle time falls, until none is left (half a percent)",
                  [all(each[b].idle < max(each[a].idle, 0.5) for a, b in pairwise(counts)) for each in printed]),
        ],
        {f"{count} queries": f"mean {row(count, lambda each: each.mean)}; largest "
         f"{row(count, lambda each: each.largest)}; idle {row(count, lambda each: each.idle, ['pqed'])} %"
         for count in counts},
        [holds("batches of the sound form are not larger, which is what it costs to miss nothing",
               [each[count]["pqed"].mean <= each[count]["pqed-printed"].mean for each in draws for count in counts],
               "runs")],
        how,
        seeds,
        [Plot("figure 8 (a)", "queries", "tasks per decision, median of the draws",
              [Curve(name, list(map(float, counts)), [Band.of(each[count][name].mean for each in draws).median
                                                      for count in counts]) for name in FORMS])],
    )  # fmt: skip
    yield Figure(
        "figure 8 (c): time per task (us)",
        [holds("as batches grow, a task takes less",
               [each[peak].task_us < each[counts[0]].task_us for each in printed])],
        {f"{count} queries": row(count, lambda each: each.task_us, FORMS) for count in counts},
        [
            holds(f"with batches a task takes less than under QED, at {peak} queries",
                  [each[peak]["pqed-printed"].task_us < each[peak]["qed"].task_us for each in draws]),
            holds("with those of the sound form as well, or as much",
                  [each[peak]["pqed"].task_us <= each[peak]["qed"].task_us for each in draws]),
        ],
        how + "CPU of a task and its share of a decision.",
        seeds,
    )  # fmt: skip
