"""A node's clock in virtual time: it is off, it drifts, and it stands still while its machine is suspended."""

from node_agent.ports import Suspended
from node_agent.virtual.simulated.virtual_time import VirtualTime

MILLION = 1_000_000


class SimulatedClock:
    """`ports.Clock`. offset_ns: what it shows when the simulation begins. rate_ppm: how fast it really is.

    domain: its name. drift_ppm: what it declares as the most that it is off.
    """

    def __init__(self, time: VirtualTime, domain: str, drift_ppm: int, offset_ns: int = 0, rate_ppm: int = 0) -> None:
        self.domain, self.drift_ppm = domain, drift_ppm
        self._time, self._rate_ppm = time, rate_ppm
        self._true_ns, self._shown_ns = time.now_ns, offset_ns  # one instant, true and as shown
        self._stopped_ns: int | None = None  # since when it stands still, in true time
        self._looked_ns, self._slept_ns = offset_ns, 0
        self.steady_since_ns: int | None = None
        self.now_ns = self._now
        self.cpu_ns = self._now

    def _now(self) -> int:
        true_ns = self._time.now_ns if self._stopped_ns is None else self._stopped_ns
        elapsed_ns = true_ns - self._true_ns
        return self._shown_ns + elapsed_ns + elapsed_ns * self._rate_ppm // MILLION

    def true_ns(self, shown_ns: int) -> int:
        """When the clock shows that, if it goes on as it does now; not before."""
        elapsed_ns = shown_ns - self._shown_ns
        return self._true_ns - (-elapsed_ns * MILLION // (MILLION + self._rate_ppm))

    def drift(self, rate_ppm: int) -> None:
        """From now on it is that fast."""
        self._shown_ns, self._true_ns, self._rate_ppm = self._now(), self._time.now_ns, rate_ppm

    def stop(self) -> None:
        """The machine is suspended."""
        if self._stopped_ns is None:
            self._stopped_ns = self._time.now_ns

    def go_on(self) -> None:
        """The machine has woken up."""
        if self._stopped_ns is not None:
            shown_ns, since_ns = self._now(), self._stopped_ns
            self._stopped_ns = None
            self._shown_ns, self._true_ns = shown_ns, self._time.now_ns
            self.steady_since_ns = shown_ns
            self._slept_ns += self._time.now_ns - since_ns

    def suspended(self) -> Suspended | None:
        """What happened since the last look."""
        since_ns, self._looked_ns = self._looked_ns, self._now()
        slept_ns, self._slept_ns = self._slept_ns, 0
        return Suspended(since_ns, self._looked_ns, slept_ns) if slept_ns else None
