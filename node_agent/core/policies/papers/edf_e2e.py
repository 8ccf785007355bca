"""Earliest end-to-end deadline first: origin + the least end-to-end deadline that the unit leads to.

Needs no sub-deadlines. Origins may arrive out of order, so a unit's queue is a heap. The early end of the origin's
interval counts: a tuple that may be older is treated as older.
"""

from node_agent.core.lineage import Lineage
from node_agent.core.plan import Unit
from node_agent.core.policies.policy_parts import Policy


def end_to_end_deadline(unit: Unit, lineage: Lineage) -> int:
    """The instant at which the first of the unit's outputs is due."""
    return lineage[4] + unit.deadline_ns


EDF_E2E = Policy(name="edf-e2e", key=end_to_end_deadline)
