"""The radio channel between a station and the ego: whether a message arrives, and how much later.

A message arrives if it is not lost by chance (`loss`), not by distance (`half_m`), and not where a recorded trace lost
one. Every draw depends on the seed, the station, the instant and the message's name alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import exp
from pathlib import Path
from random import Random

from node_agent.virtual.durations import duration_ns
from sim_vehicles.errors import bad_input
from sim_vehicles.v2v.loss_trace import read_trace

NAME = "--channel"
KEYS = ("loss", "delay", "jitter", "half", "trace")
FALLS_OVER = 8  # the ratio's width: half_m / 8, so that 88 % arrive at 3/4 of the half-distance and 12 % at 5/4
SLOT_NS = 100_000_000  # one entry of a trace: its senders sent every 100 ms
LONGEST_NS = 10_000_000_000


@dataclass(frozen=True)
class Channel:
    """loss: probability, 0 to 1. A message that arrives does so after delay_ns +- jitter_ns (uniform). half_m: distance
    at which half of the messages arrive (logistic); None: distance does not matter. trace: True for received, one entry
    per 100 ms, over and over; a station's messages of one such slot share its fate."""

    loss: float = 0.0
    delay_ns: int = 0
    jitter_ns: int = 0
    half_m: float | None = None
    trace: tuple[bool, ...] = ()
    text: str = field(default="ideal", compare=False)

    def __post_init__(self) -> None:
        """ValueError if a field is out of its range."""
        if not 0 <= self.loss <= 1:
            raise ValueError(f"loss is {self.loss:g}; it must be from 0 to 1")
        if not 0 <= self.jitter_ns <= self.delay_ns <= LONGEST_NS:
            raise ValueError("jitter must be at most the delay (nothing arrives before it is sent), the delay 10 s")
        if self.half_m is not None and not 0 < self.half_m < float("inf"):
            raise ValueError(f"half is {self.half_m:g} m; it must be above 0")

    @property
    def longest_ns(self) -> int:
        """No message takes longer."""
        return self.delay_ns + self.jitter_ns

    def delivery_ratio(self, distance_m: float) -> float:
        """Share of messages that arrive from this far, without the trace: (1 - loss) / (1 + exp((d - half) / width)).
        A logistic fall-off is what field trials of 5.9 GHz radios show; its parameters belong to the place."""
        if self.half_m is None:
            return 1 - self.loss
        return (1 - self.loss) / (1 + exp(min(700.0, FALLS_OVER * (distance_m / self.half_m - 1))))

    def delay(self, seed: int, station: str, sent_ns: int, message: str, distance_m: float) -> int | None:
        """How long the message takes, in ns; None: it is lost."""
        if self.trace and not self._received(seed, station, sent_ns):
            return None
        if not self.jitter_ns and self.loss == 0 and self.half_m is None:
            return self.delay_ns
        draw = Random(f"{seed}:{station}:{sent_ns}:{message}:channel")  # noqa: S311 (a channel, not secrets)
        if draw.random() >= self.delivery_ratio(distance_m):
            return None
        return self.delay_ns + round((2 * draw.random() - 1) * self.jitter_ns)

    def _received(self, seed: int, station: str, sent_ns: int) -> bool:
        first = Random(f"{seed}:{station}:trace").randrange(len(self.trace))  # noqa: S311
        return self.trace[(first + sent_ns // SLOT_NS) % len(self.trace)]


IDEAL = Channel()


def parse_channel(text: str) -> Channel:
    """`ideal`, or some of `loss=0.1,delay=5ms,jitter=2ms,half=200m,trace=FILE`. BadInputError says what is wrong."""
    if text.strip() == "ideal":
        return IDEAL
    found: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if key not in KEYS or not equals or not value:
            raise bad_input(
                "wrong_form",
                f"{NAME}: {part.strip()!r} is not understood",
                f"write ideal, or some of {', '.join(KEYS)}, as in loss=0.1,delay=5ms,jitter=2ms,half=200m,trace=FILE",
                subject=NAME,
            )
        if key in found:
            raise bad_input("given_twice", f"{NAME}: {key} is given twice", subject=NAME)
        found[key] = value
    try:
        return replace(_channel(found), text=text)
    except ValueError as bad:
        raise bad_input("wrong_form", f"{NAME}: {bad}", subject=NAME) from None


def _channel(found: dict[str, str]) -> Channel:
    if "jitter" in found and "delay" not in found:
        raise ValueError("jitter needs a delay to vary, as in delay=5ms,jitter=2ms")
    return Channel(
        loss=_number("loss", found.get("loss", "0"), ""),
        delay_ns=duration_ns(found.get("delay", "0 ns"), f"{NAME}: delay"),
        jitter_ns=duration_ns(found.get("jitter", "0 ns"), f"{NAME}: jitter"),
        half_m=_number("half", found["half"], "m") if "half" in found else None,
        trace=read_trace(Path(found["trace"])) if "trace" in found else (),
    )


def _number(key: str, text: str, unit: str) -> float:
    if unit and not text.endswith(unit):
        raise ValueError(f"{key}={text} has no unit; write {key}={text}{unit}")
    try:
        return float(text.removesuffix(unit))
    except ValueError:
        raise ValueError(f"{key}={text} is no number") from None
