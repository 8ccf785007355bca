"""Relaxations of declared numbers as of [Q] 4.4: k (speed) and rho (input); D, the deadlines, is one of `numbers`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction

from coordinator.solve.repair import shed
from coordinator.solve.repair.case_parts import NODES, SOURCES, host
from coordinator.solve.repair.remedy import Remedy
from coordinator.solve.repair.repair import Change, Edit
from coordinator.solve.repair.what_if_runs import Case
from coordinator.spec.cluster import Node
from coordinator.spec.query import Source
from coordinator.units import exact, show_ns
from protos.plan.arrivals import BurstArrival
from protos.plan.charges import NodeCharges

FASTEST = 100  # times as fast, at most
HUNDRED = 100


def speeds(case: Case) -> list[Remedy]:
    """Of all nodes together, by one factor, and of each; in hundredths, to 1 %. A node that plays a slower one becomes
    faster by emulating less."""
    hosts = list(NODES.of(case))
    together = [_speed(case, hosts)] if len(hosts) > 1 else []
    return together + [_speed(case, [name]) for name in hosts]


def _speed(case: Case, hosts: Collection[str]) -> Remedy:
    who = f"node {next(iter(hosts))}" if len(hosts) == 1 else "all nodes"

    def change(it: Case, hundredths: int) -> Change:
        factor = Fraction(hundredths, HUNDRED)
        faster = _faster(it, hosts, hundredths)
        before, after = NODES.of(it), NODES.of(faster)
        facts = [_speed_told(before[name][0], after[name][0]) for name in sorted(hosts)]
        text = f"make {who} {float(factor):g} times as fast" + (f": {facts[0]}" if len(hosts) == 1 else "")
        edits = [edit for name in sorted(hosts) for edit in _speed_edits(name, after[name][0])]
        return Change("speed", text, faster, tuple(edits), (factor,) * len(hosts))

    nodes = [node for node in case.cluster.nodes.values() if host(node) in hosts]
    limit = min(FASTEST * HUNDRED, *(int(1000 * HUNDRED / node.speed) for node in nodes))
    limits = (min(2 * HUNDRED, limit), limit)
    return Remedy(f"'speed' of {who}", change, HUNDRED, limits, lambda hundredths: hundredths // HUNDRED)


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


def _speed_edits(name: str, after: Node) -> list[Edit]:
    edits = [Edit("nodes", name, "speed", repr(float(after.speed)))]
    if after.emulate_cost_ns:
        edits.append(Edit("nodes", name, "emulate.cost_per_tuple", exact(after.emulate_cost_ns)))
    return edits


def charges(case: Case) -> list[Remedy]:
    """A share of what the runtime was measured to cost on a node, in percent."""
    return [_charged(name, nodes[0].charges) for name, nodes in NODES.of(case).items() if nodes[0].charges is not None]


def _charged(name: str, before: NodeCharges) -> Remedy:
    def change(case: Case, percent: int) -> Change:
        decision_ns, drain_ns, side_ns = (
            max(1, ns * percent // HUNDRED) for ns in (before.decision_ns, before.drain_ns, before.side_ns)
        )
        after = NodeCharges(decision_ns=decision_ns, drain_ns=drain_ns, side_ns=side_ns)
        written = f"{{decision: {exact(decision_ns)}, drain: {exact(drain_ns)}, side: {exact(side_ns)}}}"
        text = f"make the runtime on node {name} cost {percent} % of what it does (charges)"
        changed = NODES.changed(case, name, lambda one: replace(one, charges=after))
        return Change("cost", text, changed, (Edit("nodes", name, "charges", written),), (Fraction(HUNDRED, percent),))

    return Remedy(f"less 'charges' of {name}", change, HUNDRED, (HUNDRED // 2, 1))


def inputs(case: Case) -> list[Remedy]:
    """The largest share of the input of each source that is not made at ticks, whose period is a number of its own."""
    return [_input(source) for source in case.query.sources if source.pull is None or not source.pull.every_ns]


def _input(source: Source) -> Remedy:
    name, before = source.name, source.arrival

    def change(case: Case, index: int) -> Change:
        rho = shed.share(before, index)
        after = shed.thinned(before, rho)
        passing = (
            f"every {_nth(rho.denominator)}" if rho.numerator == 1 else f"{rho.numerator} of every {rho.denominator}"
        )
        text = f"shed input of {name}: keep {passing} tuple{'s' if rho.numerator > 1 else ''} (rho {float(rho):.3g})"
        was, now = before.written, after.written
        if isinstance(was, BurstArrival) and isinstance(now, BurstArrival):
            text += f": {_bursts(now)} instead of {_bursts(was)}"
        changed = SOURCES.changed(case, name, lambda one: replace(one, arrival=after))
        return Change("input", text, changed, shed.edits(name, before, after), (1 / rho,))

    limits = tuple(dict.fromkeys((max(1, shed.half(before)), shed.last(before))))
    return Remedy(f"input of {name}", change, 0, limits)


def _bursts(arrival: BurstArrival) -> str:
    return f"{arrival.burst} every {show_ns(arrival.period_ns)}"


def _nth(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in (11, 12, 13) else 0, "th")
    return f"{number}{ending}"


__all__ = ["charges", "inputs", "speeds"]
