"""First in, first out by the instance's creation time (its release on this node), as [P] 6 compares with."""

from node_agent.core.plan import Unit
from node_agent.core.policies.policy_parts import Policy


def nothing(unit: Unit) -> int:
    """The key is the release itself."""
    return 0


FIFO = Policy(name="fifo", offset=nothing)
