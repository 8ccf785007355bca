"""The query promises that at most 10 messages of a burst of 20 are about vehicles that close in: the scenes keep it."""

from collections import Counter
from itertools import product

import pytest

from sim_vehicles.encounter.brake import AUTO
from sim_vehicles.encounter.braked_track import braked
from sim_vehicles.inputs.feed import Feed
from sim_vehicles.inputs.stimuli import Stimuli, StimulusOptions
from sim_vehicles.operators.chain import WARNING_QUERY, Chain
from sim_vehicles.readers.scenarios import load_scenario
from tests.sampling import sample

PERIOD_NS, LATENCY_NS = 500_000_000, 200_000_000
FEEDS = [Feed("v2v", "a", "vehicle.Cpm", 20, PERIOD_NS), Feed("sensor", "a", "vehicle.Sensor", 10, PERIOD_NS)]
UP_TO_O3 = {
    "sources": WARNING_QUERY["sources"],
    "operators": {name: WARNING_QUERY["operators"][name] for name in ("O1", "O2", "O3")},
    "outputs": {"relevant": {"from": "O3"}},
}


@pytest.mark.parametrize(
    ("speed_kmh", "braking_s"), sample(product((30, 50, 70), (None, 10.3, 10.8)), of=4)
)  # of each speed and each instant one
def test_at_most_10_of_a_burst_are_relevant(speed_kmh: int, braking_s: float | None) -> None:
    scenario = load_scenario(f"crossing_{speed_kmh}")
    ego = scenario.motion.tracks["A"]
    if braking_s is not None:
        ego = braked(ego, AUTO, braking_s)
    start_ns = round((scenario.scene.start_s or 0) * 1e9)
    for phase in range(0, 20, 4):
        inputs = Stimuli(FEEDS, scenario, StimulusOptions(start_ns, 16_000_000_000, phase_ns=phase * PERIOD_NS // 20))
        sent = [(burst, burst.at_ns - burst.age_ns, value) for burst in inputs.bursts(ego) for value in burst.values]
        sent.sort(key=lambda one: one[1] + LATENCY_NS if one[0].source == "v2v" else one[0].at_ns)
        chain, relevant = Chain(UP_TO_O3), Counter[int]()
        for burst, origin_ns, value in sent:
            now_ns = origin_ns + LATENCY_NS if burst.source == "v2v" else burst.at_ns
            relevant[burst.at_ns] += len(chain.admit(burst.source, value, now_ns, origin_ns))
        assert max(relevant.values()) <= 10, (phase, relevant)
        assert sum(relevant.values()) > 20, "something is closing in"
