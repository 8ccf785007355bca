"""End to end: units, links and sockets delay each other, so their bounds are found together, as a fixed point.

How long a unit takes depends on how its inputs come, that on how long what is before it takes, and so on round: units
of one node delay each other, and streams may return to a node. Start with least costs and repeat until nothing grows.
Any state that the analysis maps onto itself is sound: take the first instant at which anything takes longer than the
state says; up to it all streams keep the curves that follow from the state, and the analysis of a response looks at
nothing later. Repeating from below finds the least such state. Growing beyond LARGEST_NS means that there is none
worth having.

So a way takes no longer than what its units and links take, one by one. Then limits of whole ways (`whole_ways`) follow
from that, shorter ways and sparser streams from the limits, and again, a few times. Each round makes of what is
true something that is true and no larger, so it may end after any: an output has the least bound that was found.

Rejected: curves from sub-deadlines alone, which needs no repetition; it gives bounds only where every sub-deadline
holds, and larger ones (a query of [P]: its whole deadline of 300 ms where this gives 156). Limits of whole ways as part
of the fixed point: each of its passes looks for them, while the result is the same but for streams that return.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from coordinator.calculus import demand
from coordinator.calculus.curves import Bursts
from coordinator.calculus.demand import DemandTestResult, Load, Task, UnboundedError
from coordinator.calculus.flow import jittered, total
from coordinator.calculus.response import Response, load_responses
from coordinator.calculus.selectivity import ONE, Selectivity
from coordinator.guarantee import link_delay, window_closing
from coordinator.guarantee.propagate import Delays, Streams, propagate
from coordinator.guarantee.streams import Reuse
from coordinator.guarantee.system import Node, System, Unit
from coordinator.guarantee.whole_ways.path_limits import path_limits
from coordinator.spec.runtime_charges import RuntimeOverhead, chunks
from protos.plan.charges import NodeCharges

WORTH_HAVING = 5  # times the longest deadline
MOST_PASSES = 300
MOST_ROUNDS = 6  # of limits of whole ways
MOST_LOOKS = 5_000_000
LOADING_EVERY_NS = 20_000_000
COMMIT_AND_END_NS = 10**9  # between a commit and the end of the plan before it
LARGEST = 1 << 62
CHUNKS = "reading chunks"  # and writing them
CHUNKS_PER_DRAIN = 3  # of one stream of large payloads: 64 KiB are read of a connection, and one chunk is written
COVERED = frozenset({"edf"})  # policies, each with its largest batch


class _HopelessError(Exception):
    """Why no bound is found."""


def never() -> bool:
    """No analysis is stopped."""
    return False


@dataclass(frozen=True)
class Analysis:
    """The fixed point: `delays` and the `streams` that follow; per node its load and the test of its sub-deadlines, or
    no entry where the node has no bound at all."""

    system: System
    charges: RuntimeOverhead
    delays: Delays
    streams: Streams
    verdicts: dict[str, DemandTestResult]
    loads: dict[str, Load]


def analyse(
    system: System, charges: RuntimeOverhead, reuse: Reuse | None = None, stop: Callable[[], bool] = never
) -> Analysis:
    """The bounds that plans promise. `reuse`: what earlier analyses of this system made, with the same charges, other
    sub-deadlines or ages: the result does not depend on it. `stop`: asked before every node; where it says so there is
    no bound at all, or no further round."""
    found = unit_by_unit(system, charges, WORTH_HAVING, reuse, stop)
    try:
        return shortened(found, stop)
    except RecursionError:  # curves of a stream through very many units: the bounds unit by unit hold without
        return found


def unit_by_unit(
    system: System,
    charges: RuntimeOverhead,
    worth_having: int = WORTH_HAVING,
    reuse: Reuse | None = None,
    stop: Callable[[], bool] = never,
) -> Analysis:
    """As `analyse`, without limits of whole ways. Repeats passes until nothing grows, or a delay grows beyond
    `worth_having` times the longest deadline."""
    delays = Delays(broken=_uncovered(system), reuse=Reuse() if reuse is None else reuse)
    return _analysis(system, charges, delays, _grown(system, delays, charges, worth_having, stop))


def shortened(found: Analysis, stop: Callable[[], bool] = never) -> Analysis:
    """What rounds of limits of whole ways make of it."""
    system, charges, streams = found.system, found.charges, found.streams
    delays = found.delays.copy()
    for _ in range(MOST_ROUNDS):
        loads = {name: load for name, load in delays.loads.items() if name not in delays.broken}
        if not loads:
            break
        paths = path_limits(system, delays, streams, loads).lesser(delays.paths)
        if stop() or paths == delays.paths:
            break
        delays.paths = paths
        streams = propagate(system, delays, charges)
        for pair, flows in streams.sent.items():
            if flows and pair not in delays.cut:
                _shorten_link(system, delays, charges, pair, streams)
        for node in system.nodes.values():
            if node.name not in delays.broken:
                _shorten_node(system, delays, charges, streams, node)
    return _analysis(system, charges, delays, streams)


def _analysis(system: System, charges: RuntimeOverhead, delays: Delays, streams: Streams) -> Analysis:
    verdicts, loads = {}, {}
    for node in system.nodes.values():
        if node.name not in delays.broken:
            load = loads[node.name] = delays.loads.get(node.name) or _loaded(system, delays, charges, streams, node)
            verdicts[node.name] = delays.reuse.of(("test", load), partial(demand.test_load, load))
    return Analysis(system, charges, delays, streams, verdicts, loads)


def _grown(
    system: System, delays: Delays, charges: RuntimeOverhead, worth_having: int, stop: Callable[[], bool]
) -> Streams:
    """The least fixed point, unit by unit, and the streams that follow."""
    for _ in range(MOST_PASSES):
        streams = propagate(system, delays, charges)
        try:
            if not _grow(system, delays, charges, streams, worth_having, stop):
                return streams
        except _HopelessError as error:
            _give_up(system, delays, str(error))
            return propagate(system, delays, charges)
        except RecursionError:  # a curve rests on those of all units before it
            _give_up(system, delays, "a stream passes more units than can be followed")
            return propagate(system, delays, charges)
    _give_up(system, delays, f"delays still grow after {MOST_PASSES} passes")
    return propagate(system, delays, charges)


def lessened(system: System, before: Delays, charges: RuntimeOverhead) -> Delays:
    """The state that follows from one that holds, in one pass and not until nothing changes: where the system has
    smaller costs than those that the state was found with, it is below it. What follows from it holds for all that such
    costs held for, as far back as `confidence.influence` says."""
    streams = propagate(system, before, charges)
    after = Delays(broken=dict(before.broken), cut=dict(before.cut), reuse=before.reuse, drains=dict(before.drains))
    for pair, flows in streams.sent.items():
        if flows and pair not in after.cut:
            _grow_link(system, after, charges, pair, streams)
    for node in system.nodes.values():
        if node.name in after.broken:
            continue
        if not _units(system, node):
            drain_ns = _idle_drain_ns(system, before, charges, streams, node)
        else:
            found = _node_responses(system, before, charges, streams, node)
            drain_ns = found.drain_ns
            after.loads[node.name] = found.load
            for unit in _units(system, node):
                after.units[unit.id] = before.units[unit.id] if found.error else found.responses[unit.name]
        if charges.drained:
            after.drains[node.name] = min(drain_ns, before.drains.get(node.name, drain_ns))
    return after


def _uncovered(system: System) -> dict[str, str]:
    """Nodes whose policy no test covers."""
    used = {unit.node for unit in system.units.values()}
    found = {}
    for node in system.nodes.values():
        if node.name in used and node.policy not in COVERED:
            found[node.name] = f"policy {node.policy} on node {node.name} has no bound: the test covers edf only"
        elif node.name in used and node.batch < 1:
            found[node.name] = f"batches on node {node.name} have no limit, so nothing bounds how long one blocks"
    return found


def _grow(
    system: System,
    delays: Delays,
    charges: RuntimeOverhead,
    streams: Streams,
    worth_having: int,
    stop: Callable[[], bool],
) -> bool:
    """Every link and node once, with the streams of the last pass. Whether anything has changed."""
    changed = False
    most_ns = worth_having * max(output.deadline_ns for output in system.outputs.values())
    for pair, flows in streams.sent.items():
        if flows and pair not in delays.cut:
            if stop():
                raise _HopelessError("the analysis was stopped")
            changed |= _grow_link(system, delays, charges, pair, streams)
    for node in system.nodes.values():
        if node.name not in delays.broken:
            if stop():
                raise _HopelessError("the analysis was stopped")
            try:
                changed |= _grow_node(system, delays, charges, streams, node)
            except UnboundedError as error:
                delays.broken[node.name] = f"node {node.name} has no bound: {error}"
                changed = True
    largest = max(
        max((each.end for each in delays.units.values()), default=0),
        *delays.links.values(),
        *delays.large_links.values(),
        0,
    )
    if largest > most_ns:
        raise _HopelessError(f"delays grow beyond {worth_having} times the longest deadline")
    if changed and delays.looks > MOST_LOOKS:
        raise _HopelessError(f"delays still grow after {delays.looks} looks")
    return changed


def _grow_link(
    system: System, delays: Delays, charges: RuntimeOverhead, pair: tuple[str, str], streams: Streams
) -> bool:
    try:
        found, large = _link_ns(system, delays, charges, pair, streams)
    except UnboundedError as error:
        delays.cut[pair] = f"the link from {pair[0]} to {pair[1]} has no bound: {error}"
        return True
    before, delays.links[pair] = delays.links.get(pair, 0), found
    earlier = delays.large_links.get(pair, 0)
    if large:
        delays.large_links[pair] = max(earlier, large)
    return found > before or large > earlier


def _shorten_link(
    system: System, delays: Delays, charges: RuntimeOverhead, pair: tuple[str, str], streams: Streams
) -> None:
    found, large = _link_ns(system, delays, charges, pair, streams)
    delays.links[pair] = min(delays.links[pair], found)
    if large:
        delays.large_links[pair] = min(delays.large_links[pair], large)


def _link_ns(
    system: System, delays: Delays, charges: RuntimeOverhead, pair: tuple[str, str], streams: Streams
) -> tuple[int, int]:
    """Of what is small, and of what goes in chunks. Raises UnboundedError."""
    link = system.links[pair]
    together = link.shared or (pair,)
    why = next((streams.unknown[each] for each in together if each in streams.unknown), "")
    if why and link.bandwidth_bps:
        raise UnboundedError("unbounded", f"what else it carries: {why}")
    flows = [flow for other in together for flow in streams.sent[other]]
    read_ns = delays.drains.get(pair[1], 0)
    pause_ns = delays.drains.get(pair[0], 0) + read_ns
    small = delays.reuse.of(
        ("link", pair, read_ns, *flows), partial(link_delay.delay_ns, link, flows, charges, read_ns)
    )
    large = delays.reuse.of(
        ("large", pair, pause_ns, *flows), partial(link_delay.large_delay_ns, link, flows, charges, pause_ns)
    )
    return small, large


@dataclass(frozen=True)
class _NodeResponses:
    """Of a node with its streams as they are. `error`: why there are none."""

    load: Load
    drain_ns: int
    responses: Mapping[str, Response]
    error: UnboundedError | None = None


def _grow_node(system: System, delays: Delays, charges: RuntimeOverhead, streams: Streams, node: Node) -> bool:
    units = _units(system, node)
    if not units:
        return charges.drained and _grow_drain(delays, node, _idle_drain_ns(system, delays, charges, streams, node))
    found = _responses(system, delays, charges, streams, node)
    delays.loads[node.name] = found.load
    delays.looks += len(found.load.steps) * sum(len(each.times) for each in found.load.steps)
    changed = charges.drained and _grow_drain(delays, node, found.drain_ns)
    if found.error is not None:
        raise found.error
    for unit in units:
        before = delays.units.get(unit.id)
        delays.units[unit.id] = found.responses[unit.name]
        changed |= before is None or found.responses[unit.name].stages != before.stages
    return changed


def _shorten_node(system: System, delays: Delays, charges: RuntimeOverhead, streams: Streams, node: Node) -> None:
    drain_ns = delays.drains.get(node.name, 0)
    units = _units(system, node)
    if not units:
        found_ns = _idle_drain_ns(system, delays, charges, streams, node) if charges.drained else 0
        delays.drains[node.name] = min(drain_ns, found_ns)
        return
    found = _responses(system, delays, charges, streams, node)
    if found.error is None and all(_no_later(found, delays, unit) for unit in units):
        delays.loads[node.name] = found.load
        delays.units.update((unit.id, found.responses[unit.name]) for unit in units)
        delays.drains[node.name] = min(drain_ns, found.drain_ns)


def _no_later(found: _NodeResponses, delays: Delays, unit: Unit) -> bool:
    """Of sparser streams nothing should be; but the effort of a search is limited in steps."""
    before = delays.units[unit.id].stages
    return all(one <= other for one, other in zip(found.responses[unit.name].stages, before, strict=True))


def _given(system: System, delays: Delays, streams: Streams, node: Node) -> tuple[Hashable, ...]:
    """All that a node's load depends on and that differs between passes."""
    return (
        node.name,
        delays.drains.get(node.name, 0),
        streams.unread.get(node.name),
        *streams.arriving[node.name],
        *(streams.unreleased.get(unit.id) or streams.triggers[unit.id] for unit in _units(system, node)),
        *(window_closing.collecting(system, streams, unit) for unit in _units(system, node)),
        *((streams.flows.get((side, node.name)), streams.why.get((side, node.name))) for side in node.sides),
    )


