"""Kinds of faults: what each does to the line, and how it ends."""

from collections import Counter

from node_agent.virtual.simulated.simulated_runtime import SimulatedNode
from tests.simulation.faults.draws import Room, steady
from tests.simulation.faults.fault import Begin, Fault
from tests.simulation.faults.faulty_line import MS, NODES, SECOND, FaultyLine
from tests.simulation.faults.stranger import Stranger
from tests.simulation.faults.wire_faults import WIRE_KINDS, stranger_as

FIRST_NS, LAST_NS = SECOND, 7 * SECOND  # when faults begin; all have ended by END_NS
END_NS = 12 * SECOND
LONGEST_NS = 4 * SECOND
BURST_PART = 4
MIDDLE, LAST = "b", "c"  # a peer sends to it, and it sends on
LOOK_NS = MS // 10  # how often a running operator is looked for


def _crash(line: FaultyLine, fault: Fault, fired: Counter[str]) -> None:
    fired["crash"] += line.nodes[fault.node].running is not None
    line.nodes[fault.node].crash()


def _crash_running(line: FaultyLine, fault: Fault, fired: Counter[str]) -> None:
    """While an operator runs."""
    node = line.nodes[fault.node]
    if node.running is not None and node.running.working:
        fired["crash_running"] += 1
        node.crash()
    elif line.time.now_ns < fault.at_ns + SECOND:
        line.time.after(LOOK_NS, lambda: _crash_running(line, fault, fired))


def _power_cut(line: FaultyLine, fault: Fault, fired: Counter[str]) -> None:
    node = line.nodes[fault.node]
    if node.host.on and not node.asleep:
        fired["power_cut"] += 1
        node.power_off()
        line.time.after(fault.for_ns, lambda: _boot(line, node))


def _boot(line: FaultyLine, node: SimulatedNode) -> None:
    """It boots where it has not: two faults may have taken its power."""
    if node.running is None:
        node.power_on(line.new_clock(node.name))


def _pause(line: FaultyLine, fault: Fault, fired: Counter[str]) -> None:
    node = line.nodes[fault.node]
    if not node.asleep:
        fired["pause"] += node.running is not None
        line.paused_ns[fault.node] += fault.for_ns
        node.pause()
        line.time.after(fault.for_ns, lambda: None if node.asleep else node.resume())


def _suspend(line: FaultyLine, fault: Fault, fired: Counter[str]) -> None:
    node = line.nodes[fault.node]
    if node.asleep or node.running is None:
        return
    fired["suspend"] += 1
    since_ns = line.time.now_ns
    node.suspend()

    def wake() -> None:
        node.go_on()
        line.slept[fault.node].append((since_ns, line.time.now_ns))

    line.time.after(fault.for_ns, wake)


def _cut(line: FaultyLine, fault: Fault, fired: Counter[str]) -> None:
    """In one direction or in both."""
    from_, to = fault.way
    ways = [line.wires.way(from_, to)] + ([line.wires.way(to, from_)] if fault.size % 2 else [])
    fired["cut" if len(ways) == 2 else "cut_one_way"] += 1
    for way in ways:
        way.cut()
        line.time.after(fault.for_ns, way.heal)


def _reset(line: FaultyLine, fault: Fault, fired: Counter[str]) -> None:
    fired["reset"] += line.wires.reset(*fault.way) > 0


def _lossy(line: FaultyLine, fault: Fault, fired: Counter[str]) -> None:
    way = line.wires.way(*fault.way)
    fired["lossy"] += 1
    way.loss = 0.05 + fault.size % 40 / 100

    def mend() -> None:
        way.loss = 0.0

    line.time.after(fault.for_ns, mend)


def _slow(line: FaultyLine, fault: Fault, fired: Counter[str]) -> None:
    way, more_ns = line.wires.way(*fault.way), fault.size % 400 * MS
    fired["slow"] += 1
    way.latency_ns += more_ns

    def mend() -> None:
        way.latency_ns -= more_ns

    line.time.after(fault.for_ns, mend)


def _deaf_control(line: FaultyLine, fault: Fault, fired: Counter[str]) -> None:
    node = line.nodes[fault.node]
    fired["deaf_control"] += 1
    node.deaf = True

    def mend() -> None:
        node.deaf = False

    line.time.after(fault.for_ns, mend)


def _burst(line: FaultyLine, fault: Fault, fired: Counter[str]) -> None:
    """The load is drawn before the run begins: see `fed`."""
    fired["burst"] += 1


