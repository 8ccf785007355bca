"""Dropping what cannot be met any more: [A] 3.3, equations (4) to (7)."""

from node_agent.core.policies.parts import Job


def overdue(job: Job, at_ns: int, ahead: int) -> bool:
    """Whether the job would end after its own deadline: C_sche + (ahead + 1) C'_exec > dl - now.

    The deadline is the end-to-end one, on the lower bound of the tuple's age: a late sub-deadline is not yet a miss.
    Of the outputs that the unit leads to it is the last one that is due: what can be met for one query runs. Costs are
    measured.
    """
    unit, lineage = job[3], job[4]
    meter = unit.meter
    end_ns: int = at_ns + meter.node.decision_ns + (ahead + 1) * meter.cost_ns
    due_ns: int = lineage[5] + unit.useful_ns
    return end_ns > due_ns


def statistics(batch: list[Job], at_ns: int) -> int:
    """As printed: S(Q) tasks of a batch can end by its deadline dl, the head's; the oldest of the others are shed.
    Where a unit leads to several outputs, dl is that of the last one that is due.

        S(Q) = floor((dl - now - C_sche) / C'_exec)

    All tuples of a basic batch have the same deadline ([A] definition 6), so where the head is overdue the whole batch
    goes, also what could be met: that is what `overdue` mends.
    """
    unit, lineage = batch[0][3], batch[0][4]
    meter = unit.meter
    due_ns: int = lineage[5] + unit.useful_ns
    ends: int = (due_ns - at_ns - meter.node.decision_ns) // meter.cost_ns
    return len(batch) - max(0, min(ends, len(batch)))
