"""The closed loop as a state machine without clock, thread or socket: warnings in, bursts to send out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from protos import json_shape
from protos.json_shape import Json, omitted
from protos.vehicle_pb2 import Warning as Told
from sim_vehicles.closed_loop.crossing_messages import CrossingMessages
from sim_vehicles.encounter.brake import Brake
from sim_vehicles.encounter.braked_track import braked
from sim_vehicles.encounter.judgement import CRASH, Judgement
from sim_vehicles.encounter.verdict import Driven, Judge, Warned
from sim_vehicles.inputs.stimuli import Stimuli
from sim_vehicles.world.motion import Track
from sim_vehicles.world.scene import Scenario
from sim_vehicles.world.sense import Burst


@dataclass(frozen=True)
class Verdict:
    """The judgement of one lap, or of the worst of several, and how it was played. why_not_valid: None where it is;
    burst_phase: number of `burst_phases`, from 0; burst_phase_ns: how much later all bursts left for it;
    crossing_messages: what became of the messages about the crossing vehicle, None where none is named."""

    found: Judgement
    valid: bool
    why_not_valid: str | None
    burst_phase: int
    burst_phases: int
    burst_phase_ns: int
    crashes: int
    laps: int
    crossing_messages: CrossingMessages | None = omitted()

    @property
    def crashed(self) -> bool:
        """Whether the two touched."""
        return self.found.outcome == CRASH

    def is_same(self, other: Verdict) -> bool:
        """Whether they are of one lap; one may count crashes over all laps."""
        return replace(self, crashes=other.crashes, laps=other.laps) == other

    def document(self) -> Json:
        """As replay.json has it: the outcome, how it was played, and the rest of the judgement."""
        found = self.found.document()
        how = {name: each for name, each in json_shape.write(self).items() if name != "found"}
        return {"outcome": found.pop("outcome"), **how, **found}


class ClosedLoop:
    """One run: what is sent, what was warned of, how the ego moves.

    ego: its track, as recorded until a warning makes it brake. bursts: what is sent in this run, in sending order.
    log: every warning told. brake: with the reaction of this run's driver. judge: may be shared among runs of one
    scenario. Raises BadInputError where scene and recording do not fit.
    """

    def __init__(self, scenario: Scenario, inputs: Stimuli, brake: Brake, judge: Judge | None = None) -> None:
        self.scenario, self.inputs = scenario, inputs
        self.brake = brake.drawn(inputs.options.seed, inputs.options.phase_ns)
        self.judge = judge or Judge(scenario)
        self.ego: Track = scenario.motion.tracks[scenario.scene.ego]
        self.bursts: list[Burst] = inputs.bursts()
        self.log: list[Warned] = []
        self.commanded_ns: int | None = None
        self._names = {number: name for name, number in inputs.numbers.items()}

    def warned(
        self, at_ns: int, warning: Told, latency_ns: tuple[int, int], lineage: tuple[int, int, int, int]
    ) -> list[Burst] | None:
        """A warning was delivered at this instant of the recording; call it in the order of delivery.

        Returns the bursts to send from now on (those after at_ns) when it makes the ego brake, else None. It does so
        once: at the first warning of level 1 or more about the crossing vehicle.
        """
        told = Warned(at_ns, warning, latency_ns, lineage)
        self.log.append(told)
        crossing = self.judge.crossing
        if not told.on or crossing is None or self._names.get(warning.object_id) != crossing:
            return None
        if self.commanded_ns is not None or self.brake.kind == "none":
            return None
        self.commanded_ns = at_ns
        self.ego = braked(self.ego, self.brake, at_ns / 1e9)
        later = self.inputs.bursts(self.ego, at_ns)
        self.bursts = [burst for burst in self.bursts if burst.at_ns <= at_ns] + later
        return later

    @property
    def crossing_number(self) -> int | None:
        """The crossing vehicle's number on the wire."""
        crossing = self.judge.crossing
        return None if crossing is None else self.inputs.numbers.get(crossing)

    def forget(self) -> None:
        """Keeps what replay.json tells of a lap that it does not show: the warnings that were on. Judge before."""
        self.bursts, self.log = [], [one for one in self.log if one.on]
        self.ego = self.scenario.motion.tracks[self.scenario.scene.ego]

    @property
    def driven(self) -> Driven:
        """The run so far, for the judge."""
        options, end_s = self.inputs.options, self.scenario.motion.end_s
        until_s = min(options.until_ns / 1e9, end_s)
        return Driven(self.ego, self.brake, self.commanded_ns, self.log, self._names, options.start_ns / 1e9, until_s)

    def verdict(self, phase: int, phases: int, phase_ns: int, valid: bool, why: str | None) -> Verdict:
        """The verdict of one lap. valid: whether time was real or virtual, and nothing failed."""
        driven = self.driven
        found = self.judge.verdict(driven)
        unfinished = self.judge.unfinished(driven)
        reasons = [reason for reason in (None if valid else why or "not said", unfinished) if reason]
        return Verdict(
            found,
            valid=not reasons,
            why_not_valid="; ".join(reasons) or None,
            burst_phase=phase,
            burst_phases=phases,
            burst_phase_ns=phase_ns,
            crashes=int(found.impact_s is not None),
            laps=1,
        )
