"""Story of a run for the page, read and worked out once: the lap it shows, its events in order, and words for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from node_agent.virtual import plan_file
from protos.plan_document import Plan
from sim_vehicles.encounter.brake import AUTO
from sim_vehicles.errors import BadInputError, bad_input
from sim_vehicles.story.page.stopping_profile import StoppingProfile, stopping_profile
from sim_vehicles.story.timeline.deciding_tuple import DecidingTuple
from sim_vehicles.story.timeline.gantt import Gantt, gantt
from sim_vehicles.story.timeline.lineage_trace import MissingRecordError, Stage
from sim_vehicles.story.timeline.run_trace import RunTrace, read_json, read_trace
from sim_vehicles.story.timeline.stage_times import explain

KMH = 3.6
Verdict = Mapping[str, Any]


@dataclass(frozen=True)
class Event:
    """Something that happened, in seconds of the recording. kind: sight, message, knew, limit, brake, stop, contact."""

    kind: str
    at_s: float
    text: str
    left_m: float | None = None


@dataclass(frozen=True)
class Traced:
    """What the trace says of the deciding tuple. stages: of its split, as in replay.json; without_split, without_gantt:
    why there is none.

    deadline_ns: of the output that the tuple is of, None where that is not known.
    """

    stages: Sequence[Stage] = ()
    without_split: str = ""
    gantt: Gantt | None = None
    without_gantt: str = ""
    deadline_ns: int | None = None
    uncertain_ns: int = 0
    damage: Sequence[str] = field(default_factory=tuple)


@dataclass(frozen=True)
class Story:
    """A run, and what its trace says of the tuple that decided."""

    run: str
    replay: Mapping[str, Any]
    plan: Plan | None
    run_document: Mapping[str, Any]
    verdict: Verdict
    laps: Sequence[Verdict]
    stopping: StoppingProfile | None
    traced: Traced

    @property
    def scene(self) -> Mapping[str, Any]:
        """The scene as replay.json has it."""
        scene: Mapping[str, Any] = self.replay["scene"]
        return scene

    @property
    def ego(self) -> str:
        """The ego vehicle's id."""
        return str(self.scene["ego"])

    @property
    def other(self) -> str:
        """The crossing vehicle's id; empty where the scene names none."""
        return str(self.scene.get("crossing") or "")

    @cached_property
    def deciding(self) -> DecidingTuple | None:
        """The warning that decided the outcome. None where there was none."""
        found = self.verdict.get("deciding")
        return DecidingTuple.of(found) if found else None

    @property
    def crashed(self) -> bool:
        """True where this lap ended in a crash."""
        return str(self.verdict["outcome"]) == "CRASH"

    @property
    def virtual(self) -> bool:
        """True for a run in virtual time."""
        return bool(self.run_document.get("virtual", False))

    @property
    def deceleration_mps2(self) -> float:
        """The brake's; the automatic one's where this lap's did nothing."""
        brake = self.verdict.get("brake") or {}
        return float(brake.get("deceleration_mps2") or AUTO.deceleration_mps2)

    @property
    def reaction_s(self) -> float:
        """The brake's reaction time, s. That of the automatic brake where this lap's did nothing."""
        brake = self.verdict.get("brake") or {}
        return float(brake["reaction_s"]) if brake else AUTO.reaction_s

    @property
    def real_time(self) -> bool:
        """Whether the nodes' time is the recording's: not at another rate than 1."""
        return bool(self.replay.get("rate", 1) == 1)

    @property
    def latency_s(self) -> float | None:
        """Measurement to delivery of the deciding tuple in the recording's time, upper bound."""
        return None if self.deciding is None else self.latency_of(self.deciding)

    def latency_of(self, deciding: DecidingTuple) -> float:
        """As latency_s, of any lap's. Raises ValueError where the file does not have it."""
        if self.real_time:
            return deciding.latency_bounds_ns[1] / 1e9
        if deciding.delivered_s is None or deciding.measured_s is None:
            raise ValueError("the deciding tuple has no instants")
        return float(deciding.delivered_s) - float(deciding.measured_s)

    @cached_property
    def speed_mps(self) -> float | None:
        """The ego's before braking, as recorded; at the deciding measurement where that is known."""
        kmh = self.verdict.get("speed_kmh")
        return None if kmh is None else float(kmh) / KMH

    @cached_property
    def number(self) -> int | None:
        """Place of the lap that is shown among all laps."""
        same = ("burst_phase", "outcome", "deciding", "impact_s", "gap_m", "knew")
        shown = [{key: lap.get(key) for key in same} for lap in self.laps]
        mine = {key: self.verdict.get(key) for key in same}
        return shown.index(mine) if mine in shown else None

    @cached_property
    def warnings(self) -> list[Mapping[str, Any]]:
        """Those of the lap that is shown."""
        return [each for each in self.replay.get("warnings") or () if each.get("lap") in {self.number, None}]

    @cached_property
    def handed_s(self) -> float | None:
        """When the deciding message was handed to the ego's node: the one of the scene's messages that it was."""
        deciding = self.deciding
        if deciding is None or deciding.measured_s is None or deciding.delivered_s is None:
            return None
        same = [
            float(each["at_s"])
            for each in self.scene.get("messages") or ()
            if (each["station"], each["object"]) == (deciding.station, deciding.object)
            and abs(each["measured_s"] - deciding.measured_s) < 2e-3
            and each["at_s"] <= deciding.delivered_s
        ]
        return max(same, default=None)

    @cached_property
    def end_s(self) -> float | None:
        """When the ego stood, or hit."""
        found = self.verdict.get("impact_s") if self.crashed else (self.verdict.get("brake") or {}).get("stopped_s")
        return None if found is None else float(found)

    @cached_property
    def events(self) -> list[Event]:
        """In the order of time; of one instant, in that of cause and effect."""
        verdict, deciding, ego, other = self.verdict, self.deciding, self.ego, self.other
        first, knew, brake = verdict.get("first_perceivable"), verdict.get("knew"), verdict.get("brake")
        found = []
        if first:
            found.append(Event("sight", float(first["at_s"]), f"{first['by']} can see {other}"))
        if deciding is not None and deciding.measured_s is not None:
            found.append(Event("message", float(deciding.measured_s), f"{deciding.station} measures {other}"))
        if self.handed_s is not None:
            found.append(Event("message", self.handed_s, f"{ego} receives it"))
        if knew:
            found.append(Event("knew", float(knew["at_s"]), f"{ego} is warned"))
        if self.stopping is not None and self.stopping.latest_s is not None:
            found.append(Event("limit", self.stopping.latest_s, f"last moment to command {ego}’s brake"))
        if brake and not (self.crashed and self.end_s is not None and brake["begins_s"] > self.end_s):
            found.append(Event("brake", float(brake["begins_s"]), f"{ego} brakes"))
        if self.end_s is not None:
            text = f"{ego} hits {other or 'another vehicle'}" if self.crashed else f"{ego} stands"
            found.append(Event("contact" if self.crashed else "stop", self.end_s, text))
        return sorted((self._placed(event) for event in found), key=lambda event: event.at_s)

    def left_m(self, at_s: float) -> float | None:
        """The way from the ego's front to the strip at that instant."""
        return None if self.stopping is None else self.stopping.left.at(at_s)

    def _placed(self, event: Event) -> Event:
        return Event(event.kind, event.at_s, event.text, self.left_m(event.at_s))


