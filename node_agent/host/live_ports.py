"""This computer, as the runtime's process sees it, and the ports of a live runtime."""

import gc
import os
from collections.abc import Mapping
from pathlib import Path

from node_agent.host import scheduling
from node_agent.host.clock import SystemClock
from node_agent.host.network import SocketNetwork
from node_agent.host.threads.caller_threads import CallerThreads
from node_agent.ports import Ports

STATM = Path("/proc/self/statm")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class ThisMachine:
    """`ports.Machine` of the process that calls it. real_time: it asked for the FIFO class and was given it."""

    def __init__(self, real_time: bool = False) -> None:
        self._real_time = real_time

    def resident_bytes(self) -> int:
        """Of this process alone: the trace's ring and libraries are shared."""
        _, resident, shared, *_ = STATM.read_bytes().split()
        return (int(resident) - int(shared)) * PAGE_BYTES

    def pin(self, cpu: int) -> bool:
        """Stay on that core."""
        return scheduling.pin(cpu)

    @property
    def real_time_share(self) -> float:
        """See `ports.Machine`."""
        return scheduling.real_time_share() if self._real_time else 0

    def real_time(self, wanted: bool) -> None:
        """See `ports.Machine`."""
        if wanted:
            scheduling.fifo(scheduling.RUNTIME_PRIORITY)
        else:
            scheduling.rest()

    def settle(self) -> None:
        """Collect garbage, and never look again at what is left."""
        gc.collect()
        gc.freeze()


def live_ports(
    domain: str, drift_ppm: int, real_time: bool = False, neighbours: Mapping[tuple[str, int], str] | None = None
) -> Ports:
    """Of a runtime on this machine. domain, drift_ppm: of its clock. neighbours: of `SocketNetwork`."""
    clock, network = SystemClock(domain, drift_ppm), SocketNetwork(neighbours)
    return Ports(clock, network, ThisMachine(real_time), CallerThreads(network, clock.now_ns, real_time))
