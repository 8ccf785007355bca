"""The floor of a hop: a blocking TCP socket, a stamp before `sendall`, a stamp after `recv`, nothing between.

Sender and receiver are two processes with the FIFO class where it is allowed, as the agent's runtime and its client in
the other half of the comparison.
"""

import os
import socket
import struct
import time
from multiprocessing import Process, Queue

MESSAGE = struct.Struct(">I60xq")  # as large as a small frame
RATE_PER_S = 1000


def now_ns() -> int:
    """The clock of all stamps."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def fifo_class(priority: int = 50) -> bool:
    """Ask for SCHED_FIFO; whether it was granted."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except (OSError, AttributeError):
        return False
    return True


def pace(count: int, rate_per_s: int = RATE_PER_S) -> "list[float]":
    """Instants (time.monotonic) at which to send: evenly spaced from now."""
    start = time.monotonic() + 0.05
    return [start + number / rate_per_s for number in range(count)]


def wait_until(instant: float) -> None:
    """Sleep up to that instant of time.monotonic."""
    rest = instant - time.monotonic()
    if rest > 0:
        time.sleep(rest)


def _receive(listener: socket.socket, count: int, results: "Queue[list[int]]") -> None:
    fifo_class()
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    latencies = []
    for _ in range(count):
        data = connection.recv(MESSAGE.size, socket.MSG_WAITALL)
        latencies.append(now_ns() - MESSAGE.unpack(data)[1])
    results.put(latencies)


def bare_hops_ns(count: int) -> list[int]:
    """Latencies in ns of `count` messages at 1000/s, from the sender's stamp to the receiver's return from recv."""
    results: Queue[list[int]] = Queue()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        receiver = Process(target=_receive, args=(listener, count, results))
        receiver.start()
        with socket.create_connection(listener.getsockname()) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for instant in pace(count):
                wait_until(instant)
                connection.sendall(MESSAGE.pack(64, now_ns()))
            latencies = results.get(timeout=30)
        receiver.join()
    return latencies
