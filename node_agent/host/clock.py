"""The node's clock, and which readings of it can be compared with whose."""

import os
import time
from functools import partial
from pathlib import Path

from node_agent.host.suspension import Suspension
from protos import digests

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TIME_NAMESPACE = Path("/proc/self/ns/time")


COMPILED = not __file__.endswith(".py")


def _read() -> int:
    return raw_ns()  # type: ignore[name-defined,no-any-return]  # noqa: F821 - of clock.pxd


now_ns = _read if COMPILED else partial(time.clock_gettime_ns, time.CLOCK_MONOTONIC_RAW)
"""The instant, on the clock of every stamp and verdict: never set, never slewed, stops in suspension.

As Python not a function of its own: the runtime reads the clock twice per task instance, and a call more is a tenth of
its cost.
"""


class SystemClock:
    """`ports.Clock` of this machine. domain: of `clock_domain`, unless a test names another."""

    def __init__(self, domain: str, drift_ppm: int) -> None:
        self.domain, self.drift_ppm = domain, drift_ppm
        self.now_ns, self.cpu_ns = now_ns, time.thread_time_ns
        self._suspension = Suspension(now_ns)
        self.suspended = self._suspension.look

    @property
    def steady_since_ns(self) -> int | None:
        """See `ports.Clock`."""
        return self._suspension.steady_since_ns


def clock_domain() -> str:
    """32 hex digits: the same for processes whose `now_ns` is the same clock, on one machine and since one boot."""
    boot = _BOOT_ID.read_text().strip()
    try:
        namespace = os.readlink(_TIME_NAMESPACE)
    except OSError:  # a kernel without time namespaces has a single one
        namespace = "-"
    return digests.sha256((boot + namespace).encode()).hexdigest()[:32]


def new_boot() -> int:
    """A number for this incarnation, unlike every other one's; never 0."""
    return int.from_bytes(os.urandom(8), "big") | 1
