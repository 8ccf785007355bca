"""The collision warning on the crossing: what a tuple costs, who crashes at which speed and latency."""

from statistics import median
from time import perf_counter_ns
from typing import Any

from infra.bench.figures import Figure
from sim_vehicles.closed_loop.constant_latency import CrashRow, Impacts, crash_table
from sim_vehicles.inputs.feed import Feed
from sim_vehicles.inputs.stimuli import Stimuli, StimulusOptions
from sim_vehicles.operators.chain import Chain
from sim_vehicles.readers.scenarios import load_scenario

ROUNDS = 5
PERIOD_NS, LATENCY_NS = 500_000_000, 200_000_000
FEEDS = [
    Feed("v2v", "a", "vehicle.Cpm", 20, PERIOD_NS),
    Feed("sensor", "a", "vehicle.Sensor", 10, PERIOD_NS),
    Feed("centre", "b", "vehicle.Hazard", 100, PERIOD_NS),
]
SCENE, UNTIL_NS = "crossing_50", 12_000_000_000
SPEEDS_KMH, PHASES = (30, 50, 70), 20


def costs() -> list[Figure]:
    """CPU time of every operator per tuple, called as a node calls it, on the messages of a crossing."""
    scenario = load_scenario(SCENE)
    start_ns = round((scenario.scene.start_s or 0) * 1e9)
    sent = Stimuli(FEEDS, scenario, StimulusOptions(start_ns, UNTIL_NS)).bursts()
    rounds = [_round(sent) for _ in range(ROUNDS)]
    how = f"median of {ROUNDS} rounds over {SCENE}, one core, no node around it"
    each = {name: median(one[name] for one in rounds) for name in rounds[0]}
    return [
        Figure("warning_tuple_us", each.pop("relevant"), "us", None, f"O2 to O21 on a tuple that O3 passes; {how}"),
        *(Figure(f"operator_{name}_us", us, "us", None, f"per call; {how}") for name, us in each.items()),
    ]


def _round(sent: list[Any]) -> dict[str, float]:
    chain = Chain(clock_ns=perf_counter_ns)
    for burst in sent:
        origin_ns = burst.at_ns - burst.age_ns
        for value in burst.values:
            chain.admit(burst.source, value, origin_ns + LATENCY_NS, origin_ns)
    per_call = {name: chain.spent_ns[name] / calls / 1000 for name, calls in chain.calls.items() if calls}
    aside = ("O1", "O5", "O6")  # do not lead to the warning
    return per_call | {"relevant": sum(us for name, us in per_call.items() if name not in aside)}


def crashes() -> list[Figure]:
    """Crashes of 20 burst phases by speed and latency, every tuple with the same latency; beside the closed form."""
    return [_crash_figure(row) for row in crash_table(SPEEDS_KMH, phases=PHASES)]


def _crash_figure(row: CrashRow) -> Figure:
    ms = row.latency_ns // 1_000_000
    how = (
        f"of {row.phases} burst phases; {_impact(row.driven)}; closed form: {row.closed_form.crashes}, "
        f"{_impact(row.closed_form)};"
        " automatic braking"
    )
    return Figure(f"crash_{row.speed_kmh}kmh_{ms}ms", row.driven.crashes, "crashes", None, how)


def _impact(found: Impacts) -> str:
    if found.median_kmh is None:
        return "no impact"
    return f"impact {found.median_kmh:.0f} km/h in the middle, {found.most_kmh:.0f} at most"
