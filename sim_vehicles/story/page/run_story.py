"""Story of a run for the page, read and worked out once: the lap it shows, its events in order, and words for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path

from node_agent.virtual import plan_file
from protos.plan_document import Plan
from sim_vehicles.closed_loop.closed_loop import Verdict
from sim_vehicles.closed_loop.recorded import DrivenScene, RecordedWarning
from sim_vehicles.encounter.brake import AUTO, Brake
from sim_vehicles.encounter.judgement import Judgement, Stage
from sim_vehicles.errors import BadInputError, bad_input
from sim_vehicles.replay.replay_document import ReplaySummary, read_replay
from sim_vehicles.story.page.stopping_profile import StoppingProfile, stopping_profile
from sim_vehicles.story.timeline.deciding_tuple import DecidingTuple
from sim_vehicles.story.timeline.gantt import Gantt, gantt
from sim_vehicles.story.timeline.lineage_trace import MissingRecordError
from sim_vehicles.story.timeline.run_trace import RunTrace, plan_of, read_trace
from sim_vehicles.story.timeline.stage_times import explain_lap

KMH = 3.6


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
    """A run, and what its trace says of the tuple that decided. simulated_policy: put in the place of the plan's."""

    run: str
    replay: ReplaySummary
    plan: Plan | None
    virtual: bool
    simulated_policy: str | None
    verdict: Verdict
    laps: Sequence[Verdict]
    stopping: StoppingProfile | None
    traced: Traced

    @property
    def scene(self) -> DrivenScene:
        """The scene as it was driven."""
        return self.replay.scene

    @property
    def ego(self) -> str:
        """The ego vehicle's id."""
        return self.scene.ego

    @property
    def other(self) -> str:
        """The crossing vehicle's id; empty where the scene names none."""
        return self.scene.crossing or ""

    @cached_property
    def deciding(self) -> DecidingTuple | None:
        """The warning that decided the outcome. None where there was none."""
        found = self.verdict.found.deciding
        return None if found is None else DecidingTuple.of(found)

    def is_same_encounter(self, other: Story) -> bool:
        """Whether all but the ego moves in both runs in the same way, at the same instants."""
        mine, its = self.scene, other.scene
        around = [{name: each for name, each in scene.vehicles.items() if name != scene.ego} for scene in (mine, its)]
        return around[0] == around[1] and all(
            getattr(mine, each) == getattr(its, each)
            for each in ("name", "ego", "crossing", "start_s", "end_s", "step_s", "ego_recorded")
        )

    def given(self) -> dict[str, object]:
        """By option of `replay`, what makes an encounter beside its motion."""
        head = self.replay.head
        brake = {f"--brake {each.name}": getattr(head.brake, each.name) for each in fields(head.brake)}
        others = {
            "--messages": head.messages,
            "--around": head.around or "nobody",
            "--age": f"{head.v2v_age_ns / 1e6:g} ms",
        }
        return {**brake, "--seed": head.seed, **others}

    @property
    def crashed(self) -> bool:
        """True where this lap ended in a crash."""
        return self.verdict.crashed

    @property
    def brake(self) -> Brake:
        """Of this lap; the automatic one where it did nothing."""
        return _brake(self.verdict)

    @property
    def real_time(self) -> bool:
        """Whether the nodes' time is the recording's: not at another rate than 1."""
        return self.replay.rate == 1

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
        kmh = self.verdict.found.speed_kmh
        return None if kmh is None else kmh / KMH

    @cached_property
    def number(self) -> int | None:
        """Place of the lap that is shown among all laps."""
        return next((number for number, lap in enumerate(self.laps) if lap.is_same(self.verdict)), None)

    @cached_property
    def warnings(self) -> list[RecordedWarning]:
        """Those of the lap that is shown."""
        return [each for each in self.replay.warnings if each.lap == self.number]

    @cached_property
    def handed_s(self) -> float | None:
        """When the deciding message was handed to the ego's node: the one of the scene's messages that it was."""
        deciding = self.deciding
        if deciding is None or deciding.measured_s is None or deciding.delivered_s is None:
            return None
        same = [
            each.at_s
            for each in self.scene.messages
            if (each.station, each.object) == (deciding.station, deciding.object)
            and abs(each.measured_s - deciding.measured_s) < 2e-3
            and each.at_s <= deciding.delivered_s
        ]
        return max(same, default=None)

    @cached_property
    def end_s(self) -> float | None:
        """When the ego stood, or hit."""
        if self.crashed:
            return self.verdict.found.impact_s
        return None if self.verdict.found.brake is None else self.verdict.found.brake.stopped_s

    @cached_property
    def events(self) -> list[Event]:
        """In the order of time; of one instant, in that of cause and effect."""
        deciding, ego, other = self.deciding, self.ego, self.other
        first, knew, brake = self.verdict.found.first_perceivable, self.verdict.found.knew, self.verdict.found.brake
        found = []
        if first is not None:
            found.append(Event("sight", first.at_s, f"{first.by} can see {other}"))
        if deciding is not None and deciding.measured_s is not None:
            found.append(Event("message", deciding.measured_s, f"{deciding.station} measures {other}"))
        if self.handed_s is not None:
            found.append(Event("message", self.handed_s, f"{ego} receives it"))
        if knew is not None:
            found.append(Event("knew", knew.at_s, f"{ego} is warned"))
        if self.stopping is not None and self.stopping.latest_s is not None:
            found.append(Event("limit", self.stopping.latest_s, f"last moment to command {ego}’s brake"))
        if brake is not None and not (self.crashed and self.end_s is not None and brake.begins_s > self.end_s):
            found.append(Event("brake", brake.begins_s, f"{ego} brakes"))
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
    """Everything the page needs. Raises BadInputError where replay.json is damaged or has no verdict, and where the
    plan beside it is not the one that was replayed."""
    path = run / "replay.json"
    replay = read_replay(path)
    if replay.verdict is None:
        raise bad_input(
            "no_verdict",
            "has no verdict, so there is nothing to show",
            "replay with a plan whose warnings come back (sim-vehicles replay)",
            file=path,
        )
    if replay.scene.ego not in replay.scene.vehicles:
        raise bad_input(
            "not_complete", f"is damaged: scene.vehicles has no {replay.scene.ego}, the ego", "make it again", file=path
        )
    return _story(run, replay, replay.verdict)


