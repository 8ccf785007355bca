"""Checks of what an output asks beyond its deadline ([Q] 2.3), by a plan's bounds.

    wait          rule 2: the first result after a pause within L
    throughput    rule 3: at least P results a second, after a latency of L: gamma(P, L)
    queue         rule 4: at most M bytes of tuples that wait or run

[Q] counts from a tuple's arrival in the system, which is its admission; the deadline counts from its origin. All tuples
of the output's sources are one stream, as [Q] has it, and a tuple that is filtered is served when it is.

With d the bound from admission to the result, of every tuple: rule 2 holds where d <= L. Rule 3 holds where d <= L +
1/P, the deadline of a tuple that finds nothing before it; theorem 2 gives none an earlier one. Rule 4 holds where
alpha(d) tuples have room, since what is there at t was admitted after t - d; each counts as often as it may wait at
once, where several units take it or an operator makes several of it. All three are sufficient, not necessary:
d is one bound for all tuples, so in a burst rule 3 asks less of the later ones than this does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from coordinator.guarantee.analysis import Analysis
from coordinator.guarantee.system import System
from coordinator.spec.runtime_charges import on_wire
from coordinator.units import counted, show_bytes, show_ns
from protos.plan.guarantee import Checks, SizeCheck, TimeCheck


@dataclass(frozen=True)
class Check:
    """One of the three. `limit`, `found`: in ns, of `queue` in bytes; `found` None: not analysed."""

    name: str
    limit: int
    found: int | None
    why: str

    @property
    def holds(self) -> bool:
        """Whether it is guaranteed."""
        return self.found is not None and self.found <= self.limit

    @property
    def sentence(self) -> str:
        """`wait (20 ms): 12 ms at most`."""
        show = show_bytes if self.name == "queue" else show_ns
        bound = "no bound" if self.found is None else f"{show(self.found)} at most"
        return f"{self.name} ({show(self.limit)}): {bound}"

    @property
    def time(self) -> TimeCheck:
        """For plan.json, of `wait` and `throughput`."""
        return TimeCheck(limit_ns=self.limit, bound_ns=self.found, guaranteed=self.holds, why=self.why)

    @property
    def size(self) -> SizeCheck:
        """For plan.json, of `queue`."""
        return SizeCheck(limit_bytes=self.limit, bound_bytes=self.found, guaranteed=self.holds, why=self.why)


def checked(found: Sequence[Check]) -> Checks | None:
    """For plan.json; None: nothing was asked."""
    if not found:
        return None
    named = {each.name: each for each in found}
    wait, throughput, queue = (named.get(name) for name in ("wait", "throughput", "queue"))
    return Checks(
        wait=wait.time if wait else None,
        throughput=throughput.time if throughput else None,
        queue=queue.size if queue else None,
    )


def checks(analysis: Analysis, name: str) -> tuple[Check, ...]:
    """Everything that an output asks beyond its deadline, in the order of the rules."""
    output = analysis.system.outputs[name]
    asked = output.qos
    at = (output.stream, output.node)
    flow = analysis.streams.flows.get(at)
    if flow is None or not flow.late:
        missing = analysis.streams.why.get(at, f"stream {output.stream} never reaches node {output.node}")
        why = f"not analysed: {missing}" if flow is None else "not analysed: no tuple ever gets there"
        limits = (("wait", asked.wait_ns), ("throughput", asked.served_ns), ("queue", asked.queue_bytes))
        return tuple(Check(rule, limit, None, why) for rule, limit in limits if limit is not None)
    most_ns = max(late.most_ns for late in flow.late.values())
    found = []
    if asked.wait_ns is not None:
        why = f"every result is there {show_ns(most_ns)} after its tuple's admission"
        found.append(Check("wait", asked.wait_ns, most_ns, why))
    if asked.served_ns is not None:
        said = f"{asked.throughput:g} a second after {show_ns(asked.latency_ns or 0)}"
        why = f"{said} ask for the first within {show_ns(asked.served_ns)}; every result is there {show_ns(most_ns)} "
        found.append(Check("throughput", asked.served_ns, most_ns, f"{why}after its tuple's admission"))
    if asked.queue_bytes is not None:
        found.append(_queue(analysis, name, asked.queue_bytes))
    return tuple(found)


def _queue(analysis: Analysis, name: str, limit: int) -> Check:
    """Rule 4, from the arrivals at the sources that lead to the output."""
    output = analysis.system.outputs[name]
    flow = analysis.streams.flows[output.stream, output.node]
    if others := sorted(sources(analysis, output.stream) - flow.late.keys()):
        return Check("queue", limit, None, f"not analysed: tuples of {', '.join(others)} wait for partners in a join")
    largest = max(analysis.system.max_bytes.values(), default=0)
    size, most = on_wire(largest, analysis.charges.tuple_bytes), _at_once(analysis.system, name)
    admitted = jobs = 0
    for source, late in flow.late.items():
        given = analysis.system.windows.get(source) or analysis.system.sources[source]
        node = given.node
        count = analysis.streams.flows[source, node].curve.count(late.most_ns)
        admitted, jobs = admitted + count, jobs + count * most[source]
    why = f"{counted(admitted, 'tuple')} of {size} bytes may be admitted before the first of them is through"
    if jobs > admitted:
        why += f", and as operators may make several of one and several may take it, {jobs} be there at once"
    return Check("queue", limit, jobs * size, why)


def _at_once(system: System, name: str) -> dict[str, int]:
    """For each stream that leads to an output: as how many tuples one of that stream may wait or run at once. Every
    unit that takes it has one of its own, and in that one's place come all that are made of it."""
    most = {system.outputs[name].stream: 0}
    for number in reversed(system.order):
        unit = system.units[number]
        made = accumulate(unit.stages, lambda count, stage: stage.selectivity(count), initial=1)
        results = list(made)[1:]
        leading = [results[stage] * most[stream] for stream, stage in unit.exits.items() if stream in most]
        if leading:
            for stream in unit.inputs:
                most[stream] = most.get(stream, 0) + max(1, sum(leading))
    return most


def sources(analysis: Analysis, stream: str) -> set[str]:
    """Those that lead to a stream through trigger inputs."""
    units = analysis.system.units.values()
    made = {stage.operator: unit for unit in units for stage in unit.stages}
    found, waiting, seen = set(), [stream], set()
    while waiting:
        name = waiting.pop()
        if name in analysis.system.windows:  # their tuples wait for their end, and are then another source's
            found.add(name)
        elif name in made and name not in seen:
            seen.add(name)
            waiting += made[name].inputs
        elif name in analysis.system.sources:
            found.add(name)
    return found
