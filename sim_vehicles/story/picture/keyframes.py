"""CSS keyframes: motion and instants of the recording as animations of one length, which begin again together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

TOLERANCE = 0.3  # pixels or degrees: by this much at most, what is drawn is away from what was driven


@dataclass(frozen=True)
class PlayTime:
    """The stretch of the recording that plays, in seconds of it. rate: recorded seconds in one second; hold_s: for so
    long its end stays; zero_s: where the clock has 0."""

    begin_s: float
    end_s: float
    zero_s: float
    rate: float = 0.5
    hold_s: float = 3.5
    tick_s: float = 0.1

    @property
    def loop_s(self) -> float:
        """Seconds until it begins again."""
        return (self.end_s - self.begin_s) / self.rate + self.hold_s

    @property
    def ticks_s(self) -> list[float]:
        """Instants at which clock and speeds change; the last one is the end."""
        count = round((self.end_s - self.begin_s) / self.tick_s)
        return [round(self.begin_s + number * self.tick_s, 6) for number in range(count + 1)]

    def percent(self, at_s: float) -> float:
        """Of the loop, when the instant comes; what lies outside the stretch comes at its ends."""
        inside_s = min(max(at_s, self.begin_s), self.end_s) - self.begin_s
        return round(100 * inside_s / self.rate / self.loop_s, 3)


@dataclass(frozen=True)
class Pose:
    """Where something is drawn at an instant: pixels, and degrees clockwise."""

    at_s: float
    x: float
    y: float
    degrees: float = 0.0
    scale: float = 1.0

    @property
    def css(self) -> str:
        """As a transform, without the parts that do nothing."""
        turned = f"rotate({self.degrees:.1f}deg)"
        scaled = f"scale({self.scale:.1f},1)" if self.scale != 1.0 else ""
        return f"translate({self.x:.1f}px,{self.y:.1f}px){turned}{scaled}"


def thinned(poses: Sequence[Pose]) -> list[Pose]:
    """The fewest that linear motion in between needs to stay within TOLERANCE (Ramer, Douglas, Peucker; over time)."""
    if len(poses) < 3:
        return list(poses)
    first, last = poses[0], poses[-1]
    away = [_away(pose, first, last) for pose in poses[1:-1]]
    if max(away) <= TOLERANCE:
        return [first, last]
    place = away.index(max(away)) + 1
    return [*thinned(poses[: place + 1])[:-1], *thinned(poses[place:])]


def _away(pose: Pose, first: Pose, last: Pose) -> float:
    share = (pose.at_s - first.at_s) / (last.at_s - first.at_s)
    pairs = ((pose.x, first.x, last.x), (pose.y, first.y, last.y), (pose.degrees, first.degrees, last.degrees),
             (pose.scale, first.scale, last.scale))  # fmt: skip
    return max(abs(value - (a + share * (b - a))) for value, a, b in pairs)


@dataclass
class Stylesheet:
    """Collects the rules of a picture, and gives each a class. Beside its animation a rule has the end of it, which is
    seen where nothing plays."""

    time: PlayTime
    rules: list[str] = field(default_factory=list)

    def moving(self, poses: Sequence[Pose]) -> str:
        """A class for what moves so; the poses are in the order of time."""
        few = thinned(poses)
        frames = "".join(f"{self.time.percent(pose.at_s):g}%{{transform:{pose.css}}}" for pose in few)
        still = f"transform:{few[-1].css}"
        return self._rule(f"{frames}100%{{{still}}}", still)

    def appearing(self, from_s: float, until_s: float | None = None) -> str:
        """A class for what is there from an instant on; until_s: and is gone later, also where nothing plays."""
        begin, end = self.time.percent(from_s), None if until_s is None else self.time.percent(until_s)
        before = f"0%,{begin:g}%{{opacity:0}}{begin + 0.01:g}%" if begin > 0 else "0%"
        if end is None:
            return self._rule(f"{before},100%{{opacity:1}}", "opacity:1")
        return self._rule(f"{before},{end:g}%{{opacity:1}}{end + 0.01:g}%,100%{{opacity:0}}", "opacity:0")

    def growing(self, from_s: float, lasts_s: float, least: float, most: float) -> str:
        """A class for a ring that grows from one scale to another and fades; it is not there where nothing plays."""
        begin, end = self.time.percent(from_s), self.time.percent(from_s + lasts_s)
        small, large = f"transform:scale({least:g})", f"transform:scale({most:g})"
        frames = (
            f"0%,{begin:g}%{{opacity:0;{small}}}{begin + 0.01:g}%{{opacity:1;{small}}}"
            f"{end:g}%,100%{{opacity:0;{large}}}"
        )
        return self._rule(frames, "opacity:0")

    def ticking(self, height: float) -> str:
        """A class for a column of texts, one for each tick, of which one is seen at a time."""
        steps = len(self.time.ticks_s) - 1
        last, end = f"transform:translateY({-steps * height:g}px)", self.time.percent(self.time.end_s)
        frames = f"0%{{transform:translateY(0);animation-timing-function:steps({steps})}}{end:g}%,100%{{{last}}}"
        return self._rule(frames, last)

    def _rule(self, frames: str, still: str) -> str:
        """Equal rules share a class."""
        made = f"{{{still}}}", f"{{{frames}}}"
        for number, rule in enumerate(self.rules):
            if rule == _named(number, *made):
                return f"m k{number}"
        self.rules.append(_named(len(self.rules), *made))
        return f"m k{len(self.rules) - 1}"

    @property
    def text(self) -> str:
        """All rules; nothing plays for people who ask for less motion."""
        return (
            f".m{{animation:{self.time.loop_s:g}s linear infinite}}"
            + "\n".join(self.rules)
            + "\n@media (prefers-reduced-motion:reduce){.m{animation:none!important}}"
        )


def _named(number: int, still: str, frames: str) -> str:
    return f".k{number}{still[:-1]};animation-name:a{number}}}@keyframes a{number}{frames}"
