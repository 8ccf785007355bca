"""Three hosts with an agent each, and a desk with the coordinator and the client, in network namespaces.

Each host has a file system of its own in memory for the agent's state, which can be full, and its own clock domain.
Everything is gone after the `with`: processes, namespaces, file systems, trace rings. Logs, the client's lines and the
collected run stay in the folder that was given.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from coordinator.lab.namespaces import Lab
from infra.chaos import recount
from node_agent.host.ring_directory import RingDirectory

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HOSTS, DESK = ("a", "b", "c"), "desk"
DATA_PORT, CONTROL_PORT = 7701, 7700
DISK = "48m"
WAIT_S = 60.0
LOOK_S = 0.01
FULL = "full"
SUBNET = "10.78.16.0/29"


class ChaosError(Exception):
    """A step that has to work did not."""


def program(*words: object) -> list[str]:
    """Command line of a module of this source."""
    return ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", *map(str, words)]


def until(condition: Callable[[], bool], what: str, seconds: float = WAIT_S) -> float:
    """Seconds that it took. Raises ChaosError."""
    begin = time.monotonic()
    while not condition():
        if time.monotonic() > begin + seconds:
            raise ChaosError(f"waited {seconds:g} s in vain: {what}")
        time.sleep(LOOK_S)
    return time.monotonic() - begin


class Host:
    """One machine: its agent's processes, its disk, its log."""

    def __init__(self, lab: Lab, name: str, folder: Path, state: Path) -> None:
        self.lab, self.name, self.folder, self.state = lab, name, folder, state
        self.log = folder / f"{name}.log"
        self._agent: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Begin the agent; it is ready some time later."""
        words = program(
            "node_agent", "run", "--name", self.name, "--tls", self.folder / "certs" / self.name, "--clock-domain",
            self.name, "--control", f"0.0.0.0:{CONTROL_PORT}", "--data", f"0.0.0.0:{DATA_PORT}", "--state",
            self.state / "agent", "--no-rt",
        )  # fmt: skip
        with self.log.open("a") as out:
            self._agent = self.lab.start(self.name, words, out, folder=self.folder)

    def family(self) -> list[int]:
        """The supervisor and its children, the supervisor first."""
        found = sorted(self.lab.processes(self.name))
        first = self._agent.pid if self._agent is not None else 0
        return sorted(found, key=lambda pid: pid != first)

    def runtime(self) -> int:
        """The process that has the data socket; 0: there is none now."""
        for pid in self.family()[1:]:
            try:
                name = Path(f"/proc/{pid}/comm").read_text()
            except OSError:
                continue
            if name.startswith("runtime"):
                return pid
        return 0

    def signal(self, number: signal.Signals, pids: list[int] | None = None) -> None:
        """To the whole agent, or to these processes of it."""
        for pid in self.family() if pids is None else pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    def power_off(self) -> None:
        """Cut from the net first, so that no FIN leaves; then all processes and what is in memory are gone."""
        self.lab.cut(self.name)
        self.signal(signal.SIGSTOP)
        self.signal(signal.SIGKILL)
        if self._agent is not None:
            self._agent.wait()
        rings = RingDirectory(self.state / "agent").path
        if rings is not None:
            shutil.rmtree(rings)

    def power_on(self) -> None:
        """The net again, when the kernel has forgotten the connections of before; then the agent."""
        until(lambda: not self._sockets(), f"the sockets of {self.name} are forgotten")
        self.lab.mend(self.name)
        self.start()

    def fill(self) -> None:
        """Leave no byte on the disk."""
        with (self.state / FULL).open("wb", buffering=0) as file:
            for size in (1 << 16, 1):
                try:
                    while file.write(bytes(size)):
                        pass
                except OSError:
                    continue

    def empty(self) -> None:
        """Room again."""
        (self.state / FULL).unlink(missing_ok=True)

    def _sockets(self) -> bool:
        said: str = self.lab.run(self.name, ["ss", "-Htan"]).stdout
        return bool(said.strip())


class Cluster:
    """The hosts with a plan deployed, and the client."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._open = folder, ExitStack()
        self.lab = Lab([*HOSTS, DESK], subnet=SUBNET)
        self.hosts: dict[str, Host] = {}
        self.run: Path | None = None
        self._desk: subprocess.Popen[str] | None = None
        self._client: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    # -- commands

    def coordinator(self, *words: object, allowed: tuple[int, ...] = (0,)) -> str:
        """One command at the desk; what it says on stdout. Raises ChaosError."""
        _tell(self._desk, json.dumps([str(word) for word in words]))
        assert self._desk is not None and self._desk.stdout is not None
        line = self._desk.stdout.readline()
        if not line:
            raise ChaosError(f"coordinator {words[0]}: the process at the desk has ended")
        code, out, errors = json.loads(line)
        if code not in allowed:
            raise ChaosError(f"coordinator {words[0]}: exit code {code}: {errors.strip()[-2000:]}")
        return str(out)

    def silent_hosts(self) -> tuple[set[str], float]:
        """Which hosts `coordinator status` calls unknown, and the seconds that the whole command took."""
        begin = time.monotonic()
        said = json.loads(self.coordinator("status", "--json", allowed=(0, 1)))
        silent = {name for name, node in said["nodes"].items() if not node["reachable"]}
        return silent, time.monotonic() - begin

    def recounted(self) -> recount.Recount:
        """Collect what there is, and count all tuples so far; none may be under way."""
        words = ["collect", "--plan", "plan.json", "--no-drain"]
        where = ["--resume", self.run] if self.run is not None else ["-o", "collected"]
        said = self.coordinator(*words, *where)
        if self.run is None:
            self.run = self.folder / said.strip().splitlines()[-1]
        return recount.recount(recount.incarnations(self.run), self.fed(), self.got())

    # -- the client

    def go(self) -> None:
        """The feed begins, or goes on."""
        _tell(self._client, "go")

    def pause(self) -> None:
        """The feed ends; returns when nothing more is sent."""
        before = self._paused()
        _tell(self._client, "pause")
        until(lambda: self._paused() > before, "the feed pauses")

    def fed(self) -> list[recount.Fed]:
        """What the source saw so far."""
        return recount.fed(self.folder / "fed.jsonl")

    def got(self) -> list[recount.Got]:
        """What the sink saw so far."""
        return recount.got(self.folder / "got.jsonl")

    def _paused(self) -> int:
        return (self.folder / "fed.jsonl").read_text(encoding="utf-8").count("paused")

    # -- making it

    def _start(self) -> None:
        for name in ("query.yaml", "cluster.yaml"):
            shutil.copy(HERE / name, self.folder / name)
        self._open.enter_context(self.lab)
        for name in HOSTS:
            self.hosts[name] = Host(self.lab, name, self.folder, self._open.enter_context(disk(name)))
            # A socket that no process owns any more is soon forgotten: a machine without power has none.
            self.lab.run(name, ["sh", "-c", "echo 1 > /proc/sys/net/ipv4/tcp_orphan_retries"])
        self._open.callback(self._end)
        self._desk = self._open.enter_context(self._at_desk(program("infra.chaos.desk"), "desk.log", subprocess.PIPE))
        self.coordinator("certs", "cluster.yaml")
        for host in self.hosts.values():
            host.start()
        self.coordinator("plan", "query.yaml", "cluster.yaml", "--model", "paper")
        self.coordinator("addresses", "cluster.yaml", "--wait", WAIT_S)
        self.coordinator("deploy", "plan.json")
        self._client = self._open.enter_context(self._traffic())
        until(lambda: self._paused() > 0, "the client starts")

    def _traffic(self) -> AbstractContextManager["subprocess.Popen[str]"]:
        words = program(
            "infra.chaos.traffic", self.folder, "--source", f"a.local:{DATA_PORT}", "--sink", f"c.local:{DATA_PORT}",
            "--tls", self.folder / "certs" / "client",
        )  # fmt: skip
        (self.folder / "fed.jsonl").touch()
        return self._at_desk(words, "client.log")

    @contextmanager
    def _at_desk(self, words: list[str], log: str, stdout: int | None = None) -> Iterator["subprocess.Popen[str]"]:
        """A process there, which is told on stdin what to do. stdout: where not into its log."""
        with (self.folder / log).open("a") as out:
            process = subprocess.Popen(
                self.lab.command(DESK, words), stdin=subprocess.PIPE, stdout=out if stdout is None else stdout,
                stderr=out, text=True, cwd=self.folder, start_new_session=True,
            )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def _end(self) -> None:
        """The agents end as asked, also those that stand still."""
        for host in self.hosts.values():
            host.signal(signal.SIGCONT)
            host.signal(signal.SIGKILL)
            rings = RingDirectory(host.state / "agent").path
            if rings is not None:
                shutil.rmtree(rings, ignore_errors=True)


def _tell(process: "subprocess.Popen[str] | None", line: str) -> None:
    assert process is not None and process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


@contextmanager
def disk(name: str) -> Iterator[Path]:
    """A small file system of its own. Raises ChaosError where that is not allowed."""
    folder = Path(tempfile.mkdtemp(prefix=f"shimekiri-{name}-"))
    try:
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder], capture_output=True, text=True, check=False
        )
        if made.returncode:
            raise ChaosError(f"no file system can be mounted here: {made.stderr.strip()}")
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], capture_output=True, check=False)
        folder.rmdir()


def why_not() -> str | None:
    """Why there can be no chaos here, None: there can."""
    from coordinator.lab import namespaces

    if why := namespaces.why_not():
        return why
    try:
        with disk("try"):
            return None
    except ChaosError as error:
        return str(error)
