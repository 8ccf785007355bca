"""Dropping what cannot be met any more: [A] 3.3, equations (4) to (7)."""

from node_agent.core.job import Job

YIELD = 4  # the part of its room that what is infinitely dear gives up


def overdue(job: Job, at_ns: int, ahead: int) -> bool:
    """Whether the job would end after its own deadline: C_sche + (ahead + 1) C'_exec > dl - now.

    The deadline is the end-to-end one, on the lower bound of the tuple's age: a late sub-deadline is not yet a miss.
    Of the outputs that the unit leads to it is the last one that is due: what can be met for one query runs. Costs are
    measured.
    """
    unit, lineage = job.unit, job.lineage
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
    unit, lineage = batch[0].unit, batch[0].lineage
    meter = unit.meter
    due_ns: int = lineage[5] + unit.useful_ns
    ends: int = (due_ns - at_ns - meter.node.decision_ns) // meter.cost_ns
    return len(batch) - max(0, min(ends, len(batch)))


def giving_way(batch: list[Job], at_ns: int) -> int:
    """The oldest tuples that would be late where a batch ends at once: j go, with the least j such that the oldest of
    the others is in time.

        now + C_sche + (n - j) C'_exec > dl_j - g      g = M / 4 (1 - C_mean / C'_exec), at least 0

    Each has its own deadline, the last one that is due of the outputs that the unit leads to. All results of an
    instance are there when it ends, so all n - j tuples are in the way of the oldest one, not only those before it.

    g is how much room what is dear must have left, so that in lasting overload cheaper tuples are met in its place:
    C_mean is what the tuples that ran lately cost on this node. M is the least sub-deadline of the node, and no more
    than what the unit's own one leaves beside its cost, so that nothing that comes in time is shed on an idle node.
    """
    unit = batch[0].unit
    meter = unit.meter
    node, cost_ns = meter.node, meter.cost_ns
    room_ns = min(node.least_ns, meter.sub_deadline_ns - cost_ns) // YIELD
    reserve_ns = max(0, room_ns) * max(0, cost_ns - node.cost_ns) // cost_ns
    end_ns = at_ns + node.decision_ns + len(batch) * cost_ns + reserve_ns - unit.useful_ns
    first = 0
    while first < len(batch) and end_ns > batch[first].lineage[5]:
        first += 1
        end_ns -= cost_ns
    return first
