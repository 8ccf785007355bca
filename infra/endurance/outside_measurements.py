"""Measurements from outside while it runs: memory of each agent's processes, answers of control, results."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import psutil

from coordinator.fleet.addresses import AgentAddress
from coordinator.fleet.agents import AgentError, Agents
from node_agent.sdk import Sink
from protos import agent_pb2

ANSWER_S = 5.0


@dataclass
class Received:
    """One output: when each result came, and the interval of its latency."""

    name: str
    address: str
    deadline_ns: int
    results: list[tuple[float, int, int]] = field(default_factory=list)  # monotonic s, latency lo, latency hi in ns
    windows: dict[int, Any] = field(default_factory=dict)  # by number, where there are windows
    repeated: int = 0
    error: str = ""
    _ended: bool = False
    _sink: Sink | None = None
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Listen from now on."""
        self._sink = Sink(self.address, self.name)
        self._thread = threading.Thread(target=self._run, name=f"sink {self.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Listen no more."""
        self._ended = True
        if self._sink is not None:
            self._sink.close()
        if self._thread is not None:
            self._thread.join(5)

    def _run(self) -> None:
        assert self._sink is not None
        try:
            for result in self._sink:
                self.results.append((time.monotonic(), *result.latency_ns))
                if isinstance(result.value, dict) and "window" in result.value:
                    self.repeated += result.value["window"] in self.windows
                    self.windows[result.value["window"]] = result.value
        except (OSError, ValueError) as error:
            if self._ended:
                return  # it was closed while it read
            self.error = f"{type(error).__name__}: {error}"


@dataclass(frozen=True)
class Sample:
    """One look at one agent. answer_s: how long control took to answer; None: it did not."""

    at_s: float
    node: str
    rss_bytes: int
    runtime_bytes: int
    queue_bytes: int
    answer_s: float | None


class OutsideMeasurements:
    """Looks once a second."""

    def __init__(self, places: Mapping[str, AgentAddress], pids: Mapping[str, int]) -> None:
        self._agents, self._pids = Agents(places), pids
        self.samples: list[Sample] = []
        self.counters: dict[str, dict[str, int]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="outside", daemon=True)

    def start(self) -> None:
        """From now on."""
        self._thread.start()

    def stop(self) -> None:
        """No more."""
        self._stop.set()
        self._thread.join(2 * ANSWER_S)

    def _run(self) -> None:
        with self._agents:
            while not self._stop.wait(1.0):
                for node, pid in self._pids.items():
                    self.samples.append(self._look(node, pid))

    def _look(self, node: str, pid: int) -> Sample:
        began = time.monotonic()
        reply = self._agents.try_all("Status", {node: agent_pb2.StatusRequest()}, ANSWER_S)[node]
        took: float | None = time.monotonic() - began
        queued = 0
        if isinstance(reply, AgentError):
            took = None
        else:
            queued = reply.queue_bytes
            self.counters[node] = {each.name: each.value for each in reply.counters}
        try:
            parent = psutil.Process(pid)
            each = [one.memory_info().rss for one in (parent, *parent.children(recursive=True))]
        except psutil.NoSuchProcess:
            each = [0]
        return Sample(began, node, sum(each), max(each), queued, took)
