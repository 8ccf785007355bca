"""Audit of capacity: memory of hosts, bandwidth of links, nodes that are forbidden."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from coordinator.solve.audit.audit_local import sends
from coordinator.spec.runtime_charges import on_wire
from protos.plan_document import Plan

TOLERANCE = 1 + Fraction(1, 10**6)


def room(plan: Plan, flow: Mapping[str, tuple[Fraction, Fraction]]) -> list[str]:
    """Violations; `flow`: tuples per burst and per ns of every stream."""
    return [*_barred(plan), *_memory(plan), *_bandwidth(plan, flow)]


def _barred(plan: Plan) -> list[str]:
    return [
        f"operator {name} is placed on {plan.placement[name]}, where it is forbidden"
        for name, operator in plan.graph.operators.items()
        if plan.placement[name] in operator.forbid_nodes
    ]


def _memory(plan: Plan) -> list[str]:
    """What operators keep on a host fits into what it declares."""
    nodes = plan.cluster.nodes
    used: dict[str, int] = {}
    for name, at in plan.placement.items():
        size = plan.graph.operators[name].memory_bytes
        used[_host(plan, at)] = used.get(_host(plan, at), 0) + size
    found = []
    for host, most in {_host(plan, name): facts.host_memory_bytes for name, facts in nodes.items()}.items():
        if most and used.get(host, 0) > most * TOLERANCE:
            found.append(f"node {host}: its operators keep {used[host]} bytes, its memory is {most}")
    return found


def _bandwidth(plan: Plan, flow: Mapping[str, tuple[Fraction, Fraction]]) -> list[str]:
    """What is sent from host to host on average fits into the bandwidth of their link, each way."""
    most = {}
    for link in plan.cluster.links:
        for one, other in (link.between, link.between[::-1]):
            if link.bandwidth_bps:
                most[_host(plan, one), _host(plan, other)] = link.bandwidth_bps
    size = plan.analysis.charges.tuple_bytes
    used: dict[tuple[str, str], Fraction] = {}
    for name, pairs in sends(plan).items():
        for one, other in pairs:
            hosts = _host(plan, one), _host(plan, other)
            if hosts in most and name in flow:
                most_bytes = on_wire(plan.graph.streams[name].max_bytes, size)
                used[hosts] = used.get(hosts, Fraction(0)) + flow[name][1] * 10**9 * 8 * most_bytes
    return [
        f"link {hosts[0]} to {hosts[1]}: {float(sent):.0f} bit/s are sent on {most[hosts]}"
        for hosts, sent in used.items()
        if sent > most[hosts] * TOLERANCE
    ]


def _host(plan: Plan, node: str) -> str:
    found = plan.cluster.nodes.get(node)
    return found.host if found else node
