"""What everybody is fed: streams with a deadline each, and when their tuples come. Standard library only, since it also
runs in the environments of the peers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from random import Random
from typing import Any, NamedTuple

US, MS, SECOND = 1_000, 1_000_000, 1_000_000_000
LEAD_S = 1.0  # fed before what is counted, so that nobody is judged by a first tuple
LOADS = (0.48, 1.2)  # of one core
CHAIN, STAGES, URGENT = "chain", 3, "urgent"
JITTER = 0.25  # of its period: how much later than periodic a tuple may come


@dataclass(frozen=True)
class Stream:
    """A source, and the class of its tuples."""

    name: str
    period_ns: int
    cost_ns: int
    deadline_ns: int

    @property
    def share(self) -> float:
        """Of one core."""
        return self.cost_ns / self.period_ns

    @property
    def jitter_ns(self) -> int:
        """How much later than periodic its tuples may come."""
        return int(self.period_ns * JITTER)


class Arrival(NamedTuple):
    """A tuple comes. at_ns: after the begin of the feed; seq counts those of its stream."""

    at_ns: int
    stream: str
    seq: int

    @property
    def counted(self) -> bool:
        """Not of the lead."""
        return self.at_ns >= LEAD_S * SECOND


@dataclass(frozen=True)
class Workload:
    """stages: operators in a row that each tuple passes; the first one has all of the cost."""

    name: str
    streams: tuple[Stream, ...]
    seconds: float
    seed: int
    stages: int = 1

    @property
    def load(self) -> float:
        """Share of one core that all streams ask for."""
        return sum(stream.share for stream in self.streams)

    def stream(self, name: str) -> Stream:
        """By its name."""
        return next(each for each in self.streams if each.name == name)

    def arrivals(self) -> list[Arrival]:
        """In order: each stream in a phase of its own, each tuple with a jitter of its own."""
        random, end_ns, found = Random(self.seed), int((LEAD_S + self.seconds) * SECOND), list[Arrival]()
        for stream in self.streams:
            begin_ns = random.randrange(stream.period_ns)
            for seq in range((end_ns - begin_ns) // stream.period_ns):
                at_ns = begin_ns + seq * stream.period_ns + random.randrange(stream.jitter_ns + 1)
                found.append(Arrival(at_ns, stream.name, seq))
        return sorted(found)

    def to_json(self) -> dict[str, Any]:
        """As `from_json` reads it."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Workload:
        """What `to_json` gave."""
        streams = tuple(Stream(**each) for each in content["streams"])
        return cls(**{**content, "streams": streams})


class _Class(NamedTuple):
    name: str
    cost_ns: int
    deadline_ns: int
    part: float  # of the load


CLASSES = (
    _Class(URGENT, 1 * MS, 15 * MS, 10 / 48),
    _Class("middle", 3 * MS, 50 * MS, 12 / 48),
    _Class("bulk", 8 * MS, 400 * MS, 26 / 48),
)


def classes(load: float, seconds: float, seed: int) -> Workload:
    """Three classes that ask for `load` of one core."""
    streams = tuple(Stream(each.name, round(each.cost_ns / (each.part * load)), *each[1:3]) for each in CLASSES)
    return Workload(f"load {load * 100:.0f} %", streams, seconds, seed)


def chain(seconds: float, seed: int) -> Workload:
    """Three operators that pass a tuple on, 1000 tuples a second."""
    return Workload(CHAIN, (Stream("tuple", 1 * MS, 0, 1 * SECOND),), seconds, seed, stages=STAGES)
