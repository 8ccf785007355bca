"""Runs of whole agents in virtual time, one of which something happens to: paused, killed, suspended, or its link slow.

s -> a: x -> b: y -> c: z -> out        b: y -> mid        t -> b: w -> c: v -> side
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from tests.coordinator.report.blame.constructed import Constructed, Expected
from tests.simulation.agents.agents_line import MS, NODES, SECOND, AgentsLine

DEPLOY_NS, FROM_NS, UNTIL_NS, OVER_NS = SECOND, 4 * SECOND, 10 * SECOND, 60 * SECOND
EVERY_NS = 40 * MS
Happens = Callable[[AgentsLine, Random], tuple[str, Expected | None]]


def _later(line: AgentsLine, at_ns: int, what: Callable[[], None]) -> None:
    line.time.at(at_ns, what)


def _pause(line: AgentsLine, random: Random) -> tuple[str, Expected]:
    for_ns = random.randint(450, 900) * MS

    def freeze() -> None:
        go_on = line.machines["b"].freeze("runtime")
        assert go_on is not None
        line.time.after(for_ns, go_on)

    _later(line, 6 * SECOND + random.randrange(500) * MS, freeze)
    return f"b stands still for {for_ns / 1e6:.0f} ms", Expected(("pause",), ("",))


def _restart(line: AgentsLine, random: Random) -> tuple[str, Expected]:
    def kill() -> None:
        agent = line.machines["b"].agent
        if agent is not None and agent.runtime is not None and agent.runtime.working:
            line.machines["b"].kill_runtime()
        else:
            line.time.after(MS // 10, kill)

    _later(line, 6 * SECOND + random.randrange(500) * MS, kill)
    return "the runtime of b is killed as it runs", Expected(("restart", "clock"), ("", "a -> b", "b -> c", "t", "s"))


def _slow(line: AgentsLine, random: Random) -> tuple[str, Expected]:
    more_ns = random.randint(330, 900) * MS

    def slow() -> None:
        way = line.wires.way(NODES["b"], NODES["c"])
        way.latency_ns += more_ns
        line.time.after(SECOND, mend)

    def mend() -> None:
        line.wires.way(NODES["b"], NODES["c"]).latency_ns -= more_ns

    _later(line, 6 * SECOND + random.randrange(500) * MS, slow)
    return f"b -> c takes {more_ns / 1e6:.0f} ms longer", Expected(("link",), ("b -> c",))


def _suspend(line: AgentsLine, random: Random) -> tuple[str, Expected]:
    for_ns = random.randint(500, 1500) * MS

    def suspend() -> None:
        line.machines["b"].suspend()
        line.time.after(for_ns, line.machines["b"].go_on)

    _later(line, 6 * SECOND + random.randrange(500) * MS, suspend)
    return f"the machine of b is suspended for {for_ns / 1e6:.0f} ms", Expected(
        ("clock", "pause"), ("suspended", "", "a -> b", "b -> c", "s", "t")
    )


FAULTY: Mapping[str, Happens] = {"pause": _pause, "restart": _restart, "slow": _slow, "suspend": _suspend}


def construct(cause: str, seed: int, folder: Path) -> Constructed:
    """A run in which that happens."""
    return played(cause, seed, folder, FAULTY[cause])


def played(cause: str, seed: int, folder: Path, happens: Happens) -> Constructed:
    """The line under load, and what happens to it."""
    folder.mkdir(parents=True, exist_ok=True)
    random = Random(f"{cause} {seed}")
    line = AgentsLine(seed, folder)
    for name in ("s", "t"):
        instants = range(FROM_NS, UNTIL_NS, EVERY_NS)
        line.feed(name, [each + random.randrange(5 * MS) for each in instants])
    _later(line, DEPLOY_NS, lambda: line.deploy("first", tries=3))
    said, expected = happens(line, random)
    line.time.run_until(UNTIL_NS + 3 * SECOND)
    process = line.finish()
    line.time.run_until(UNTIL_NS + OVER_NS)
    assert not process.process.alive, line.problems
    return Constructed(cause, said, expected, folder, "virtual agents")
