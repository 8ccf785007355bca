"""Basic batch scheduling ([A] algorithms 1 and 3): k basic batches of the queue whose head is most urgent, k fixed."""

from node_agent.core.model import Job
from node_agent.core.policies.edf import sub_deadline
from node_agent.core.policies.fixed_batches import Fixed
from node_agent.core.policies.policy_parts import Asked, Policy


def statistics(batch: list[Job], at_ns: int) -> int:
    """As printed: S(Q) tasks of a batch can end by its deadline dl, the head's; the oldest of the others are shed.
    Where a unit leads to several outputs, dl is that of the last one that is due.

        S(Q) = floor((dl - now - C_sche) / C'_exec)

    All tuples of a basic batch have the same deadline ([A] definition 6), so where the head is overdue the whole batch
    goes, also what could be met: that is what `overdue` mends.
    """
    head = batch[0]
    unit, youngest_ns = head.unit, head.lineage[5]
    meter = unit.meter
    assert meter is not None  # the policy measures
    due_ns = youngest_ns + unit.useful_ns
    ends = (due_ns - at_ns - meter.node.decision.of()) // meter.expected_ns()
    return len(batch) - max(0, min(ends, len(batch)))


BTS = Policy(name="bts", offset=sub_deadline, tuner=Fixed, asks=Asked.COSTS)
BTS1 = Policy(name="bts1", offset=sub_deadline, tuner=Fixed, sifter=statistics, asks=Asked.COSTS)
