"""[Q] figure 8 and 4.1: batches of PQED, and how often its printed form misses in sets that the test admits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from coordinator.calculus.theorems import sharper
from infra.papers.guarantee.random_queries import Drawn, admitted, densest, draw, workload
from infra.papers.guarantee.table2 import FACTOR, WINDOW_NS
from infra.papers.one_node import Outcome
from infra.papers.one_node import run as simulate
from infra.papers.policies import POLICIES
from infra.papers.pool import spread
from infra.papers.reproduction import Curve, Effort, Figure, Plot, Tell

SEED = 1
DECISIONS_US = (1, 5, 20)
FORMS = ("qed", "pqed", "pqed-printed")


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
    """The count, then figure 8."""
    sets = {"tiny": 40, "quick": 150, "full": 800}[effort]
    tell(f"{sets} admitted sets")
    tried, missed = unsound(sets, SEED)
    yield Figure(
        "section 4.1: PQED keeps what QED keeps",
        {"sets with a miss": "none"},
        {"admitted sets": tried} | {f"with a miss under {policy}": count for policy, count in missed.items()},
        missed["pqed-printed"] == 0,
        "Equations (5)-(7) are unsound: the room for a batch is computed as if the other queues were empty. "
        "`pqed` asks between two tuples "
        "whether its next one is still the most urgent of all: none of the sets misses.",
        "Two to five queries, admitted by the sharper test; the densest arrivals, together and with four random "
        "offsets.",
        [SEED],
    )
    if effort != "tiny":
        yield from _sizes(effort, tell)


def sizes(counts: Sequence[int], decision_ns: int = 0, names: Sequence[str] = FORMS) -> dict[str, list[Outcome]]:
    """QED and both forms of PQED on the first so many queries of table 2."""
    drawn = draw(SEED, FACTOR)
    found = spread(_one, [(drawn[:count], name, decision_ns) for name in names for count in counts])
    return {name: found[i * len(counts) : (i + 1) * len(counts)] for i, name in enumerate(names)}


def _one(drawn: Sequence[Drawn], name: str, decision_ns: int) -> Outcome:
    return simulate(POLICIES[name], densest(drawn, WINDOW_NS), decision_ns)


def _sizes(effort: Effort, tell: Tell) -> Iterator[Figure]:
    counts = [100, 320, 400, 450] if effort == "quick" else [10, 40, 100, 200, 280, 320, 360, 380, 400, 420, 450]
    tell("figure 8")
    found = sizes(counts)
    idle = [100 * (1 - each.busy_ns / max(each.ended_ns, WINDOW_NS)) for each in found["pqed"]]
    means = {name: [each.mean_batch for each in outcomes] for name, outcomes in found.items() if name != "qed"}
    most = {name: [float(each.largest) for each in found[name]] for name in means}
    printed_form = means["pqed-printed"]
    peak = printed_form.index(max(printed_form))
    xs = list(map(float, counts))
    yield Figure(
        "figure 8 (a), (b): tasks per batch, idle time",
        {"(a)": "mean and largest batch grow, then fall", "(b)": "idle time falls"},
        {
            f"{count} queries": f"pqed-printed {printed_form[i]:.2f}, largest {most['pqed-printed'][i]:.0f}; pqed "
            f"{means['pqed'][i]:.2f}, largest {most['pqed'][i]:.0f}; idle {idle[i]:.0f} %"
            for i, count in enumerate(counts)
            if count >= 100
        },
        0 < peak < len(counts) - 1 and _falls(idle),
        f"Over the paper's range of 10 to 450 queries the printed form's batches are largest at {counts[peak]} and "
        "smaller on either side; idle time falls throughout. The batches are few: a unit seldom has two tasks queued "
        "before it is overloaded. Those of the sound form are smaller still, which is what it costs to miss nothing.",
        "Tasks per decision in the first 300 ms of the densest arrivals; axes lost. In random phases no batch has "
        "two tasks.",
        [SEED],
        [
            Plot(
                "figure 8 (a)",
                "queries",
                "tasks per decision",
                [Curve(name, xs, list(ys)) for name, ys in means.items()]
                + [Curve(f"{name}, largest", xs, list(ys)) for name, ys in most.items()],
            ),
            Plot("figure 8 (b)", "queries", "idle, %", [Curve("idle", xs, list(idle))]),
        ],
    )
    yield _time_per_task([each for each in counts if each >= 200], tell)


def _time_per_task(counts: list[int], tell: Tell) -> Figure:
    """CPU of a task and of its decision."""
    curves: dict[str, list[float | None]] = {}
    for decision_us in DECISIONS_US:
        tell(f"figure 8 (c), {decision_us} us per decision")
        for name, outcomes in sizes(counts, decision_us * 1000).items():
            curves[f"{name}, {decision_us} us"] = [
                (each.busy_ns + each.overhead_ns) / (len(each.met) - each.shed) / 1000 for each in outcomes
            ]
    saved = {
        us: [
            (one or 0) - (many or 0)
            for one, many in zip(curves[f"qed, {us} us"], curves[f"pqed-printed, {us} us"], strict=True)
        ]
        for us in DECISIONS_US
    }
    xs = list(map(float, counts))
    return Figure(
        "figure 8 (c): time per task (us)",
        {"time per task": "falls somewhat as batches grow"},
        {name: ", ".join(f"{each:.2f}" for each in ys if each is not None) for name, ys in curves.items()}
        | {"queries": ", ".join(map(str, counts))},
        all(min(each) >= 0 < max(each) for each in saved.values()),
        "A batch shares its decision, so a task takes less where batches are larger, by at most "
        + ", ".join(f"{max(each):.2f} us where a decision takes {us}" for us, each in saved.items())
        + ". How much it is in the paper depends on the cost of a decision on its machine, which is not printed; nor "
        "are axis and curve, so only the direction can be compared.",
        "CPU of a task and its share of a decision; three costs of a decision: about what `edf` takes here, five, "
        "and the least that [A] has.",
        [SEED],
        [Plot("figure 8 (c)", "queries", "us per task", [Curve(name, xs, ys) for name, ys in curves.items()])],
    )


def _falls(values: Sequence[float]) -> bool:
    return list(values) == sorted(values, reverse=True)
