"""Keeps a busy runtime below the share of a core that the kernel lets real-time threads have.

By default these may have 95 % of each second. What is above stops them for the rest of it: 50 ms at once, longer than
many deadlines. A runtime that is busy throughout leaves the real-time class by itself before, for 4 ms in 54. It goes
on running then, unless others want its core: nothing else does on a node that is cared for, and else each of them has
it for a slice of a few milliseconds.
"""

from node_agent.ports import Machine

MARGIN = 0.03  # of a core: for other threads of that class, the supervisor's among them
OUT_NS = 4_000_000  # of a stay outside
PER_MILLE = 1000


class RealTimeShare:
    """Told the time: `busy` and `waits` as the runtime ends running and begins to wait, `idle` as that wait ends. out:
    it has left the class."""

    __slots__ = ("_allowed", "_beyond", "_machine", "_rests", "_since_ns", "out")

    def __init__(self, machine: Machine, at_ns: int, share: float) -> None:
        self._machine, self._since_ns = machine, at_ns
        self._allowed = int((share - MARGIN) * PER_MILLE)
        self._beyond = 0  # thousandths of ns that it had in the class above what it is allowed
        self._rests = False  # it stays outside until that is used up
        self.out = False

    def busy(self, at_ns: int) -> None:
        """It has run until now, and goes on."""
        self._count(at_ns, 0 if self.out else PER_MILLE)
        self._settle()

    def waits(self, at_ns: int) -> None:
        """It has run until now, and waits. What ends that is to run at once."""
        self._count(at_ns, 0 if self.out else PER_MILLE)
        self._be(False)

    def idle(self, at_ns: int) -> None:
        """It has waited until now. A wait may have been too short for what it had before."""
        self._count(at_ns, 0)
        self._settle()

    def _settle(self) -> None:
        self._rests = self._rests and self._beyond > 0
        self._be(self._rests)

    def _be(self, out: bool) -> None:
        if out != self.out:
            self.out = out
            self._machine.real_time(not out)

    def _count(self, at_ns: int, used: int) -> None:
        """used: thousandths of the time since the last look."""
        self._beyond = max(0, self._beyond + (used - self._allowed) * (at_ns - self._since_ns))
        self._since_ns = at_ns
        if self._beyond > self._allowed * OUT_NS:
            self._rests = True


def real_time_share(machine: Machine, at_ns: int) -> RealTimeShare | None:
    """None where nothing is to be kept: no such class, or no limit."""
    share = machine.real_time_share
    return RealTimeShare(machine, at_ns, share) if MARGIN < share < 1 else None


__all__ = ["RealTimeShare", "real_time_share"]
