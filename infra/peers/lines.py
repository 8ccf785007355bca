"""Tuples and results as lines over loopback, for contestants that have sockets as sources. Standard library only.

The feeder listens: on a port for each stream, whose tuples it writes, and on one for results. A tuple is an object of
JSON, a result `STREAM SEQ INSTANT`. The sink stamps the instant. All clocks are CLOCK_MONOTONIC.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.peers.workload import Workload

HOST = "127.0.0.1"
FILE = "setup.json"


@dataclass(frozen=True)
class Setup:
    """Of one run. folder: for its files; ports: by stream; results: the port that takes results."""

    folder: Path
    workload: Workload
    ports: dict[str, int]
    results: int

    def write(self) -> None:
        """For both processes."""
        content = {"workload": self.workload.to_json(), "ports": self.ports, "results": self.results}
        (self.folder / FILE).write_text(json.dumps(content))

    @classmethod
    def read(cls, folder: str | Path) -> Setup:
        """What was written."""
        content = json.loads((Path(folder) / FILE).read_text())
        workload = Workload.from_json(content["workload"])
        return cls(Path(folder), workload, content["ports"], content["results"])


def connect(port: int) -> socket.socket:
    """To the feeder, without delay of small segments."""
    connection = socket.create_connection((HOST, port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def tuples(port: int) -> Iterator[dict[str, Any]]:
    """All of a stream; waits for each."""
    with connect(port) as connection, connection.makefile("rb") as lines:
        for line in lines:
            yield json.loads(line)


class Ready:
    """What has come by one connection, without waiting."""

    def __init__(self, port: int) -> None:
        self._connection = connect(port)
        self._connection.setblocking(False)
        self._rest = b""

    def fileno(self) -> int:
        """For select."""
        return self._connection.fileno()

    def take(self) -> list[dict[str, Any]]:
        """Raises EOFError when the feed is over."""
        try:
            data = self._connection.recv(1 << 16)
        except BlockingIOError:
            return []
        if not data:
            raise EOFError
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in lines]


class Results:
    """The sink: stamps results and hands them to the feeder."""

    def __init__(self, port: int) -> None:
        self._connection = connect(port)

    def __call__(self, item: dict[str, Any]) -> None:
        line = f"{item['stream']} {item['seq']} {time.monotonic_ns()}\n"
        self._connection.sendall(line.encode())
