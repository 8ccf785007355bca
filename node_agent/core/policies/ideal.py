"""[A] 4's Ideal: the earliest deadline first, what cannot be met is shed, and decisions cost nothing.

Virtual time charges no overhead under it. A live node cannot do that, so an agent refuses it.
"""

from node_agent.core.policies.edf import sub_deadline
from node_agent.core.policies.overdue import overdue
from node_agent.core.policies.parts import Policy

IDEAL = Policy(name="ideal", offset=sub_deadline, dropper=overdue, measures=True, virtual=True)
