"""Shared by all parts of the runtime: the node's identity, its ports, and the places of facts and counts."""

from collections import Counter

from node_agent.core.shedding.refusals import Refusals
from node_agent.host.clock import now_ns
from node_agent.host.log import WARNING, Log
from node_agent.host.trace_ring import RingFacts
from node_agent.ports import Ports
from node_agent.runtime.large_payloads import LargePayloads

COMPILED = not __file__.endswith(".py")


class Shared:
    """One per runtime process."""

    def __init__(
        self, name: str, ports: Ports, boot: int, lineage_epoch: int, facts: RingFacts, log: Log | None = None
    ) -> None:
        self.name = name
        self.clock, self.network, self.machine, self.callers = ports
        self.now_ns = ports.clock.now_ns
        self._real = self.now_ns is now_ns
        self.boot, self.lineage_epoch = boot, lineage_epoch
        self.incarnation = facts.ring.header.starts
        self.facts, self.refusals = facts, Refusals(facts, lineage_epoch)
        self.log = log or Log(name, "runtime")
        self.counters: Counter[str] = Counter()
        self.unwritten_bytes = 0  # that sockets have not taken, of all connections
        self.large = LargePayloads(self.now_ns)

    def instant(self) -> int:
        """`now_ns()`. Compiled code reads the machine's clock without Python."""
        if COMPILED and self._real:
            return raw_ns()  # type: ignore[name-defined,no-any-return]  # noqa: F821 - of clock.pxd
        return self.now_ns()

    def note(self, counter: str, text: str, level: str = WARNING, event: str = "", **fields: object) -> None:
        """Count it, and say so: the first few of its kind, then one a minute. event: the counter, unless told."""
        self.counters[counter] += 1
        self.log.say(event or counter, text, level, counter, **fields)
        if self.log.dropped:
            self.counters["log_lines_dropped"] = self.log.dropped