def _crash_unheard(line: FaultyLine, fault: Fault, fired: Counter[str]) -> None:
    """A runtime dies once or twice while nobody hears it: what it acknowledged is not known to those who sent it."""
    node = line.nodes[fault.node]
    ways = [line.wires.way(fault.node, other) for other in line.wires.hosts if other != fault.node]
    for way in ways:
        way.cut()

    def crash() -> None:
        fired["crash_unheard"] += node.running is not None
        node.crash()

    def heal() -> None:
        for way in ways:
            way.heal()

    at_ns = fault.for_ns // 4
    line.time.after(at_ns, crash)
    if fault.size % 2:
        line.time.after(at_ns + SECOND // 2, crash)
    line.time.after(at_ns + SECOND, heal)


def _down(line: FaultyLine, fault: Fault, fired: Counter[str]) -> None:
    """The machine boots, and refuses every connection: its agent is not started for a while."""
    node = line.nodes[fault.node]
    if node.running is None or node.asleep:
        return
    fired["down"] += 1
    node.power_off()
    node.host.power_on()
    line.time.after(fault.for_ns, lambda: _boot(line, node))


def _power_cut_unheard(line: FaultyLine, fault: Fault, fired: Counter[str]) -> None:
    """The node in the middle loses its power, and what it has taken over with it, when the one before it has not heard
    of that for a while: what has gone on from there is sent, worked on, and sent on once more."""
    node, way = line.nodes[MIDDLE], line.wires.way(MIDDLE, "a")
    way.cut()

    def cut() -> None:
        way.heal()
        if node.host.on and not node.asleep:
            fired["power_cut_unheard"] += 1
            node.power_off()
            line.time.after(fault.size * MS // 5, lambda: _boot(line, node))

    line.time.after(fault.for_ns // 8, cut)


def _forgotten(line: FaultyLine, fault: Fault, fired: Counter[str]) -> None:
    """A firewall forgets the connections of a way and says nothing: they carry nothing any more, new ones do."""
    fired["forgotten"] += line.wires.forget(*fault.way) > 0


def _overfull(line: FaultyLine, fault: Fault, fired: Counter[str]) -> None:
    """A burst comes to a node with little memory, whose source refuses what does not fit."""
    fired["overfull"] += line.nodes[MIDDLE].running is not None


def _crowded(line: FaultyLine, fault: Fault, fired: Counter[str]) -> None:
    """A burst is under way to the last node, and cut off, when others begin to send to it as well: there is credit for
    a part only of what is to be sent again. Each time that this has begun the link is cut off again."""
    way, sent, left = line.wires.way(MIDDLE, LAST), Counter[int](), [1 + fault.size % 4]
    crowd: list[Stranger] = []
    way.cut()

    def reset() -> None:
        line.wires.reset(MIDDLE, LAST)

    def again(descriptor: int, data: bytes) -> bytes:
        sent[descriptor] += 1
        if sent[descriptor] == 2 and left[0]:  # the first is its hello
            left[0] -= 1
            fired["crowded"] += 1
            line.time.after(0, reset)
        return data

    def come() -> None:
        crowd.extend(Stranger(line, LAST, stranger_as(line, f"other-{number}", 1)) for number in range(3))
        line.time.after(5 * MS, heal)

    def heal() -> None:
        way.heal()
        way.passing = again
        reset()

    def mend() -> None:
        way.passing = None
        for each in crowd:
            each.leave()

    line.time.after((20 + fault.size % 130) * MS, come)
    line.time.after(SECOND, mend)


KINDS: dict[str, Begin] = {
    "crash": _crash, "crash_running": _crash_running, "power_cut": _power_cut, "pause": _pause, "suspend": _suspend,
    "cut": _cut, "reset": _reset, "lossy": _lossy, "slow": _slow, "burst": _burst, "deaf_control": _deaf_control,
    "crash_unheard": _crash_unheard, "down": _down, "forgotten": _forgotten,
    "power_cut_unheard": _power_cut_unheard, "crowded": _crowded, "overfull": _overfull, **WIRE_KINDS,
}  # fmt: skip


ROOM = Room(FIRST_NS, LAST_NS, LONGEST_NS, NODES, sorted(set(FaultyLine.ways())))
SHARES = (0.06, 0.13, 0.27)


def fed(seed: int, faults: list[Fault]) -> dict[str, list[int]]:
    """When each source sends, up to the end of the faults: steadily, and in bursts."""
    periods_ns = (15 * MS, 40 * MS, 100 * MS)
    return {name: steady(seed, name, periods_ns, 100 * MS, END_NS, faults, BURST_PART) for name in ("s", "t")}