def read_story(run: Path) -> Story:
    """Everything the page needs. Raises BadInputError where replay.json has no verdict and scene."""
    replay = read_json(run / "replay.json")
    verdict, scene = replay.get("verdict"), replay.get("scene")
    if not isinstance(verdict, dict) or not isinstance(scene, dict):
        raise bad_input(
            "no_verdict",
            "has no verdict or no scene, so there is nothing to show",
            "replay with a plan whose warnings come back (sim-vehicles replay)",
            file=run / "replay.json",
        )
    try:
        return _story(run, replay, verdict)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as bad:
        raise bad_input(
            "not_complete", f"is not complete: {type(bad).__name__} {bad}", "make it again", file=run / "replay.json"
        ) from None


def _story(run: Path, replay: Mapping[str, Any], verdict: Verdict) -> Story:
    plan = plan_file.read_plan(run / "plan.json") if (run / "plan.json").is_file() else None
    run_document = read_json(run / "run.json") if (run / "run.json").is_file() else {}
    brake = verdict.get("brake") or {}
    reaction_s = float(brake["reaction_s"]) if brake else AUTO.reaction_s
    deceleration_mps2 = float(brake.get("deceleration_mps2") or AUTO.deceleration_mps2)
    return Story(
        run=run.resolve().name,
        replay=replay,
        plan=plan,
        run_document=run_document,
        verdict=verdict,
        laps=replay.get("laps") or [verdict],
        stopping=stopping_profile(replay["scene"], reaction_s, deceleration_mps2),
        traced=_traced(run, replay, verdict),
    )


def _traced(run: Path, replay: Mapping[str, Any], verdict: Verdict) -> Traced:
    """What the trace says of the deciding tuple; what replay.json says where there is no trace."""
    found = verdict.get("deciding")
    if not found:
        why = "No warning about the crossing vehicle was delivered, so no tuple decided."
        return Traced(without_split=why, without_gantt=why)
    deciding = DecidingTuple.of(found)
    traced = Traced(stages=tuple(map(Stage.of, found.get("split") or ())))
    trace: RunTrace | None = None
    try:
        trace = read_trace(run)
        if not trace.incarnations:
            raise MissingRecordError("no_trace", "there is no trace beside replay.json; collect it")
        times = explain(trace, deciding, replay)
        traced = Traced(stages=times.stages, uncertain_ns=times.uncertain_ns, deadline_ns=times.deadline_ns)
    except (MissingRecordError, BadInputError) as error:
        traced = replace(traced, without_split=f"The trace is incomplete for the deciding tuple: {error}.")
    try:
        if trace is None or not trace.incarnations:
            raise MissingRecordError("no_trace", "there is no trace beside replay.json; collect it")
        traced = replace(traced, gantt=gantt(trace, deciding))
    except MissingRecordError as error:
        traced = replace(traced, without_gantt=f"The trace is incomplete for the deciding tuple: {error}.")
    return replace(traced, damage=() if trace is None else trace.damage)
