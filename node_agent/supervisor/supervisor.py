"""The parent process: highest FIFO priority where allowed, never busy.

It applies the rules of `supervision.py` to this machine. It uses the standard library alone, and has loaded before the
first fork what its children have in common (`shared_modules.py`).
"""

import contextlib
import gc
import json
import os
import selectors
import signal

from node_agent.host import scheduling
from node_agent.host.files.state_dir import StateError
from node_agent.host.log import INFO, Log
from node_agent.host.settings import Settings
from node_agent.supervisor import shared_modules
from node_agent.supervisor.forked_processes import ForkedProcesses
from node_agent.supervisor.process_host import StartError
from node_agent.supervisor.service_manager import ServiceManager
from node_agent.supervisor.supervision import Supervision
from protos.installed import requirements

WATCH_S = 0.02  # the hang cells are looked at this often
START_WATCH_S = 0.002


class Supervisor:
    """One agent. `run` returns the exit code."""

    def __init__(self, settings: Settings) -> None:
        log = Log(settings.name, "supervisor", settings.log_json)
        self._host = ForkedProcesses(self._give_up)
        self._rules = Supervision(settings, self._host, log)
        self._manager = ServiceManager()
        self._stop = False
        self._wake_r, self._wake_w = -1, -1

    def run(self) -> int:
        """Until SIGTERM or SIGINT."""
        scheduling.name_process(f"agent {self._rules.settings.name}")
        try:
            if unmet := requirements.unmet():
                raise StartError("other_version", requirements.mend(unmet))
            shared_modules.load()
            self._rules.prepare()
            self._take_signals()
            self._warn_of_cores()
            self._rules.start()
            self._serve()
        except (StartError, StateError) as error:
            self._rules.fail(str(error))
            return error.exit_code if isinstance(error, StartError) else 1
        finally:
            self._manager.stopping()
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            self._rules.end()
        return 0

    def _take_signals(self) -> None:
        self._wake_r, self._wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._wake_w, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # wakes the selector
        if self._rules.settings.rt:
            scheduling.fifo(scheduling.SUPERVISOR_PRIORITY)

    def _give_up(self) -> None:
        """In a child: the signals' pipe is not its own."""
        os.close(self._wake_r)
        os.close(self._wake_w)

    def _on_signal(self, number: int, frame: object) -> None:
        self._stop = True

    def _warn_of_cores(self) -> None:
        here, wanted = scheduling.cores(), self._rules.settings.cores
        if 1 < wanted >= here:
            self._rules.say(
                "no_core_left",
                f"{wanted} runtimes on {here} cores leave none for control and the rest of the machine:"
                f" bounds may not hold; give --cores {max(here - 1, 1)}",
            )

    def _serve(self) -> None:
        selector = selectors.DefaultSelector()
        selector.register(self._wake_r, selectors.EVENT_READ)
        announced = False
        while not self._stop:
            selector.select(WATCH_S if announced else START_WATCH_S)
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_r, 4096)
            self._rules.step()
            self._manager.alive(self._host.now_ns())
            if self._rules.announced and not announced:
                announced = True
                self._announce()

    def _announce(self) -> None:
        settings, places = self._rules.settings, self._rules.places
        line: dict[str, object] = {
            "name": settings.name, "address": settings.control[0], "control": settings.control[1],
            "data": settings.data[1], "rt": all(place.rt for place in places), "pid": os.getpid(),
            "clock": settings.clock,
        }  # fmt: skip
        if settings.tls is not None:
            line["tls"] = True
        if settings.metrics is not None:
            line["metrics"] = settings.metrics[1]
        if settings.cores > 1:
            line["cores"] = [{"name": name, "data": address[1]} for name, address in settings.places]
        print(json.dumps(line), flush=True)  # noqa: T201
        rt = "with" if line["rt"] else "without"
        message = f"ready: control on port {settings.control[1]}, data on {settings.data[1]}, {rt} real-time priority"
        self._rules.say("started", message, INFO, **line)
        self._manager.ready(message)
        gc.enable()
