"""A link's worst delay: latency, and where it has a bandwidth the time to send and to wait for what is sent before."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.calculus.curves import Curve, TooLongError
from coordinator.calculus.demand import Task, UnboundedError, load
from coordinator.calculus.flow import total
from coordinator.calculus.selectivity import ONE
from coordinator.guarantee.system import Link
from coordinator.spec.runtime_charges import RuntimeOverhead

NS_BITS = 8 * 10**9


def sending_ns(link: Link, charges: RuntimeOverhead) -> int:
    """Of one tuple of the largest size."""
    return -(-charges.tuple_bytes * NS_BITS // link.bandwidth_bps) if link.bandwidth_bps else 0


def delay_ns(link: Link, curves: Sequence[Curve], charges: RuntimeOverhead) -> int:
    """First in, first out: max over t of (all that may come within t, sent one after the other) - t, and the latency.

    Raises UnboundedError where more is sent than the bandwidth carries.
    """
    each_ns = sending_ns(link, charges)
    if not each_ns or not curves:
        return link.latency_ns
    try:
        steps = load([Task("link", total(curves), 1, ((each_ns, ONE),))]).steps[0]
    except UnboundedError as error:
        raise UnboundedError("overloaded", str(error).replace("its work takes", "what is sent takes")) from error
    except TooLongError as error:
        raise UnboundedError("busy_period_too_long", str(error)) from error
    queueing_ns = max(work - at for at, work in zip(steps.times, steps.works, strict=True))
    return link.latency_ns + int(-(-queueing_ns // 1))
