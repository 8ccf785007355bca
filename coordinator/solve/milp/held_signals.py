"""Signals while a solver runs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from coordinator import signals


@contextmanager
def held() -> Iterator[None]:
    """Signals that end a command are, in this time, handled at its end: what a handler raises while MathOpt converts
    messages is swallowed there. Nothing where the thread is not the main one, which alone handles signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {one: signal.getsignal(one) for one in signals.ending()}
    ours = {one: handler for one, handler in before.items() if callable(handler)}
    for one in ours:
        signal.signal(one, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for one, handler in ours.items():
            signal.signal(one, handler)
    for number in came[:1]:
        ours[signal.Signals(number)](number, None)
