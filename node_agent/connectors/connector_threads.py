"""The process of the connectors: a thread for each, and the channel to the supervisor.

It is a client of its agent's runtimes, in the ordinary scheduling class, and may be killed at any instant: what it has
not handed over is then still the other system's, as far as that one keeps anything.
"""

import gc
import os
import select
import threading
import time
from functools import partial

from node_agent.connectors.counts import IN, OUT, Counts
from node_agent.connectors.flow import IN as READS
from node_agent.connectors.flow import Flow, flows
from node_agent.connectors.message_intake import Intake
from node_agent.connectors.result_delivery import Delivery
from node_agent.connectors.surroundings import Surroundings
from node_agent.host import ipc
from node_agent.host.channel_end import ChannelEnd
from node_agent.host.log import ERROR, Log
from node_agent.host.settings import Settings
from node_agent.operators.codecs import LARGE, Codecs
from node_agent.operators.registry import Registry

OWN = {"json", *LARGE}  # types that every agent has
MOST_ROWS = 100  # of figures, in a message
_END_S = 1.5  # within which files get their ends
_BEFORE_S = 12.0  # for a connection that is made and a message that is put
_AGAIN_NS = 5_000_000_000


def main(settings: Settings, supervisor: ChannelEnd, plans: ipc.Connect) -> int:
    """Run the connectors of these plans until the supervisor says Stop or is gone. Returns the exit code."""
    gc.enable()
    process = _Process(settings, supervisor)
    process.run_those_of(plans)
    while process.listen():
        process.report()
    process.end()
    return 0


class _Process:
    """All connectors of one agent, by the names of their flows."""

    def __init__(self, settings: Settings, supervisor: ChannelEnd) -> None:
        self._settings, self._supervisor = settings, supervisor
        self._codecs: Codecs | None = None
        self._log = Log(settings.name, "connectors", settings.log_json)
        self._loading = threading.Lock()
        self._plans, self._unread = ipc.Connect(()), False
        self._running: dict[tuple[str, str], tuple[Surroundings, Intake | Delivery]] = {}
        self._threads: list[threading.Thread] = []
        self._poll = select.poll()
        self._poll.register(supervisor.fileno(), select.POLLIN)

    def run_those_of(self, plans: ipc.Connect) -> None:
        """Those that a new plan has as the old one had them go on, and all of them where it cannot be read now."""
        self._plans = plans
        try:
            wanted = flows(self._settings, plans.plans)
        except OSError as error:
            self._unread = True
            text = f"a plan cannot be read ({error}); connectors go on as they are until it can"
            self._log.say("connector_failed", text, ERROR, "plan")
            return
        self._unread = False
        for name, (around, worker) in list(self._running.items()):
            if wanted.get(name) != around.flow:
                worker.stop()
                del self._running[name]
        for name, flow in wanted.items():
            if name not in self._running:
                self._running[name] = self._start(flow)

    def listen(self) -> bool:
        """What the supervisor says, for as long as a report may wait. False: this is the end."""
        self._poll.poll(ipc.ALIVE_S * 1000)
        for message, _ in self._supervisor.receive():
            if isinstance(message, ipc.Stop):
                return False
            if isinstance(message, ipc.Connect):
                self.run_those_of(message)
        if self._unread:
            self.run_those_of(self._plans)
        return not self._supervisor.closed

    def report(self) -> None:
        """Counts, which also say that this process goes on."""
        rows = tuple(_row(direction, around) for (direction, _), (around, _) in list(self._running.items())[:MOST_ROWS])
        self._supervisor.send(ipc.Connectors(rows, os.getpid()))

    def end(self) -> None:
        """All of them, as far as they end soon."""
        until_s = time.monotonic() + _END_S
        for _, worker in self._running.values():
            worker.stop()
        for thread in self._threads:
            thread.join(max(0.0, until_s - time.monotonic()))

    def _start(self, flow: Flow) -> tuple[Surroundings, Intake | Delivery]:
        reads = flow.direction == READS
        load_codecs = partial(self._codecs_for, flow.connector.codec)
        around = Surroundings(flow, Counts(IN if reads else OUT), self._settings, load_codecs, self._log)
        worker = Intake(around) if reads else Delivery(around)
        name = f"{flow.direction} {flow.connector.stream}"
        self._threads = [each for each in self._threads if each.is_alive()]
        before = [each for each in self._threads if each.name == name]
        thread = threading.Thread(target=_run, args=(around, worker, before), name=name, daemon=True)
        thread.start()
        self._threads.append(thread)
        return around, worker

    def _codecs_for(self, name: str) -> Codecs:
        """Files of operators are loaded where they may have a message class that a stream is of."""
        if name in OWN or not self._settings.operators:
            return Codecs()
        with self._loading:
            if self._codecs is None:
                self._codecs = Registry(self._settings.operators).codecs
            return self._codecs


def _row(direction: str, around: Surroundings) -> ipc.ConnectorRow:
    connector, connection = around.flow.connector, around.connection
    return (
        connector.stream, direction, connector.kind, connection.up, around.counts.rows(), connection.was_up,
        connection.apart_ns, connection.why,
    )  # fmt: skip


def _run(around: Surroundings, worker: Intake | Delivery, before: list[threading.Thread]) -> None:
    """Once those of its name have ended, or do not end. A library may raise anything: that is told, and costs the
    others nothing."""
    for thread in before:
        thread.join(_BEFORE_S)
    while not around.stop.is_set():
        try:
            worker.run()
            return
        except Exception as error:
            around.connection.end(f"{type(error).__name__}: {error}")
            over = isinstance(worker, Intake) and worker.replayed
            ends = "it is read no further" if over else "trying again"
            around.say("connector_failed", f"{type(error).__name__}: {error}; {ends}", ERROR)
            if over:
                return
            around.wait(_AGAIN_NS)
