"""What a fusion does, by its definition: every set by brute force over all that waits."""

from collections.abc import Iterator
from itertools import product

from node_agent.core import plan as plans

Waits = tuple[int, int, int, int]  # port, number, stamp, when it came
Told = tuple[str, tuple[int | None, ...]]  # "fired", "replaced" or "unmatched", and numbers


class Definition:
    """All that waits, in one list in the order of arrival; sets are looked for among all combinations. wait_ns: until a
    tuple is unmatched, where there is no timeout."""

    def __init__(self, sync: plans.Sync, ports: int, wait_ns: int) -> None:
        self.sync, self.ports, self.wait_ns = sync, ports, wait_ns
        self.waiting: list[Waits] = []
        self.began_ns = 0

    def passes(self, at_ns: int) -> Iterator[Told]:
        sync = self.sync
        while self.waiting:
            first = self.waiting[0]
            began_ns = first[3] if sync.by_stamp or not sync.timeout_ns else self.began_ns
            if began_ns + (sync.timeout_ns or self.wait_ns) > at_ns:
                return
            if sync.timeout_ns:
                yield from self.fires(self.partial(first))
            else:
                self.waiting.remove(first)
                yield "unmatched", (first[1],)

    def comes(self, at_ns: int, port: int, number: int, stamp_ns: int) -> Iterator[Told]:
        yield from self.passes(at_ns)
        if not self.waiting:
            self.began_ns = at_ns
        if not self.sync.by_stamp:
            yield from self.replaces([each for each in self.waiting if each[0] == port])
        self.waiting.append((port, number, stamp_ns, at_ns))
        if sets := list(self.complete()):
            yield from self.fires(min(sets, key=self.rank))
            return
        mine = [each for each in self.waiting if each[0] == port]
        if self.sync.by_stamp and len(mine) > self.sync.keep:
            yield from self.replaces(mine[:1])

    def complete(self) -> Iterator[tuple[Waits, ...]]:
        of = [[each for each in self.waiting if each[0] == port] for port in range(self.ports)]
        for parts in product(*of):
            if not self.sync.by_stamp or self.span(parts) <= self.sync.within_ns:
                yield parts

    def span(self, parts: tuple[Waits, ...]) -> int:
        return max(each[2] for each in parts) - min(each[2] for each in parts)

    def rank(self, parts: tuple[Waits, ...]) -> tuple[object, ...]:
        return self.span(parts), min(each[2] for each in parts), [(each[2], each[1]) for each in parts]

    def partial(self, first: Waits) -> tuple[Waits | None, ...]:
        parts: list[Waits | None] = []
        for port in range(self.ports):
            there = [each for each in parts if each is not None] + [first]
            fit = [first] if port == first[0] else [each for each in self.waiting if each[0] == port]
            if self.sync.by_stamp:
                fit = [each for each in fit if self.span((each, *there)) <= self.sync.within_ns]
            parts.append(min(fit, key=lambda each: (abs(each[2] - first[2]), each[2], each[1]), default=None))
        return tuple(parts)

    def fires(self, parts: tuple[Waits | None, ...]) -> Iterator[Told]:
        for part in parts:
            if part is not None:
                older = [each for each in self.waiting if each[0] == part[0] and each[2] < part[2]]
                yield from self.replaces(sorted(older, key=lambda each: (each[2], each[1])))
        self.waiting = [each for each in self.waiting if each not in parts]
        yield "fired", tuple(None if part is None else part[1] for part in parts)

    def replaces(self, gone: list[Waits]) -> Iterator[Told]:
        for each in gone:
            self.waiting.remove(each)
            yield "replaced", (each[1],)


class Pairs:
    """Of `each`: all that came."""

    def __init__(self, sync: plans.Sync, ports: int) -> None:
        self.sync, self.ports = sync, ports
        self.came: list[tuple[int, int, int]] = []  # port, stamp, number

    def comes(self, port: int, number: int, stamp_ns: int) -> list[list[int]]:
        """The numbers of each input that the tuple meets, by stamp; one is empty: it is unmatched."""
        near: list[list[int]] = []
        for other in range(self.ports):
            last = [each for each in self.came if each[0] == other][-self.sync.keep :]
            near.append([n for _, stamp, n in sorted(last) if abs(stamp - stamp_ns) <= self.sync.within_ns])
        near[port] = [number]
        self.came.append((port, stamp_ns, number))
        return near
