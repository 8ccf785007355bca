"""One encounter under one plan, in virtual time: when the ego is told to brake, and what comes of it.

The ego's brake is commanded by the first warning about the crossing vehicle. From then on the outcome is physics, so
nothing more is sent. What is sent until then depends on nothing that a plan does: all plans get the same messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from node_agent.operators.registry import Registry
from node_agent.virtual.run import simulate
from node_agent.virtual.scenario import Scenario as Conditions
from node_agent.virtual.world import Admission, Delivery, Offer
from protos.plan_document import Plan
from protos.vehicle_pb2 import Warning as Told
from sim_vehicles.contest.drawn_encounter import KMH, Encounter
from sim_vehicles.contest.encounter_scene import CROSSING, EGO, MEET_S, scenario
from sim_vehicles.encounter.brake import Brake
from sim_vehicles.encounter.braked_track import braked
from sim_vehicles.encounter.meeting import meet
from sim_vehicles.encounter.verdict import ON
from sim_vehicles.inputs.feed import Feed
from sim_vehicles.inputs.stimuli import Around, Stimuli, StimulusOptions
from sim_vehicles.operators.chain import WARNING_QUERY, Chain
from sim_vehicles.world.sense import Burst

LOADED_S = 10.0  # for so long before the first sight the stations speak
AFTER_S = 2.5  # after the centres would have met
MS = 1_000_000
UNTIL_NS = round((MEET_S + AFTER_S) * 1e9)
WITHOUT_MAP = {name: {"map": ""} for name in ("O9",)}  # the operator that could know the roads; here it does not
FEEDS = (
    Feed("v2v", "a", "vehicle.Cpm", 1, 100 * MS),  # when something comes is for the rules to say
    Feed("sensor", "a", "vehicle.Sensor", 1, 50 * MS),
    Feed("centre", "b", "vehicle.Hazard", 20, 1000 * MS),
)


@dataclass(frozen=True)
class Outcome:
    """commanded_s: when the ego was told to brake, None: never. impact_mps: its speed as the two touch, None: they do
    not. failures: what operators raised."""

    commanded_s: float | None
    impact_mps: float | None
    failures: tuple[str, ...] = ()

    @property
    def crashed(self) -> bool:
        """Whether the two touch."""
        return self.impact_mps is not None

    @property
    def impact_kmh(self) -> float:
        """The speed of the impact, 0 without one."""
        return (self.impact_mps or 0.0) * KMH


class PlayedEncounter:
    """An encounter with all that is sent in it, to be run under any plan."""

    def __init__(self, encounter: Encounter, around: Around | None, brake: Brake) -> None:
        self.encounter, self.brake = encounter, brake
        self._scenario = scenario(encounter)
        begin_s = MEET_S - encounter.first_sight_s - LOADED_S
        self.begin_ns, self.until_ns = round(begin_s * 1e9), UNTIL_NS
        options = StimulusOptions(
            self.begin_ns, self.until_ns, seed=encounter.seed, messages="etsi", channel=encounter.channel
        )
        self._inputs = Stimuli(FEEDS, self._scenario, options, around)
        self.bursts: Sequence[Burst] = self._inputs.bursts()
        self.crossing_number = self._inputs.numbers[CROSSING]

    def under(self, plan: Plan, registry: Registry, cost_scale: float = 1.0) -> Outcome:
        """What comes of it under a plan, in virtual time. cost_scale: of all costs, against what the plan says."""
        world = _World(self)
        conditions = Conditions(seed=self.encounter.seed, cost_scale=cost_scale)
        done = simulate(plan, conditions, registry, world, trace=False)
        return self.ended(world.commanded_ns, tuple(done.failures))

    def at_once(self, registry: Registry) -> Outcome:
        """The physical limit: each tuple is worked on in no time as it comes."""
        chain = Chain(WARNING_QUERY, registry, WITHOUT_MAP)
        for burst in self.bursts:
            for value in burst.values:
                origin_ns = burst.at_ns - burst.age_ns
                for output, told in chain.admit(burst.source, value, burst.at_ns, origin_ns):
                    if output == "warning" and told.level >= ON and told.object_id == self.crossing_number:
                        return self.ended(burst.at_ns)
        return self.ended(None)

    def ended(self, commanded_ns: int | None, failures: tuple[str, ...] = ()) -> Outcome:
        """What comes of a brake that is commanded at an instant of the recording, or never."""
        tracks = self._scenario.motion.tracks
        ego = tracks[EGO] if commanded_ns is None else braked(tracks[EGO], self.brake, commanded_ns / 1e9)
        contact_s = meet(ego, tracks[CROSSING], self.begin_ns / 1e9, self.until_ns / 1e9).contact_s
        state = None if contact_s is None else ego.at(contact_s)
        commanded_s = None if commanded_ns is None else commanded_ns / 1e9
        return Outcome(commanded_s, None if state is None else state.speed_mps, failures)


class _World:
    """The vehicles around the virtual cluster; instant 0 is the encounter's beginning."""

    def __init__(self, played: PlayedEncounter) -> None:
        self._played = played
        self.commanded_ns: int | None = None

    def begin(self, trial: int) -> list[Admission]:
        """All that is sent."""
        return [
            Admission(
                burst.at_ns - self._played.begin_ns,
                burst.source,
                tuple(Offer(value, burst.age_ns) for value in burst.values),
            )
            for burst in self._played.bursts
        ]

    def offer(self, source: str, seq: int, at_ns: int) -> Offer | None:
        """Never asked: `begin` says what is admitted."""
        return None

    def deliver(self, delivery: Delivery) -> list[Admission] | None:
        """After the first warning about the crossing vehicle nothing more is sent."""
        told = delivery.payload
        if self.commanded_ns is not None or not isinstance(told, Told) or told.level < ON:
            return None
        if told.object_id != self._played.crossing_number:
            return None
        self.commanded_ns = self._played.begin_ns + delivery.at_ns
        return []


__all__ = ["FEEDS", "UNTIL_NS", "WITHOUT_MAP", "Outcome", "PlayedEncounter"]
