"""The kernel's sockets, and an epoll with a handler per descriptor.

Between the runtimes of one agent tuples go over Unix sockets, which take two thirds of the time of TCP on loopback.
These have names and no files, and the supervisor keeps them, as it does those of TCP. The runtime that connects checks
that its own supervisor listens there. The one that accepts checks that the other process is of the same user.
"""

import os
import select
import socket
from collections.abc import Mapping
from struct import Struct

from node_agent.host.clock import now_ns
from node_agent.ports import READABLE, Handler

COMPILED = not __file__.endswith(".py")

MOST_EVENTS = 64  # sockets served in one drain
MILLISECOND = 0.001
UNSENT_BYTES = 1 << 16  # that the kernel takes of a link beyond what is on the wire: what comes after waits behind them
UNREAD_BYTES = 1 << 18  # that it takes of an accepted connection until they are read: the same holds
TCP_NOTSENT_LOWAT = 25  # linux/tcp.h


_CREDENTIALS = Struct("3i")  # of SO_PEERCRED: pid, uid, gid


def near_name(host: str, port: int) -> str:
    """Of the Unix socket of the place whose data socket is bound there. The first character makes it no file."""
    return f"\0shimekiri/{host}:{port}"


def near_socket(host: str, port: int) -> socket.socket | None:
    """That socket, listening. None: the name is taken, and the place is reached by TCP alone."""
    end = _unix()
    try:
        end.bind(near_name(host, port))
    except OSError:
        end.close()
        return None
    end.listen()
    return end


class SocketListener:
    """A listening socket that accepts non-blocking connections without delay of small packets. near: a Unix socket that
    listens as well."""

    def __init__(self, listening: socket.socket, near: socket.socket | None = None) -> None:
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, UNREAD_BYTES // 2)  # the kernel takes twice as much
        self._listening, self._near = listening, near
        self.fileno = listening.fileno
        if near is not None:
            self._either = select.epoll()
            self._either.register(listening, READABLE)
            self._either.register(near, READABLE)
            self.fileno = self._either.fileno

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens: host, port."""
        host, port = self._listening.getsockname()[:2]
        return host, port

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        """Raises OSError where none is waiting."""
        if self._near is not None and (own := _accepted(self._near)) is not None:
            return own, ("this machine", 0)
        end, address = self._listening.accept()
        return _prompt(end), address[:2]


class SocketNetwork:
    """`ports.Network` of this machine. neighbours: names of Unix sockets, by host and port as they are dialled."""

    def __init__(self, neighbours: Mapping[tuple[str, int], str] | None = None) -> None:
        self._neighbours = neighbours or {}
        self._epoll = select.epoll()
        self._descriptor = self._epoll.fileno()
        self._handlers: dict[int, Handler] = {}

    def dial(self, host: str, port: int) -> socket.socket:
        """Begin to connect. Raises OSError."""
        name = self._neighbours.get((host, port))
        if name is not None and (near := _connected(name)) is not None:
            return near
        end = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        end.setblocking(False)
        try:
            end.connect((host, port))
        except BlockingIOError:
            pass
        except OSError:
            end.close()
            raise
        end.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT_BYTES)
        return _prompt(end)

    def add(self, descriptor: int, handler: Handler, mask: int = READABLE) -> None:
        """Begin to wait for it."""
        self._handlers[descriptor] = handler
        self._epoll.register(descriptor, mask)

    def give(self, descriptor: int, handler: Handler) -> None:
        """Another handler is told from now on."""
        self._handlers[descriptor] = handler

    def change(self, descriptor: int, mask: int) -> None:
        """Wait for something else."""
        self._epoll.modify(descriptor, mask)

    def remove(self, descriptor: int) -> None:
        """Call before the descriptor is closed."""
        if self._handlers.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def wait(self, seconds: float) -> int:
        """Serve what is ready, after waiting for at most that long: to the microsecond below a millisecond, beyond that
        up to one longer, as epoll counts whole ones."""
        if 0 < seconds < MILLISECOND:
            select.select((self._epoll,), (), (), seconds)
            seconds = 0
        if COMPILED:
            count = look(self._descriptor, seconds, self._events)  # type: ignore[name-defined, attr-defined]  # noqa: F821
            for place in range(count):
                self._serve(self._events[2 * place], self._events[2 * place + 1])  # type: ignore[attr-defined]
        else:
            for descriptor, mask in self._epoll.poll(seconds, MOST_EVENTS):
                self._serve(descriptor, mask)
        return now_ns()

    def _serve(self, descriptor: int, mask: int) -> None:
        handler = self._handlers.get(descriptor)
        if handler is not None:  # it may have gone while an earlier one of this drain was served
            handler.on_ready(now_ns(), mask)


def _unix() -> socket.socket:
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    end.setblocking(False)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD_BYTES // 2)
    return end


def _connected(name: str) -> socket.socket | None:
    """None: nobody listens there, or it is not the supervisor of this process."""
    end = _unix()
    try:
        end.connect(name)
    except OSError:
        end.close()
        return None
    return _trusted(end, _other_end(end)[0] == os.getppid())


def _accepted(near: socket.socket) -> socket.socket | None:
    """None: nobody is waiting there, or another user's process."""
    try:
        end, _ = near.accept()
    except BlockingIOError:
        return None
    end.setblocking(False)
    return _trusted(end, _other_end(end)[1] == os.geteuid())


def _other_end(end: socket.socket) -> tuple[int, int]:
    """Process and user that listened or connected there."""
    pid, uid, _ = _CREDENTIALS.unpack(end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return pid, uid


def _trusted(end: socket.socket, trusted: bool) -> socket.socket | None:
    if trusted:
        return end
    end.close()
    return None


def _prompt(end: socket.socket) -> socket.socket:
    end.setblocking(False)
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return end