def _loaded(system: System, delays: Delays, charges: RuntimeOverhead, streams: Streams, node: Node) -> Load:
    """Written out; sub-deadlines do not change the steps. Raises UnboundedError."""
    tasks = _tasks(system, delays, charges, streams, node)
    key = ("load", *_given(system, delays, streams, node))
    written = delays.reuse.of(key, partial(demand.load, tasks))
    return delays.reuse.of((written, *(each.deadline for each in tasks)), partial(written.of_tasks, tasks))


def _responses(
    system: System, delays: Delays, charges: RuntimeOverhead, streams: Streams, node: Node
) -> _NodeResponses:
    due_ns = tuple(unit.sub_deadline_ns for unit in _units(system, node))
    key = ("node", *_given(system, delays, streams, node), due_ns)
    return delays.reuse.of(key, partial(_node_responses, system, delays, charges, streams, node))


def _node_responses(
    system: System, delays: Delays, charges: RuntimeOverhead, streams: Streams, node: Node
) -> _NodeResponses:
    loaded = _loaded(system, delays, charges, streams, node)
    drain_ns = _drain_ns(loaded, charges)
    try:
        return _NodeResponses(loaded, drain_ns, load_responses(loaded))
    except UnboundedError as error:
        return _NodeResponses(loaded, drain_ns, {}, error)


