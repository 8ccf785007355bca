"""The policies that the papers are compared by: all that agents have, and two that no agent should run.

`ideal` decides in no time, which a live node cannot do. `pqed-printed` is unsound: a set that the demand test admits
can miss. The virtual cluster takes them as it takes any other (`simulate(..., policies=named)`).
"""

from collections.abc import Mapping

from infra.papers.policies.ideal import IDEAL
from infra.papers.policies.pqed_printed import PQED_PRINTED
from node_agent.core.plan import Parameters
from node_agent.core.policies import POLICIES as INSTALLED
from node_agent.core.policies import Policy, configured

POLICIES: Mapping[str, Policy] = {**INSTALLED, IDEAL.name: IDEAL, PQED_PRINTED.name: PQED_PRINTED}


def policy(name: str, largest_batch: int = 1, parameters: Parameters | None = None) -> Policy:
    """As `node_agent.core.policies.policy`, of these. Raises KeyError."""
    return configured(POLICIES[name], largest_batch, parameters)


__all__ = ["IDEAL", "POLICIES", "PQED_PRINTED", "policy"]
