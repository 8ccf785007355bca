"""Random streams as a network hands them on, and what their windows hold, computed from the admitted tuples alone."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from node_agent.core.windows.aggregates import Users
from node_agent.core.windows.allocator import Grid
from node_agent.core.windows.intake import Intake, Limits
from node_agent.core.windows.open_windows import Abandoned, Closed, Command, Opened, Skipped
from node_agent.core.windows.window_kinds import count_windows, sized_windows, time_windows
from node_agent.core.windows.window_store import Deadline

KINDS = ("time", "count", "sized")
FAR = 1 << 40


@dataclass(frozen=True)
class Admitted:
    """A tuple as its source's node admitted it."""

    source: int
    epoch: int
    number: int
    at: int
    origin: int
    passes: bool
    value: int

    @property
    def name(self) -> tuple[int, int, int]:
        """Of the tuple."""
        return self.source, self.epoch, self.number


@dataclass
class World:
    """A window operator's setting, what was admitted, and the reports as calls (at, order, what)."""

    kind: str
    grid: Grid
    limits: Limits
    sources: int
    deadline: Deadline | None
    tuples: list[Admitted] = field(default_factory=list)
    reports: list[tuple[int, int, Callable[[Intake, int], None]]] = field(default_factory=list)
    clean: bool = True  # nothing was removed, and everything comes in time
    end: int = 0

    def report(self, at: int, call: Callable[[Intake, int], None]) -> None:
        """To be called at that instant."""
        self.reports.append((at, len(self.reports), call))


class Names:
    """An aggregate that gives the names of its tuples."""

    def start(self) -> list[Any]:
        return []

    def add(self, state: list[Any], payload: Any) -> list[Any]:
        return [*state, payload[0]]

    def result(self, state: list[Any]) -> list[Any]:
        return state


def size(payload: Any) -> int:
    """Of a sized window, by its first tuple."""
    return int(payload[1])


def world(random: Random, clean: bool | None = None, kind: str | None = None) -> World:
    """clean: nothing is removed."""
    kind = kind or random.choice(KINDS)
    clean = random.random() < 0.3 if clean is None else clean
    hop = random.choice((1, 2, 3, 5, 10))
    grid = Grid(random.choice((1, 2, 3, 5, 8, 10, 25)), hop, random.choice((0, 0, 3)) if kind != "count" else 0)
    lateness, wait = random.choice((0, 1, 3, 10, 30)), random.choice((0, 2, 5, 20))
    tight = not clean and random.random() < 0.3
    limits = Limits(
        lateness, 1000 if clean else wait, random.choice((1, 2, 4)) if tight else 2000,
        random.choice((1, 2, 4)) if tight else 1000,
    )  # fmt: skip
    sources = 1 if kind != "time" else random.choice((1, 1, 2, 3))
    deadline = Deadline(random.choice((3, 20, 100)), random.random() < 0.5) if not clean and tight else None
    made = World(kind, grid, limits, sources, deadline, clean=clean)
    for source in range(sources):
        _source(made, random, source)
    made.end = max((at for at, _, _ in made.reports), default=0) + limits.wait_ns + 1
    return made


def _source(made: World, random: Random, source: int) -> None:
    lag, age = random.choice((0, 1, 5, 20)), random.choice((0, 1, 3, 10, 40))
    lose = 0.0 if made.clean else random.choice((0.0, 0.05, 0.3))
    shed = 0.0 if made.clean else random.choice((0.0, 0.05, 0.4))
    at, known = 0, made.clean or random.random() < 0.5
    if known:
        made.report(-1, lambda it, now: it.begin(source, 0, 0))
    for epoch in range(1 if made.clean else random.choice((1, 1, 2, 3))):
        run: list[Admitted] = []  # removed by the same mark
        count = random.choice((0, 1, 5, 20, 40))
        told = count if made.clean else random.choice((count, count, count - 1, count - 5))  # then nothing is heard
        for number in range(count):
            at += random.choice((0, 0, 1, 1, 2, 3, 15)) if random.random() < 0.98 else 60
            one = Admitted(
                source, epoch, number, at, at - random.randint(0, age), random.random() < 0.85, random.randint(1, 12)
            )
            made.tuples.append(one)
            if random.random() < shed:
                run.append(one)
            else:
                _mark(made, random, run, lag, lose)
                run = []
                for _ in range(1 if random.random() < 0.9 else 2):
                    if random.random() >= lose and number < told:
                        made.report(at + random.randint(0, lag), _told(one))
            if random.random() < 0.2 and number < told:
                _beat(made, random, source, epoch, number + 1, at, age, lag, lose)
        _mark(made, random, run, lag, lose)
        if random.random() < 0.7 and told == count:
            at += random.choice((0, 3, 20))
            _beat(made, random, source, epoch, count, at, age, lag, lose)
        at += random.choice((0, 5, 30))
        last = (source, epoch, count)
    at += age + 60
    made.report(at + lag, lambda it, now: it.progress(*last[:1], now, *last[1:], at - age))


