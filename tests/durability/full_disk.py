"""An agent on a disk of 1 MiB that others fill, is killed and started again: what it says and hands over, as JSON.

To be run in a mount namespace of its own: `unshare -Urm python -m tests.durability.full_disk FOLDER`.
"""

import json
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import grpc
import psutil

from node_agent.sdk import Admitted, Source
from protos import agent_pb2, agent_pb2_grpc, trace_pb2
from protos.records import ADMITTED, HEADER_BYTES, unpack_records
from protos.segments import records_in
from tests.node_agent.live import Agent, chain_plan, store

Lineages = set[tuple[int, int]]


def send(agent: Agent, count: int) -> Lineages:
    with Source(agent.data, "in", timeout=60) as source:
        answers = [source.send({"n": n}) for n in range(count)]
    return {(each.epoch, each.seq) for each in answers if isinstance(each, Admitted)}


def fill(disk: Path) -> None:
    """Others leave nothing."""
    with suppress(OSError), (disk / "filler").open("ab", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def kill(agent: Agent) -> None:
    children = [psutil.Process(pid) for pid in agent.children()]
    agent.stop(signal.SIGKILL)
    psutil.wait_procs(children, timeout=20)


def pull(stub: agent_pb2_grpc.AgentStub) -> Lineages:
    """All that it hands over, round by round, as a collection does; it frees what is held."""
    held: dict[int, int] = {}
    found: Lineages = set()
    for _ in range(4):
        positions = [trace_pb2.Position(boot=boot, records=records) for boot, records in held.items()]
        for chunk in stub.Trace(trace_pb2.TraceRequest(held=positions)):
            held[chunk.boot] = chunk.written
            for each in unpack_records(records_in(bytes(HEADER_BYTES) + chunk.blocks)):
                if each.kind == ADMITTED:
                    found.add((each.epoch, each.seq))
    return found


def main(folder: Path) -> None:
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=True)
    store(disk / "s", chain_plan())
    with Agent(disk / "s") as agent:
        before = send(agent, 200)
        with grpc.insecure_channel(f"127.0.0.1:{agent.ready['control']}") as channel:
            list(agent_pb2_grpc.AgentStub(channel).Trace(trace_pb2.TraceRequest()))  # all of it is on the disk
        fill(disk)
        kill(agent)
    fill(disk)
    with Agent(disk / "s") as agent:
        with grpc.insecure_channel(f"127.0.0.1:{agent.ready['control']}") as channel:
            stub = agent_pb2_grpc.AgentStub(channel)
            status = stub.Status(agent_pb2.StatusRequest())
            after = send(agent, 20)
            handed = pull(stub)
        code = agent.stop()
    told = {
        "plans": [agent_pb2.PlanState.Name(plan.state) for plan in status.plans], "code": code,
        "repeated": len(before & after), "sent": len(before | after), "handed": len(handed & (before | after)),
        "reserve": (disk / "s" / "plans" / "reserve").stat().st_size, "log": agent.log.read_text(),
    }  # fmt: skip
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
