"""The kernel's sockets, and an epoll with a handler per descriptor.

Between the runtimes of one agent tuples go over Unix sockets, which take two thirds of the time of TCP on loopback.
These have names and no files. Each end looks who the other one is: another user's process is none of them.
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


class SocketListener:
    """A listening socket that accepts non-blocking connections without delay of small packets. name: of a Unix socket
    that does so as well. Raises OSError where that name is taken."""

    def __init__(self, listening: socket.socket, name: str = "") -> None:
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, UNREAD_BYTES // 2)  # the kernel takes twice as much
        self._listening, self._beside = listening, None
        self.fileno = listening.fileno
        if name:
            self._beside = _unix()
            self._beside.bind(name)
            self._beside.listen()
            self._either = select.epoll()
            self._either.register(listening, READABLE)
            self._either.register(self._beside, READABLE)
            self.fileno = self._either.fileno

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens: host, port."""
        host, port = self._listening.getsockname()[:2]
        return host, port

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        """Raises OSError where none is waiting."""
        if self._beside is not None:
            try:
                end, _ = self._beside.accept()
            except BlockingIOError:
                pass
            else:
                return _own(end), ("this machine", 0)
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
    """None: it does not listen, or not yet, or it is another user's."""
    end = _unix()
    try:
        end.connect(name)
        return _own(end)
    except OSError:
        end.close()  # twice is allowed
        return None


def _own(end: socket.socket) -> socket.socket:
    """Raises OSError, and closes, where another user's process is at the other end, or one that is gone: a child may
    have kept what it listened at."""
    pid, uid, _ = _CREDENTIALS.unpack(end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    try:
        if uid != os.geteuid():
            raise PermissionError(f"a process of user {uid}")
        os.kill(pid, 0)
    except OSError:
        end.close()
        raise
    end.setblocking(False)
    return end


def _prompt(end: socket.socket) -> socket.socket:
    end.setblocking(False)
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return end
