"""Kinds of faults that come in pairs: the second one finds what the first one has left behind."""

from collections import Counter
from itertools import combinations

from tests.simulation.agents.agent_faults import Begin
from tests.simulation.agents.agents_line import MS, NODES, SECOND, AgentsLine
from tests.simulation.faults.fault import Fault

PAIRS = list(combinations(NODES.values(), 2))


def _suspend_reset(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """A short sleep with a backlog on all ways to the machine and from it, whose connections are new afterwards: what
    is of before comes when clocks have been compared anew."""
    machine, slept_ns = line.machines[fault.node], fault.for_ns // 16
    if machine.asleep or not machine.host.on:
        return
    own = machine.host.name
    others = [name for name in line.wires.hosts if name != own]
    ways = [line.wires.way(*pair) for other in others for pair in ((own, other), (other, own))]
    for way in ways:
        way.cut()

    def sleep() -> None:
        if machine.asleep or not machine.host.on:
            wake(0)
            return
        fired[fault.kind] += 1
        since_ns = line.time.now_ns
        machine.suspend()
        line.time.after(slept_ns, lambda: wake(since_ns))

    def wake(since_ns: int) -> None:
        line.touch(fault.node)
        for way in ways:
            way.heal()
        if since_ns:
            machine.go_on()
            line.slept[fault.node].append((since_ns, line.time.now_ns))
        for other in others:
            line.wires.reset(own, other)

    line.time.after((1 + fault.size % 150) * MS, sleep)


def _suspend_slow(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """What is asked of a machine comes slowly. It sleeps, so that its clock is known anew and less well, and sleeps
    once more, for so short a while that no answer would contradict what is known."""
    machine, more_ns = line.machines[fault.node], (100 + fault.size % 200) * MS
    ways = [line.wires.way(name, machine.host.name) for name in NODES.values() if name != machine.host.name]
    for way in ways:
        way.latency_ns += more_ns

    def sleep(slept_ns: int) -> None:
        if machine.asleep or not machine.host.on:
            return
        fired[fault.kind] += 1
        since_ns = line.time.now_ns
        machine.suspend()
        line.time.after(slept_ns, lambda: wake(since_ns))

    def wake(since_ns: int) -> None:
        line.touch(fault.node)
        machine.go_on()
        line.slept[fault.node].append((since_ns, line.time.now_ns))

    def mend() -> None:
        for way in ways:
            way.latency_ns -= more_ns

    sleep(SECOND)
    line.time.after(3 * SECOND, lambda: sleep(more_ns * (1 + fault.size % 3) // 4))
    line.time.after(5 * SECOND, mend)


def _crash_unheard(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """A runtime dies once or twice while nobody hears it: what it acknowledged is not known to those who sent it."""
    machine = line.machines[fault.node]
    ways = [line.wires.way(machine.host.name, name) for name in line.wires.hosts if name != machine.host.name]
    for way in ways:
        way.cut()

    def crash() -> None:
        line.touch(fault.node)
        fired[fault.kind] += machine.kill_runtime()

    def heal() -> None:
        for way in ways:
            way.heal()

    at_ns = fault.for_ns // 4
    line.time.after(at_ns, crash)
    if fault.size % 2:
        line.time.after(at_ns + SECOND, crash)
    line.time.after(at_ns + 3 * SECOND // 2, heal)


def _crash_power_cut(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """A runtime is started again, and the power goes right after it: its number must not be given out once more."""
    machine = line.machines[fault.node]

    def cut() -> None:
        if not machine.host.on or machine.asleep:
            return
        fired[fault.kind] += 1
        machine.power_off()
        line.touch(fault.node)
        line.time.after(fault.for_ns, on)

    def on() -> None:
        machine.power_on(line.new_clock(fault.node))
        line.expect_plan_soon(fault.node)

    if machine.kill_runtime():
        line.time.after((50 + fault.size) * MS, cut)


def _forgotten(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """A firewall forgets the connections of a way and says nothing: they carry nothing any more, new ones do."""
    pair = fault.way if fault.size % 2 else (NODES["a"], NODES["b"])
    fired[fault.kind] += line.wires.forget(*pair) > 0


def _cut_peers(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """Two nodes hear nothing of each other for so long that tuples between them are too late."""
    here, there = PAIRS[fault.size % len(PAIRS)]
    fired[fault.kind] += 1
    for way in (line.wires.way(here, there), line.wires.way(there, here)):
        way.cut()
        line.time.after(SECOND + fault.for_ns, way.heal)


PAIRED_KINDS: dict[str, Begin] = {
    "suspend_reset": _suspend_reset, "suspend_slow": _suspend_slow, "crash_unheard": _crash_unheard,
    "crash_power_cut": _crash_power_cut, "forgotten": _forgotten, "cut_peers": _cut_peers,
}  # fmt: skip
