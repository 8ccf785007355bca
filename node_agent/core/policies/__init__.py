"""Scheduling policies: each is a combination of five small parts, chosen by name."""

from dataclasses import replace

from node_agent.core.plan import Parameters
from node_agent.core.policies.adaptive import ADAPTIVE
from node_agent.core.policies.ats import ATS, ATS1
from node_agent.core.policies.batch import at_most, whole_burst
from node_agent.core.policies.bts import BTS, BTS1
from node_agent.core.policies.edf import EDF
from node_agent.core.policies.edf_e2e import EDF_E2E
from node_agent.core.policies.edf_op import EDF_OP
from node_agent.core.policies.fifo import FIFO
from node_agent.core.policies.ideal import IDEAL
from node_agent.core.policies.muf import MUF
from node_agent.core.policies.parts import Policy
from node_agent.core.policies.pqed import PQED
from node_agent.core.policies.pqed_printed import PQED_PRINTED
from node_agent.core.policies.qed import QED
from node_agent.core.policies.rr import RR
from node_agent.core.policies.slack import SLACK
from node_agent.core.policies.spt import SPT
from node_agent.core.policies.taat import TAAT

POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        EDF, EDF_E2E, EDF_OP, FIFO, SPT, RR, MUF, TAAT, BTS, BTS1, ATS, ATS1, ADAPTIVE, QED, PQED, PQED_PRINTED, SLACK,
        IDEAL,
    )
}  # fmt: skip


def policy(name: str, largest_batch: int = 1, parameters: Parameters | None = None) -> Policy:
    """The policy of that name. largest_batch: jobs that may run as one instance; 1: tuple by tuple, 0: no limit; a
    policy that forms its own batches has 1.

    Raises ValueError: no such policy (with the names that exist), or one that cannot run batches.
    """
    if name not in POLICIES:
        raise ValueError(f"unknown policy {name!r}: choose one of {', '.join(sorted(POLICIES))}")
    found = POLICIES[name]
    if parameters is not None and parameters != found.parameters:
        found = replace(found, parameters=parameters)
    if largest_batch == 1:
        return found
    return replace(found, batch=at_most(largest_batch) if largest_batch else whole_burst)


__all__ = ["POLICIES", "Policy", "policy"]
