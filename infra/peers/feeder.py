"""Feeds a workload at its instants, and takes results. Standard library only: of some peers it is a client.

It runs on another core than operators. A tuple's origin is the instant at which it was to be sent, so what holds the
feeder up counts as latency. Standard output has a line when something begins: `listening`, `start` (what is counted),
`half`, `end` (all is sent), `done` (`latencies.json` is written).
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any, Protocol

from infra.peers.lines import HOST, Setup
from infra.peers.workload import SECOND, Workload

START_LIMIT_S = 90  # until the first result of each stream
DRAIN_S = 4.0  # after the last tuple: what comes later never comes
LATENCIES = "latencies.json"
Received = Callable[[str, int, int], None]


class Transport(Protocol):
    """How tuples get to a contestant, and results back."""

    def open(self, received: Received) -> None:
        """Until tuples can be sent. received(stream, seq, at_ns) is called from any thread."""

    def send(self, item: dict[str, Any]) -> None:
        """One tuple, without waiting for its result."""


class Feeder:
    """One run. Sequence numbers below 0 are tuples before the first result."""

    def __init__(self, workload: Workload, transport: Transport) -> None:
        self._workload, self._transport = workload, transport
        self._at_ns: dict[tuple[str, int], int] = {}

    def received(self, stream: str, seq: int, at_ns: int) -> None:
        """A result."""
        self._at_ns.setdefault((stream, seq), at_ns)

    def run(self, folder: Path) -> None:
        """All of it."""
        self._transport.open(self.received)
        self._wake()
        begin_ns = time.monotonic_ns() + SECOND // 10
        lag_ns = self._feed(begin_ns)
        self._drain()
        latencies: dict[str, list[int | None]] = {each.name: [] for each in self._workload.streams}
        for arrival in self._workload.arrivals():
            if arrival.counted:
                at_ns = self._at_ns.get((arrival.stream, arrival.seq))
                latencies[arrival.stream].append(None if at_ns is None else at_ns - begin_ns - arrival.at_ns)
        (folder / LATENCIES).write_text(json.dumps({"latencies": latencies, "lag_ns": lag_ns}))
        say("done")

    def _wake(self) -> None:
        """Tuples, now and then, until each stream has a result."""
        until_ns, sent = time.monotonic_ns() + START_LIMIT_S * SECOND, 0
        streams = {each.name for each in self._workload.streams}
        while {stream for stream, _ in list(self._at_ns)} != streams:
            if time.monotonic_ns() > until_ns:
                raise SystemExit(f"no result within {START_LIMIT_S} s")
            sent += 1
            for name in streams:
                self._send(name, -sent, time.monotonic_ns())
            time.sleep(0.25)
        time.sleep(1.0)  # what has waited for the start is gone then

    def _feed(self, begin_ns: int) -> int:
        """The most that a tuple was sent too late."""
        arrivals, lag_ns = self._workload.arrivals(), 0
        counted = [number for number, each in enumerate(arrivals) if each.counted]
        events = {counted[0]: "start", counted[len(counted) // 2]: "half"}
        for number, arrival in enumerate(arrivals):
            due_ns = begin_ns + arrival.at_ns
            if (rest_ns := due_ns - time.monotonic_ns()) > 0:
                time.sleep(rest_ns / SECOND)
            if number in events:
                say(events[number])
            self._send(arrival.stream, arrival.seq, due_ns)
            lag_ns = max(lag_ns, time.monotonic_ns() - due_ns)
        say("end")
        return lag_ns

    def _send(self, stream: str, seq: int, origin_ns: int) -> None:
        cost_ns = self._workload.stream(stream).cost_ns
        self._transport.send({"stream": stream, "seq": seq, "origin_ns": origin_ns, "cost_ns": cost_ns})

    def _drain(self) -> None:
        until_ns = time.monotonic_ns() + int(DRAIN_S * SECOND)
        every = {(each.stream, each.seq) for each in self._workload.arrivals()}
        while not every <= self._at_ns.keys() and time.monotonic_ns() < until_ns:
            time.sleep(0.05)


def say(event: str) -> None:
    """To the runner."""
    sys.stdout.write(event + "\n")
    sys.stdout.flush()


class Sockets:
    """The transport of `lines`."""

    def __init__(self, setup: Setup) -> None:
        self._listeners = {name: socket.create_server((HOST, port)) for name, port in setup.ports.items()}
        self._results = socket.create_server((HOST, setup.results))
        self._connections: dict[str, socket.socket] = {}
        say("listening")

    def open(self, received: Received) -> None:
        Thread(target=self._take, args=(received,), daemon=True).start()
        for name, listener in self._listeners.items():
            listener.settimeout(START_LIMIT_S)
            self._connections[name], _ = listener.accept()
            self._connections[name].settimeout(None)
            self._connections[name].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, item: dict[str, Any]) -> None:
        self._connections[item["stream"]].sendall(json.dumps(item).encode() + b"\n")

    def _take(self, received: Received) -> None:
        while True:
            connection, _ = self._results.accept()
            Thread(target=_read, args=(connection, received), daemon=True).start()


def _read(connection: socket.socket, received: Received) -> None:
    with connection.makefile() as lines:
        for line in lines:
            stream, seq, at_ns = line.split()
            received(stream, int(seq), int(at_ns))


def feed(setup: Setup, transport: Transport) -> None:
    """The whole life of a feeder's process."""
    sys.setswitchinterval(0.0005)
    Feeder(setup.workload, transport).run(setup.folder)


if __name__ == "__main__":
    given = Setup.read(sys.argv[1])
    feed(given, Sockets(given))
