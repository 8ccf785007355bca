"""Which policy a node runs: what a user wrote, what the planner takes where nothing is written, and what a plan says.

A node that names a policy keeps it. The others run `edf` where that guarantees an output, since no other policy has a
bound; where it guarantees none they run `slack`, which came nearest to what is possible (`simulate --regret`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from coordinator.guarantee.analysis import COVERED
from coordinator.spec.cluster import Cluster
from coordinator.units import show_ns
from protos.plan.cluster import Node
from protos.plan_document import Plan
from protos.policies import Chosen, percent

SOUND, BEST = Chosen("edf"), Chosen("slack")


def covered(policy: Chosen) -> bool:
    """Whether the test covers it: its order, and a limit to its batches."""
    return policy.name in COVERED and policy.largest_batch >= 1


def everywhere(cluster: Cluster, policy: Chosen | None) -> Cluster:
    """With that policy on every node; None: as it is."""
    if policy is None:
        return cluster
    return replace(cluster, nodes={name: replace(node, policy=policy) for name, node in cluster.nodes.items()})


def assumed(cluster: Cluster) -> Cluster:
    """As a search for guarantees takes it: nodes whose policy has no bound run `edf`."""
    nodes = {
        name: node if node.policy is not None and covered(node.policy) else replace(node, policy=SOUND)
        for name, node in cluster.nodes.items()
    }
    return replace(cluster, nodes=nodes)


def of_node(facts: Node) -> Chosen:
    """What a node of a plan runs."""
    return Chosen(facts.policy, **facts.policy_parameters)


def given(facts: Node) -> Chosen | None:
    """What the user named for a node of a plan; None: the planner chose."""
    return None if facts.policy_by_default else of_node(facts)


def why_best(nodes: Sequence[str]) -> str:
    """Why nodes that name no policy do not run the one with bounds."""
    many = len(nodes) > 1
    where = f"{', '.join(nodes)}, which name" if many else f"{nodes[0]}, which names"
    return (
        f"no output is guaranteed: policy {BEST.name} on {where} none; it promises nothing, orders by end-to-end "
        "deadlines and sheds what can meet none of its outputs"
    )


def sentences(plan: Plan) -> list[str]:
    """What there is to say of a plan's policies: why the planner took one, and parameters, with those that follow from
    the deadlines."""
    lines = [plan.policy_why] if plan.policy_why else []
    for node, each in plan.cluster.nodes.items():
        if not plan.tasks.get(node):
            continue
        told = _parameters(of_node(each), [task.sub_deadline_ns for task in plan.tasks[node]])
        if told:
            lines.append(f"node {node} runs {each.policy}: {', '.join(told)}")
    return lines


def _parameters(policy: Chosen, sub_deadlines_ns: list[int]) -> list[str]:
    told = []
    phi_ns = policy.phi(sub_deadlines_ns)
    if phi_ns:
        told.append(f"phi {show_ns(phi_ns)} ({_phi_by(policy, phi_ns)})")
        told.append(f"k {policy.first_k or 1}")
    if policy.share_ppm:
        told.append(f"share {percent(policy.share_ppm)}")
    if policy.largest_batch != 1:
        told.append(f"batches of {policy.largest_batch or 'a whole burst'}")
    return told


def _phi_by(policy: Chosen, phi_ns: int) -> str:
    """Where a node's phi comes from."""
    if policy.hop_phi_ns and phi_ns == policy.hop_phi_ns != policy.phi_ns:
        return "the error bound of window hops, the larger one"
    if policy.phi_ns:
        return "given"
    return "a tenth of the least sub-deadline there, 100 ms at most"
