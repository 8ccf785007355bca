"""Ctrl-C, SIGTERM and the terminal that is closed (SIGHUP), remembered.

What a handler raises while a library's C code calls back into Python is printed there and swallowed, and a search takes
Ctrl-C for "the best so far". Neither may end in a deployment that was called off, so code that is about to begin what
cannot be taken back asks whether a signal has come.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_came: list[BaseException] = []


def watch() -> None:
    """From now on; call on the main thread, once per process."""
    _came.clear()
    for number in ending():
        signal.signal(number, _interrupted if number == signal.SIGINT else _ended)


def ending() -> list[signal.Signals]:
    """The signals that end a command; not SIGHUP under `nohup`."""
    hangup = [] if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else [signal.SIGHUP]
    return [signal.SIGINT, signal.SIGTERM, *hangup]


def check() -> None:
    """Raises again what the first signal raised, KeyboardInterrupt or SystemExit; nothing where none has come."""
    if _came:
        raise _came[0]


@contextmanager
def held() -> Iterator[None]:
    """Signals that end a command are, in this time, handled at its end.

    For a call that would swallow or lose what a handler raises: MathOpt as it converts messages, or the start of a
    process, which nobody could end any more. Nothing where the thread is not the main one, which alone handles signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {one: signal.getsignal(one) for one in ending()}
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


def _interrupted(_number: int, _frame: object) -> None:
    _came.append(KeyboardInterrupt())
    raise _came[-1]


def _ended(number: int, _frame: object) -> None:  # as Ctrl-C: what a command began is undone on its way out
    _came.append(SystemExit(128 + number))
    raise _came[-1]
