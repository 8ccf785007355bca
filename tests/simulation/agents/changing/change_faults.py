"""Kinds of faults of the changing line: a query comes and goes, a node fails and the others go on without it."""

from collections import Counter
from collections.abc import Callable

from coordinator.durable_files import PARTIAL
from coordinator.fleet.agents import Agents
from tests.simulation.agents.agent_faults import Begin
from tests.simulation.agents.agents_line import COORDINATOR, MS, NODES, SECOND, AgentsLine
from tests.simulation.agents.changing.changing_line import ASIDE, FAILS, PLAN, SPARE, ChangingLine, committed_on
from tests.simulation.agents.changing.plan_chain import WITH_MORE
from tests.simulation.agents.coordinator_process import Asked, CoordinatorProcess
from tests.simulation.faults.fault import Fault

STEPS = 26  # of a change on its files, a few more
LAST_STEPS = 16  # of a collection that finds that another plan is the last one, until its files say so
FAILED_NS = 3 * SECOND // 2  # after the whole plan was deployed
BACK_NS = SECOND  # after a node is back, the whole plan is deployed again
Change = Callable[[ChangingLine, Fault, Counter[str]], None]


def _kind(change: Change) -> Begin:
    def begin(line: AgentsLine, fault: Fault, fired: Counter[str]) -> None:
        assert isinstance(line, ChangingLine), "the others have no desk"
        change(line, fault, fired)

    return begin


def _add(line: ChangingLine, fault: Fault, fired: Counter[str]) -> None:
    """While tuples flow."""
    fired[fault.kind] += 1
    line.change("add")


