"""Signals that come while they are held."""

import signal

import pytest

from coordinator import signals


def test_a_signal_that_is_held_is_handled_after_it() -> None:
    reached = False
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # others of this process may have set their own
    try:
        with pytest.raises(KeyboardInterrupt), signals.held():
            signal.raise_signal(signal.SIGINT)
            reached = True
        assert reached
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
