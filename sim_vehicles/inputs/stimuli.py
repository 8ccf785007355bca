"""The whole input of a replay: what every source gets, when and how old, as recorded or with the ego braking.

Instants are those of the recording. A source's k-th burst is due at start + phase + k * period; the centre's leaves
5 ms before, so that its tuples are at their node before anything comes there from another one. What a radio sends goes
through the channel: some of it is lost, some arrives later and is older by as much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby
from math import hypot
from typing import NamedTuple, Protocol

from google.protobuf.message import Message

from protos.vehicle_pb2 import Cpm
from sim_vehicles.errors import bad_input
from sim_vehicles.inputs.feed import Feed
from sim_vehicles.v2v.channel import IDEAL, Channel
from sim_vehicles.v2v.radio import judged
from sim_vehicles.v2v.stations import generated, tuples
from sim_vehicles.world.motion import Track
from sim_vehicles.world.scene import Scenario
from sim_vehicles.world.sense import Burst, Senses, Sent, inputs_hash

CENTRE_LEAD_NS = 5_000_000
MESSAGES = ("burst", "etsi")
MAX_AGE_NS = 1_000_000_000


@dataclass(frozen=True)
class StimulusOptions:
    """From `start_ns` on, up to before `until_ns` or the recording's end. `phase_ns`: everything is sent so much later,
    over the same motion. `v2v`: messages per V2V burst, if not the plan's. `age_ns`: of the oldest measurement in a
    burst. `messages`: "burst", n messages every period, or "etsi", what the rules of CAM and CPM make stations send."""

    start_ns: int
    until_ns: int
    phase_ns: int = 0
    seed: int = 1
    v2v: int | None = None
    age_ns: int = 100_000_000
    messages: str = "burst"
    channel: Channel = IDEAL

    def __post_init__(self) -> None:
        """BadInputError if a field cannot be."""
        if self.messages not in MESSAGES:
            raise bad_input(
                "unknown_word",
                f"--messages: {self.messages!r} is unknown",
                f"use one of {', '.join(MESSAGES)}",
                subject="--messages",
            )
        if not 0 <= self.age_ns <= MAX_AGE_NS:
            raise bad_input(
                "out_of_range", "--age: must be from 0 to 1 s; what is older is no news of a vehicle", subject="--age"
            )
        if self.phase_ns < 0:
            raise bad_input("negative", "--phase: must not be negative", subject="--phase")


class Arrival(NamedTuple):
    """A V2V tuple as the ego's radio hands it over. Instants of the recording."""

    at_ns: int
    age_ns: int
    sent_ns: int
    value: Cpm


class Around(Protocol):
    """Stations that are not in the scenario, and what the ego's radio gets of them."""

    def heard(self, ego: Track, begin_ns: int, until_ns: int) -> Iterator[Arrival]:
        """What was sent from begin on, up to before until, in any order."""
        ...


