"""Admission control: what becomes of an admitted tuple of a source that is limited, policed, or shed when the node is
full, and of a job at a queue that has a limit.

`decide` says what follows, the engine does it, and `settle` is told how it ended.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from node_agent.core.job import Lineage
from node_agent.core.model import Route
from node_agent.core.shedding.memory_limit import DROP_TAIL, REFUSE
from node_agent.core.shedding.rate_limiter import PASS, SHED
from node_agent.core.shedding.source_admission import Displaced, Entry
from protos.records import POLICY_ARRIVALS, POLICY_MEMORY, POLICY_RATE


class Decision(NamedTuple):
    """policy: by which the tuple is shed; 0: it goes on. displaced: a tuple that goes for it, before all else.
    makes_room: the oldest tuples of its units go for it, and it is shed itself where there are none. counted:
    its source has a limit that knows of it, so `settle` is due."""

    policy: int = 0
    displaced: Displaced | None = None
    makes_room: bool = False
    counted: bool = False


class Admission:
    """memory_full: whether the node's memory is; the driver's."""

    __slots__ = ("_memory_full",)

    def __init__(self, memory_full: Callable[[], bool]) -> None:
        self._memory_full = memory_full

    def decide(self, at_ns: int, entry: Entry, payload: Any) -> Decision:
        """Of an admitted tuple of a source with an entry."""
        full = entry.on_full != REFUSE and self._memory_full()
        if full and entry.on_full == DROP_TAIL:
            return Decision(POLICY_MEMORY)
        limit, police, displaced = entry.limit, entry.police, None
        if limit is not None:
            decision = limit.decide(at_ns, payload)
            if decision == SHED:
                return Decision(POLICY_RATE)
            if decision != PASS:
                displaced = limit.displaced(decision)
        policed = displaced is None and police is not None and not police.passes(at_ns)
        policy = POLICY_ARRIVALS if policed else 0
        return Decision(policy, displaced, full and not policed, limit is not None)

    def settle(self, entry: Entry, first: int, route: Route, lineage: Lineage, policy: int) -> None:
        """The tuple that was decided last goes on, and the first of its jobs will have that number; or it is shed by
        that policy."""
        assert entry.limit is not None
        if policy:
            entry.limit.gone()
        else:
            entry.limit.entered(first, route, lineage)


__all__ = ["Admission", "Decision"]
