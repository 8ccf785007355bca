"""A real agent as processes of its own: time until it is ready, its memory, and hops into it."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from infra.bench.agent.bare_socket import pace, wait_until
from node_agent.sdk import Admitted, Source
from protos import records
from protos.segments import records_in

BIN = Path(sys.executable).parent
QUERY = """
shimekiri: 1
query: hop
sources: {in: {at: a, type: json, arrival: {burst: 1, period: 1 ms}}}
operators: {O1: {run: pass, in: in, cost: 10 us}}
outputs: {out: {from: O1, at: a, deadline: 100 ms}}
"""
NODE = '{name}: {{address: "{control}"}}'


@dataclass(frozen=True)
class Agent:
    """A started agent: its name, its folder, addresses and how long it took until it said that it is ready."""

    name: str
    folder: Path
    process: subprocess.Popen[str]
    control: str
    data: str
    ready_s: float
    rt: bool
    tls: Path | None = None  # the coordinator's identity, which clients use as well

    def runtime(self) -> int:
        """Process id of the runtime."""
        return self._named("runtime")

    def runtime_cpu_ns(self) -> int:
        """Time that the runtime has had a processor, in ns."""
        return int(Path(f"/proc/{self.runtime()}/schedstat").read_text().split()[0])

    def control_cpu_ns(self) -> int:
        """The same of control, all its threads: it takes records over, packs and keeps them."""
        tasks = Path(f"/proc/{self._named('control')}/task").glob("*/schedstat")
        return sum(int(each.read_text().split()[0]) for each in tasks)

    def _named(self, name: str) -> int:
        children = psutil.Process(self.process.pid).children()
        return next(each.pid for each in children if Path(f"/proc/{each.pid}/comm").read_text().startswith(name))

    def pids(self) -> list[int]:
        """Of all its processes, the supervisor first."""
        parent = psutil.Process(self.process.pid)
        return [each.pid for each in (parent, *parent.children(recursive=True))]

    def pss_bytes(self) -> int:
        """Proportional set size of all its processes."""
        return sum(psutil.Process(pid).memory_full_info().pss for pid in self.pids())

    def cpu_s(self) -> float:
        """Time that all its processes have had a processor."""
        return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in self.pids())


@contextmanager
def agent(tls: bool = False, name: str = "a") -> Iterator[Agent]:
    """Start one; it is stopped at the end. tls: it speaks mutual TLS, with certificates made for it."""
    with TemporaryDirectory() as made:
        folder = Path(made)
        words = [
            "run",
            "--name",
            name,
            "--control",
            "127.0.0.1:0",
            "--data",
            "127.0.0.1:0",
            "--state",
            folder / "state",
        ]
        if tls:
            (folder / "cluster.yaml").write_text(_cluster({name: "127.0.0.1:7700"}, "mutual-tls"))
            _coordinator("certs", folder / "cluster.yaml", "-o", folder / "certs")
            words += ["--tls", folder / "certs" / name]
        began = time.monotonic()
        process = subprocess.Popen([BIN / "node-agent", *map(str, words)], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            took = time.monotonic() - began
            control, data = f"127.0.0.1:{ready['control']}", f"127.0.0.1:{ready['data']}"
            identity = folder / "certs" / "coordinator" if tls else None
            yield Agent(name, folder, process, control, data, took, ready["rt"], identity)
        finally:
            process.terminate()
            process.wait(20)


def deploy_hop(running: Agent) -> None:
    """Source -> pass -> output on this one agent."""
    deploy(running, QUERY)


def deploy(running: Agent, query: str, *others: Agent) -> None:
    """That query on these agents, through the commands that a user types, in the folder of the first."""
    plan_for(query, running, *others)
    deploy_planned(running)


def plan_for(query: str, running: Agent, *others: Agent) -> None:
    """A plan of that query for these agents, in the folder of the first."""
    folder, agents = running.folder, (running, *others)
    (folder / "query.yaml").write_text(query)
    security = "insecure-loopback" if running.tls is None else "mutual-tls"
    (folder / "cluster.yaml").write_text(_cluster({each.name: each.control for each in agents}, security))
    nodes = {
        each.name: {
            "name": each.name, "control": each.control, "data": each.data, "pid": each.process.pid, "rt": each.rt,
        }
        for each in agents
    }  # fmt: skip
    addresses: dict[str, object] = {"nodes": nodes, "started_by": "bench"}
    if running.tls is not None:
        addresses["tls"] = str(running.tls)
    (folder / "addresses.json").write_text(json.dumps(addresses))
    _coordinator("plan", folder / "query.yaml", folder / "cluster.yaml", "--model", "paper", "-o", folder / "plan.json")


def deploy_planned(running: Agent) -> None:
    """The plan in its folder."""
    folder = running.folder
    _coordinator("deploy", folder / "plan.json", "--addresses", folder / "addresses.json")


def _cluster(nodes: dict[str, str], security: str) -> str:
    """cluster.yaml. nodes: where the control of each listens; each is linked to the next."""
    lines = ", ".join(NODE.format(name=name, control=control) for name, control in nodes.items())
    pairs = ", ".join(f"{{between: [{one}, {next_}], latency: 1 ms}}" for one, next_ in pairwise(nodes))
    links = f"links: [{pairs}]\n" if pairs else ""
    return f"shimekiri: 1\nnodes: {{{lines}}}\nsecurity: {security}\n{links}"


def send_paced(running: Agent, count: int) -> None:
    """`count` tuples at 1000/s, one by one, through the client that users have."""
    with Source(running.data, "in", tls=running.tls) as source:
        for instant in pace(count):
            wait_until(instant)
            answer = source.send(0)
            assert isinstance(answer, Admitted), answer


@dataclass(frozen=True, slots=True)
class Hop:
    """One tuple on its way to its operator, by the agent's trace. ns on one clock."""

    origin_ns: int  # `send` was called
    sent_ns: int  # stamped into the frame, right before the write
    arrived_ns: int  # the runtime has woken up
    start_ns: int  # the operator starts


def collected(running: Agent) -> list[Path]:
    """The files of all that the agent has recorded."""
    folder = running.folder
    words: list[str | Path] = [
        "--addresses",
        folder / "addresses.json",
        "--plan",
        folder / "plan.json",
        "-o",
        folder / "runs",
    ]
    _coordinator("collect", *words)
    return sorted((folder / "runs").glob("*/trace/raw/*/*/*.trace"))


def hops(running: Agent) -> list[Hop]:
    """All that the agent has recorded, in the order of admission."""
    admitted: dict[int, records.Admitted] = {}
    starts: dict[int, int] = {}
    for path in collected(running):
        for record in records.unpack_records(records_in(path.read_bytes())):
            if isinstance(record, records.Admitted):
                admitted[record.seq] = record
            elif isinstance(record, records.Ran):
                starts[record.seq] = record.start_ns
    return [Hop(each.origin_hi_ns, each.sent_ns, each.at_ns, starts[seq]) for seq, each in sorted(admitted.items())]


def _coordinator(*words: str | Path) -> None:
    subprocess.run([BIN / "coordinator", *map(str, words)], check=True, stdout=subprocess.DEVNULL)
