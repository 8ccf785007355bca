"""The time bar under a panel: from the measurement to the warning, the deadline, the last moment and the end."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from sim_vehicles.story.page.run_story import Story
from sim_vehicles.story.picture.keyframes import PlayTime, Pose, Stylesheet

HEIGHT = 66
AXIS_Y, BAR_Y, BAR = 38, 22, 14


@dataclass(frozen=True)
class TimeBar:
    """Of one run, `width` pixels wide."""

    story: Story
    time: PlayTime
    width: float

    def drawn(self, sheet: Stylesheet) -> str:
        """The bar, and its cursor."""
        return f"{self._axis()}{self._warning(sheet)}{self._instants(sheet)}{self._cursor(sheet)}"

    def _x(self, at_s: float) -> float:
        return (at_s - self.time.begin_s) / (self.time.end_s - self.time.begin_s) * self.width

    def _axis(self) -> str:
        first, last = -int(self.time.zero_s - self.time.begin_s), int(self.time.end_s - self.time.zero_s)
        ticks = "".join(
            f'<path class="axis" d="M{self._x(self.time.zero_s + second):.1f} {AXIS_Y}v5"/>'
            f'<text class="s c" x="{self._x(self.time.zero_s + second):.1f}" y="{AXIS_Y + 20}">'
            f"{second} s</text>"
            for second in range(first, last + 1)
        )
        return f'<path class="axis" d="M0 {AXIS_Y}H{self.width:g}"/>{ticks}'

    def _warning(self, sheet: Stylesheet) -> str:
        """The deadline as an outline, the latency as a bar that grows with time."""
        deciding, deadline_ns = self.story.deciding, self.story.traced.deadline_ns
        if deciding is None or deciding.measured_s is None or deciding.delivered_s is None:
            return ""
        begin, end = self._x(deciding.measured_s), self._x(deciding.delivered_s)
        late = deadline_ns is not None and deciding.latency_bounds_ns[1] > deadline_ns
        growing = sheet.moving([
            Pose(self.time.begin_s, begin, BAR_Y, scale=0.0), Pose(deciding.measured_s, begin, BAR_Y, scale=0.0),
            Pose(deciding.delivered_s, begin, BAR_Y, scale=end - begin),
            Pose(self.time.end_s, begin, BAR_Y, scale=end - begin),
        ])  # fmt: skip
        limit = "" if deadline_ns is None else (
            f'<rect class="due" x="{begin:.1f}" y="{BAR_Y - 3}" height="{BAR + 6}" '
            f'width="{self._x(deciding.measured_s + deadline_ns / 1e9) - begin:.1f}"/>'
        )  # fmt: skip
        return f'<rect class="{"late" if late else "intime"} {growing}" width="1" height="{BAR}"/>{limit}'

    def _instants(self, sheet: Stylesheet) -> str:
        """Those that decide: the last moment to command the brake, and how it ended."""
        found = []
        if self.story.stopping is not None and self.story.stopping.latest_s is not None:
            found.append((self._x(self.story.stopping.latest_s), "last", "last moment", self.time.begin_s))
        if self.story.end_s is not None:
            look, text = ("bad", "contact") if self.story.crashed else ("good", f"{self.story.ego} stands")
            found.append((self._x(self.story.end_s), look, text, self.story.end_s))
        return "".join(
            f'<g class="{sheet.appearing(from_s)}"><path class="tick {look}" d="M{x:.1f} {BAR_Y - 4}V{AXIS_Y}"/>'
            f'<text class="s c {look}" x="{x:.1f}" y="{BAR_Y - 9}">{escape(text)}</text></g>'
            for x, look, text, from_s in found
        )

    def _cursor(self, sheet: Stylesheet) -> str:
        poses = [Pose(self.time.begin_s, 0.0, 0.0), Pose(self.time.end_s, self.width, 0.0)]
        return f'<path class="cursor {sheet.moving(poses)}" d="M0 {BAR_Y - 4}V{AXIS_Y + 4}"/>'
