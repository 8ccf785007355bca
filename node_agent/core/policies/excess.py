"""What waits beyond what can be met: how many tuples of each unit are given up, the dearest first.

Moore and Hodgson's rule, on queues in place of tuples. Queues are gone through by when their last tuple is due; as soon
as all work up to there does not fit, tuples of the unit that asks most are given up until it does. Where costs do not
vary that leaves as many results as possible, of what waits. It takes O(units log units), so it is done once for several
tuples: until then each unit gives up as many as it was found to have too many, unless since then more work is over than
time has passed. What comes meanwhile makes no room.

What has nearly the least deadline of its node gives up nothing for what has more time.
"""

from heapq import heappop, heappush

from node_agent.core.meters import UnitMeter
from node_agent.core.model import Job
from node_agent.core.policies.hopeless import hopeless

FOR = 8  # tuples that one look is for, at least; and units for each of them
PART = 4

Waiting = tuple[int, int, int, UnitMeter]
"""Of a queue: by when its last tuple is due, the number of its unit, how many there are."""


def gives_up(job: Job, at_ns: int) -> bool:
    """Whether that tuple, a head that was just chosen, is one too many of its unit. It is not, where the one behind it
    is hopeless anyway."""
    meter = job.unit.meter
    assert meter is not None  # the policy measures
    node = meter.node
    if node.looks <= 0 or (meter.excess > 0 and at_ns < node.looked_ns + node.done_ns):
        look(job, at_ns)
    node.looks -= 1
    if meter.excess <= 0:
        return False
    meter.excess -= 1
    queue = job.unit.queue
    return not (queue and hopeless(queue[0], at_ns, 0))


def look(head: Job, at_ns: int) -> None:
    """Counts the excess of each unit anew. head: of the plan whose units are looked at; it is in no queue any more."""
    units = head.unit.loaded.units
    waiting: list[Waiting] = []
    for unit in units:
        meter = unit.meter
        assert meter is not None
        meter.excess = 0
        queue, extra = unit.queue, unit is head.unit
        if (queue or extra) and meter.ends:
            youngest_ns = max(queue[-1].lineage[5] if queue else 0, head.lineage[5] if extra else 0)
            due_ns = youngest_ns + meter.due_ns
            waiting.append((due_ns, meter.number, len(queue) + extra, meter))
    waiting.sort()
    _divide(at_ns, [each for each in waiting if each[3].urgent], urgent=True)
    _divide(at_ns, waiting, urgent=False)
    head_meter = head.unit.meter
    assert head_meter is not None
    node = head_meter.node
    node.looks, node.looked_ns, node.done_ns = max(FOR, len(units) // PART), at_ns, 0


def _divide(at_ns: int, waiting: list[Waiting], urgent: bool) -> None:
    """urgent: which units give up some."""
    ends_ns = at_ns
    dearest: list[tuple[int, int, int, UnitMeter]] = []
    for due_ns, _, count, meter in waiting:
        left = count - meter.excess
        ends_ns += left * meter.work_ns
        if meter.yields and meter.urgent == urgent:
            heappush(dearest, (-meter.work_ns, meter.number, left, meter))
        while ends_ns > due_ns and dearest:
            _, _, left, most = heappop(dearest)
            gone = min(left, -(-(ends_ns - due_ns) // most.work_ns))
            most.excess += gone
            ends_ns -= gone * most.work_ns
            if gone < left:
                heappush(dearest, (-most.work_ns, most.number, left - gone, most))