def _story(run: Path, replay: ReplaySummary, verdict: Verdict) -> Story:
    there = (run / "run.json").is_file()
    run_document = plan_file.read_json(run / "run.json", "what a replay in virtual time wrote") if there else {}
    scenario = run_document.get("scenario")
    policy = scenario.get("policy") if isinstance(scenario, dict) else None
    return Story(
        run=run.resolve().name,
        replay=replay,
        plan=plan_of(run, replay.head.plan_hash) if (run / "plan.json").is_file() else None,
        virtual=bool(run_document.get("virtual", False)),
        simulated_policy=str(policy) if policy else None,
        verdict=verdict,
        laps=replay.laps or (verdict,),
        stopping=stopping_profile(replay.scene, _brake(verdict)),
        traced=_traced(run, replay.scene, verdict.found),
    )


def _brake(verdict: Verdict) -> Brake:
    return AUTO if verdict.found.brake is None else verdict.found.brake.by


def _traced(run: Path, scene: DrivenScene, judged: Judgement) -> Traced:
    """What the trace says of the deciding tuple; what replay.json says where there is no trace."""
    if judged.deciding is None:
        why = "No warning about the crossing vehicle was delivered, so no tuple decided."
        return Traced(without_split=why, without_gantt=why)
    deciding = DecidingTuple.of(judged.deciding)
    traced = Traced(stages=judged.deciding.split or ())
    trace: RunTrace | None = None
    try:
        trace = read_trace(run)
        if not trace.incarnations:
            raise MissingRecordError("no_trace", "there is no trace beside replay.json; collect it")
        times = explain_lap(trace, judged, scene.messages)
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
