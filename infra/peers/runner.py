"""Runs a contestant on a workload: operators on one core, the feeder on another."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread, Timer

import psutil

from infra.peers.environments import ROOT, Contestant
from infra.peers.feeder import DRAIN_S, LATENCIES, START_LIMIT_S
from infra.peers.lines import HOST, Setup
from infra.peers.ours import COUNTED
from infra.peers.peer_results import Measured, judge
from infra.peers.workload import LEAD_S, SECOND, Workload

STOP_LIMIT_S = 10
SYSTEM_LOG = "system.log"
MIB = 1 << 20


class FailedError(Exception):
    """A run without figures; the text says why."""


def measure(contestant: Contestant, python: Path, workload: Workload) -> Measured:
    """One run. Raises FailedError."""
    with TemporaryDirectory(prefix="peers-") as name:
        setup = _setup(Path(name), workload)
        cores = sorted(os.sched_getaffinity(0))
        limit_s = START_LIMIT_S + LEAD_S + workload.seconds + DRAIN_S + 10
        try:
            with _process(setup, python, contestant.feeder, cores[0]) as feeder, _watched(feeder, limit_s):
                _await(feeder, "listening")
                with _process(setup, python, contestant.system, cores[-1]) as system:
                    Thread(target=_end_with, args=(system, feeder), daemon=True).start()
                    return _observed(setup, feeder, system)
        except EOFError:
            raise FailedError(_last_words(setup.folder)) from None


def _observed(setup: Setup, feeder: subprocess.Popen[str], system: subprocess.Popen[str]) -> Measured:
    """Reads CPU time and memory as the feeder says where it is."""
    _await(feeder, "start")
    counted = _counted(setup.folder, system.pid)
    before_s = _cpu_s(counted)
    _await(feeder, "half")
    memory = sum(each.memory_full_info().pss for each in counted) / MIB
    _await(feeder, "end")
    cpu_s = _cpu_s(counted) - before_s
    _await(feeder, "done")
    found = json.loads((setup.folder / LATENCIES).read_text())
    return Measured(judge(setup.workload, found["latencies"]), cpu_s, memory, found["lag_ns"] / SECOND * 1000)


def _setup(folder: Path, workload: Workload) -> Setup:
    ports = [_free_port() for _ in range(len(workload.streams) + 1)]
    names = [each.name for each in workload.streams]
    setup = Setup(folder, workload, dict(zip(names, ports[1:], strict=True)), ports[0])
    setup.write()
    return setup


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def _process(setup: Setup, python: Path, words: str, core: int) -> Iterator[subprocess.Popen[str]]:
    """A module of this package, pinned with all that it starts, which ends with it."""
    module, *rest = words.split()
    command = ["taskset", "-c", str(core), str(python), "-m", f"infra.peers.{module}", str(setup.folder), *rest]
    path = f"{python.parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path}
    feeds = module == "feeder" or "feed" in rest
    with (setup.folder / ("feeder.log" if feeds else SYSTEM_LOG)).open("w") as log:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE if feeds else log,
            stderr=log,
            text=True,
            cwd=setup.folder,
            env=environment,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _end(process, [] if feeds else _counted(setup.folder, process.pid))


def _end(process: subprocess.Popen[str], started: Sequence[psutil.Process]) -> None:
    """First as a user would, then for good, with what it has started."""
    process.terminate()
    try:
        process.wait(STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for each in started:
        with suppress(psutil.NoSuchProcess):
            each.kill()


@contextmanager
def _watched(feeder: subprocess.Popen[str], limit_s: float) -> Iterator[None]:
    """The feeder ends after that time, and with it the run."""
    timer = Timer(limit_s, feeder.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _end_with(system: subprocess.Popen[str], feeder: subprocess.Popen[str]) -> None:
    """Nobody waits for what has ended."""
    system.wait()
    feeder.kill()


def _await(feeder: subprocess.Popen[str], event: str) -> None:
    assert feeder.stdout is not None
    line = feeder.stdout.readline()
    if line.strip() != event:
        raise EOFError


def _counted(folder: Path, root: int) -> list[psutil.Process]:
    """The processes of a contestant: `root`, or those that it names in its place, and all under them."""
    named = folder / COUNTED
    found = []
    for pid in json.loads(named.read_text()) if named.exists() else [root]:
        with suppress(psutil.NoSuchProcess):
            top = psutil.Process(pid)
            found += [top, *top.children(recursive=True)]
    return found


def _cpu_s(processes: Sequence[psutil.Process]) -> float:
    times = [each.cpu_times() for each in processes]
    return sum(each.user + each.system for each in times)


def _last_words(folder: Path) -> str:
    """What a run that failed has said."""
    for name in (SYSTEM_LOG, "feeder.log"):
        path = folder / name
        if path.exists() and (lines := path.read_text(errors="replace").split("\n")[:-1]):
            return lines[-1].strip()[:200]
    return "it ended without a word"
