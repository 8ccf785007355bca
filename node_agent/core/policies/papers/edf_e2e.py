"""Earliest end-to-end deadline first: origin + the least end-to-end deadline that the unit leads to.

Needs no sub-deadlines. Origins may arrive out of order, so a unit's queue is a heap. The early end of the origin's
interval counts: a tuple that may be older is treated as older.
"""

from node_agent.core.lineage import Lineage
from node_agent.core.model import Unit
from node_agent.core.policies.policy_parts import Key, Policy


class EndToEndDeadline(Key):
    """The instant at which the first of the unit's outputs is due."""

    __slots__ = ()

    def key_ns(self, unit: Unit, lineage: Lineage) -> int:
        """Origin and deadline."""
        origin_ns = lineage[4]
        return origin_ns + unit.deadline_ns


EDF_E2E = Policy(name="edf-e2e", key=EndToEndDeadline())