class Stimuli:
    """All bursts of one run. The same feeds, scenario and options give the same bursts, in any order of asking."""

    def __init__(
        self, feeds: Sequence[Feed], scenario: Scenario, options: StimulusOptions, around: Around | None = None
    ) -> None:
        self._around = around
        self.feeds = sorted(feeds, key=lambda feed: (feed.order, feed.name))
        self.options = options
        self._recorded = Senses(scenario, options.seed)
        self._last_ns = min(options.until_ns - 1, int(scenario.motion.end_s * 1e9))

    @property
    def numbers(self) -> dict[str, int]:
        """Ids on the wire by vehicle."""
        return self._recorded.numbers

    @cached_property
    def hash(self) -> str:
        """Of the bursts as recorded, without any braking (see `inputs_hash`)."""
        return inputs_hash(self._as_recorded)

    @cached_property
    def _as_recorded(self) -> tuple[Burst, ...]:
        """Computed once: many laps send them."""
        return tuple(self._found(self._recorded, None))

    def bursts(self, ego: Track | None = None, after_ns: int | None = None) -> list[Burst]:
        """In the order in which they leave. ego: its motion, where it is not the recorded one. after_ns: only what
        leaves after that instant. A burst of which nothing is there to be sent is left out."""
        if ego is None and after_ns is None:
            return list(self._as_recorded)
        return self._found(self._recorded if ego is None else self._recorded.moved(ego), after_ns)

    def _found(self, senses: Senses, after_ns: int | None) -> list[Burst]:
        found = [
            (burst.at_ns, feed.order, burst) for feed in self.feeds for burst in self._bursts(feed, senses, after_ns)
        ]
        found.sort(key=lambda item: item[:2])
        return [burst for at_ns, _, burst in found if after_ns is None or at_ns > after_ns]

    def _bursts(self, feed: Feed, senses: Senses, after_ns: int | None) -> Iterator[Burst]:
        if feed.type == "vehicle.Cpm":
            yield from self._v2v(feed, senses, after_ns)
            return
        for due_ns in self._instants(feed, after_ns, 0):
            values: Sequence[Message]
            if feed.type == "vehicle.Sensor":
                at_ns, values = due_ns, senses.sensor(due_ns, feed.n, feed.period_ns)
            else:
                at_ns = due_ns - CENTRE_LEAD_NS
                values = senses.centre(at_ns, feed.n)
            if values:
                yield Burst(feed.name, at_ns, 0, tuple(values))

    def _v2v(self, feed: Feed, senses: Senses, after_ns: int | None) -> Iterator[Burst]:
        sent = (
            self._by_rule(senses, after_ns) if self.options.messages == "etsi" else self._sent(feed, senses, after_ns)
        )
        heard = chain(self._through(sent, senses), self._from_around(senses, after_ns))
        arrivals = sorted(heard, key=lambda one: one.at_ns)
        for (at_ns, age_ns, sent_ns), some in groupby(arrivals, key=lambda one: one[:3]):
            yield Burst(feed.name, at_ns, age_ns, tuple(one.value for one in some), sent_ns)

    def _from_around(self, senses: Senses, after_ns: int | None) -> Iterator[Arrival]:
        if self._around is not None:
            ego = senses.sight.motion.tracks[senses.scenario.scene.ego]
            yield from self._around.heard(ego, self._first_ns(after_ns), self._last_ns + 1)

    def _first_ns(self, after_ns: int | None) -> int:
        """Of what is sent from then on, something may arrive after that."""
        start_ns = self.options.start_ns
        return start_ns if after_ns is None else max(start_ns, after_ns - self.options.channel.longest_ns)

    def _sent(self, feed: Feed, senses: Senses, after_ns: int | None) -> Iterator[Sent]:
        n = feed.n if self.options.v2v is None else self.options.v2v
        for due_ns in self._instants(feed, after_ns, self.options.channel.longest_ns):
            yield from senses.v2v(due_ns, n, self.options.age_ns)

    def _by_rule(self, senses: Senses, after_ns: int | None) -> Iterator[Sent]:
        """The rules run from the start at each call: what a station sent decides what it sends next."""
        first_ns = self.options.start_ns + self.options.phase_ns
        for message in generated(senses, first_ns, self._last_ns + 1):
            if message.at_ns >= self._first_ns(after_ns):
                yield from tuples(senses, message)

    def _instants(self, feed: Feed, after_ns: int | None, late_ns: int) -> Iterator[int]:
        """When bursts are due; with after_ns, only those of which something may leave after it, late_ns late."""
        first_ns = self.options.start_ns + self.options.phase_ns
        for due_ns in range(first_ns, self._last_ns + 1, feed.period_ns):
            if after_ns is None or due_ns + late_ns > after_ns:
                yield due_ns

    def _through(self, sent: Iterator[Sent], senses: Senses) -> Iterator[Arrival]:
        """What the ego's radio gets, and when. Nothing is received while the ego is not there."""
        ego = senses.scenario.scene.ego
        for one in sent:
            states = senses.sight.at(one.sent_ns)
            here, there = states.get(ego), states.get(one.station)
            if here is None or there is None:
                continue
            away_m = hypot(there.x_m - here.x_m, there.y_m - here.y_m)
            delay_ns = self.options.channel.delay(self.options.seed, one.station, one.sent_ns, one.message, away_m)
            if delay_ns is not None:
                at_ns = one.sent_ns + delay_ns
                if self.options.messages == "etsi":
                    judged(one.value, senses.scenario.scene, here)
                yield Arrival(at_ns, at_ns - one.measured_ns, one.sent_ns, one.value)


@dataclass(frozen=True, slots=True)
class HeardMessage:
    """A V2V tuple as it is admitted, in recording time. sent_s: by the radio."""

    at_s: float
    sent_s: float
    station: str
    object: str
    measured_s: float


def heard(bursts: Sequence[Burst], numbers: dict[str, int]) -> tuple[HeardMessage, ...]:
    """V2V tuples as they are admitted, of the stations that have names. Equal copies of a message count once, when the
    first one comes."""
    names = {number: name for name, number in numbers.items()}
    found: dict[tuple[int, int, int], tuple[float, float]] = {}
    for burst in bursts:
        for value in burst.values:
            if isinstance(value, Cpm) and value.station in names:
                key = (value.station, value.object.object_id, burst.at_ns - burst.age_ns)
                sent_ns = burst.at_ns if burst.sent_ns is None else burst.sent_ns
                found.setdefault(key, (burst.at_ns / 1e9, sent_ns / 1e9))
    return tuple(
        HeardMessage(at_s, sent_s, names[station], names[one], measured_ns / 1e9)
        for (station, one, measured_ns), (at_s, sent_s) in found.items()
    )
