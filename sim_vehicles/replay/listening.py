"""Takes live results: one thread per output stamps them when they arrive, one thread works on them in that order.

The stamping threads go before emulated nodes of the same machine, as the senders do, so an instant of receipt is not
that of a busy processor; the work (a closed loop computes new bursts when its vehicle brakes) has no such priority.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from types import TracebackType
from typing import Any, Protocol, Self

from node_agent.client.connection import AgentError, NotAcceptedError, NotTrustedError
from node_agent.host.scheduling import fifo
from node_agent.operators.codecs import CodecError, Codecs, UnknownCodecError
from node_agent.tls.names import TlsError
from protos.plan_document import Plan
from protos.vehicle_pb2 import Warning as VehicleWarning
from sim_vehicles.errors import FeedError
from sim_vehicles.replay.live import SENDER_PRIORITY

WARNING = "vehicle.Warning"
POLL_S = 0.1  # how soon a thread notices that it is to end


class Result(Protocol):
    """The part of `node_agent.sdk.Result` that is used here."""

    @property
    def value(self) -> Any:
        """The decoded value."""

    @property
    def latency_ns(self) -> tuple[int, int]:
        """The least and the most latency, ns."""

    @property
    def lineage(self) -> tuple[int, int, int, int]:
        """Source, epoch, sequence number and ordinal of the input that it comes from."""


class Results(Protocol):
    """The part of `node_agent.sdk.Sink` that is used here."""

    @property
    def reconnects(self) -> int:
        """How often the connection was lost and made again."""
        ...

    def get(self, timeout: float | None = None) -> Result:
        """The next result, or TimeoutError."""
        ...


Listen = Callable[[str, str], AbstractContextManager[Results]]


def sink(address: str, output: str, tls: Path | None = None) -> AbstractContextManager[Results]:
    """A live sink at an agent's data address. tls: the identity to connect with. Raises AgentError, UnknownCodecError,
    OSError, TlsError."""
    from node_agent.client.client import Sink

    return Sink(address, output, codecs=Codecs({WARNING: VehicleWarning}), tls=tls)


@dataclass(frozen=True)
class Output:
    """An output of the plan whose results tell the vehicle of a danger."""

    name: str
    node: str
    deadline_ns: int


def outputs(plan: Plan) -> list[Output]:
    """The plan's outputs of type vehicle.Warning, by name."""
    warns = {name for name, stream in plan.graph.streams.items() if stream.type == WARNING}
    found = sorted(plan.graph.outputs.items())
    return [Output(name, output.at, output.deadline_ns) for name, output in found if output.origin in warns]


@dataclass
class Heard:
    """What came out of one output. unreadable: results not of its type; failure: why nothing comes any more."""

    results: int = 0
    unreadable: int = 0
    reconnects: int = 0
    failure: str | None = None


class Listening:
    """`with Listening(...)`: connected to every output; `hear` is called with (instant of receipt on this machine's
    monotonic clock in ns, result), from one thread, in the order of arrival."""

    def __init__(self, found: Sequence[Output], addresses: dict[str, str], listen: Listen) -> None:
        self.heard = {output.name: Heard() for output in found}
        self.hear: Callable[[int, Result], None] = lambda at_ns, result: None
        self.failure: BaseException | None = None  # of `hear`: what it raised first
        self.on_failure: Callable[[], None] = lambda: None
        self.last_ns = 0  # when the last result came
        self._outputs, self._addresses, self._listen = found, addresses, listen
        self._queue: SimpleQueue[tuple[int, Result] | None] = SimpleQueue()
        self._worked = 0
        self._end = Event()
        self._threads: list[Thread] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """FeedError where an output cannot be reached."""
        try:
            sinks = {output.name: self._open(output) for output in self._outputs}
        except BaseException:
            self._stack.close()
            raise
        self._threads = [
            Thread(target=self._take, args=(name, results), name=f"listen-{name}") for name, results in sinks.items()
        ]
        self._worker = Thread(target=self._work, name="judge")
        for thread in (*self._threads, self._worker):
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()
        self._queue.put(None)
        self._worker.join()
        self._stack.close()

    def settle(self, least_s: float, quiet_s: float, most_s: float, stop: Event) -> bool:
        """Waits for late results: at least least_s, then until none came for quiet_s and all are worked on, at most
        most_s. False if something still came at the end, or if it was stopped."""
        began_ns = time.monotonic_ns()
        while not stop.is_set():
            now_ns = time.monotonic_ns()
            if now_ns - began_ns >= most_s * 1e9:
                return False
            quiet = self._idle and now_ns - max(self.last_ns, began_ns) >= quiet_s * 1e9
            if quiet and now_ns - began_ns >= least_s * 1e9:
                return True
            stop.wait(0.02)
        return False

    def drain(self, most_s: float) -> bool:
        """Waits until all that came is worked on; False if it takes longer than most_s."""
        until_s = time.monotonic() + most_s
        while not self._idle and time.monotonic() < until_s:
            time.sleep(0.005)
        return self._idle

    @property
    def _idle(self) -> bool:
        return self._worked >= sum(each.results for each in self.heard.values())

    def _open(self, output: Output) -> Results:
        address = self._addresses[output.node]
        try:
            return self._stack.enter_context(self._listen(address, output.name))
        except (NotTrustedError, TlsError) as bad:
            raise FeedError("not_trusted", f"output {output.name}: {bad}", subject=output.name) from bad
        except NotAcceptedError as bad:
            raise FeedError(
                "not_accepted",
                f"output {output.name}: {bad}",
                "deploy the plan first: coordinator deploy",
                subject=output.name,
            ) from bad
        except (AgentError, UnknownCodecError, OSError) as bad:
            raise FeedError(
                "unreachable",
                f"output {output.name}: node {output.node} at {address} cannot be reached: {bad}",
                subject=output.name,
            ) from bad

    def _take(self, name: str, results: Results) -> None:
        fifo(SENDER_PRIORITY)
        heard = self.heard[name]
        while not self._end.is_set():
            try:
                result = results.get(POLL_S)
                at_ns = time.monotonic_ns()
            except TimeoutError:
                continue
            except CodecError:
                heard.unreadable += 1
                continue
            except Exception as gone:  # after any error: a verdict must not pass for valid without this output
                heard.failure = str(gone) or type(gone).__name__
                return
            finally:
                heard.reconnects = results.reconnects
            heard.results += 1
            self.last_ns = at_ns
            self._queue.put((at_ns, result))

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            try:
                if self.failure is None:
                    self.hear(*item)
            except Exception as error:  # any error ends the replay: it must not go on unjudged
                self.failure = error
                self.on_failure()
            self._worked += 1
