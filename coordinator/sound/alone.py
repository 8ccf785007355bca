"""What no sub-deadlines can change: lower bounds of the analysis itself.

A unit takes at least as long as if it were alone on its node, with nothing charged for the runtime; and every curve
and every bound of the analysis grows with what units take. So an output that is late even then is late under any
sub-deadlines.
"""

from __future__ import annotations

from coordinator.guarantee import demand
from coordinator.guarantee.charges import NOTHING
from coordinator.guarantee.curves import TooLongError
from coordinator.guarantee.demand import Task, UnboundedError
from coordinator.guarantee.propagate import Delays, propagate
from coordinator.guarantee.response import Response, load_responses
from coordinator.guarantee.selectivity import ONE
from coordinator.guarantee.system import System
from coordinator.sound.needs import Needs
from coordinator.units_of_measure import show_ns

ROUNDS = 2  # any number of them gives a lower bound


def ways_too_long(needs: Needs) -> list[str]:
    """Outputs that one tuple alone misses wherever operators run: age on admission, and costs on the fastest nodes."""
    found = []
    for output in needs.query.outputs:
        for source in needs.query.sources:
            if source.name not in needs.reach[output.origin]:
                continue
            if source.max_age_ns >= output.deadline_ns:
                found.append(
                    f"output {output.name}: {source.name} admits tuples of up to {show_ns(source.max_age_ns)} of age, "
                    f"its deadline is {show_ns(output.deadline_ns)}; declare a smaller 'max_age' or a longer deadline"
                )
                continue
            need_ns, path = _longest(needs, source.name, output.origin)
            if source.max_age_ns + need_ns > output.deadline_ns:
                aged = f" and the age of {source.name} up to {show_ns(source.max_age_ns)}" if source.max_age_ns else ""
                found.append(
                    f"output {output.name}: one tuple alone costs {show_ns(need_ns)} on its way {', '.join(path)} even "
                    f"on the fastest nodes{aged}, its deadline is {show_ns(output.deadline_ns)}"
                )
    return found


def _longest(needs: Needs, source: str, end: str) -> tuple[int, list[str]]:
    """The costliest way from a source to an operator, in least costs."""
    reached: dict[str, tuple[int, list[str]]] = {source: (0, [])}
    for operator in needs.order:
        before = [reached[name] for name in operator.inputs if name in reached and source in needs.reach[operator.name]]
        if before:
            cost_ns, path = max(before, key=lambda each: each[0])
            reached[operator.name] = (cost_ns + needs.least_ns[operator.name], [*path, operator.name])
    return reached[end]


def late(system: System) -> str | None:
    """An output of this placement that is late under any sub-deadlines, in a sentence; None: nothing is proven."""
    delays = Delays()
    for pair, link in system.links.items():
        delays.links[pair] = link.latency_ns
    for _ in range(ROUNDS):
        streams = propagate(system, delays, NOTHING)
        for unit in system.units.values():
            if unit.id not in streams.triggers or unit.unsound:
                continue
            passes = [ONE, *(stage.selectivity for stage in unit.stages[:-1])]
            stages = tuple((stage.cost_ns, each) for stage, each in zip(unit.stages, passes, strict=True))
            try:
                delays.units[unit.id] = _response(Task(unit.name, streams.triggers[unit.id].curve, 1, stages))
            except (UnboundedError, TooLongError):
                continue
    streams = propagate(system, delays, NOTHING)
    for name, output in system.outputs.items():
        flow = streams.flows.get((output.stream, output.node))
        for source, late_ in (flow.late if flow else {}).items():
            bound_ns = late_.most_ns + system.sources[source].max_age_ns
            if bound_ns > output.deadline_ns:
                return (
                    f"output {name}: even if every unit went before all others of its node, its bound would be "
                    f"{show_ns(bound_ns)}, its deadline is {show_ns(output.deadline_ns)}"
                )
    return None


def _response(task: Task) -> Response:
    return load_responses(demand.load([task]))[task.name]
