"""What a seed is made of. Each kind of fault, and the load, is drawn from a stream of its own: a kind that is added
leaves as they are all seeds that do not have it."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple

from tests.simulation.faults.fault import Fault

BURSTS = {"burst", "crowded", "overfull"}


class Room(NamedTuple):
    """Where faults may be. first_ns, last_ns: when they begin; longest_ns: how long they take."""

    first_ns: int
    last_ns: int
    longest_ns: int
    nodes: Sequence[str]
    ways: Sequence[tuple[str, str]]


def stream(seed: int, name: str) -> Random:
    """One of the streams of a seed."""
    return Random(f"{seed} {name}")


def kinds_of(seed: int, kinds: Iterable[str], shares: Sequence[float]) -> list[str]:
    """The kinds of faults that a seed has: a random part of all, so that each is also met without the others."""
    share = stream(seed, "share").choice(shares)
    return [kind for kind in kinds if stream(seed, kind).random() < share]


def faults_of(seed: int, kinds: Iterable[str], room: Room, once: bool = False) -> list[Fault]:
    """One fault of each of these kinds, or a few. once: one."""
    found: list[Fault] = []
    for kind in kinds:
        random = stream(seed, kind)
        random.random()  # whether a seed has that kind
        count = random.choice((1, 1, 1, 2, 3))
        found += [
            Fault(
                kind, random.randrange(room.first_ns, room.last_ns), random.randrange(room.longest_ns // 4000,
                room.longest_ns), random.choice(room.nodes), random.choice(room.ways), random.randrange(1000),
            )
            for _ in range(1 if once else count)
        ]  # fmt: skip
    return sorted(found, key=lambda fault: fault.at_ns)


def steady(
    seed: int, name: str, periods_ns: Sequence[int], from_ns: int, end_ns: int, faults: Iterable[Fault], part: int
) -> list[int]:
    """When a source sends: steadily, in a period of these, and in each burst the `part`th part of its size."""
    random = stream(seed, f"source {name}")
    period_ns = random.choice(periods_ns)
    return sent(from_ns + random.randrange(period_ns), period_ns, end_ns, faults, part)


def sent(begin_ns: int, period_ns: int, end_ns: int, faults: Iterable[Fault], part: int) -> list[int]:
    """The instants."""
    bursts = [fault.at_ns for fault in faults if fault.kind in BURSTS for _ in range(fault.size // part)]
    return sorted([*range(begin_ns, end_ns, period_ns), *bursts])
