"""Relaxations of declared numbers: [Q] 4.4's k (speed), D (deadlines) and rho (input), and ages on admission."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial

from coordinator.solve.repair import shed
from coordinator.solve.repair.bisect import first, least
from coordinator.solve.repair.repair import Repair
from coordinator.solve.repair.what_if_runs import Case, WhatIfRuns
from coordinator.spec.cluster import Node
from coordinator.spec.query import Source
from coordinator.units import exact, show_ns, step_of
from protos.plan_document import BurstArrival

FASTEST = 100  # times as fast, at most
LATEST = 1000  # times the deadline, at most
HUNDRED = 100


def speed(trials: WhatIfRuns, hosts: Collection[str]) -> Repair | None:
    """The least factor, in hundredths, by which those nodes together have to be faster; to 1 %. None: no speed helps.

    A node that plays a slower one becomes faster by emulating less.
    """
    case, alone = trials.case, len(hosts) == 1
    who = f"node {next(iter(hosts))}" if alone else "all nodes"

    def holds(hundredths: int) -> bool:
        return trials.holds(_faster(case, hosts, hundredths), f"{who} {hundredths / HUNDRED:g} times as fast")

    nodes = [node for node in case.cluster.nodes.values() if host(node) in hosts]
    limit = min(FASTEST * HUNDRED, *(int(1000 * HUNDRED / node.speed) for node in nodes))
    found = least(holds, HUNDRED, [min(2 * HUNDRED, limit), limit], lambda hundredths: hundredths // HUNDRED)
    if found is None:
        return None
    factor = Fraction(found.value, HUNDRED)
    faster = _faster(case, hosts, found.value)
    firsts = {host(node): node for node in reversed(nodes)}
    facts = [_speed_told(firsts[name], faster.cluster.nodes[firsts[name].name]) for name in sorted(firsts)]
    text = f"make {who} {float(factor):g} times as fast" + (f": {facts[0]}" if alone else "")
    changes = [one for name in sorted(firsts) for one in _speed_what_if(name, faster.cluster.nodes[firsts[name].name])]
    return Repair("speed", text, faster, (factor,) * len(firsts), tuple(changes), settled=found.settled)


def both(trials: WhatIfRuns, hosts: Collection[str]) -> Repair | None:
    """Where nothing alone helps: the least factor, to 1 %, by which all nodes are faster and all deadlines longer."""
    case = trials.case

    def changed(hundredths: int) -> Case:
        due = {one.name: -(-one.deadline_ns * hundredths // HUNDRED) for one in case.query.outputs}
        return _due(_faster(case, hosts, hundredths), due)

    def holds(hundredths: int) -> bool:
        return trials.holds(
            changed(hundredths), f"nodes {hundredths / HUNDRED:g} times as fast, deadlines as much longer"
        )

    limit = min(FASTEST * HUNDRED, *(int(1000 * HUNDRED / node.speed) for node in case.cluster.nodes.values()))
    found = least(holds, HUNDRED, [min(2 * HUNDRED, limit), limit], lambda hundredths: hundredths // HUNDRED)
    if found is None:
        return None
    factor, after = Fraction(found.value, HUNDRED), changed(found.value)
    text = f"nothing alone helps: make all nodes {float(factor):g} times as fast and all deadlines as much longer"
    firsts = {host(node): node for node in reversed(list(after.cluster.nodes.values()))}
    changes = [one for name in sorted(firsts) for one in _speed_what_if(name, firsts[name])]
    changes += [f"outputs.{one.name}.deadline={exact(one.deadline_ns)}" for one in after.query.outputs]
    ratios = (factor,) * (len(firsts) + len(after.query.outputs))
    return Repair("both", text, after, ratios, tuple(changes), settled=found.settled)


def host(node: Node) -> str:
    """The node of the file that a place is on."""
    return node.host or node.name


def _faster(case: Case, hosts: Collection[str], hundredths: int) -> Case:
    nodes = {
        name: replace(
            node,
            speed=node.speed * hundredths / HUNDRED,
            emulate_cost_ns=-(-node.emulate_cost_ns * HUNDRED // hundredths),
        )
        if host(node) in hosts
        else node
        for name, node in case.cluster.nodes.items()
    }
    return replace(case, cluster=replace(case.cluster, nodes=nodes))


def _speed_told(before: Node, after: Node) -> str:
    told = f"speed {float(after.speed):g} instead of {float(before.speed):g}"
    if not before.emulate_cost_ns:
        return told
    return f"{told}, at least {show_ns(after.emulate_cost_ns)} per tuple instead of {show_ns(before.emulate_cost_ns)}"


def _speed_what_if(name: str, after: Node) -> list[str]:
    changes = [f"nodes.{name}.speed={float(after.speed)!r}"]
    if after.emulate_cost_ns:
        changes.append(f"nodes.{name}.emulate.cost_per_tuple={exact(after.emulate_cost_ns)}")
    return changes


def deadlines(trials: WhatIfRuns, outputs: Iterable[str]) -> list[Repair]:
    """The least deadline of each of those outputs that mends alone; where none does, of all that have to be relaxed
    together, each the least once those before it in the file are. Empty: no relaxing helps."""
    case = trials.case
    now = {output.name: output.deadline_ns for output in case.query.outputs}
    asked = list(outputs)
    most = {name: now[name] + (LATEST - 1) * (now[name] // step_of(now[name])) * step_of(now[name]) for name in asked}
    if len(asked) > 1 and not trials.holds(_due(case, most), "every deadline far away"):
        return []
    repairs = [mend for name in asked if (mend := _single(trials, now, name)) is not None]
    if not repairs and len(asked) > 1:
        repairs = [_together(trials, now, asked, most)]
    return repairs


def _single(trials: WhatIfRuns, now: Mapping[str, int], name: str) -> Repair | None:
    """One output's deadline. None: no deadline helps."""
    step = step_of(now[name])
    steps = now[name] // step
    found = least(partial(_holds, trials, now, name, step), steps, [2 * steps, LATEST * steps])
    return _relaxed(trials.case, now, {name: found.value * step + now[name] % step}, found.settled) if found else None


