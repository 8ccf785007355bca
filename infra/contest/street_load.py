"""What the stations of the recorded streets broadcast, computed once; and what it makes of the contest's query."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from infra.contest.contest_query import CHAIN, Traffic
from node_agent.core.shedding.memory_limit import JOB_BYTES, size_estimate
from node_agent.operators.registry import Registry
from sim_vehicles.contest.drawn_encounter import Encounter
from sim_vehicles.contest.encounter_run import UNTIL_NS, WITHOUT_MAP, PlayedEncounter
from sim_vehicles.contest.street_traffic_around import streets_around
from sim_vehicles.encounter.brake import AUTO
from sim_vehicles.inputs.city_around import CityAround
from sim_vehicles.operators.chain import WARNING_QUERY, Chain
from sim_vehicles.readers.scenarios import load_scenario
from sim_vehicles.v2v.all_stations import broadcast
from sim_vehicles.v2v.broadcasts import Broadcasts, load_broadcasts
from sim_vehicles.world.scene import Scenario

SEED = 1
WARM_S = 2.0  # of a recording, until congestion control has settled
SAMPLES = 6  # encounters that the traffic is measured on; they are no part of the contest


@dataclass(frozen=True, eq=False)
class Streets:
    """A recording of streets, and all that its stations say."""

    scenario: Scenario
    broadcasts: Broadcasts

    def around(self, encounter: Encounter) -> CityAround:
        """As an encounter's ego hears it."""
        return streets_around(encounter, self.scenario, self.broadcasts, UNTIL_NS)


@cache
def streets(stations: int, folder: Path) -> Streets:
    """Those with so many stations in range. folder: keeps what was computed."""
    scenario, path = load_scenario(f"streets_{stations}"), folder / f"streets_{stations}.npz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        begin_s, end_s = scenario.motion.start_s + WARM_S, scenario.motion.end_s
        made = path.with_suffix(".part.npz")
        broadcast(scenario, SEED, round(begin_s * 1e9), round(end_s * 1e9)).save(made)
        made.replace(path)
    return Streets(scenario, load_broadcasts(path))


def played(encounter: Encounter, folder: Path) -> PlayedEncounter:
    """An encounter, and what is sent in it."""
    return PlayedEncounter(encounter, streets(encounter.stations, folder).around(encounter), AUTO)


def measured(samples: list[PlayedEncounter], registry: Registry) -> Traffic:
    """V2V tuples per second and their size, and what the operators let through, in the mean of some encounters."""
    calls: Counter[str] = Counter()
    queued: list[int] = []
    for one in samples:
        chain = Chain(WARNING_QUERY, registry, WITHOUT_MAP, lambda: 0)
        for burst in one.bursts:
            if burst.source == "v2v":
                queued += (JOB_BYTES + size_estimate(value) for value in burst.values)
            for value in burst.values:
                chain.admit(burst.source, value, burst.at_ns, burst.at_ns - burst.age_ns)
        calls.update(chain.calls)
    first, *_, last = CHAIN
    passed = {a: calls[b] / max(1, calls[a]) for a, b in pairwise(CHAIN)}
    span_s = sum(one.until_ns - one.begin_ns for one in samples) / 1e9
    return Traffic(calls[first] / span_s, {**passed, last: 1.0}, fmean(queued))


__all__ = ["SAMPLES", "Streets", "measured", "played", "streets"]