def _remove(line: ChangingLine, fault: Fault, fired: Counter[str]) -> None:
    """What was added a while ago."""
    line.change("add")

    def remove() -> None:
        fired[fault.kind] += 1
        line.change("remove")

    line.time.after(SECOND + fault.for_ns // 2, remove)


def _add_killed(line: ChangingLine, fault: Fault, fired: Counter[str]) -> None:
    """The coordinator is killed in the middle of a change: at an instant, between two steps on its files, or when it
    has decided. The next one does what is left of it and goes on."""
    kind, stopped = _possible(line), line.happened["killed at a step"]
    process = line.change(kind)

    def kill() -> None:
        fired[fault.kind] += process.kill()

    def asked(_: str, one: Asked) -> None:
        if one.method == "Commit" and process.process.current:
            line.ledger.on_ask.remove(asked)
            line.time.after(fault.size * line.within_ns // 4000, kill)

    def again() -> None:
        line.desk.forget_step()
        fired[fault.kind] += line.happened["killed at a step"] - stopped
        line.change(kind if fault.size % 5 else _possible(line), tries=3)

    if fault.size % 3 == 0:
        line.time.after(fault.size * line.within_ns // 1000, kill)
    elif fault.size % 3 == 1:
        line.desk.kill_at_step(fault.size // 3 % STEPS, lambda: process.process.current)
    else:
        line.ledger.on_ask.append(asked)
    line.time.after(max(fault.for_ns, SECOND // 2), again)


def _add_beside_killed(line: ChangingLine, fault: Fault, fired: Counter[str]) -> None:
    """One coordinator has read the plan and is still planning when another one makes the same change and is killed,
    before its decision or after it. The first one goes on then, and a third one does what is left."""
    kind, phase = _possible(line), ("Prepare", "Commit", "Commit")[fault.size % 3]
    plans_ns = 4 * line.within_ns + fault.for_ns // 4
    line.change(kind, plans_ns=plans_ns)

    def begin() -> None:
        process = line.change(kind)

        def asked(_: str, one: Asked) -> None:
            if one.method == phase and process.process.current:
                line.ledger.on_ask.remove(asked)
                line.time.after(fault.size * line.within_ns // 4000, kill)

        def kill() -> None:
            fired[fault.kind] += process.kill()

        line.ledger.on_ask.append(asked)

    def go_on() -> None:
        line.expect_on_desk()
        line.change(kind, tries=3)

    line.time.after(line.within_ns, begin)
    line.time.after(plans_ns + SECOND, go_on)


def _add_collected(line: ChangingLine, fault: Fault, fired: Counter[str]) -> None:
    """Somebody collects before a change and after it, and is killed as the files are to say that another plan is the
    last one. The next collection goes on with them."""
    stopped = line.happened["collection killed at a step"]

    def change() -> None:
        line.change(_possible(line), tries=3)
        line.time.after(max(fault.for_ns // 2, SECOND), again)

    def again() -> None:
        process = line.collect_now(lambda: None)
        line.results.kill_at_step(fault.size % LAST_STEPS, lambda: process.process.current, PARTIAL)
        line.time.after(SECOND // 2, over)

    def over() -> None:
        line.results.forget_step()
        fired[fault.kind] += line.happened["collection killed at a step"] - stopped
        line.collect_now(lambda: None)

    line.collect_now(change)


def _add_half_told(line: ChangingLine, fault: Fault, fired: Counter[str]) -> None:
    """The coordinator has decided, and is killed before one node hears of it. The next one tells that node, and in half
    of the cases is killed in just the same way."""
    kind, way = _possible(line), line.wires.way(COORDINATOR, NODES[fault.node])

    def begin(left: int) -> None:
        process = line.change(kind, tries=1 if left else 3)
        if not left:
            return

        def asked(name: str, one: Asked) -> None:
            if one.method == "Commit" and process.process.current and name == fault.node:
                line.ledger.on_ask.remove(asked)
                way.cut()
                line.touch(fault.node)
                line.time.after(line.within_ns, kill)

        def kill() -> None:
            fired[fault.kind] += process.kill()
            way.heal()

        line.ledger.on_ask.append(asked)
        line.time.after(max(fault.for_ns // 2, SECOND // 2), lambda: begin(left - 1))

    begin(1 + fault.size % 2)


def _possible(line: ChangingLine) -> str:
    return "remove" if line.on_file(PLAN) in WITH_MORE else "add"


def _add_and_cut(line: ChangingLine, fault: Fault, fired: Counter[str]) -> None:
    """A node cannot be reached, or has no power, from the middle of a change on."""
    kind = _possible(line)
    line.change(kind, tries=2)

    def begin() -> None:
        fired[fault.kind] += line.commands[-1].ended_ns == 0
        line.time.after(fault.for_ns, _cut_off(line, fault.node, fault.size % 3))

    line.time.after(fault.size * line.within_ns // 1000, begin)
    line.time.after(fault.for_ns + SECOND, lambda: line.change(kind if fault.size % 4 else _possible(line), tries=3))


def _fail_over(line: ChangingLine, fault: Fault, fired: Counter[str]) -> None:
    """The power of a node is gone for long. The others go on without it; it comes back as it was."""
    _without(line, fault, fired, 0)


def _fail_over_cut(line: ChangingLine, fault: Fault, fired: Counter[str]) -> None:
    """The same, and the node has not failed: nobody can reach it."""
    _without(line, fault, fired, 1 + fault.size % 2)


def _without(line: ChangingLine, fault: Fault, fired: Counter[str], how: int) -> None:
    line.coordinate(lambda _, process: line.deploy_file(ASIDE, process, 2))
    back: list[Callable[[], None]] = []

    def fail() -> None:
        line.touch(FAILS)
        back.append(_cut_off(line, FAILS, how))

    def go_on_without() -> None:
        fired[fault.kind] += 1
        line.coordinate(lambda _, process: line.deploy_file(ASIDE, process, 3, without=FAILS))

    def come_back() -> None:
        line.touch(FAILS)
        for each in back:
            each()

    def whole() -> None:
        old = committed_on(line, FAILS) == SPARE
        line.happened["back with the old plan"] += old

        def body(_: Agents, process: CoordinatorProcess) -> None:
            line.deploy_file(PLAN if fault.size % 4 == 0 else ASIDE, process, 5)
            gone = committed_on(line, FAILS) not in {SPARE, ""}
            line.happened["told that its plan is gone"] += old and gone

        line.coordinate(body)

    line.time.after(FAILED_NS, fail)
    line.time.after(FAILED_NS + fault.size * MS // 2, go_on_without)
    back_ns = FAILED_NS + fault.size * MS // 2 + fault.for_ns // 2
    line.time.after(back_ns, come_back)
    line.time.after(back_ns + BACK_NS, whole)


def _cut_off(line: ChangingLine, node: str, how: int) -> Callable[[], None]:
    """Its power is gone, or nobody reaches it, or neither coordinator nor peers do; what is returned ends that."""
    machine, since_ns = line.machines[node], line.time.now_ns
    if not machine.host.on or machine.asleep:
        return lambda: None
    others = [*NODES.values(), COORDINATOR, *(["client-s", "client-t"] if how == 1 else [])]
    own = machine.host.name
    ways = [line.wires.way(*pair) for other in others if other != own for pair in ((own, other), (other, own))]
    line.touch(node)
    if how:
        for way in ways:
            way.cut()
    else:
        machine.power_off()

    def end() -> None:
        line.away.append((node, since_ns, line.time.now_ns))
        line.touch(node)
        for way in ways if how else ():
            way.heal()
        if not how:
            machine.power_on(line.new_clock(node))
            line.expect_plan_soon(node)

    return end


CHANGE_KINDS: dict[str, Begin] = {
    "add": _kind(_add), "remove": _kind(_remove), "add_killed": _kind(_add_killed),
    "add_beside_killed": _kind(_add_beside_killed), "add_collected": _kind(_add_collected),
    "add_half_told": _kind(_add_half_told), "add_and_cut": _kind(_add_and_cut),
    "fail_over": _kind(_fail_over), "fail_over_cut": _kind(_fail_over_cut),
}  # fmt: skip
