"""Kinds of faults while something is deployed, stopped or collected: what two coordinators, late messages and a slow
network make of it."""

from collections import Counter
from collections.abc import Callable

from node_agent.virtual.simulated.simulated_network import SimulatedHost
from tests.simulation.agents.agent_faults import Begin
from tests.simulation.agents.agents_line import COORDINATOR, MS, NODES, PLANS, SECOND, AgentsLine
from tests.simulation.agents.coordinator_process import Asked
from tests.simulation.faults.fault import Fault

PEERS = [(NODES[from_], NODES[to]) for from_ in NODES for to in NODES if from_ != to]
FOLLOWING = "bc"  # under each plan of the line peers send to them
STATUS_NS = 4_800_000_000  # so long a coordinator waits for what it asks first, nearly
COLLECT_STEPS = 60  # of a round of a collection on its files, a few more
MOVED = "c"  # no client feeds it, so that nobody but a deployment has to know where it is
NEW_ADDRESS = "127.0.1.3"


def _amid(fault: Fault) -> int:
    """An instant within a deployment: of one to nodes with quick disks, or with slow ones."""
    return fault.size * (1500 if fault.size % 2 else MS // 100)


def _late_prepare(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """A coordinator stands still when it knows which epoch is next and has asked for nothing. Another one uses that
    epoch, for the same plan and with a further one after it, or in vain. Then the first one goes on."""
    other, name = PLANS if line.deployments[-1].plan.endswith(PLANS[0]) else PLANS[::-1]  # what runs, and what does not
    first, machine = line.deploy(name), line.machines[fault.node]

    def pause() -> None:
        fired[fault.kind] += first.process.alive
        first.process.pause()
        if fault.size % 4 < 2:
            line.time.after(SECOND // 10, lambda: line.deploy(name))
            line.time.after(5 * SECOND // 2, lambda: line.deploy(other, tries=2))
        else:
            line.time.after(SECOND // 10, in_vain)

    def in_vain() -> None:
        machine.kill_runtime()
        line.touch(fault.node)
        line.deploy(name)

    line.time.after((100 + fault.size % 400) * MS // 1000, pause)
    line.time.after(STATUS_NS, first.process.go_on)


def _late_commit(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """A coordinator stands still when all nodes have prepared its plan. Another one deploys once more what runs, and
    then the first one goes on."""
    running, name = PLANS if line.deployments[-1].plan.endswith(PLANS[0]) else PLANS[::-1]
    first, asked = line.deploy(name), list[Asked]()

    def ask(_: str, one: Asked) -> None:
        if one.method == "Commit" and first.process.current and not asked:
            asked.append(one)
            fired[fault.kind] += 1
            first.process.pause()
            line.time.after(SECOND // 10, lambda: line.deploy(running))
            line.time.after((1000 + fault.size) * MS, first.process.go_on)

    line.ledger.on_ask.append(ask)


def _coordinator_paused(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """In the middle of a deployment; another one deploys meanwhile, and then the first one goes on."""
    first = line.deploy(PLANS[fault.size % 2])

    def pause() -> None:
        if first.process.alive:
            fired[fault.kind] += 1
            first.process.pause()

    line.time.after(_amid(fault), pause)
    if fault.size % 3:
        line.time.after(_amid(fault) + fault.for_ns // 4, lambda: line.deploy(PLANS[fault.size // 2 % 2]))
    line.time.after(_amid(fault) + fault.for_ns, first.process.go_on)


def _deploy_cut(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """One node hears no more in the middle of a deployment; what its peers send proves that it was decided."""
    way = line.wires.way(COORDINATOR, NODES[fault.node])
    process = line.deploy(PLANS[1 - fault.size % 2])

    def cut() -> None:
        fired[fault.kind] += process.process.alive
        way.cut()
        line.time.after(fault.for_ns, way.heal)

    line.time.after(_amid(fault), cut)
    line.time.after(fault.for_ns, lambda: line.expect_durable(fault.node))


def _commit_cut(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """One node does not hear of a commit that the others hear of; what its peers send proves it."""
    _cut_commit(line, fault, fired, lambda node: None)


def _proof_unheard(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """The same, and no control is there as the runtime says what was proven."""

    def kill(node: str) -> None:
        agent = line.machines[node].agent
        if agent is not None and agent.supervisor is not None and not agent.supervisor.paused:
            line.machines[node].kill_control()

    def kill_each(node: str) -> None:
        for ms in range(0, 250, 20):
            line.time.after(ms * MS, lambda: kill(node))

    _cut_commit(line, fault, fired, kill_each)


def _cut_commit(line: AgentsLine, fault: Fault, fired: Counter[str], also: Callable[[str], None]) -> None:
    node = FOLLOWING[fault.size % len(FOLLOWING)]
    way, cut = line.wires.way(COORDINATOR, NODES[node]), list[Asked]()

    def asked(name: str, one: Asked) -> None:
        late = line.time.now_ns > fault.at_ns + SECOND  # it is another deployment's
        if name == node and one.method == "Commit" and not cut and not late:
            cut.append(one)
            fired[fault.kind] += 1
            way.cut()
            line.touch(node)
            also(node)
            before = line.disturbed[node]
            line.time.after(max(fault.for_ns, 2 * SECOND), way.heal)
            line.time.after(SECOND // 2, lambda: expect(before))

    def expect(before: int) -> None:
        if line.disturbed[node] == before:
            line.expect_durable(node)

    line.ledger.on_ask.append(asked)
    line.deploy(PLANS[1 - fault.size % 2])


def _redeploy_slowly(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """Much is on its way between the nodes when another plan is committed."""
    more_ns = (20 + fault.size % 200) * MS
    ways = [line.wires.way(*pair) for pair in PEERS]
    for way in ways:
        way.latency_ns += more_ns

    def mend() -> None:
        for way in ways:
            way.latency_ns -= more_ns

    def again() -> None:
        fired[fault.kind] += 1
        line.deploy(PLANS[fault.size % 2])

    line.time.after(SECOND, lambda: line.deploy(PLANS[1 - fault.size % 2]))
    line.time.after(SECOND + fault.for_ns // 2, again)
    line.time.after(2 * SECOND + fault.for_ns, mend)


def _stop_cut(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """Everything is stopped while a link holds what it cannot send."""
    way = line.wires.way(*PEERS[fault.size % len(PEERS)])
    way.cut()

    def stop() -> None:
        fired[fault.kind] += 1
        line.stop_and_deploy(PLANS[fault.size % 2])

    line.time.after(fault.size % 400 * MS, stop)
    line.time.after(fault.for_ns, way.heal)


def _stop_half_done(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """Control dies while it writes that a plan drains: its runtime, and in part of the cases the next one of it, hears
    that from the control that follows."""
    machine, asked = line.machines[fault.node], list[Asked]()

    def crash() -> None:
        fired[fault.kind] += machine.kill_control()
        line.touch(fault.node)
        if fault.size % 3 == 0:
            machine.kill_runtime()

    def ask(name: str, one: Asked) -> None:
        late = line.time.now_ns > fault.at_ns + 2 * SECOND  # it is of the end
        if name == fault.node and one.method == "Stop" and not asked and not late:
            asked.append(one)
            machine.at_step(fault.size % 8, crash, "control")
            line.time.after(SECOND, machine.forget_step)

    line.ledger.on_ask.append(ask)
    line.stop_and_deploy(PLANS[fault.size % 2])


def _stop_killed(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """A coordinator is killed when some nodes have been told to stop, and others not. Another one stops the rest, or
    deploys at once."""
    name, asked = PLANS[fault.size % 2], list[Asked]()
    process = line.stop_and_deploy(name)

    def kill() -> None:
        fired[fault.kind] += process.kill()

    def ask(_: str, one: Asked) -> None:
        if one.method == "Stop" and process.process.current:
            asked.append(one)
            if len(asked) == 1 + fault.size % len(NODES):
                line.ledger.on_ask.remove(ask)
                line.time.after(fault.size * MS // 1000, kill)

    line.ledger.on_ask.append(ask)
    again = line.stop_and_deploy if fault.size % 4 < 2 else line.deploy
    line.time.after(max(fault.for_ns, SECOND // 2), lambda: again(name))


def _collect(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """A collection while the plan runs, and another one later, which tells the nodes what is held."""

    def done() -> None:
        fired[fault.kind] += 1

    line.collect_now(done)
    line.time.after(fault.for_ns, lambda: line.collect_now(done))


def _collect_killed(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """A collection is killed, between two steps on its files or at an instant, and another one goes on with it; in part
    of the cases that one is killed too."""
    stopped = line.happened["collection killed at a step"]

    def begin(left: int) -> None:
        process = line.collect_now(lambda: None)

        def kill() -> None:
            fired[fault.kind] += process.kill()

        if fault.size % 3:
            line.results.kill_at_step((fault.size // 3 + left) % COLLECT_STEPS, lambda: process.process.current)
        else:
            line.time.after(fault.size * 20 * MS // 1000, kill)
        line.time.after(max(fault.for_ns // 4, SECOND // 10), lambda: over(left - 1))

    def over(left: int) -> None:
        line.results.forget_step()
        if left:
            begin(left)
        else:
            fired[fault.kind] += line.happened["collection killed at a step"] - stopped
            line.collect_now(lambda: None)

    begin(1 + fault.size % 2)


def _collect_power_cut(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """The power goes right after a node has handed over what it has, and before it is asked again."""
    machine = line.machines[fault.node]

    def cut() -> None:
        if not machine.host.on or machine.asleep:
            return
        fired[fault.kind] += 1
        line.touch(fault.node)
        machine.power_off()

        def on() -> None:
            machine.power_on(line.new_clock(fault.node))
            line.expect_plan_soon(fault.node)

        line.time.after(fault.for_ns, on)

    line.collect_now(lambda: line.time.after(fault.size % 10 * MS, cut))


def _collects_power_cut(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """One collection after the other, so that what comes later is in files of its own, and the power goes right after
    a node has handed over what is in them."""

    def again(left: int) -> None:
        if left:
            line.collect_now(lambda: line.time.after((300 + fault.size % 300) * MS, lambda: again(left - 1)))
        else:
            _collect_power_cut(line, fault, fired)

    again(2)


def _moved(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
    """A machine is switched off and comes back under another address, which a deployment tells the others."""
    machine = line.machines[MOVED]
    if not machine.host.on or machine.asleep or NEW_ADDRESS in line.wires.hosts:
        return
    fired[fault.kind] += 1
    machine.power_off()
    line.touch(MOVED)

    def on() -> None:
        machine.move(SimulatedHost(line.wires, NEW_ADDRESS))
        machine.power_on(line.new_clock(MOVED))
        line.touch(MOVED)

    line.time.after(fault.for_ns, on)


DEPLOY_KINDS: dict[str, Begin] = {
    "coordinator_paused": _coordinator_paused, "deploy_cut": _deploy_cut, "redeploy_slowly": _redeploy_slowly,
    "stop_cut": _stop_cut, "stop_half_done": _stop_half_done, "collect": _collect, "moved": _moved,
    "collect_power_cut": _collect_power_cut, "commit_cut": _commit_cut, "late_prepare": _late_prepare,
    "late_commit": _late_commit, "collects_power_cut": _collects_power_cut, "collect_killed": _collect_killed,
    "stop_killed": _stop_killed, "proof_unheard": _proof_unheard,
}  # fmt: skip
