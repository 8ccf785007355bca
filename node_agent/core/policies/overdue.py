"""Dropping what cannot be met any more: [A] 3.3, equations (4) to (7)."""

from node_agent.core.policies.parts import Job


def overdue(job: Job, at_ns: int, ahead: int) -> bool:
    """Whether the job would end after its deadline: C_sche + (ahead + 1) C'_exec > dl - now.

    [A] asks how many tasks S(Q) of a batch can be finished by the batch's one deadline, and drops the oldest of the
    others. Here every tuple has its own deadline, so those are shed that cannot meet it; where all deadlines are equal
    the number kept is the printed S(Q). The deadline is the end-to-end one, on the lower bound of the tuple's age: a
    late sub-deadline is not yet a miss. Costs are measured.
    """
    unit, lineage = job[3], job[4]
    meter = unit.meter
    end_ns: int = at_ns + meter.node.decision_ns + (ahead + 1) * meter.cost_ns
    due_ns: int = lineage[5] + unit.deadline_ns
    return end_ns > due_ns
