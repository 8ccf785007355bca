"""A panel of the picture: one run from above. Vehicles move, who sees and sends is drawn, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html import escape
from math import atan2, cos, degrees, hypot, sin

from sim_vehicles.closed_loop.recorded import track
from sim_vehicles.encounter.outcome import length
from sim_vehicles.story.page.playback import contact_point, limit_pose
from sim_vehicles.story.page.run_story import KMH, Story
from sim_vehicles.story.page.wording import kmh, seconds
from sim_vehicles.story.picture.ground import View, drawn
from sim_vehicles.story.picture.keyframes import PlayTime, Pose, Stylesheet
from sim_vehicles.world.motion import State, Track

RING_S, RING_M = 0.3, 22.0  # a message is drawn for so long, and so far, or nobody would see it
ROW = 18.0  # between the texts of a column, in pixels
BESIDE = 12.0  # from a road's middle to the texts on the house


@dataclass(frozen=True)
class Panel:
    """Of one run."""

    story: Story
    time: PlayTime
    view: View

    def drawn(self, sheet: Stylesheet) -> str:
        """From the ground up."""
        return "".join((
            f'<rect class="ground" width="{self.view.width:g}" height="{self.view.height:g}"/>',
            drawn(self.story.scene, self.view), self._limit(), self._ghost(sheet), *self._sights(sheet),
            *self._rings(sheet), *self._vehicles(sheet), *self._flashes(sheet), self._end(sheet),
            f'<rect class="frame" width="{self.view.width:g}" height="{self.view.height:g}"/>',
        ))  # fmt: skip

    @cached_property
    def tracks(self) -> dict[str, Track]:
        """As driven in this run."""
        scene = self.story.scene
        return {name: track(name, each, scene.step_s) for name, each in scene.vehicles.items()}

    def state(self, name: str, at_s: float) -> State | None:
        """Of a vehicle. After a contact the two stay where they met."""
        impact_s = self.story.verdict.found.impact_s
        is_met = impact_s is not None and name in (self.story.ego, self.story.other)
        return self.tracks[name].at(min(at_s, impact_s) if is_met and impact_s is not None else at_s)

    # -- vehicles

    def _vehicles(self, sheet: Stylesheet) -> Iterator[str]:
        """Those that are in sight, and there all the time."""
        for name in sorted(self.tracks):
            states = [self.state(name, at_s) for at_s in self._instants_s]
            there = [state for state in states if state is not None]
            in_sight = any(self.view.shows((state.x_m, state.y_m), 0) for state in there)
            if len(there) == len(states) and in_sight:
                yield self._vehicle(name, there, sheet)

    @cached_property
    def _instants_s(self) -> list[float]:
        """At which states are asked for: each sample, and when something happens."""
        step_s, first_s, last_s = self.story.scene.step_s, self.time.begin_s, self.time.end_s
        samples = {round(first_s + number * step_s, 6) for number in range(int((last_s - first_s) / step_s) + 1)}
        events = {event.at_s for event in self.story.events if first_s < event.at_s < last_s}
        return sorted(samples | events | {last_s})

    def _vehicle(self, name: str, states: list[State], sheet: Stylesheet) -> str:
        here = self.tracks[name]
        long, wide = here.length_m * self.view.scale, here.width_m * self.view.scale
        glass, across = long * 0.1, wide * 0.72
        body = (
            f'<g class="{sheet.moving(self._poses(states))}">{_box(self._look(name), long, wide)}'
            f'<path class="glass" d="M{long / 4:.1f} {-across / 2:.1f}h{glass:.1f}v{across:.1f}h{-glass:.1f}z"/>'
            f"{self._changed(name, long, wide, sheet)}</g>"
        )
        return f'{body}<g class="{sheet.moving(self._poses(states, turned=False))}">{self._label(name, sheet)}</g>'

    def _look(self, name: str) -> str:
        if name == self.story.ego:
            return "ego"
        if name == self.story.other:
            return "cross"
        return "station" if name in self.story.scene.stations else "car"

    def _poses(self, states: list[State], turned: bool = True) -> list[Pose]:
        """In pixels; a heading goes on where it was, not the other way round."""
        found: list[Pose] = []
        heading = 0.0
        for at_s, state in zip(self._instants_s, states, strict=True):
            clockwise = degrees(-state.heading_rad)
            heading = clockwise + 360 * round((heading - clockwise) / 360) if found else clockwise
            found.append(Pose(at_s, *self.view.at((state.x_m, state.y_m)), heading if turned else 0.0))
        return found

    def _changed(self, name: str, long: float, wide: float, sheet: Stylesheet) -> str:
        """The ego: in another colour once it is warned, with its lights on once it brakes."""
        knew, brake = self.story.verdict.found.knew, self.story.verdict.found.brake
        if name != self.story.ego or knew is None:
            return ""
        warned = f'<g class="{sheet.appearing(knew.at_s)}">{_box("warned", long, wide)}</g>'
        if brake is None:
            return warned
        side = f"v{wide * 0.3:.1f}h4v{-wide * 0.3:.1f}z"
        lights = f"M{-long / 2 - 1:.1f} {-wide / 2:.1f}{side}M{-long / 2 - 1:.1f} {wide * 0.2:.1f}{side}"
        return f'{warned}<path class="brakes {sheet.appearing(brake.begins_s)}" d="{lights}"/>'

    def _label(self, name: str, sheet: Stylesheet) -> str:
        """Its letter, and beside the two that may meet their speed."""
        letter = self._letter(name, sheet)
        if name not in (self.story.ego, self.story.other):
            return letter
        x, y = (-98, ROW) if name == self.story.ego else (-38, -ROW - 14)
        speeds = [state.speed_mps * KMH for at_s in self.time.ticks_s if (state := self.state(name, at_s))]
        return (
            f'{letter}<g transform="translate({x} {y:g})">{column([f"{speed:.0f}" for speed in speeds], 30, sheet)}'
            f'<text class="b" x="34" y="14">km/h</text></g>{self._waiting(name, sheet)}'
        )

    def _letter(self, name: str, sheet: Stylesheet) -> str:
        """Dark on the colour of a warned ego."""
        knew, text = self.story.verdict.found.knew, f'y="4.5">{escape(name)}</text>'
        if name != self.story.ego or knew is None:
            return f'<text class="id" {text}'
        before, after = sheet.appearing(self.time.begin_s, knew.at_s), sheet.appearing(knew.at_s)
        return f'<text class="id {before}" {text}<text class="id dark {after}" {text}'

    def _waiting(self, name: str, sheet: Stylesheet) -> str:
        """Beside the ego, while the message that decides is there and has not led to a warning."""
        knew, handed_s = self.story.verdict.found.knew, self.story.handed_s
        if name != self.story.ego or knew is None or handed_s is None or knew.at_s - handed_s < 2 * self.time.tick_s:
            return ""
        lines = ("the message", f"waits in {name}’s", "queue")
        rows = "".join(
            f'<text class="bad r" x="-22" y="{2 * ROW + 14 + 17 * number:g}">{escape(line)}</text>'
            for number, line in enumerate(lines)
        )
        return f'<g class="{sheet.appearing(handed_s, knew.at_s)}">{rows}</g>'

    # -- what is seen and told

    def _sights(self, sheet: Stylesheet) -> Iterator[str]:
        """The line of the first that perceives the crossing vehicle, until the ego is warned or the end."""
        first, knew = self.story.verdict.found.first_perceivable, self.story.verdict.found.knew
        if first is None or first.by not in self.tracks:
            return
        until_s = max(first.at_s + 2 * RING_S, self.time.begin_s if knew is None else knew.at_s)
        there, moving = sheet.appearing(first.at_s, until_s), sheet.moving(self._lines(first.by))
        yield f'<g class="{there}"><path class="sight {moving}" d="M0 0H1"/></g>'

    def _lines(self, eye: str) -> list[Pose]:
        found = []
        for at_s in self._instants_s:
            here, there = self.state(eye, at_s), self.state(self.story.other, at_s)
            if here is not None and there is not None:
                (x, y), (to_x, to_y) = self.view.at((here.x_m, here.y_m)), self.view.at((there.x_m, there.y_m))
                found.append(Pose(at_s, x, y, degrees(atan2(to_y - y, to_x - x)), hypot(to_x - x, to_y - y)))
        return found

    def _rings(self, sheet: Stylesheet) -> Iterator[str]:
        """A ring at the sender of each message about the crossing vehicle; a thick one for the one that decided."""
        deciding, end_s = self.story.deciding, self.story.end_s or self.time.end_s
        for each in self.story.scene.messages:
            if each.object != self.story.other or not self.time.begin_s <= each.sent_s < min(end_s, self.time.end_s):
                continue
            sender = self.state(each.station, each.sent_s)
            if sender is None or not self.view.shows((sender.x_m, sender.y_m), 0):
                continue
            decides = self.story.handed_s == each.at_s and deciding is not None and deciding.station == each.station
            yield self._ring(f"ring{' deciding' if decides else ''}", sender, each.sent_s, RING_M, sheet)

    def _flashes(self, sheet: Stylesheet) -> Iterator[str]:
        """A ring around the ego when it is warned."""
        knew = self.story.verdict.found.knew
        state = None if knew is None else self.state(self.story.ego, knew.at_s)
        if knew is not None and state is not None:
            yield self._ring("flash", state, knew.at_s, RING_M / 2, sheet)

    def _ring(self, look: str, state: State, at_s: float, far_m: float, sheet: Stylesheet) -> str:
        x, y = self.view.at((state.x_m, state.y_m))
        growing = sheet.growing(at_s, RING_S, 2.0, far_m * self.view.scale)
        return f'<g transform="translate({x:.1f} {y:.1f})"><circle class="{look} {growing}" r="1"/></g>'

    # -- what came of it

    def _limit(self) -> str:
        """A line across the lane, where the front is at the last moment to command the brake."""
        pose = limit_pose(self.story)
        if pose is None:
            return ""
        (x, y), half = self.view.at((pose[0], pose[1])), 2.2 * self.view.scale
        dx, dy = sin(pose[2]) * half, cos(pose[2]) * half
        line = f'<path class="limit" d="M{x - dx:.1f} {y - dy:.1f}L{x + dx:.1f} {y + dy:.1f}"/>'
        return line + self._beside(y, f"last moment to command {self.story.ego}’s brake", "last", x + abs(dx))

    def _ghost(self, sheet: Stylesheet) -> str:
        """The ego where it was when it was warned."""
        knew, first = self.story.verdict.found.knew, self.story.verdict.found.first_perceivable
        state = None if knew is None else self.state(self.story.ego, knew.at_s)
        if knew is None or state is None:
            return ""
        here = self.tracks[self.story.ego]
        (x, y), long, wide = self.view.at((state.x_m, state.y_m)), here.length_m, here.width_m
        outline = _box("ghost", long * self.view.scale, wide * self.view.scale)
        after = "" if first is None else f" {seconds(knew.at_s - first.at_s)} after {first.by} saw {self.story.other}"
        front_x = x + cos(state.heading_rad) * long / 2 * self.view.scale + wide / 2 * self.view.scale
        front_y = y - sin(state.heading_rad) * long / 2 * self.view.scale
        text = self._beside(front_y, f"warned{after}", "b", front_x)
        return (
            f'<g class="{sheet.appearing(knew.at_s)}"><g transform="translate({x:.1f} {y:.1f}) '
            f'rotate({degrees(-state.heading_rad):.1f})">{outline}</g>{text}</g>'
        )

    def _end(self, sheet: Stylesheet) -> str:
        """A star where the two met; else the way that was left."""
        end_s = self.story.end_s
        if end_s is None:
            return ""
        inner = self._star() if self.story.crashed else self._gap(end_s)
        return f'<g class="{sheet.appearing(end_s)}">{inner}</g>'

    def _star(self) -> str:
        point = contact_point(self.story)
        if point is None:
            return ""
        x, y = self.view.at((point[0], point[1]))
        rays = "L".join(
            f"{x + r * cos(0.3927 * ray):.1f} {y + r * sin(0.3927 * ray):.1f}"
            for ray, r in ((ray, 17 if ray % 2 == 0 else 8) for ray in range(16))
        )
        return f'<path class="star" d="M{rays}Z"/>' + self._beside(
            y + 50, f"contact at {kmh(self.story.verdict.found.impact_kmh)}", "b bad", None
        )

    def _gap(self, end_s: float) -> str:
        left_m, state = self.story.left_m(end_s), self.state(self.story.ego, end_s)
        if left_m is None or left_m < 0 or state is None:
            return ""
        ahead = self.tracks[self.story.ego].length_m / 2
        ends = [
            self.view.at((state.x_m + cos(state.heading_rad) * far, state.y_m + sin(state.heading_rad) * far))
            for far in (ahead, ahead + left_m)
        ]
        (x, y), (to_x, to_y) = ends
        bars = f"M{x - 5:.1f} {y:.1f}h10M{to_x - 5:.1f} {to_y:.1f}h10"
        line = f'<path class="gap" d="{bars}M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}"/>'
        return line + self._beside((y + to_y) / 2 + 8, f"{length(left_m)} to {self.story.other}’s way", "b good", None)

    def _beside(self, y: float, text: str, look: str, from_x: float | None) -> str:
        """A text right of the road's edge, with a line to it from `from_x` on."""
        edge = self.view.at((min(_right(self.story), self.view.x_m + self.view.width / self.view.scale), 0.0))[0] + 8
        lead = "" if from_x is None else f'<path class="lead" d="M{from_x + 2:.1f} {y:.1f}H{edge:.1f}"/>'
        return f'{lead}<text class="{look}" x="{edge + 5:.1f}" y="{y + 5:.1f}">{escape(text)}</text>'


def _right(story: Story) -> float:
    """The left wall of what stands right of the ego's way; 4 m right of it where nothing does."""
    recorded = story.scene.ego_recorded or story.scene.vehicles[story.ego]
    walls = [x for each in story.scene.occluders for x, _ in each.polygon if x > recorded.x_m[0]]
    return min(walls, default=recorded.x_m[0] + 4.0)


def column(texts: list[str], width: float, sheet: Stylesheet) -> str:
    """Texts of all ticks, of which one is seen, at the right of so many pixels."""
    rows = "".join(
        f'<text class="b r" x="{width:g}" y="{14 + ROW * number:g}">{escape(text)}</text>'
        for number, text in enumerate(texts)
    )
    return f'<svg width="{width:g}" height="{ROW:g}"><g class="{sheet.ticking(ROW)}">{rows}</g></svg>'


def _box(look: str, long: float, wide: float) -> str:
    corner = f'x="{-long / 2:.1f}" y="{-wide / 2:.1f}"'
    return f'<rect class="{look}" {corner} width="{long:.1f}" height="{wide:.1f}" rx="3.5"/>'
