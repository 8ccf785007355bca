"""The closed loop with one constant latency instead of a cluster: how crashes depend on speed and latency alone.

Every V2V tuple is worked on at one instant, a constant time after its measurement (but not before it is received), by
the operators of the warning query; the ego's own state is there when its sensors hand it over. What is left of the
real system is the phase of the bursts, and what the operators need to be sure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from google.protobuf.message import Message

from node_agent.operators.registry import Registry
from protos.vehicle_pb2 import Cpm
from sim_vehicles.closed_loop.lap import phase_ns
from sim_vehicles.encounter.brake import AUTO
from sim_vehicles.encounter.braked_track import braked
from sim_vehicles.encounter.meeting import meet
from sim_vehicles.encounter.physics import KMH, impact_mps
from sim_vehicles.encounter.verdict import ON, Judge
from sim_vehicles.inputs.feed import Feed
from sim_vehicles.inputs.stimuli import Stimuli, StimulusOptions
from sim_vehicles.operators.chain import WARNING_QUERY, Chain
from sim_vehicles.operators.installed import operators_of_vehicles
from sim_vehicles.readers.scenarios import load_scenario
from sim_vehicles.world.scene import Scenario
from sim_vehicles.world.sense import Burst

PERIOD_NS = 500_000_000
# The sources that lead to warnings, as in queries/collision_warning.yaml.
FEEDS = (Feed("v2v", "", "vehicle.Cpm", 20, PERIOD_NS), Feed("sensor", "", "vehicle.Sensor", 10, PERIOD_NS))
BEFORE_NS = 1_500_000_000  # played before anyone perceives the crossing vehicle: longer than an operator remembers
LATENCIES_NS = tuple(range(100_000_000, 1_000_000_001, 100_000_000))
MAPPED = ("O9",)  # knows the roads


class Work(NamedTuple):
    """One tuple, when it is worked on."""

    now_ns: int
    source: str
    payload: Message
    origin_ns: int


class Braking(NamedTuple):
    """One run: when the ego was told to brake (None: never), and at which speed it hit the crossing vehicle (None: it
    did not)."""

    commanded_ns: int | None
    impact_mps: float | None


class Impacts(NamedTuple):
    """How many runs crashed, and how fast: None without one."""

    crashes: int
    median_kmh: float | None
    most_kmh: float | None


class CrashRow(NamedTuple):
    """At one speed and latency. warned: phases with a warning that counts; closed_form: by the law of braking from the
    first measurement of the crossing vehicle that is sent in each phase, as if one measurement were enough to be
    sure."""

    speed_kmh: int
    latency_ns: int
    phases: int
    warned: int
    driven: Impacts
    closed_form: Impacts


def crash_table(
    speeds_kmh: Sequence[int] = (30, 50, 70),
    latencies_ns: Sequence[int] = LATENCIES_NS,
    phases: int = 20,
    progress: Callable[[], None] | None = None,
    seed: int = 1,
) -> list[CrashRow]:
    """One row per speed and latency, of automatic braking.

    speeds_kmh: of the built-in crossings. progress is called after every run. Raises BadInputError for a speed that was
    not recorded; what an operator raises goes to the caller.
    """
    registry = operators_of_vehicles()
    rows = []
    for speed_kmh in speeds_kmh:
        crossing = Crossing(load_scenario(f"crossing_{speed_kmh}"), seed, registry)
        played = [crossing.inputs(phase_ns(FEEDS, phase, phases)) for phase in range(phases)]
        sent = [each.bursts() for each in played]
        for latency_ns in latencies_ns:
            runs = []
            for inputs, bursts in zip(played, sent, strict=True):
                runs.append(crossing.run(bursts, inputs.numbers, latency_ns))
                if progress is not None:
                    progress()
            expected = [
                crossing.expected(bursts, inputs.numbers, latency_ns)
                for inputs, bursts in zip(played, sent, strict=True)
            ]
            rows.append(
                CrashRow(
                    speed_kmh=speed_kmh,
                    latency_ns=latency_ns,
                    phases=phases,
                    warned=sum(one.commanded_ns is not None for one in runs),
                    driven=_impacts([one.impact_mps for one in runs]),
                    closed_form=_impacts(expected),
                )
            )
    return rows


class Crossing:
    """One built-in crossing, played around the time when its vehicles meet."""

    def __init__(self, scenario: Scenario, seed: int, registry: Registry) -> None:
        scene, tracks = scenario.scene, scenario.motion.tracks
        self._scenario, self._seed, self._registry = scenario, seed, registry
        self._judge = Judge(scenario)
        first = self._judge.first_perceivable
        if self._judge.crossing is None or first is None:
            raise ValueError(f"{scene.name}: nobody perceives a crossing vehicle, so there is nothing to be late for")
        self._ego, self._other = tracks[scene.ego], tracks[self._judge.crossing]
        begin_ns = round((scenario.motion.start_s if scene.start_s is None else scene.start_s) * 1e9)
        skipped = max(0, round(first.at_s * 1e9) - BEFORE_NS - begin_ns) // PERIOD_NS
        self._start_ns = begin_ns + skipped * PERIOD_NS  # the instants of bursts are those of the whole replay
        contact_s = meet(self._ego, self._other, self._start_ns / 1e9, scenario.motion.end_s).contact_s
        self._until_ns = round((scenario.motion.end_s if contact_s is None else contact_s) * 1e9)

    def inputs(self, later_ns: int) -> Stimuli:
        """What is sent until the two would meet."""
        options = StimulusOptions(self._start_ns, self._until_ns, later_ns, self._seed)
        return Stimuli(list(FEEDS), self._scenario, options)

    def run(self, bursts: Sequence[Burst], numbers: Mapping[str, int], latency_ns: int) -> Braking:
        """Until the first warning about the crossing vehicle, and what comes of it."""
        commanded_ns = self._commanded_ns(bursts, numbers[self._other.id], latency_ns)
        ego = self._ego if commanded_ns is None else braked(self._ego, AUTO, commanded_ns / 1e9)
        met = meet(ego, self._other, self._start_ns / 1e9, self._scenario.motion.end_s)
        state = None if met.contact_s is None else ego.at(met.contact_s)
        return Braking(commanded_ns, None if state is None else state.speed_mps)

    def expected(self, bursts: Sequence[Burst], numbers: Mapping[str, int], latency_ns: int) -> float | None:
        """Impact speed by the closed form from the first measurement that is sent, in m/s; None: it stands before."""
        measured_ns = min(
            (
                burst.at_ns - burst.age_ns
                for burst in bursts
                if any(isinstance(one, Cpm) and one.object.object_id == numbers[self._other.id] for one in burst.values)
            ),
            default=self._until_ns,
        )
        state, left_m = self._ego.at(measured_ns / 1e9), self._judge.left_m(self._ego, measured_ns / 1e9)
        if state is None or left_m is None:
            return None
        return impact_mps(state.speed_mps, left_m, latency_ns / 1e9, AUTO) or None

    def _commanded_ns(self, bursts: Sequence[Burst], number: int, latency_ns: int) -> int | None:
        map_ = {"map": self._scenario.scene.name}
        chain = Chain(WARNING_QUERY, self._registry, dict.fromkeys(MAPPED, map_))
        for work in sorted(_worked(bursts, latency_ns), key=lambda each: each.now_ns):
            if work.now_ns >= self._until_ns:
                break
            for output, told in chain.admit(work.source, work.payload, work.now_ns, work.origin_ns):
                if output == "warning" and told.level >= ON and told.object_id == number:
                    return work.now_ns
        return None


def _worked(bursts: Sequence[Burst], latency_ns: int) -> Iterator[Work]:
    for burst in bursts:
        origin_ns = burst.at_ns - burst.age_ns
        now_ns = max(burst.at_ns, origin_ns + latency_ns) if burst.source == "v2v" else burst.at_ns
        for value in burst.values:
            yield Work(now_ns, burst.source, value, origin_ns)


def _impacts(speeds_mps: Sequence[float | None]) -> Impacts:
    found = [speed * KMH for speed in speeds_mps if speed is not None]
    return Impacts(len(found), round(median(found), 1), round(max(found), 1)) if found else Impacts(0, None, None)
