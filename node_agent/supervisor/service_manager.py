"""Tells systemd that the agent is ready, alive or about to end, where the unit asks for it: sd_notify(3)."""

import os
import socket


class ServiceManager:
    """Who started the agent. Without NOTIFY_SOCKET nobody is told anything. every_ns: between two signs of life."""

    def __init__(self) -> None:
        address = os.environ.pop("NOTIFY_SOCKET", "")  # not the children's to use
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self.every_ns = _every_ns(os.environ.pop("WATCHDOG_USEC", ""))
        os.environ.pop("WATCHDOG_PID", None)
        self._due_ns = 0
        self._ready = False

    def ready(self, status: str) -> None:
        """The agent serves. status: one line for people."""
        self._ready = True
        self._tell(f"READY=1\nMAINPID={os.getpid()}\nSTATUS={status}")

    def alive(self, at_ns: int) -> None:
        """The supervisor's loop goes round; before the agent is ready the start's own limit counts."""
        if self._ready and self.every_ns and at_ns >= self._due_ns:
            self._due_ns = at_ns + self.every_ns
            self._tell("WATCHDOG=1")

    def stopping(self) -> None:
        """The agent ends."""
        self._tell("STOPPING=1")

    def _tell(self, text: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK) as end:
                end.sendto(text.encode(), self._address)
        except OSError:  # it does not listen; the agent needs it for nothing
            return


def _every_ns(microseconds: str) -> int:
    """A third of what systemd waits for; 0: it does not wait."""
    return int(microseconds) * 1000 // 3 if microseconds.isascii() and microseconds.isdigit() else 0