def _together(trials: WhatIfRuns, now: Mapping[str, int], names: list[str], most: Mapping[str, int]) -> Repair:
    """Those outputs' deadlines, that hold at `most`, one after the other made as short as the others allow."""
    due, settled = dict(most), True
    for name in names:
        step = step_of(now[name])
        holds = partial(_holds, trials, due, name, step)
        if holds(now[name] // step):
            due[name] = now[name]
            continue
        found = first(holds, now[name] // step, most[name] // step)
        due[name] = found.value * step + now[name] % step
        settled &= found.settled
    return _relaxed(trials.case, now, due, settled)


def _holds(trials: WhatIfRuns, due: Mapping[str, int], name: str, step: int, steps: int) -> bool:
    """With those deadlines, and one of so many steps."""
    later = {**due, name: steps * step + due[name] % step}
    changed = {one.name: later[one.name] for one in trials.case.query.outputs if later[one.name] != one.deadline_ns}
    told = ", ".join(f"{one} {show_ns(due_ns)}" for one, due_ns in changed.items())
    return trials.holds(_due(trials.case, later), f"deadline of {told}")


def _relaxed(case: Case, now: Mapping[str, int], due: Mapping[str, int], settled: bool) -> Repair:
    changed = {name: due_ns for name, due_ns in due.items() if due_ns != now[name]}
    told = ", ".join(f"{name} {show_ns(due_ns)} instead of {show_ns(now[name])}" for name, due_ns in changed.items())
    ratios = tuple(Fraction(due_ns, now[name]) for name, due_ns in changed.items())
    changes = tuple(f"outputs.{name}.deadline={exact(due_ns)}" for name, due_ns in changed.items())
    return Repair("deadline", f"relax the deadline: {told}", _due(case, due), ratios, changes, settled=settled)


def _due(case: Case, due_ns: Mapping[str, int]) -> Case:
    outputs = tuple(replace(one, deadline_ns=due_ns.get(one.name, one.deadline_ns)) for one in case.query.outputs)
    return replace(case, query=replace(case.query, outputs=outputs))


def shedding(trials: WhatIfRuns, name: str) -> Repair | None:
    """The largest share of a source's input that holds. None: none does."""
    case = trials.case
    before = next(source for source in case.query.sources if source.name == name)

    def changed(index: int) -> Case:
        return _source(case, replace(before, arrival=shed.thinned(before.arrival, shed.share(before.arrival, index))))

    def holds(index: int) -> bool:
        rho = shed.share(before.arrival, index)
        return trials.holds(changed(index), f"{rho} of the tuples of {name}")

    found = least(holds, 0, [shed.half(before.arrival), shed.last(before.arrival)])
    if found is None:
        return None
    index = found.value
    rho, after = shed.share(before.arrival, index), shed.thinned(before.arrival, shed.share(before.arrival, index))
    kept = f"every {_nth(rho.denominator)}" if rho.numerator == 1 else f"{rho.numerator} of every {rho.denominator}"
    text = f"shed input of {name}: keep {kept} tuple{'s' if rho.numerator > 1 else ''} (rho {float(rho):.3g})"
    was, now = before.arrival.written, after.written
    if isinstance(was, BurstArrival) and isinstance(now, BurstArrival):
        text += f": {_bursts(now)} instead of {_bursts(was)}"
    changes = shed.what_if(f"sources.{name}", before.arrival, after)
    return Repair("input", text, changed(index), (1 / rho,), changes, settled=found.settled)


def _bursts(arrival: BurstArrival) -> str:
    return f"{arrival.burst} every {show_ns(arrival.period_ns)}"


def _nth(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in (11, 12, 13) else 0, "th")
    return f"{number}{ending}"


def _source(case: Case, changed: Source) -> Case:
    sources = tuple(changed if source.name == changed.name else source for source in case.query.sources)
    return replace(case, query=replace(case.query, sources=sources))


def age(trials: WhatIfRuns, name: str) -> Repair | None:
    """The largest `max_age` of a source that holds. None: none does, however small."""
    case = trials.case
    before = next(source for source in case.query.sources if source.name == name)
    step = min(step_of(before.max_age_ns), max(1, before.max_age_ns - 1))
    steps = (before.max_age_ns - 1) // step

    def changed(index: int) -> Case:
        return _source(case, replace(before, max_age_ns=max(1, before.max_age_ns - index * step)))

    def holds(index: int) -> bool:
        told = show_ns(max(1, before.max_age_ns - index * step))
        return trials.holds(changed(index), f"tuples of {name} at most {told} old")

    if not steps or (found := least(holds, 0, [steps // 2, steps])) is None:
        return None
    left_ns = max(1, before.max_age_ns - found.value * step)
    text = f"admit only tuples of {name} that are at most {show_ns(left_ns)} old (max_age), instead of "
    text += show_ns(before.max_age_ns)
    ratio = Fraction(before.max_age_ns, left_ns)
    changes = (f"sources.{name}.max_age={exact(left_ns)}",)
    return Repair("age", text, changed(found.value), (ratio,), changes, settled=found.settled)
