"""Requests to the kernel's scheduler. Each may be denied: it returns that, and the caller goes on."""

import contextlib
import os
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_TIMERSLACK = 29

LEAST_NICE = -20
RT_RUNTIME, RT_PERIOD = (Path(f"/proc/sys/kernel/sched_rt_{what}_us") for what in ("runtime", "period"))

SUPERVISOR_PRIORITY = 90  # a watchdog of normal class beside a spinning FIFO thread wakes up to 900 ms late
RUNTIME_PRIORITY = 50
SOURCE_PRIORITY = 49  # threads that call sources, in the runtime's process


def fifo(priority: int) -> bool:
    """Put this process into the FIFO class. False where that is not allowed."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except (OSError, AttributeError):
        return False
    return True


def has_fifo() -> bool:
    """Whether the calling thread is in the FIFO class."""
    return os.sched_getscheduler(0) == os.SCHED_FIFO


def real_time_share() -> float:
    """The part of a core that FIFO threads may have; 1: all of it, as where the kernel does not say."""
    try:
        runtime_us, period_us = (int(path.read_text()) for path in (RT_RUNTIME, RT_PERIOD))
    except (OSError, ValueError):
        return 1
    return runtime_us / period_us if 0 <= runtime_us < period_us else 1


def rest() -> None:
    """Leave the FIFO class for a while, for the ordinary one, and there go before all others where that is allowed."""
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, LEAST_NICE)


def below_runtime(real_time: bool) -> None:
    """Of a thread that the scheduling one has begun: leave it every core, where that has the FIFO class. real_time: it
    was given the class, and may be out of it right now."""
    if real_time or has_fifo():
        fifo(SOURCE_PRIORITY)


def ordinary() -> None:
    """Leave the FIFO class that was inherited from the parent."""
    if os.sched_getscheduler(0) != os.SCHED_OTHER:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def pin(cpu: int) -> bool:
    """Stay on that core. False where there is none of that number."""
    try:
        os.sched_setaffinity(0, {cpu})
    except (OSError, ValueError):
        return False
    return True


def cores() -> int:
    """How many this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except (OSError, AttributeError):
        return os.cpu_count() or 1


def exact_timers() -> None:
    """Let timers of this process fire when they are due instead of up to 50 us later."""
    _prctl(PR_SET_TIMERSLACK, 1)


def name_process(name: str) -> None:
    """What `ps` and `top` show as the command; cut after 15 bytes."""
    try:
        with open("/proc/self/comm", "w", encoding="utf-8") as file:
            file.write(name)
    except OSError:  # no such file system: the process is named by its program
        return


def die_with(parent: int) -> None:
    """Be killed when the parent dies, even while an operator hangs: then nobody else would notice."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the request
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
