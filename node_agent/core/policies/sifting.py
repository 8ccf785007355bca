"""Dropping what cannot be met any more, batch by batch, and what is dear before what is cheap."""

from node_agent.core.jobs import Job

YIELD = 4  # the part of its room that what is infinitely dear gives up


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
    assert meter is not None  # the policy measures
    node, cost_ns = meter.node, meter.cost_ns
    room_ns = min(node.least_ns, meter.sub_deadline_ns - cost_ns) // YIELD
    reserve_ns = max(0, room_ns) * max(0, cost_ns - node.cost_ns) // cost_ns
    end_ns = at_ns + node.decision_ns + len(batch) * cost_ns + reserve_ns - unit.useful_ns
    first = 0
    while first < len(batch) and end_ns > batch[first].lineage[5]:
        first += 1
        end_ns -= cost_ns
    return first
