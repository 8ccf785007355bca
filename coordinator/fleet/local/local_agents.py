"""Agents on this machine as processes of their own: started, gathered into addresses.json, stopped without orphans."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import psutil

from coordinator import signals
from coordinator.error_codes import Code
from coordinator.errors import CoordinatorError, Mistake
from coordinator.fleet.addresses import AgentAddress, host_of, join, split

READY_S = 30.0
STOP_S = 12.0  # an agent gives its children 8 s to end
LOG = "agent.log"
SAID = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z \S+ \w+( \w+)?: (.*)")  # a line of the agent: its level, and what it says
LIBRARY_LINE = re.compile(r"[EWI]\d{4} ")  # gRPC's; the agent says the same in words
FULL_BYTES = 1 << 16
PROGRAM = "node-agent"
MOST_BEFORE = 8  # words: the interpreter and its options


class LocalAgentError(CoordinatorError):
    """An agent could not be started or has ended; the text has the agent's own last words."""


def failed(node: str, code: Code, text: str, mend: str = "") -> LocalAgentError:
    """An agent of this machine, by its node."""
    return LocalAgentError(Mistake(code, f"node {node}: {text}", mend, node))


@dataclass(frozen=True)
class Wanted:
    """An agent to start. control, data: host:port, port 0 for any; state: its own directory; cores: runtimes; tls: its
    identity, and caller: the coordinator's to talk to it with, both None without TLS."""

    name: str
    control: str
    data: str
    state: Path
    cores: int = 1
    tls: Path | None = None
    caller: Path | None = None


@dataclass
class LocalAgent:
    """One that was started by this process."""

    wanted: Wanted
    process: subprocess.Popen[bytes]
    log_from: int = 0  # bytes that earlier agents had written into its log
    address: AgentAddress | None = None  # of its first place
    places: tuple[AgentAddress, ...] = ()

    def last_words(self) -> str:
        """The end of what it wrote into its log: the error, or else its last words."""
        log = self.wanted.state / LOG
        text = log.read_bytes()[self.log_from :].decode(errors="replace")
        said = [_said(line) for line in text.strip().splitlines() if not LIBRARY_LINE.match(line)]
        lines = [words for wrong, words in said if wrong] or [words for _, words in said]
        full = ", and the disk is full" if shutil.disk_usage(log.parent).free < FULL_BYTES else ""
        return " | ".join(lines[-3:]) or f"exit code {self.process.poll()}, nothing in {log}{full}"


def _said(line: str) -> tuple[bool, str]:
    """Whether a line of a log tells of trouble, and what it says. A line of no known form may."""
    if plain := SAID.fullmatch(line):
        return plain[1] is not None, plain[2]
    try:
        found = json.loads(line)
        return found["level"] != "info", str(found["text"])
    except (ValueError, KeyError, TypeError):
        return True, line


def start(
    wanted: Sequence[Wanted],
    operators: Sequence[Path] = (),
    seconds: float = READY_S,
    log_json: bool = False,
    checks: bool = False,
) -> list[LocalAgent]:
    """Start them all and wait until each is ready. Raises LocalAgentError; what was started is stopped again then.

    log_json: of what they say on stderr. checks: `--check-operators`.
    """
    agents: list[LocalAgent] = []
    options = [option for option, is_on in (("--log-json", log_json), ("--check-operators", checks)) if is_on]
    try:
        for each in wanted:
            with signals.held():  # else a signal as it starts would leave an agent that nobody stops
                agents.append(_start(each, operators, options))
        _await_ready(agents, seconds)
    except BaseException:
        stop(agents)
        raise
    return agents


def stop(agents: Sequence[LocalAgent], seconds: float = STOP_S) -> None:
    """SIGTERM to all, SIGKILL to those that are still there after `seconds`; all are reaped."""
    for agent in agents:
        if agent.process.poll() is None:
            agent.process.terminate()
    end = time.monotonic() + seconds
    for agent in agents:
        try:
            agent.process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            agent.process.kill()
            agent.process.wait()


def stop_by_pid(addresses: Sequence[AgentAddress], seconds: float = STOP_S) -> dict[str, str]:
    """Stop agents that another `up` started; addresses: of any of their places. Per node what happened: stopped,
    killed, not running, not ours."""
    outcome: dict[str, str] = {}
    running: dict[str, psutil.Process] = {}
    for agent in {host_of(each.name): replace(each, name=host_of(each.name)) for each in addresses}.values():
        found = find(agent)
        if isinstance(found, str):
            outcome[agent.name] = found
            continue
        running[agent.name] = found
        found.send_signal(signal.SIGTERM)
    _, alive = psutil.wait_procs(list(running.values()), timeout=seconds)
    for process in alive:
        process.kill()
    psutil.wait_procs(alive, timeout=5)
    killed = {process.pid for process in alive}
    outcome.update({name: "killed" if each.pid in killed else "stopped" for name, each in running.items()})
    return outcome


