"""Earliest deadline first on sub-deadlines ([P] 5.4, equation 12): D = release + d_T, never interrupted."""

from node_agent.core.plan import Unit
from node_agent.core.policies.policy_parts import Policy


def sub_deadline(unit: Unit) -> int:
    """d_T: what is added to the release."""
    return unit.sub_deadline_ns


EDF = Policy(name="edf", offset=sub_deadline, guaranteed=True)
