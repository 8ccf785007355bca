"""Agents that take what they are sent, in this process, and warn of what they are told to."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from threading import Lock, get_ident
from typing import Any, NamedTuple

from node_agent.client.client import Admitted, Refused, Result
from node_agent.client.connection import NoAnswerError
from protos.vehicle_pb2 import Cpm
from protos.vehicle_pb2 import Warning as VehicleWarning


class Sent(NamedTuple):
    thread: int
    address: str
    source: str
    values: tuple[Any, ...]
    ages_ms: tuple[float, ...]


class FakeAgents:
    """Takes every burst, except what `refuse` says; breaks at the burst that `break_at` counts.

    about: number of the vehicle of which every V2V message makes a warning. after: called once a burst was taken, with
    whether there were warnings.
    """

    def __init__(self, refuse: dict[str, int] | None = None, break_at: int = 0, about: int | None = None) -> None:
        self.refuse, self.break_at, self.about, self.closed, self.lock = refuse or {}, break_at, about, 0, Lock()
        self.sent: list[Sent] = []
        self.results: SimpleQueue[Result | Exception] = SimpleQueue()
        self.seqs: Counter[str] = Counter()
        self.after: Callable[[bool], None] = lambda warned: None
        self.reconnects = 0

    @contextmanager
    def connect(self, address: str, name: str, tls: object = None) -> Iterator["FakeSource"]:
        yield FakeSource(self, address, name)
        self.closed += 1

    @contextmanager
    def listen(self, address: str, output: str, tls: object = None) -> Iterator["FakeSink"]:
        yield FakeSink(self)
        self.closed += 1


class FakeSource:
    def __init__(self, agents: FakeAgents, address: str, name: str) -> None:
        self.agents, self.address, self.name = agents, address, name

    def send_aged(self, aged: Sequence[tuple[Any, float]]) -> list[object]:
        agents, values = self.agents, [value for value, _ in aged]
        with agents.lock:
            sent = Sent(get_ident(), self.address, self.name, tuple(values), tuple(age_ms for _, age_ms in aged))
            agents.sent.append(sent)
            refused = min(len(values), agents.refuse.get(self.name, 0))
            results: list[object] = [Refused("too old")] * refused
            for _ in values[refused:]:
                agents.seqs[self.name] += 1
                results.append(Admitted(agents.seqs[self.name], 1))
            if len(agents.sent) == agents.break_at:
                raise NoAnswerError("no answer within 5 s", [*results[:3], *[None] * (len(values) - 3)])
        agents.after(self._warn(values, results))
        return results

    def _warn(self, values: Sequence[Any], results: Sequence[object]) -> bool:
        warned = False
        for value, result in zip(values, results, strict=True):
            if isinstance(value, Cpm) and isinstance(result, Admitted):
                seen, at_ns = value.object, time.monotonic_ns()
                measured_ms = (value.generation_ms - seen.measurement_delta_ms) % 65536
                level = 2 if seen.object_id == self.agents.about else 0
                warning = VehicleWarning(
                    object_id=seen.object_id, station=value.station, measured_ms=measured_ms, level=level
                )
                lineage = (1, result.epoch, result.seq, 0)
                self.agents.results.put(Result(warning, at_ns, (at_ns - 2_000_000, at_ns - 1_000_000), lineage))
                warned = warned or level > 0
        return warned


class FakeSink:
    def __init__(self, agents: FakeAgents) -> None:
        self.agents = agents

    @property
    def reconnects(self) -> int:
        return self.agents.reconnects

    def get(self, timeout: float | None = None) -> Result:
        try:
            result = self.agents.results.get(timeout=timeout)
        except Empty:
            raise TimeoutError from None
        if isinstance(result, Exception):
            raise result
        return result