def _idle_drain_ns(system: System, delays: Delays, charges: RuntimeOverhead, streams: Streams, node: Node) -> int:
    """Of a node without units."""
    key = ("idle", *_given(system, delays, streams, node))
    return delays.reuse.of(
        key, lambda: _drain_ns(demand.load(_chores(system, delays, charges, streams, node)), charges)
    )


def _grow_drain(delays: Delays, node: Node, drain_ns: int) -> bool:
    before = delays.drains.get(node.name, 0)
    delays.drains[node.name] = max(before, drain_ns)
    return drain_ns > before


def _drain_ns(loaded: Load, charges: RuntimeOverhead) -> int:
    """Until the sockets are read or written again: one longest instance, the interval, and reading what came
    meanwhile."""
    longest = max((each.task.longest for each in loaded.steps if not each.task.chore), default=0)
    fixed = longest + charges.drain_every_ns
    fixed += sum(CHUNKS_PER_DRAIN * each.task.stages[0][0] for each in loaded.steps if each.task.name == CHUNKS)
    chores = [each for each in loaded.steps if each.task.chore and each.task.name != CHUNKS]
    length = fixed
    while (grown := fixed + sum(each.task.work(each.task.curve.count(length)) for each in chores)) != length:
        length = grown
    return int(-(-length // 1))


def _tasks(system: System, delays: Delays, charges: RuntimeOverhead, streams: Streams, node: Node) -> list[Task]:
    """What a node has to do. Raises UnboundedError where nothing bounds part of it."""
    own = charges.on(node.charges)
    tasks = [_task(system, delays, unit, node, own, streams) for unit in _units(system, node)]
    if tasks:
        tasks += _chores(system, delays, charges, streams, node)
    if tasks and own.side_ns and node.sides:
        sides = []
        for stream in node.sides:
            if (stream, node.name) not in streams.flows:
                raise UnboundedError("unbounded", f"its side input {stream}: {streams.why[stream, node.name]}")
            sides.append(streams.flows[stream, node.name].curve)
        tasks.append(Task("updating side inputs", total(sides), 0, ((own.side_ns, ONE),), chore=True))
    return tasks


def _chores(system: System, delays: Delays, charges: RuntimeOverhead, streams: Streams, node: Node) -> list[Task]:
    """What goes before all task instances."""
    return _reading(delays, charges, streams, node) + _calling(system, delays, node) + _loading(charges)


def _calling(system: System, delays: Delays, node: Node) -> list[Task]:
    """Calls that sources of the node make on threads of their own, which take their CPU time whenever they like. One
    call at a time: in a window of t those that begin in it, and one that had begun before."""
    found = []
    for source in system.sources.values():
        if source.node != node.name or not source.call_ns:
            continue
        if source.every_ns:
            calls = jittered(Bursts(1, source.every_ns), delays.drains.get(node.name, 0))
        elif source.curve is not None:
            calls = jittered(source.curve, source.tolerance_ns)
        else:
            raise UnboundedError("unbounded", source.why)
        curve = total([calls, Bursts(1, LARGEST)])
        found.append(Task(f"calling source {source.name}", curve, 0, ((source.call_ns, ONE),), chore=True))
    return found


def _reading(delays: Delays, charges: RuntimeOverhead, streams: Streams, node: Node) -> list[Task]:
    """What comes by its sockets, if anything."""
    drain_ns = charges.on(node.charges).drain_ns
    if charges.drained and node.name in streams.unread:
        raise UnboundedError("unbounded", f"what its sockets bring: {streams.unread[node.name]}")
    arriving = streams.arriving[node.name]
    if not drain_ns or not arriving:
        return []
    jitter, tasks = delays.drains.get(node.name, 0), []
    large = [flow for flow in arriving if chunks(flow.max_bytes)]
    small = [flow.events for flow in arriving if not chunks(flow.max_bytes)]
    if small:
        tasks.append(Task("reading sockets", jittered(total(small), jitter), 0, ((drain_ns, ONE),), chore=True))
    for flow in large:
        chunk_ns = link_delay.READS_PER_CHUNK * drain_ns
        per_tuple = Selectivity(((1, chunks(flow.max_bytes)),))
        tasks.append(Task(CHUNKS, jittered(flow.events, jitter), 0, ((chunk_ns, per_tuple),), chore=True))
    return tasks


def _loading(charges: RuntimeOverhead) -> list[Task]:
    """Loading another plan, in stretches: one may have begun just before a busy period, and where a node is never idle
    another follows every LOADING_EVERY_NS, also where tuples are ready. Committing it, and ending the one before a
    while later, is a stretch each that waits for nothing."""
    if not charges.loading_ns:
        return []
    stretches = total([Bursts(1, LOADING_EVERY_NS), Bursts(1, COMMIT_AND_END_NS)])
    return [Task("loading a plan", stretches, 0, ((charges.loading_ns, ONE),), chore=True)]


def _task(system: System, delays: Delays, unit: Unit, node: Node, own: NodeCharges, streams: Streams) -> Task:
    if unit.id in streams.unreleased:
        raise UnboundedError("unbounded", streams.unreleased[unit.id])
    if unit.unsound:
        raise UnboundedError("not_guaranteed", unit.unsound)
    passes = [ONE, *(stage.selectivity for stage in unit.stages[:-1])]
    costs = [stage.cost_ns for stage in unit.stages]
    costs[0] += own.decision_ns
    curve = streams.triggers[unit.id].curve
    unblocked = window_closing.collecting(system, streams, unit)
    stages = tuple(zip(costs, passes, strict=True))
    sums = _sums(unit, own.decision_ns)
    return Task(unit.name, curve, unit.sub_deadline_ns, stages, node.batch, unblocked=unblocked, sums=sums)


def _sums(unit: Unit, decision_ns: int) -> tuple[tuple[int, ...], ...]:
    """What runs in a row take, with a decision for each of the first operator's."""
    if not any(stage.sums_ns for stage in unit.stages):
        return ()
    first, *others = (stage.sums_ns for stage in unit.stages)
    return tuple(sum_ns + (n + 1) * decision_ns for n, sum_ns in enumerate(first)), *others


def _units(system: System, node: Node) -> Sequence[Unit]:
    return [unit for unit in system.units.values() if unit.node == node.name]


def _give_up(system: System, delays: Delays, why: str) -> None:
    """Every node and link that is not without a bound already: what delays what is not told apart."""
    for node in system.nodes.values():
        delays.broken.setdefault(node.name, f"no bound on node {node.name}: {why}")
    for start, end in system.links:
        delays.cut.setdefault((start, end), f"the link from {start} to {end} has no bound: {why}")