def _told(one: Admitted) -> Callable[[Intake, int], None]:
    if one.passes:
        return lambda it, now: it.present(one.source, now, one.epoch, one.number, one.origin, (one.name, one.value))
    return lambda it, now: it.filtered(one.source, now, one.epoch, one.number, one.origin)


def _mark(made: World, random: Random, run: list[Admitted], lag: int, lose: float) -> None:
    if not run or random.random() < lose:
        return
    first, last, exact = run[0], run[-1], random.random() < 0.5
    least, greatest = min(one.origin for one in run), max(one.origin for one in run)
    if not exact:
        least, greatest = least - random.randint(0, 3), greatest + random.randint(0, 3)
    made.report(
        last.at + random.randint(0, lag),
        lambda it, now: it.lost(
            first.source, now, first.epoch, (first.number, last.number), (least, greatest), exact
        ),
    )  # fmt: skip


def _beat(
    made: World, random: Random, source: int, epoch: int, upto: int, at: int, age: int, lag: int, lose: float
) -> None:
    if random.random() >= lose:
        made.report(at + random.randint(0, lag), lambda it, now: it.progress(source, now, epoch, upto, at - age))


def operator(made: World) -> Intake:
    """The one under test."""
    aggregate = Users(Names(), made.sources)
    if made.kind == "time":
        return time_windows(made.grid, aggregate, made.limits, made.sources, made.deadline)
    if made.kind == "sized":
        return sized_windows(made.grid, size, aggregate, made.limits, made.deadline)
    return count_windows(made.grid, aggregate, made.limits, made.deadline)


def play(made: World, expiry: Random | None = None) -> list[Command]:
    """Every report at its instant, time passing in between; commands in order."""
    it, commands = operator(made), []
    for at, _, call in sorted(made.reports, key=lambda report: report[:2]):
        if at >= 0 and expiry is not None and expiry.random() < 0.5:
            it.expire(at)
        call(it, at)
        assert len(it.store.live.open) <= made.limits.windows
        assert it.store.live.size <= 12 * made.limits.windows + 64
        assert all(sequence.held <= made.limits.ahead for sequence in it.sources)
        commands += it.take()
    it.expire(made.end)
    return commands + it.take()


def kept(made: World) -> list[Admitted]:
    """What is not late, by source, incarnation and number."""
    result, youngest = [], dict.fromkeys(range(made.sources), -FAR)
    for one in sorted(made.tuples, key=lambda one: one.name):
        if one.origin >= youngest[one.source] - made.limits.lateness_ns:
            result.append(one)
        youngest[one.source] = max(youngest[one.source], one.origin)
    return result


def exact(made: World, number: int, epoch: int = 0, start: int = 0) -> list[Any]:
    """What a window has to give. Count windows: of that incarnation, from that number of it on."""
    if made.kind == "count":
        names = range(start, start + made.grid.length)
        return [one.name for one in made.tuples if one.passes and one.epoch == epoch and one.number in names]
    begin, length = made.grid.begin(number), made.grid.length
    passing = [one for one in kept(made) if one.passes]
    if made.kind == "sized":
        first = next((one for one in passing if one.origin >= begin), None)
        if first is not None and first.origin < begin + length:
            length = max(1, min(length, first.value))
    return [one.name for one in passing if begin <= one.origin < begin + length]


def check(made: World, commands: list[Command]) -> tuple[int, int]:
    """Every closed window is exact, each number ends once and in its turn; (closed, not closed)."""
    opened: set[int] = set()
    ended: dict[int, str] = {}
    for command in commands:
        if isinstance(command, Opened):
            assert command.number not in opened and command.number not in ended
            opened.add(command.number)
        elif isinstance(command, Skipped):
            for number in range(command.first, command.last + 1):
                assert number not in ended and number not in opened
                ended[number] = "skipped"
        else:
            number = command.window.number if isinstance(command, Closed) else command.number
            assert number in opened and number not in ended
            ended[number] = "closed" if isinstance(command, Closed) else "abandoned"
    if made.kind != "count":
        numbers = opened | set(ended)
        assert sorted(numbers) == list(range(min(numbers, default=0), max(numbers, default=-1) + 1))
    for command in commands:
        if isinstance(command, Closed):
            got = command.window.state.result()["result"]
            assert isinstance(got, list)
            window = command.window
            assert got == exact(made, window.number, window.epoch, window.start - window.base), (window, made)
            assert window.count == len(got)
    assert all(isinstance(command, Abandoned | Closed | Skipped | Opened) for command in commands)
    closed = sum(how == "closed" for how in ended.values())
    return closed, len(ended) - closed
