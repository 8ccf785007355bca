"""The hop between two runtimes of one agent, each on a core of its own: what `core_link` in cluster.yaml stands for."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from infra.bench.agent.bare_socket import bare_hops_ns, fifo_class, pace, wait_until
from infra.bench.figures import Figure, percentile
from node_agent.sdk import Admitted, Source
from protos import records
from protos.segments import records_in

QUERY = """
shimekiri: 1
query: cores
sources: {in: {at: a, type: json, arrival: {burst: 1, period: 1 ms}}}
operators:
  near: {run: pass, in: in, cost: 10 us, nodes: [a.0]}
  far: {run: pass, in: near, cost: 10 us, nodes: [a.1]}
outputs: {out: {from: far, at: a, deadline: 100 ms}}
"""
CLUSTER = """
shimekiri: 1
nodes: {a: {address: "127.0.0.1:0", cores: 2, cpu: 0}}
"""
BARE_HOPS = 2000
SHARES = (0.5, 0.99, 0.999, 1.0)


@dataclass(frozen=True, slots=True)
class CoreHop:
    """One tuple from the first core to the second. ns on one clock."""

    end_ns: int  # the operator on the first core ended
    release_ns: int  # the second core's runtime took it in
    start_ns: int  # the operator there started


def core_hops(count: int) -> list[CoreHop]:
    """An agent with two cores, `count` tuples at 1000/s through both, read from its traces."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "query.yaml").write_text(QUERY)
        (folder / "cluster.yaml").write_text(CLUSTER)
        _coordinator(folder, "plan", "query.yaml", "cluster.yaml", "--model", "paper")
        _coordinator(folder, "up", "cluster.yaml", "--any-port", "--detach")
        try:
            _coordinator(folder, "deploy", "plan.json")
            _send(json.loads((folder / "addresses.json").read_text())["nodes"]["a"]["data"], count)
            _coordinator(folder, "collect", "--plan", "plan.json")
        finally:
            _coordinator(folder, "down")
        near, far = _ran(folder, "a"), _ran(folder, "a.1")
    return [
        CoreHop(near[key].end_ns, far[key].release_ns, far[key].start_ns) for key in sorted(near.keys() & far.keys())
    ]


def _send(address: str, count: int) -> None:
    with Source(address, "in") as source:
        for instant in pace(count):
            wait_until(instant)
            answer = source.send(0)
            assert isinstance(answer, Admitted), answer


def _ran(folder: Path, place: str) -> dict[tuple[int, int], records.Ran]:
    found = {}
    for path in folder.glob(f"runs/*/trace/raw/{place}/*/*.trace"):
        for record in records.unpack_records(records_in(path.read_bytes())):
            if isinstance(record, records.Ran):
                found[record.epoch, record.seq] = record
    return found


def core_hop(count: int = 10_000) -> list[Figure]:
    """What `core_link` has to cover, and what follows on the other core; beside a bare blocking socket."""
    previous = os.sched_getscheduler(0)
    fifo_class()
    bare_ns = percentile(bare_hops_ns(BARE_HOPS), 0.5)
    os.sched_setscheduler(0, previous, os.sched_param(0))
    taken = core_hops(count)
    how = f"{len(taken)} tuples at 1000/s from one runtime of an agent to another, each pinned to its core"
    released = [each.release_ns - each.end_ns for each in taken]
    started = [each.start_ns - each.end_ns for each in taken]
    ratio = percentile(started, 0.5) / bare_ns
    against = f"operator's end to the next one's start, median, against bare_socket ({bare_ns / 1000:.0f} us); {how}"
    figures = [Figure("core_hop_p50", ratio, "x bare socket", 1.0, against)]
    for share in SHARES:
        of = "worst" if share == 1.0 else f"p{share * 100:g}".replace(".", "")
        to_release, to_start = percentile(released, share) / 1000, percentile(started, share) / 1000
        figures.append(
            Figure(f"core_link_{of}_us", to_release, "us", None, f"operator's end to the peer's drain; {how}")
        )
        figures.append(
            Figure(f"core_hop_{of}_us", to_start, "us", None, f"operator's end to the next one's start; {how}")
        )
    return figures


def _coordinator(folder: Path, *words: str) -> None:
    command = [str(Path(sys.executable).parent / "coordinator"), *words]
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    for each in core_hop():
        sys.stdout.write(f"{each.name:24} {each.value:8.1f} {each.unit}\n")
