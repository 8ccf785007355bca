"""Lower bounds of the analysis, which no sub-deadlines can change.

A unit takes at least its own work, and one job of any other unit of its node: a unit that is due later blocks for as
much, one that is due sooner or together goes before it. Sockets are not counted. Every curve and every bound of the
analysis grows with what units take, so an output that is late even then is late under any sub-deadlines.

Units may be cut. Then what certainly goes first is one job of a single operator, and until an operator ends there is
the work of it and of those before it, for all that comes at one instant: whether in one unit or in several after each
other. Later arrivals do not count, since the pieces of a unit that is cut each begin with their own first.
"""

from __future__ import annotations

from coordinator.calculus import demand
from coordinator.calculus.curves import Bursts, Curve, TooLongError
from coordinator.calculus.demand import Task, UnboundedError
from coordinator.calculus.response import Response, load_responses
from coordinator.calculus.selectivity import ONE
from coordinator.guarantee.propagate import Delays, Streams, age, propagate
from coordinator.guarantee.system import System, Unit
from coordinator.spec.runtime_charges import RuntimeOverhead
from coordinator.units import show_ns

ROUNDS = 2  # any number of them gives a lower bound
NEVER_NS = 10**18
NEVER = Bursts(1, NEVER_NS)  # of a rival one job counts


def late(
    system: System, charges: RuntimeOverhead, spared: frozenset[str] = frozenset(), cut: bool = True
) -> str | None:
    """An output of this placement, none of `spared`, that is late under any sub-deadlines, in a sentence; None: nothing
    is proven. `cut`: also however units are cut; else with these units only."""
    delays = Delays()
    for pair, link in system.links.items():
        delays.links[pair] = link.latency_ns
    decision_ns = {name: charges.on(node.charges).decision_ns for name, node in system.nodes.items()}
    for _ in range(ROUNDS):
        streams = propagate(system, delays, charges)
        for unit in system.units.values():
            if unit.id in streams.triggers and not unit.unsound:
                least = _least_cut if cut else _least_response
                found = least(system, unit, streams, decision_ns[unit.node])
                if found is not None:
                    delays.units[unit.id] = found
    streams = propagate(system, delays, charges)
    for name, output in system.outputs.items():
        flow = streams.flows.get((output.stream, output.node)) if name not in spared else None
        for source, each in (flow.late if flow else {}).items():
            oldest = age(system, streams, source)
            bound_ns = each.most_ns + (oldest.most_ns if oldest else 0)
            if bound_ns > output.deadline_ns:
                return (
                    f"output {name}: even if every unit on its way went before all others, its bound would be "
                    f"{show_ns(bound_ns)}, its deadline is {show_ns(output.deadline_ns)}"
                )
    return None


def _least_response(system: System, unit: Unit, streams: Streams, decision_ns: int) -> Response | None:
    """A unit behind one job of its longest rival that is ever released; None: no bound is found."""
    others = [one for one in system.units.values() if one.node == unit.node and one.id != unit.id and not one.unsound]
    rivals = [one for one in others if one.id in streams.triggers and streams.triggers[one.id].curve.count(0)]
    longest = max((_task(one, NEVER, NEVER_NS, decision_ns).longest for one in rivals), default=0)
    tasks = [_task(unit, streams.triggers[unit.id].curve, 1, decision_ns)]
    if longest:
        tasks.append(Task("rival", NEVER, NEVER_NS, ((longest, ONE),)))
    try:
        return load_responses(demand.load(tasks))[unit.name]
    except (UnboundedError, TooLongError):
        return None


def _least_cut(system: System, unit: Unit, streams: Streams, decision_ns: int) -> Response | None:
    """A unit, in any pieces, behind one job of the longest operator of another that is ever released."""
    others = [one for one in system.units.values() if one.node == unit.node and one.id != unit.id and not one.unsound]
    rivals = [one for one in others if one.id in streams.triggers and streams.triggers[one.id].curve.count(0)]
    done = max((_longest_operator(one) for one in rivals), default=0)
    jobs, found = streams.triggers[unit.id].curve.count(0), []
    if not jobs:
        return None
    done += jobs * decision_ns
    for stage in unit.stages:
        done += jobs * stage.cost_ns
        jobs = stage.selectivity(jobs)
        found.append(done)
    return Response(done, tuple(found))


def _longest_operator(unit: Unit) -> int:
    """Of those that the first job comes to, in ns."""
    jobs, found = 1, 0
    for stage in unit.stages:
        found = max(found, stage.cost_ns if jobs else 0)
        jobs = stage.selectivity(jobs)
    return found


def _task(unit: Unit, curve: Curve, due_ns: int, decision_ns: int) -> Task:
    passes = [ONE, *(stage.selectivity for stage in unit.stages[:-1])]
    costs = [stage.cost_ns for stage in unit.stages]
    costs[0] += decision_ns
    return Task(unit.name, curve, due_ns, tuple(zip(costs, passes, strict=True)))