def find(agent: AgentAddress) -> psutil.Process | str:
    """The agent's process; else why there is none that may be signalled. A pid alone may long be somebody else's; an
    agent that was started again by hand has another one, and the same state directory."""
    if agent.pid is None or agent.state is None:
        return "not started here"
    try:
        process = psutil.Process(agent.pid)
        if _has_state(process, process.cmdline(), Path(agent.state)):
            return process
    except psutil.NoSuchProcess:
        pass
    except psutil.AccessDenied:
        return "not ours"
    return _with_state(Path(agent.state)) or "not running"


def operators_of(pid: int) -> list[Path]:
    """The files with operators that an agent was started with; none where it has ended."""
    try:
        process = psutil.Process(pid)
        return [Path(process.cwd(), file).resolve() for file in _values(process.cmdline(), "--operators")]
    except psutil.Error:
        return []


def _with_state(state: Path) -> psutil.Process | None:
    """Our own agent with that state directory, if there is one: of it and its children, which were forked and have the
    same command line, the first."""
    found: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.uids().real == os.getuid() and _has_state(process, process.cmdline(), state):
                found[process.pid] = process
    for process in found.values():
        with contextlib.suppress(psutil.Error):
            if process.ppid() not in found:
                return process
    return None


def _has_state(process: psutil.Process, words: Sequence[str], state: Path) -> bool:
    """Whether a command line is that of an agent with that state directory, as a module or as the command."""
    if (
        not any(word == "node_agent" or Path(word).name == PROGRAM for word in words[:MOST_BEFORE])
        or "run" not in words
    ):
        return False
    return any(Path(process.cwd(), each).resolve() == state.resolve() for each in _values(words, "--state"))


def _values(words: Sequence[str], option: str) -> list[str]:
    """What an option is given, `--state DIR` and `--state=DIR`."""
    apart = [value for word, value in pairwise(words) if word == option]
    return apart + [word.partition("=")[2] for word in words if word.startswith(f"{option}=")]


def _start(wanted: Wanted, operators: Sequence[Path], more: Sequence[str]) -> LocalAgent:
    files = [argument for path in operators for argument in ("--operators", str(path.resolve()))]
    command = [
        *(sys.executable, "-m", "node_agent", "run", "--name", wanted.name),
        *("--control", wanted.control, "--data", wanted.data, "--state", str(wanted.state), *files),
        *(("--cores", str(wanted.cores)) if wanted.cores > 1 else ()),
        *(("--tls", str(wanted.tls)) if wanted.tls is not None else ()),
        *more,
    ]
    with _log(wanted) as log:
        before = log.tell()
        # A session of its own: Ctrl-C reaches this command, which then stops the agents in order.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True
        )
        return LocalAgent(wanted, process, before)


def _log(wanted: Wanted) -> IO[bytes]:
    """The agent's log, at its end, in a state directory that is made here if it has to be."""
    try:
        wanted.state.mkdir(parents=True, exist_ok=True)
        return (wanted.state / LOG).open("ab")
    except OSError as error:
        text, mend = f"state directory {wanted.state}: {error.strerror or error}", "give another directory with --state"
        raise failed(wanted.name, "unwritable", text, mend) from error


def _await_ready(agents: Sequence[LocalAgent], seconds: float) -> None:
    end = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for agent in agents:
            assert agent.process.stdout is not None
            selector.register(agent.process.stdout, selectors.EVENT_READ, agent)
        lines = {agent.wanted.name: b"" for agent in agents}
        while selector.get_map():
            events = selector.select(max(0.0, end - time.monotonic()))
            if not events:
                late = [agent.wanted.name for agent in agents if agent.address is None]
                raise failed(late[0], "not_ready", f"the agent was not ready within {seconds:g} s")
            for key, _ in events:
                agent = key.data
                data = os.read(key.fd, 65536)
                lines[agent.wanted.name] += data
                if not data:
                    agent.process.wait()
                    raise failed(agent.wanted.name, "not_started", f"the agent did not start: {agent.last_words()}")
                if b"\n" in lines[agent.wanted.name]:
                    agent.places = _places(agent.wanted, lines[agent.wanted.name], agent.process.pid)
                    agent.address = agent.places[0]
                    selector.unregister(key.fileobj)
                    agent.process.stdout.close()


def _places(wanted: Wanted, line: bytes, pid: int) -> tuple[AgentAddress, ...]:
    try:
        ready: dict[str, Any] = json.loads(line)
        control, host = join(split(wanted.control)[0], int(ready["control"])), split(wanted.data)[0]
        cores = ready.get("cores") or [{"name": wanted.name, "data": ready["data"]}]
        common = pid, ready["rt"] is True, str(wanted.state), wanted.caller
        return tuple(AgentAddress(str(each["name"]), control, join(host, int(each["data"])), *common) for each in cores)
    except (ValueError, KeyError, TypeError) as error:
        raise failed(wanted.name, "no_ports", f"the agent said {line[:80]!r} instead of its ports") from error
