"""The policies that only the papers' reproductions have, handed to the virtual cluster as those do."""

from infra.papers.policies import IDEAL, PQED_PRINTED
from node_agent.core.plan import Plan
from node_agent.core.policies import Policy, configured
from node_agent.runtime.deployments.lifecycle import Policies

OWN = {each.name: each for each in (IDEAL, PQED_PRINTED)}


def handed(own: Policy) -> Policies:
    """Every node's plans run under it, with the parameters that they have."""

    def named(plan: Plan) -> Policy:
        return configured(own, parameters=plan.parameters)

    return named
