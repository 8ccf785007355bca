"""`node-agent listen` as processes, one per output: the first results, for people to look at. What they miss, or cannot
read, is no failure of the run: traces tell what was delivered."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from coordinator import signals
from coordinator.fleet.addresses import AgentAddress

MOST_RESULTS = 1000
MOST_SHOWN_BYTES = 1 << 20
READY_S = 10.0
END_S = 5.0
READY = "results from now on"


class Listening:
    """Listeners that run; results go to `folder`/OUTPUT.jsonl. Use it in a `with` statement: none is left behind."""

    def __init__(self, outputs: Mapping[str, AgentAddress], operators: Sequence[Path], folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        files = [word for file in operators for word in ("--operators", str(file))]
        folder.mkdir()
        try:
            for name, node in outputs.items():
                command = [sys.executable, "-m", "node_agent", "listen", name, "--from", node.data, "--outage", "5"]
                with self.results(name).open("wb") as out, self._log(name).open("wb") as said, signals.held():
                    self._running[name] = subprocess.Popen(
                        [*command, "--count", str(MOST_RESULTS), *files],
                        stdin=subprocess.DEVNULL, stdout=out, stderr=said, start_new_session=True,
                    )  # fmt: skip
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Listening:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        end = time.monotonic() + END_S
        for process in self._running.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, end - time.monotonic()))
            if process.poll() is None:
                process.kill()
                process.wait()

    def await_ready(self) -> None:
        """Until all are connected or have ended, for a while at most."""
        end = time.monotonic() + READY_S
        while time.monotonic() < end and any(
            process.poll() is None and READY not in self._log(name).read_text(errors="replace")
            for name, process in self._running.items()
        ):
            time.sleep(0.02)

    def results(self, name: str) -> Path:
        """Where the results of an output are."""
        return self._folder / f"{name}.jsonl"

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"


def first(path: Path, most: int) -> list[Any]:
    """The values of the first results in that file."""
    try:
        with path.open("rb") as file:
            lines = file.read(MOST_SHOWN_BYTES).splitlines()[:most]
        return [json.loads(line)["value"] for line in lines]
    except (OSError, ValueError, KeyError, TypeError):
        return []  # none, or one larger than anybody would look at
