"""[Q] figure 8 and 4.1: batches of PQED, and how often its printed form misses in sets that the test admits."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from coordinator.guarantee.theorems import sharper
from infra.papers.figures import Curve, Effort, Figure, Plot, Tell
from infra.papers.guarantee_load import Drawn, admitted, densest, draw, limit, workload
from infra.papers.guarantee_table2 import FACTOR, WINDOW_NS
from infra.papers.one_node import Outcome
from infra.papers.one_node import run as simulate
from node_agent.core.policies import POLICIES

SEED = 1


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
    """(admitted sets tried, sets with a miss by policy): the densest arrivals from one instant, and with "
    "offsets."""
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
        yield _sizes(effort, tell)


def _sizes(effort: Effort, tell: Tell) -> Figure:
    drawn = draw(SEED, FACTOR)
    most = limit(drawn, sharper)
    counts = [
        round(most * share)
        for share in ((0.1, 0.5, 1.0) if effort == "quick" else (0.05, 0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 1.0))
    ]
    found: dict[str, list[Outcome]] = {"pqed": [], "pqed-printed": []}
    for count in counts:
        tell(f"figure 8, {count} queries")
        tuples = densest(drawn[:count], WINDOW_NS)
        for policy, outcomes in found.items():
            outcomes.append(simulate(POLICIES[policy], tuples))
    idle = [100 * (1 - each.busy_ns / max(each.ended_ns, WINDOW_NS)) for each in found["pqed"]]
    means = {policy: [each.mean_batch for each in outcomes] for policy, outcomes in found.items()}
    printed_form = means["pqed-printed"]
    peak = printed_form.index(max(printed_form))
    shown = [i for i in range(len(counts)) if effort == "quick" or i % 2 or i == len(counts) - 1]
    return Figure(
        "figure 8: tasks per batch, idle time",
        {"(a)": "grows, then falls", "(b)": "idle time falls"},
        {
            f"{counts[i]} queries": f"pqed-printed {printed_form[i]:.2f}, pqed {means['pqed'][i]:.2f}, idle "
            f"{idle[i]:.0f} %"
            for i in shown
        },
        0 < peak < len(counts) - 1 and idle == sorted(idle, reverse=True),
        _why(peak, counts, idle)
        + " (c), time per task, needs the cost of a decision on the paper's machine, which is not printed.",
        "Tasks per decision in the first 300 ms of the densest arrivals; axes lost.",
        [SEED],
        [
            Plot(
                "figure 8 (a)",
                "queries",
                "tasks per decision",
                [Curve(policy, [float(count) for count in counts], list(ys)) for policy, ys in means.items()],
            ),
            Plot("figure 8 (b)", "queries", "idle, %", [Curve("idle", [float(count) for count in counts], list(idle))]),
        ],
    )


def _why(peak: int, counts: list[int], idle: list[float]) -> str:
    falls = "Idle time falls." if idle == sorted(idle, reverse=True) else "Idle time does not fall throughout."
    if 0 < peak < len(counts) - 1:
        return f"{falls} Batches of the printed form are largest at {counts[peak]} queries and smaller on either side."
    where = "the most" if peak else "the fewest"
    return (
        f"{falls} Batches of the printed form are largest with {where} queries, so they do not rise and then fall here."
    )
