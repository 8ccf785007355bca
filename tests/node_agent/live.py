"""Real agents on loopback for the tests: start, give them a plan, read what they wrote, see that nothing is left."""

import hashlib
import json
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from random import SystemRandom
from typing import Any

import psutil

from node_agent.control.deployment import Deployment, Durable, State
from node_agent.control.plan_store import PlanStore
from node_agent.control.spool.spool_files import SpoolFiles
from node_agent.host.files import plan_files
from node_agent.host.files.state_dir import StateDir
from node_agent.operators.registry import Registry
from protos import plan_pb2, records, segments

ROOT = Path(__file__).parents[2]
WHOLE = b'{"stands for":"the whole plan"}'
HASH = hashlib.sha256(WHOLE).hexdigest()


def free_ports(count: int) -> list[int]:
    """Free ports in a row, below those that the kernel gives to connections. A port above that is tried while nobody
    listens there may be given to the one that tries it, or to another test."""
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        first = SystemRandom().randrange(min(10_000, low // 2), low - count)
        found = list(range(first, first + count))
        with suppress(OSError), ExitStack() as taken:
            for port in found:
                taken.enter_context(socket.create_server(("127.0.0.1", port)))
            return found


def cut_power(pid: int) -> None:
    """The whole agent is gone at once. Killed alone, its runtime may outlive it by a moment and end in order."""
    supervisor = psutil.Process(pid)
    supervisor.suspend()
    family = [*supervisor.children(recursive=True), supervisor]
    for process in family:
        process.kill()
    psutil.wait_procs(family, timeout=30)


def chain_plan(node: str = "a", run: str = "pass", **changes: Any) -> plan_pb2.LocalPlan:
    """source `in` -> operator O1 -> output `out`, on one node."""
    values: dict[str, Any] = {
        "version": 1, "query": "q", "node": node, "index": 0, "policy": {"name": "edf", "largest_batch": 1},
        "streams": [
            {"id": 1, "name": "in", "codec": "json", "deadline_ns": 10**9},
            {"id": 2, "name": "O1", "codec": "json", "deadline_ns": 10**9},
        ],
        "sources": [{"id": 1, "name": "in", "stream": 1}],
        "operators": [{"id": 1, "name": "O1", "run": run, "inputs": [1], "output": 2, "hang_ns": 300_000_000}],
        "units": [{"id": 1, "operators": [1], "sub_deadline_ns": 10**8, "deadline_ns": 10**9, "exits": [2]}],
        "outputs": [{"id": 1, "name": "out", "stream": 2, "deadline_ns": 10**9}],
        "cpu": -1,
    }  # fmt: skip
    return plan_pb2.LocalPlan(**{**values, **changes})


def store(state: Path, plan: plan_pb2.LocalPlan, routes: plan_files.Routes = (), whole: bytes = WHOLE) -> StateDir:
    """Put a committed plan into the state directory of an agent that does not run, as control does."""
    return store_places(state, (plan,), routes, whole)


def store_places(
    state: Path, parts: Sequence[plan_pb2.LocalPlan], routes: plan_files.Routes = (), whole: bytes = WHOLE
) -> StateDir:
    """The same for an agent with several cores; parts: the plan of each place, the first core's first."""
    directory = StateDir(state)
    plan_hash = hashlib.sha256(whole).hexdigest()
    plans, places = PlanStore(directory.plans), tuple(range(len(parts)))
    plans.put_plan(plan_hash, whole, {core: part.SerializeToString() for core, part in enumerate(parts)})
    plans.write(Durable(1, 0, (Deployment(plan_hash, 1, State.COMMITTED, parts[0].query, routes, places),)))
    return directory


def with_identities(plans: dict[str, dict[str, Any]], *operators: Path) -> dict[str, dict[str, Any]]:
    """The local plans with the identities of what their operators run, as these files define it."""
    registry = Registry(operators)
    for plan in plans.values():
        runs = sorted({each["run"] for each in plan["operators"]})
        plan["installed"] = [asdict(registry.identity(run)) for run in runs]
    return plans


class Agent:
    """One agent as a process; the context ends it. under: the words of a command that starts it, like `prlimit ...`."""

    def __init__(self, state: Path, *options: str, name: str = "a", under: tuple[str, ...] = ()) -> None:
        self.state = state
        command = [*under, sys.executable, "-m", "node_agent", "run", "--name", name, "--state", str(state), *options]
        self.log = state.parent / f"{name}.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait(20)
            raise AssertionError(f"the agent ended with {code}: {self.log.read_text()}")
        self.ready: dict[str, Any] = json.loads(line)
        self.data = f"127.0.0.1:{self.ready['data']}"

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.stop()

    def children(self) -> list[int]:
        """Process ids of the runtimes and control."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text().split()]

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Signal the supervisor and wait for it."""
        self.process.send_signal(number)
        return self.process.wait(30)

    def runtime(self) -> int:
        """Process id of the runtime: the child of that name."""
        return next(pid for pid in self.children() if Path(f"/proc/{pid}/comm").read_text().startswith("runtime"))

    def place(self, name: str) -> str:
        """host:port of the data socket of that place."""
        return next(f"127.0.0.1:{each['data']}" for each in self.ready["cores"] if each["name"] == name)

    def runtime_of(self, name: str) -> int:
        """Process id of the runtime of that place: the only child that listens there. Raises ValueError while there is
        none."""
        port = int(self.place(name).rpartition(":")[2])
        (pid,) = (pid for pid in self.children() if port in listening(pid))
        return pid


def listening(pid: int) -> set[int]:
    """Ports of TCP sockets that the process listens on."""
    try:
        found = psutil.Process(pid).net_connections("tcp")
    except psutil.Error:
        return set()
    return {each.laddr.port for each in found if each.status == psutil.CONN_LISTEN}


def alive(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(condition: Any, seconds: float = 20.0) -> None:
    """Wait for something that comes by itself; fails loudly where it does not."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds} s in vain"
        time.sleep(0.01)


def spooled(state: Path) -> list[records.Record]:
    """All records of an agent that has ended, incarnation by incarnation, each with its order kept."""
    directory = StateDir(state)
    files = SpoolFiles(directory.spool, directory.rings)
    while files.drain():
        pass
    return written(state)


def written(state: Path) -> list[records.Record]:
    """The records that an agent, which may run, has in its spool. Its rings are its own: draining them here as well
    would count records twice and lose others."""
    folder = StateDir(state).spool
    paths = sorted(folder.glob("*/*.rec"), key=lambda path: (path.parent.stat().st_ctime_ns, path.name))
    return [record for path in paths for record in records.unpack_records(segments.records_in(path.read_bytes()))]


def kinds(found: list[records.Record]) -> Counter[str]:
    """How many records of each kind."""
    return Counter(records.KINDS[record.kind] for record in found)
