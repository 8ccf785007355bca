"""Many independent simulations on all cores."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


def spread(function: Callable[..., Result], arguments: Sequence[tuple[Any, ...]]) -> list[Result]:
    """The function's results in the order of the arguments; both have to be picklable."""
    workers = min(os.cpu_count() or 1, len(arguments))
    if workers < 2:
        return [function(*each) for each in arguments]
    pool = ProcessPoolExecutor(workers, initializer=_deaf)
    try:
        return [each.result() for each in [pool.submit(function, *given) for given in arguments]]
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _deaf() -> None:
    """Ctrl-C is the parent's: it cancels what has not begun."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
