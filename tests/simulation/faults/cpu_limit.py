"""A seed that goes on and on ends, and has failed: it would hold a whole campaign up."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

MOST_SECONDS = 300.0  # of CPU time for one seed: many times what any needs
AGAIN_SECONDS = 1.0  # where something catches what ends it


class Endless(SystemExit):
    """It has taken too long. Neither `except Exception` nor asyncio catches that, as what ends a program."""


@contextmanager
def cpu_limit(seconds: float | None = None) -> Iterator[None]:
    """Raises Endless in the middle of what goes on after so many seconds of CPU time, MOST_SECONDS by default. In the
    main thread only."""
    most = MOST_SECONDS if seconds is None else seconds

    def end(number: int, frame: FrameType | None) -> None:
        raise Endless(f"it has taken {most:g} s of CPU time, and goes on")

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, most, AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
