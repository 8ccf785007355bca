"""[A] 4's Ideal: the earliest deadline first, what cannot be met is shed, and decisions cost nothing.

It charges no time for decisions. A live node cannot do that, so no agent has it.
"""

from node_agent.core.model import Job
from node_agent.core.policies.edf import sub_deadline
from node_agent.core.policies.policy_parts import Dropper, Policy
from protos.records import POLICY_LATE


class Overdue(Dropper):
    """Sheds a job that would end after its own deadline: C_sche + (ahead + 1) C'_exec > dl - now.

    The deadline is the end-to-end one, on the lower bound of the tuple's age: a late sub-deadline is not yet a miss.
    Of the outputs that the unit leads to it is the last one that is due: what can be met for one query runs. Costs are
    measured.
    """

    __slots__ = ()

    def judge(self, job: Job, at_ns: int, ahead: int) -> int:
        """By the end of its own instance."""
        unit, lineage = job.unit, job.lineage
        meter = unit.meter
        assert meter is not None  # the policy measures
        end_ns = at_ns + meter.node.decision_ns + (ahead + 1) * meter.cost_ns
        due_ns = lineage[5] + unit.useful_ns
        return POLICY_LATE if end_ns > due_ns else 0


IDEAL = Policy(name="ideal", offset=sub_deadline, dropper=Overdue(), measures=True)
