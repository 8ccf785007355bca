"""Scheduling policies: each is a combination of five small parts, chosen by name.

Begin at policy_parts.py (the parts) and edf.py (the smallest policy). A new policy is a module here, a line in
`MODULES`, and a name in protos/policies.py, which has the names that a plan may have. A module is loaded when a plan
names its policy, so a node has only those of its plans.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module

from node_agent.core.plan import Parameters
from node_agent.core.policies.batch_formers import Burst
from node_agent.core.policies.policy_parts import Policy
from node_agent.problems import UnusableValueError
from protos.policies import NAMES, refused

MODULES = {
    "edf": "edf",
    "fifo": "fifo",
    "slack": "slack",
    "adaptive": "adaptive",
    "edf-e2e": "papers.edf_e2e",
    "edf-op": "papers.edf_op",
    "spt": "papers.spt",
    "rr": "papers.rr",
    "muf": "papers.muf",
    "taat": "papers.taat",
    "bts": "papers.bts",
    "bts1": "papers.bts",
    "ats": "papers.ats",
    "ats1": "papers.ats",
    "qed": "papers.qed",
    "pqed": "papers.pqed",
}  # in these, under its name in capitals


class _Installed(Mapping[str, Policy]):
    """All policies by name."""

    def __getitem__(self, name: str) -> Policy:
        found: Policy = getattr(import_module(f"{__name__}.{MODULES[name]}"), name.upper().replace("-", "_"))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


POLICIES: Mapping[str, Policy] = _Installed()


def policy(name: str, largest_batch: int = 1, parameters: Parameters | None = None) -> Policy:
    """The policy of that name; largest_batch, parameters: as `configured` has them.

    Raises ValueError: no such policy (with the names that exist), or one that cannot run batches.
    """
    if name not in MODULES:
        raise UnusableValueError(
            "unknown_policy",
            refused(name) or f"unknown policy {name!r}: choose one of {', '.join(sorted(NAMES))}",
            subject=name,
        )
    return configured(POLICIES[name], largest_batch, parameters)


def configured(found: Policy, largest_batch: int = 1, parameters: Parameters | None = None) -> Policy:
    """That policy with these parameters. largest_batch: jobs that may run as one instance; 1: tuple by tuple, 0: no
    limit; a policy that forms its own batches has 1. Raises ValueError: it cannot run batches."""
    if parameters is not None and parameters != found.parameters:
        found = replace(found, parameters=parameters)
    if largest_batch == 1:
        return found
    return replace(found, batch=Burst(largest_batch))


__all__ = ["POLICIES", "Policy", "configured", "policy"]
