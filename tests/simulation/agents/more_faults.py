"""Further kinds of faults of whole agents: at the worst instant, at several places at once, with what is left of old
times."""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from node_agent.host.files import plan_files
from node_agent.virtual.simulated.simulated_disk import SimulatedDisk, Speed
from node_agent.virtual.simulated.simulated_machine import STATE, SimulatedMachine
from tests.simulation.agents.agent_faults import END_NS, Begin
from tests.simulation.agents.agent_faults import KINDS as FIRST_KINDS
from tests.simulation.agents.agents_line import MS, PLANS, SECOND, AgentsLine
from tests.simulation.agents.coordinator_process import Asked
from tests.simulation.agents.deploy_faults import DEPLOY_KINDS
from tests.simulation.agents.paired_faults import PAIRED_KINDS
from tests.simulation.faults.draws import stream
from tests.simulation.faults.fault import Fault

NEVER_NS = 1 << 60
HUNG_NS = 8 * SECOND
LATEST_NS = 5 * SECOND  # until a supervisor has seen that an operator hangs, with all that it may wait for
ALONE = "a"  # no peer sends to it under most plans: none proves to it that a plan was committed


def _hang(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """The next operator does not return; only the supervisor can end that, and says which tuple it was."""
    machine = line.machines[fault.node]
    agent = machine.agent
    runtime = agent.runtime if agent is not None else None
    if runtime is None or not runtime.process.alive:
        return
    fired[fault.kind] += 1
    runtime.get_stuck(HUNG_NS)
    told = machine.counts["operator_hung"]
    boot = f"{runtime.runtime.shared.boot:016x}" if runtime.runtime is not None else ""

    def wait() -> None:
        if runtime.stuck_since_ns:
            line.touch(fault.node)
            before = line.disturbed[fault.node]
            line.time.after(LATEST_NS, lambda: judge(before))
        elif line.time.now_ns > END_NS:
            runtime.get_stuck(0)  # no operator ran since then, and all is to heal now
        elif runtime.process.alive:
            line.time.after(SECOND // 10, wait)

    def judge(before: int) -> None:
        undisturbed = line.disturbed[fault.node] == before
        line.touch(fault.node)
        supervisor = agent.supervisor if agent is not None and machine.agent is agent else None
        if not undisturbed or machine.asleep or supervisor is None or supervisor.paused:
            return  # the service manager has replaced the agent, or is about to
        if machine.counts["operator_hung"] == told:
            line.problems.append(f"{fault.node}: an operator has hung for {LATEST_NS} ns, and was not killed for that")
        elif boot:
            line.hung.append((fault.node, boot))

    wait()


def _crash_sending(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """The runtime is killed right after it has sent something, the one or the other thing."""
    machine = line.machines[fault.node]

    def kill() -> None:
        fired[fault.kind] += machine.kill_runtime()

    _at_send(line, fault, kill)


def _power_cut_sending(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """The same, and the trace ring is gone with the power."""
    machine = line.machines[fault.node]

    def cut() -> None:
        fired[fault.kind] += 1
        _cut_power(line, machine, fault)

    _at_send(line, fault, cut)


def _at_send(line: AgentsLine, fault: Fault, do: Callable[[], None]) -> None:
    machine, left = line.machines[fault.node], [1 + fault.size % 8]

    def sent() -> None:
        agent = machine.agent
        runtime = agent.runtime if agent is not None else None
        if runtime is None or not runtime.process.current:
            return
        left[0] -= 1
        if not left[0]:
            machine.host.on_send(None)
            line.touch(fault.node)
            line.time.after(0, do)
            runtime.process.sleep_until(NEVER_NS)

    machine.host.on_send(sent)
    line.time.after(4 * SECOND, lambda: machine.host.on_send(None))


def _power_cut_writing(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """While something is on its way to the disk, if that takes its time."""
    machine = line.machines[fault.node]

    def cut() -> None:
        fired[fault.kind] += 1
        _cut_power(line, machine, fault)

    machine.at_step(fault.size % 12, cut)
    line.deploy(("first", "second")[fault.size % 2])
    line.time.after(5 * SECOND, machine.forget_step)


def _power_cut_committing(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """While a slow disk takes what a commit is: nothing may run under the plan before that is on it."""
    machine, asked = line.machines[ALONE], list[Asked]()
    speed, spend = machine.disk.speed, machine.disk.spend

    def cut() -> None:
        fired[fault.kind] += 1
        over()
        line.touch(ALONE)
        _cut_power(line, machine, fault)

    def over() -> None:
        machine.forget_step()
        machine.disk.speed, machine.disk.spend = speed, spend

    def ask(name: str, one: Asked) -> None:
        late = line.time.now_ns > fault.at_ns + SECOND  # it is another deployment's
        if name == ALONE and one.method == "Commit" and not asked and not late:
            asked.append(one)
            machine.disk.speed, machine.disk.spend = Speed(0, (5 + fault.size % 20) * MS), machine.spend
            machine.at_step(fault.size % 10, cut)
            line.time.after(SECOND, over)

    line.ledger.on_ask.append(ask)
    line.deploy(PLANS[fault.size % 2])


def _old_state(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """Somebody has copied the machine's disk, and puts it back. No runtime was started meanwhile: where one was, its
    number is given out again, and its peers shut the node out for a while."""
    machine = line.machines[fault.node]
    copy, agents = machine.disk.copy(line.draws), machine.counts["agents"]
    starts = _starts(copy)

    def put_back() -> None:
        now = _starts(machine.disk)
        started = machine.counts["agents"] != agents or now is None or now != starts
        if started or not machine.host.on or machine.asleep:
            return
        fired[fault.kind] += 1
        line.touch(fault.node)
        machine.power_off()
        line.put_back(fault.node, copy)
        line.time.after(SECOND, on)

    def on() -> None:
        machine.power_on(line.new_clock(fault.node))
        line.expect_plan_soon(fault.node)

    line.time.after(fault.for_ns, put_back)


def _starts(disk: SimulatedDisk) -> bytes | None:
    """What the file says; None where the disk fails just now."""
    try:
        return disk.read(STATE / "starts") if disk.exists(STATE / "starts") else b""
    except OSError:
        return None


def _cut_power(line: AgentsLine, machine: SimulatedMachine, fault: Fault) -> None:
    if not machine.host.on:
        return
    runtime = machine.agent.runtime.runtime if machine.agent is not None and machine.agent.runtime is not None else None
    admits = runtime.plans.committed if runtime is not None and machine.agent.runtime.process.alive else None
    machine.power_off()
    if admits is not None and machine.name == ALONE and not any(each.producers for each in admits.plan.streams):
        _expect_durable(line, machine, admits.hash)

    def on() -> None:
        machine.power_on(line.new_clock(machine.name))
        line.expect_plan_soon(machine.name)

    line.time.after(fault.for_ns, on)


def _expect_durable(line: AgentsLine, machine: SimulatedMachine, hash_: str) -> None:
    """The plan that admitted as the power went is committed on the disk, or was and is being ended."""
    try:
        stored = plan_files.read_state(STATE / "plans", machine.disk).plans
    except ValueError as error:
        if not machine.disk.fired["bit_rot"]:
            line.problems.append(f"{machine.name}: a power cut has left no state of plans: {error}")
        return
    states = {each.hash: each.state for each in stored}
    if states.get(hash_, 0) not in {plan_files.COMMITTED, plan_files.DRAINING}:
        line.problems.append(
            f"{machine.name}: plan {hash_[:8]} admitted, and on the disk it has state {states.get(hash_)}"
        )


def _cut_and_crash(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """While nothing passes a runtime dies and is started again: what the dead one had sent comes late."""
    from_, to = fault.way
    node = next((each.name for each in line.machines.values() if each.host.name == from_), fault.node)
    way = line.wires.way(from_, to)
    way.cut()
    line.time.after(fault.for_ns, way.heal)

    def crash() -> None:
        fired[fault.kind] += line.machines[node].kill_runtime()
        line.touch(node)

    line.time.after(fault.for_ns // 2, crash)


def _site_power_cut(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """All machines lose their power at once, in half of the cases while something is deployed, and in some with the
    coordinator's. They boot one after the other."""
    if fault.size % 2:
        line.deploy(PLANS[fault.size // 2 % 2])

    def cut() -> None:
        names = sorted(line.machines, key=lambda name: stream(fault.size, name).random())
        for number, name in enumerate(names, 1):
            machine = line.machines[name]
            if machine.host.on and not machine.asleep:
                fired[fault.kind] += 1
                line.touch(name)
                machine.power_off()
                line.expect_accepted(name, fired["bit_rot"] > 0)
                line.time.after(number * fault.for_ns // len(names), partial(on, name))
        for process in line.coordinators if fault.size % 5 == 0 else ():
            process.kill()

    def on(name: str) -> None:
        if not line.machines[name].host.on:
            line.machines[name].power_on(line.new_clock(name))
            line.expect_plan_soon(name)

    line.time.after(fault.size * 3 * MS // 1000, cut)


def _memory_gone(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """Somebody empties /dev/shm while the agent runs: the rings have no names any more."""
    machine = line.machines[fault.node]
    if machine.agent is not None:
        fired[fault.kind] += 1
        machine.rings.lose_power()
        line.time.after(fault.for_ns, machine.kill_control)


MORE: dict[str, Begin] = {
    "hang": _hang, "crash_sending": _crash_sending, "power_cut_sending": _power_cut_sending,
    "power_cut_writing": _power_cut_writing, "cut_and_crash": _cut_and_crash,
    "power_cut_committing": _power_cut_committing, "old_state": _old_state, "site_power_cut": _site_power_cut,
}  # fmt: skip
OUTSIDE: dict[str, Begin] = {
    "memory_gone": _memory_gone,
    "site_power_cut": _site_power_cut,
}  # by name only: what they break is known and told
ALL: dict[str, Begin] = {**FIRST_KINDS, **MORE, **DEPLOY_KINDS, **PAIRED_KINDS}
EVERY: dict[str, Begin] = {**ALL, **OUTSIDE}


def begin(line: AgentsLine, fault: Fault, fired: Counter[str], more: Mapping[str, Begin]) -> None:
    """It happens now. more: kinds that only this line has."""
    line.touch(fault.node)
    {**EVERY, **more}[fault.kind](line, fault, fired)
