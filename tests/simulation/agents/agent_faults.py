"""Kinds of faults of whole agents: what each does to the line, and how it ends."""

from collections import Counter
from collections.abc import Callable

from tests.simulation.agents.agents_line import MS, NODES, PLANS, SECOND, AgentsLine
from tests.simulation.faults.draws import Room, steady
from tests.simulation.faults.fault import Fault

FIRST_NS, LAST_NS = 3 * SECOND, 9 * SECOND  # when faults begin; all have ended by END_NS
END_NS = 14 * SECOND
LONGEST_NS = 4 * SECOND
BURST_PART = 8
LOOK_NS = MS // 10  # how often a running operator is looked for


Begin = Callable[[AgentsLine, Fault, Counter[str]], None]


def _crash_runtime(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    fired[fault.kind] += line.machines[fault.node].kill_runtime()


def _crash_running(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """While an operator runs."""
    agent = line.machines[fault.node].agent
    if agent is not None and agent.runtime is not None and agent.runtime.working:
        fired[fault.kind] += line.machines[fault.node].kill_runtime()
        line.touch(fault.node)
    elif line.time.now_ns < fault.at_ns + SECOND:
        line.time.after(LOOK_NS, lambda: _crash_running(line, fault, fired))


def _crash_control(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    fired[fault.kind] += line.machines[fault.node].kill_control()


def _crash_supervisor(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    line.touch(fault.node)
    fired[fault.kind] += line.machines[fault.node].kill_supervisor()


def _power_cut(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    machine = line.machines[fault.node]
    if not machine.host.on or machine.asleep:
        return
    fired[fault.kind] += 1
    machine.power_off()
    line.expect_accepted(fault.node, fired["bit_rot"] > 0)

    def on() -> None:
        machine.power_on(line.new_clock(fault.node))
        line.expect_plan_soon(fault.node)

    line.time.after(fault.for_ns, on)


def _power_cut_at_step(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """In the middle of what a process writes."""
    machine = line.machines[fault.node]
    machine.at_step(fault.size % 12, lambda: _power_cut(line, fault, fired))
    line.time.after(fault.for_ns, machine.forget_step)


def _crash_at_step(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """The whole agent, in the middle of what a process writes."""
    machine = line.machines[fault.node]
    machine.at_step(fault.size % 12, lambda: _crash_supervisor(line, fault, fired))
    line.time.after(fault.for_ns, machine.forget_step)


def _freeze(which: str) -> Begin:
    def freeze(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
        machine = line.machines[fault.node]
        watched = machine.watched(which)
        if machine.asleep or (go_on := machine.freeze(which)) is None:
            return
        fired[fault.kind] += 1
        if fault.size % 4 or not watched:  # else for ever: it has to be replaced
            line.time.after(fault.for_ns * (1 + fault.size % 3), go_on)

    return freeze


def _suspend(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    machine = line.machines[fault.node]
    if machine.asleep or not machine.host.on:
        return
    fired[fault.kind] += 1
    since_ns = line.time.now_ns
    machine.suspend()

    def wake() -> None:
        line.touch(fault.node)
        machine.go_on()
        line.slept[fault.node].append((since_ns, line.time.now_ns))

    line.time.after(fault.for_ns, wake)


def _cut(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """In one direction or in both."""
    from_, to = fault.way
    ways = [line.wires.way(from_, to)] + ([line.wires.way(to, from_)] if fault.size % 2 else [])
    fired["cut" if len(ways) == 2 else "cut_one_way"] += 1
    for way in ways:
        way.cut()
        line.time.after(fault.for_ns, way.heal)


def _reset(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    fired[fault.kind] += line.wires.reset(*fault.way) > 0


def _lossy(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    way = line.wires.way(*fault.way)
    fired[fault.kind] += 1
    way.loss = 0.05 + fault.size % 40 / 100

    def mend() -> None:
        way.loss = 0.0

    line.time.after(fault.for_ns, mend)


def _slow(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    way, more_ns = line.wires.way(*fault.way), fault.size % 400 * MS
    fired[fault.kind] += 1
    way.latency_ns += more_ns

    def mend() -> None:
        way.latency_ns -= more_ns

    line.time.after(fault.for_ns, mend)


def _burst(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """The load is drawn before the run begins: see `load`."""
    fired[fault.kind] += 1


# -- disks


def _disk_full(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    disk = line.machines[fault.node].disk
    disk.faults.room_bytes = fault.size * 64
    fired[fault.kind] += 1

    def mend() -> None:
        disk.faults.room_bytes = None

    line.time.after(fault.for_ns, mend)


def _read_only(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    disk = line.machines[fault.node].disk
    disk.faults.read_only = True
    fired[fault.kind] += 1

    def mend() -> None:
        disk.faults.read_only = False

    line.time.after(fault.for_ns, mend)


def _disk_error(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    disk = line.machines[fault.node].disk
    disk.faults.error_share = fault.size % 100 / 200
    fired[fault.kind] += 1

    def mend() -> None:
        disk.faults.error_share = 0.0

    line.time.after(fault.for_ns, mend)


def _bit_rot(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    fired[fault.kind] += line.machines[fault.node].disk.rot() is not None


# -- deployments


def _redeploy(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    line.deploy(PLANS[1 - fault.size % 2])
    fired[fault.kind] += 1


def _two_coordinators(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    line.deploy("first")
    line.time.after(fault.size * MS // 100, lambda: line.deploy("second"))
    fired[fault.kind] += 1


def _coordinator_killed(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """In the middle of a deployment; another one is started after a while."""
    name = PLANS[1 - fault.size % 2]
    process = line.deploy(name)

    def kill() -> None:
        fired[fault.kind] += process.kill()

    line.time.after(fault.size * MS // 150, kill)
    line.time.after(fault.for_ns, lambda: line.deploy(name))


KINDS: dict[str, Begin] = {
    "crash_runtime": _crash_runtime, "crash_running": _crash_running, "crash_control": _crash_control,
    "crash_supervisor": _crash_supervisor, "power_cut": _power_cut, "power_cut_at_step": _power_cut_at_step,
    "crash_at_step": _crash_at_step, "freeze_runtime": _freeze("runtime"),
    "freeze_control": _freeze("control"), "freeze_supervisor": _freeze("supervisor"), "suspend": _suspend, "cut": _cut,
    "reset": _reset, "lossy": _lossy, "slow": _slow, "burst": _burst, "disk_full": _disk_full, "read_only": _read_only,
    "disk_error": _disk_error, "bit_rot": _bit_rot, "redeploy": _redeploy, "two_coordinators": _two_coordinators,
    "coordinator_killed": _coordinator_killed,
}  # fmt: skip
DISK = {"disk_full", "read_only", "disk_error", "bit_rot", "old_state"}
ROOM = Room(FIRST_NS, LAST_NS, LONGEST_NS, sorted(NODES), sorted(set(AgentsLine.ways())))
SHARES = (0.03, 0.06, 0.11)


def load(seed: int, faults: list[Fault]) -> dict[str, list[int]]:
    """When each source sends, up to the end of the faults: steadily, and in bursts."""
    periods_ns = (30 * MS, 80 * MS, 200 * MS)
    return {name: steady(seed, name, periods_ns, FIRST_NS - SECOND, END_NS, faults, BURST_PART) for name in ("s", "t")}
