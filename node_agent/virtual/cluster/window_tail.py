"""How long after an admission windows may have to do with it: a trial ends only when that time has passed."""

from collections.abc import Iterable
from dataclasses import replace

from node_agent.core import plan as core

MOST_BEATS = 100_000  # of one source in that time


def tail_ns(plans: Iterable[core.Plan], latency_ns: int | None, oldest_ns: int) -> int:
    """How long after an admission windows may have to do with it, in all plans: until the longest of them has ended and
    is of no use any more, what is missing was given up and every join has, over every link one after the other.

    latency_ns: of every link; None: the plans'. oldest_ns: a tuple's greatest age.
    """
    windows = joins = beats = ages = links = 0
    for plan in plans:
        for operator in plan.operators:
            if (window := operator.window) is not None:
                length_ns = 0 if window.kind == "count" else window.length + window.hop
                windows = max(windows, length_ns + window.lateness_ns + window.useful_ns + window.wait_ns)
            elif operator.join:  # as `parts.Join` waits
                joins = max([joins, *(2 * stream.last_ns + 1_000_000_000 for stream in plan.streams)])
        beats = max([beats, *(source.beat_ns for source in plan.sources)])
        ages = max([ages, *(source.max_age_ns for source in plan.sources)])
        links += sum(peer.latency_ns if latency_ns is None else latency_ns for peer in plan.peers)
    return windows + joins + 2 * beats + max(ages, oldest_ns) + links


def seldom_ns(tail_ns: int) -> int:
    """How far timers are apart at least where that time is very long, so that a trial ends all the same."""
    return tail_ns // MOST_BEATS


def thinned(plan: core.Plan, least_ns: int) -> core.Plan:
    """The plan with heartbeats that far apart at least."""
    sources = (replace(each, beat_ns=max(each.beat_ns, least_ns) if each.beat_ns else 0) for each in plan.sources)
    return replace(plan, sources=tuple(sources))


__all__ = ["MOST_BEATS", "seldom_ns", "tail_ns", "thinned"]
