"""Scheduling policies: each is a combination of five small parts, chosen by name."""

from dataclasses import replace

from node_agent.core.policies.batch import at_most, whole_burst
from node_agent.core.policies.edf import EDF
from node_agent.core.policies.edf_e2e import EDF_E2E
from node_agent.core.policies.edf_op import EDF_OP
from node_agent.core.policies.fifo import FIFO
from node_agent.core.policies.parts import Policy

POLICIES: dict[str, Policy] = {policy.name: policy for policy in (EDF, EDF_E2E, EDF_OP, FIFO)}


def policy(name: str, largest_batch: int = 1) -> Policy:
    """The policy of that name. largest_batch: jobs that may run as one instance; 1: tuple by tuple, 0: no limit.

    Raises ValueError: no such policy (with the names that exist), or one that cannot run batches.
    """
    if name not in POLICIES:
        raise ValueError(f"unknown policy {name!r}: choose one of {', '.join(sorted(POLICIES))}")
    if largest_batch == 1:
        return POLICIES[name]
    return replace(POLICIES[name], batch=at_most(largest_batch) if largest_batch else whole_burst)


__all__ = ["POLICIES", "Policy", "policy"]
