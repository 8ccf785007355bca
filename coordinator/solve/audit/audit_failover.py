"""The audit's part on fail-over plans: each is of the survivors, moves nothing that need not move, and is sound."""

from __future__ import annotations

from collections.abc import Callable

from protos.plan_document import Plan, Survivor


def failover(plan: Plan, audit: Callable[[Plan], list[str]]) -> list[str]:
    """Violations of `failover`, where the plan has one; `audit`: of a whole plan."""
    if plan.failover is None:
        return []
    hosts = {name: facts.host for name, facts in plan.cluster.nodes.items()}
    if set(plan.failover) != set(hosts.values()):
        return ["the fail-over plans are not those of the cluster's nodes"]
    found = []
    for host, entry in plan.failover.items():
        found += [f"without node {host}: {text}" for text in _entry(plan, hosts, host, entry)]
        if entry.plan is not None:
            found += [f"without node {host}: {text}" for text in audit(entry.plan)]
    return found


def _entry(plan: Plan, hosts: dict[str, str], host: str, entry: Survivor) -> list[str]:
    after, outputs = entry.plan, plan.graph.outputs
    left = set() if after is None else set(after.graph.outputs)
    found = []
    if set(entry.lost_outputs) != set(outputs) - left or not left <= set(outputs):
        found.append("the lost outputs are not those that its plan does not have")
    if after is None:
        return found
    if set(after.cluster.nodes) != {name for name, one in hosts.items() if one != host}:
        found.append("its plan is not of the other nodes")
    moved = {}
    for name, at in after.placement.items():
        before = plan.placement.get(name)
        if before is None or (hosts[before] != host and before != at):
            found.append(f"operator {name} moves from {before} to {at}, though nothing happened to it")
        elif before != at:
            moved[name] = at
    if moved != entry.moved:
        found.append("what it says has moved is not what has moved")
    if after.failover is not None:
        found.append("its plan has fail-over plans of its own")
    return found
