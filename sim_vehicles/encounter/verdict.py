"""The judge: what came of one run, by the geometry of two boxes alone.

A crash is an overlap of the ego's box with the crossing vehicle's; everything else is AVOIDED, with the least gap. Only
warnings about the crossing vehicle are credited; an "on" warning (level 1 or more) about another vehicle is a false
one. Stopping distances play no part in the outcome: they stand beside it as the closed form.

Other vehicles are not judged: they drive as recorded and would run into an ego that brakes where it did not. Where the
scene names no crossing vehicle there is nothing to judge: the outcome is the ego's first contact with any vehicle
(nothing makes it brake there), and its warnings are counted as `others`, neither right nor false.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from protos.vehicle_pb2 import Warning as Told
from sim_vehicles.encounter.brake import Brake
from sim_vehicles.encounter.driven_path import DrivenPath
from sim_vehicles.encounter.judgement import (
    AVOIDED,
    CRASH,
    Braking,
    ClosedForm,
    Deciding,
    Judgement,
    Knowledge,
    Sight,
    Stop,
    WarningCounts,
)
from sim_vehicles.encounter.meeting import Meeting, meet
from sim_vehicles.encounter.outcome import NOTHING
from sim_vehicles.encounter.physics import KMH, impact_mps, needed_m, stands_after_s
from sim_vehicles.encounter.swept_area import entry_m, is_inside
from sim_vehicles.encounter.visibility import Eye
from sim_vehicles.errors import bad_input
from sim_vehicles.world.motion import Track
from sim_vehicles.world.scene import Scenario

ITS_CYCLE_MS = 65_536
ON = 1  # from this level on a warning asks for something


@dataclass(frozen=True)
class Warned:
    """One warning as it was delivered. at_ns: recording time; latency_ns: interval (lo, hi) from the measurement;
    lineage: number of the source, epoch, seq, ordinal."""

    at_ns: int
    warning: Told
    latency_ns: tuple[int, int]
    lineage: tuple[int, int, int, int]

    @property
    def on(self) -> bool:
        """True for a warning, false for its end."""
        return self.warning.level >= ON

    @property
    def measured_s(self) -> float:
        """When the object was measured: the last instant before the delivery with that ITS time."""
        at_ms = self.at_ns // 1_000_000
        return (at_ms - (at_ms - self.warning.measured_ms) % ITS_CYCLE_MS) / 1e3


@dataclass(frozen=True)
class Driven:
    """One run. ego: as it moved; commanded_ns: when it was told to brake; log: all warnings, in order of delivery;
    names: vehicles by their number on the wire; from_s, until_s: the time that was played."""

    ego: Track
    brake: Brake
    commanded_ns: int | None
    log: Sequence[Warned]
    names: Mapping[int, str]
    from_s: float
    until_s: float

    @property
    def begins_s(self) -> float | None:
        """When the brake bites; None: it never does."""
        if self.commanded_ns is None or self.brake.kind == "none":
            return None
        return self.commanded_ns / 1e9 + self.brake.delay_s


class Sighting(NamedTuple):
    """A station that perceives the crossing vehicle, and since when, s."""

    by: str
    at_s: float


class Judge:
    """Judges runs of one scenario; what depends on the recording alone is computed once."""

    def __init__(self, scenario: Scenario) -> None:
        scene, tracks = scenario.scene, scenario.motion.tracks
        if scene.crossing is not None and scene.crossing not in tracks:
            raise bad_input(
                "unknown_vehicle",
                f"the crossing vehicle {scene.crossing!r} of scene {scene.name} is not in the recording",
                "name one that is, or take `crossing` out of the scene",
                subject=scene.crossing,
                file=scenario.motion.source,
            )
        self.scenario = scenario
        self.crossing = scene.crossing if scene.crossing != scene.ego else None

    @cached_property
    def first_perceivable(self) -> Sighting | None:
        """Who of the ego and the stations perceives the crossing vehicle first, and when, over the whole recording."""
        if self.crossing is None:
            return None
        motion, scene = self.scenario.motion, self.scenario.scene
        found = [
            Sighting(who, at_s)
            for who in (*scene.stations, scene.ego)
            if who != self.crossing
            and (at_s := Eye(self.scenario, who, self.crossing).first_s(motion.start_s, motion.end_s)) is not None
        ]
        return min(found, key=lambda each: each.at_s, default=None)

    @cached_property
    def _entry_m(self) -> float | None:
        tracks = self.scenario.motion.tracks
        return None if self.crossing is None else entry_m(tracks[self.scenario.scene.ego], tracks[self.crossing])

    def left_m(self, ego: Track, at_s: float) -> float | None:
        """The way from the ego's front to the crossing vehicle's strip, along the ego's path; negative inside and
        behind it. None where the paths do not cross or the ego is not there."""
        way_m = DrivenPath(ego).way_m(at_s)
        return None if way_m is None or self._entry_m is None else round(self._entry_m - way_m, 2)

    def verdict(self, driven: Driven) -> Judgement:
        """What came of it, apart from how the run was made."""
        against, meeting = self._meeting(driven, driven.until_s)
        crashed = meeting.contact_s is not None
        impact = None if meeting.contact_s is None else driven.ego.at(meeting.contact_s)
        about = [one for one in driven.log if one.on and self._is_crossing(driven.names.get(one.warning.object_id))]
        brake = _brake(driven, meeting)
        return Judgement(
            outcome=CRASH if crashed else AVOIDED,
            gap_m=None if crashed or meeting.gap_m is None else round(meeting.gap_m, 3),
            impact_kmh=None if impact is None else round(impact.speed_mps * KMH, 1),
            impact_s=None if meeting.contact_s is None else round(meeting.contact_s, 4),
            speed_kmh=self._speed_kmh(driven, meeting),
            crossing=self.crossing,
            note=self._note(against, crashed),
            first_perceivable=self._first(driven.ego),
            knew=self._knew(driven, about),
            brake=brake,
            stood=self._stood(driven.ego, brake),
            warnings=self._counts(driven, about),
            closed_form=self._closed_form(driven, about),
            deciding=_deciding(about[0], driven.names) if about else None,
        )

    def _is_crossing(self, name: str | None) -> bool:
        return name is not None and name == self.crossing

    def unfinished(self, driven: Driven) -> str | None:
        """Why the outcome may not be the last word: what was played begins after the contact that was recorded, or ends
        before one that would follow."""
        end_s, met_s = self.scenario.motion.end_s, None if self.crossing is None else self._conflict_s
        if met_s is not None and met_s < driven.from_s:
            return f"the replay begins at {driven.from_s:g} s, after the contact at {met_s:.2f} s; play it from earlier"
        if driven.until_s >= end_s or self._meeting(driven, driven.until_s)[1].contact_s is not None:
            return None
        contact_s = self._meeting(driven, end_s)[1].contact_s
        if contact_s is None:
            return None
        return f"the replay ends at {driven.until_s:g} s, before a contact at {contact_s:.2f} s; play it for longer"

    def _meeting(self, driven: Driven, until_s: float) -> tuple[str | None, Meeting]:
        tracks, ego = self.scenario.motion.tracks, driven.ego
        others = [self.crossing] if self.crossing else sorted(name for name in tracks if name != ego.id)
        met = [(name, meet(ego, tracks[name], driven.from_s, until_s)) for name in others]
        crashes = [(one.contact_s, name, one) for name, one in met if one.contact_s is not None]
        if crashes:
            _, name, one = min(crashes, key=lambda each: each[:2])
            return name, one
        gaps = [(one.gap_m, name, one) for name, one in met if one.gap_m is not None]
        if gaps:
            _, name, one = min(gaps, key=lambda each: each[:2])
            return name, one
        return None, Meeting(None, None, None)

    def _note(self, against: str | None, crashed: bool) -> str | None:
        if self.crossing is not None:
            return None
        what = f"contact with {against}" if crashed else f"nearest was {against}" if against else "nobody was there"
        return f"{NOTHING}, and no warning makes the ego brake; {what}"

    def _speed_kmh(self, driven: Driven, meeting: Meeting) -> float | None:
        """Before braking; without braking when the two were nearest."""
        when = driven.begins_s if driven.begins_s is not None else meeting.least_s
        state = None if when is None else driven.ego.at(when)
        return None if state is None else round(state.speed_mps * KMH, 1)

    def _first(self, ego: Track) -> Sight | None:
        # As recorded: what the ego does after a warning cannot change it, since every warning stems from a sighting.
        first = self.first_perceivable
        if first is None:
            return None
        return Sight(first.by, round(first.at_s, 3), self.left_m(ego, first.at_s))

    def _knew(self, driven: Driven, about: Sequence[Warned]) -> Knowledge | None:
        if not about:
            return None
        at_s = about[0].at_ns / 1e9
        return Knowledge(at_s, self.left_m(driven.ego, at_s))

    def _stood(self, ego: Track, brake: Braking | None) -> Stop | None:
        if self.crossing is None or brake is None or brake.stopped_s is None:
            return None
        other = self.scenario.motion.tracks[self.crossing]
        return Stop(self.left_m(ego, brake.stopped_s), is_inside(ego, other, brake.stopped_s))

    def _counts(self, driven: Driven, about: Sequence[Warned]) -> WarningCounts:
        on = [one for one in driven.log if one.on]
        if self.crossing is None:
            return WarningCounts(about_crossing=0, false=0, others=len(on), missed=False)
        due_s = self._conflict_s
        in_time = [one for one in about if due_s is not None and one.at_ns / 1e9 < due_s]
        missed = due_s is not None and due_s >= driven.from_s and not in_time
        return WarningCounts(len(about), false=len(on) - len(about), others=0, missed=missed)

    @cached_property
    def _conflict_s(self) -> float | None:
        """When the two collide as recorded, so that a warning is due before; None: they do not."""
        motion = self.scenario.motion
        ego, other = motion.tracks[self.scenario.scene.ego], motion.tracks[str(self.crossing)]
        return meet(ego, other, motion.start_s, motion.end_s).contact_s

    def _closed_form(self, driven: Driven, about: Sequence[Warned]) -> ClosedForm | None:
        if not about or driven.brake.kind == "none":
            return None
        latency_s = about[0].at_ns / 1e9 - about[0].measured_s
        left_m, state = self.left_m(driven.ego, about[0].measured_s), driven.ego.at(about[0].measured_s)
        if left_m is None or state is None:
            return None
        return ClosedForm(
            needed_m=round(needed_m(state.speed_mps, latency_s, driven.brake), 2),
            left_m=left_m,
            impact_kmh=round(impact_mps(state.speed_mps, left_m, latency_s, driven.brake) * KMH, 1),
        )


def _brake(driven: Driven, meeting: Meeting) -> Braking | None:
    begins_s = driven.begins_s
    if begins_s is None or driven.commanded_ns is None:
        return None
    stopped_s = _stopped_s(driven, begins_s)
    if meeting.contact_s is not None and stopped_s is not None and meeting.contact_s < stopped_s:
        stopped_s = None  # it stood after the impact at the earliest, and where is not known here
    return Braking(driven.brake, driven.commanded_ns / 1e9, begins_s, stopped_s)


def _stopped_s(driven: Driven, begins_s: float) -> float | None:
    state = driven.ego.at(begins_s)
    if state is None:
        return None
    stopped_s = round(begins_s + stands_after_s(max(0.0, state.speed_mps), driven.brake), 4)
    return stopped_s if stopped_s <= driven.ego.states[-1].t_s else None


def _deciding(first: Warned, names: Mapping[int, str]) -> Deciding:
    return Deciding(
        *first.lineage,
        station=names.get(first.warning.station, str(first.warning.station)),
        object=names.get(first.warning.object_id, str(first.warning.object_id)),
        measured_s=first.measured_s,
        delivered_s=first.at_ns / 1e9,
        latency_ns=first.latency_ns,
    )
