"""The node's clock, and which readings of it can be compared with whose."""

import hashlib
import os
import time
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TIME_NAMESPACE = Path("/proc/self/ns/time")


def now_ns() -> int:
    """The instant, on the clock of every stamp and verdict: never set, never slewed, stops in suspension."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def clock_domain() -> str:
    """32 hex digits: the same for processes whose `now_ns` is the same clock, on one machine and since one boot."""
    boot = _BOOT_ID.read_text().strip()
    try:
        namespace = os.readlink(_TIME_NAMESPACE)
    except OSError:  # a kernel without time namespaces has a single one
        namespace = "-"
    return hashlib.sha256((boot + namespace).encode()).hexdigest()[:32]


def new_boot() -> int:
    """A number for this incarnation, unlike every other one's; never 0."""
    return int.from_bytes(os.urandom(8), "big") | 1
