"""Whole agents in virtual time to which something happens, by an outsider, who had not read the rules of blame.

s -> a: x -> b: y -> c: z -> out        b: y -> mid        t -> b: w -> c: v -> side
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from tests.coordinator.report.blame import faulty
from tests.coordinator.report.blame.constructed import Constructed, Expected
from tests.coordinator.report.blame.faulty import Happens
from tests.simulation.agents.agents_line import MS, NODES, SECOND, AgentsLine

Struck = tuple[str, Expected | None]


def _at(line: AgentsLine, random: Random, what: Callable[[], None]) -> None:
    line.time.at(6 * SECOND + random.randrange(500) * MS, what)


def _frozen(line: AgentsLine, random: Random, node: str, ms: int, which: str = "runtime") -> None:
    def freeze() -> None:
        go_on = line.machines[node].freeze(which)
        assert go_on is not None
        line.time.after(ms * MS, go_on)

    _at(line, random, freeze)


def _slowed(line: AgentsLine, random: Random, way: tuple[str, str], ms: int, seconds: int = 1) -> None:
    found = line.wires.way(*(NODES.get(each, each) for each in way))

    def slow() -> None:
        found.latency_ns += ms * MS
        line.time.after(seconds * SECOND, mend)

    def mend() -> None:
        found.latency_ns -= ms * MS

    _at(line, random, slow)


def _pause(node: str, *outputs: str) -> Expected:
    return Expected(("pause",), ("",), "", outputs, nodes=(node,))


def _first_pauses(line: AgentsLine, random: Random) -> Struck:
    """All that waited at a comes to b at once afterwards."""
    ms = random.randint(450, 900)
    _frozen(line, random, "a", ms)
    return f"a stands still for {ms} ms, b gets it all at once", _pause("a", "out", "mid")


def _last_pauses(line: AgentsLine, random: Random) -> Struck:
    ms = random.randint(450, 900)
    _frozen(line, random, "c", ms)
    return f"c stands still for {ms} ms", _pause("c", "out", "side")


def _short_pause(line: AgentsLine, random: Random) -> Struck:
    """The deadline of mid is 200 ms: few results are late, and not by much."""
    ms = random.randint(230, 280)
    _frozen(line, random, "b", ms)
    return f"b stands still for {ms} ms", _pause("b", "mid")


def _pause_and_link(line: AgentsLine, random: Random) -> Struck:
    ms, more = random.randint(600, 900), random.randint(50, 100)
    _frozen(line, random, "b", ms)
    _slowed(line, random, ("b", "c"), more, 3)
    expected = Expected(("pause",), ("",), "", ("out", "mid"), parts=("b -> c",), nodes=("b",))
    return f"b stands still for {ms} ms, b -> c takes {more} ms longer", expected


def _link_and_pause(line: AgentsLine, random: Random) -> Struck:
    """The pause alone makes nothing late."""
    ms, more = random.randint(80, 120), random.randint(500, 800)
    line.time.at(6500 * MS, lambda: line.time.after(ms * MS, line.machines["b"].freeze("runtime") or (lambda: None)))
    _slowed(line, random, ("b", "c"), more)
    expected = Expected(("link",), ("b -> c",), "", ("out",), parts=("", "b"))
    return f"b -> c takes {more} ms longer, b stands still for {ms} ms", expected


def _first_link(line: AgentsLine, random: Random) -> Struck:
    ms = random.randint(330, 700)
    _slowed(line, random, ("a", "b"), ms)
    return f"a -> b takes {ms} ms longer", Expected(("link",), ("a -> b",), "", ("out", "mid"))


def _cut(line: AgentsLine, random: Random) -> Struck:
    ms, way = random.randint(700, 1500), line.wires.way(NODES["a"], NODES["b"])

    def cut() -> None:
        way.cut()
        line.time.after(ms * MS, way.heal)

    _at(line, random, cut)
    return f"a -> b is cut for {ms} ms", Expected(("link",), ("a -> b",), "", ("out", "mid"))


def _lossy(line: AgentsLine, random: Random) -> Struck:
    """As TCP has it: what is lost is sent again, 200 ms later, and holds up what is behind it."""
    way, loss = line.wires.way(NODES["b"], NODES["c"]), random.uniform(0.3, 0.5)

    def lose() -> None:
        way.loss = loss
        line.time.after(2 * SECOND, mend)

    def mend() -> None:
        way.loss = 0.0

    _at(line, random, lose)
    return f"{loss:.0%} lost on b -> c, and sent again", Expected(("link",), ("b -> c",), "", ("out", "side"))


def _slow_client(line: AgentsLine, random: Random) -> Struck:
    """The tuples are old as they are admitted."""
    ms = random.randint(350, 700)
    _slowed(line, random, ("client-s", "a"), ms)
    return f"tuples of s come {ms} ms late", Expected(("admission_age", "burst"), ("s",), "", ("out", "mid"))


def _killed(node: str, *outputs: str) -> Happens:
    def happens(line: AgentsLine, random: Random) -> Struck:
        def kill() -> None:
            agent = line.machines[node].agent
            if agent is not None and agent.runtime is not None and agent.runtime.working:
                line.machines[node].kill_runtime()
            else:
                line.time.after(MS // 10, kill)

        _at(line, random, kill)
        expected = Expected(("restart", "clock"), ("", "s", "t", "a -> b", "b -> c"), "", outputs, nodes=tuple("abc"))
        return f"the runtime of {node} is killed as it runs", expected

    return happens


def _agent_killed(line: AgentsLine, random: Random) -> Struck:
    _at(line, random, lambda: line.machines["b"].kill_supervisor() and None)
    expected = Expected(("restart", "clock"), ("", "s", "t", "a -> b", "b -> c"), "", ("out", "mid", "side"))
    return "the whole agent of b is killed", expected


def _control(line: AgentsLine, random: Random) -> Struck:
    _frozen(line, random, "b", random.randint(1000, 4000), "control")
    _at(line, random, lambda: line.machines["c"].kill_control() and None)
    return "control of b stands still, that of c is killed: harmless", None


HAPPENS: Mapping[str, Happens] = {
    "first pauses": _first_pauses, "last pauses": _last_pauses, "short pause": _short_pause,
    "pause and link": _pause_and_link, "link and pause": _link_and_pause, "first link": _first_link, "cut": _cut,
    "resent": _lossy, "slow client": _slow_client, "first killed": _killed("a", "out", "mid"),
    "last killed": _killed("c", "out", "side"), "agent killed": _agent_killed, "control": _control,
}  # fmt: skip


def construct(cause: str, seed: int, folder: Path) -> Constructed:
    """A run in which that happens."""
    return faulty.played(cause, seed, folder, HAPPENS[cause])
