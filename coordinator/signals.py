"""Ctrl-C, SIGTERM and the terminal that is closed (SIGHUP), remembered.

What a handler raises while a library's C code calls back into Python is printed there and swallowed, and a search takes
Ctrl-C for "the best so far". Neither may end in a deployment that was called off, so code that is about to begin what
cannot be taken back asks whether a signal has come.
"""

from __future__ import annotations

import signal

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


def _interrupted(_number: int, _frame: object) -> None:
    _came.append(KeyboardInterrupt())
    raise _came[-1]


def _ended(number: int, _frame: object) -> None:  # as Ctrl-C: what a command began is undone on its way out
    _came.append(SystemExit(128 + number))
    raise _came[-1]
