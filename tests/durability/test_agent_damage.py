"""A real agent whose files were damaged while it was away: it starts, says what it found, and repeats no lineage."""

import os
from pathlib import Path

import grpc

from node_agent.client.client import NotAcceptedError
from node_agent.host.files.durable_files import DAMAGED
from node_agent.sdk import Admitted, Sink, Source
from protos import agent_pb2, agent_pb2_grpc, trace_pb2
from protos.records import ADMITTED, HEADER_BYTES, Gap, unpack_records
from protos.segments import bodies, scan
from tests.node_agent.live import WHOLE, Agent, chain_plan, store
from tests.sentences import refused


def flip(path: Path, byte: int) -> None:
    data = bytearray(path.read_bytes())
    data[byte] ^= 1
    path.write_bytes(data)


def send(agent: Agent, count: int) -> set[tuple[int, int]]:
    """The lineages of so many tuples that were delivered."""
    with Sink(agent.data, "out", timeout=60) as sink, Source(agent.data, "in", timeout=60) as source:
        admitted = [source.send({"n": n}) for n in range(count)]
        for _ in range(count):
            sink.get(60)
    assert all(isinstance(each, Admitted) for each in admitted)
    return {(each.epoch, each.seq) for each in admitted if isinstance(each, Admitted)}


def collected(agent: Agent) -> list[trace_pb2.TraceChunk]:
    with grpc.insecure_channel(f"127.0.0.1:{agent.ready['control']}") as channel:
        return list(agent_pb2_grpc.AgentStub(channel).Trace(trace_pb2.TraceRequest()))


def counters(agent: Agent) -> dict[str, int]:
    with grpc.insecure_channel(f"127.0.0.1:{agent.ready['control']}") as channel:
        status = agent_pb2_grpc.AgentStub(channel).Status(agent_pb2.StatusRequest())
    return {each.name: each.value for each in status.counters}


def test_it_starts_whatever_was_damaged_and_repeats_no_lineage(tmp_path: Path) -> None:
    state = tmp_path / "s"
    store(state, chain_plan())
    with Agent(state) as agent:
        given = send(agent, 20)
        assert agent.stop() == 0
    (state / "starts").write_text("0\n")
    (state / "starts.copy").unlink()
    (header,) = state.glob("spool/*/freed")
    (segment,) = state.glob("spool/*/*.rec")
    flip(header, 17)  # of the boot in its head
    flip(segment, HEADER_BYTES + 64 + 700)  # of a record
    with Agent(state) as agent:
        again = send(agent, 20)
        assert not again & given
        assert counters(agent)["trace_problems"] >= 1 and counters(agent)["files_damaged"] >= 2
        chunks = collected(agent)
        blocks = [block for chunk in chunks for _, block in scan(bytes(HEADER_BYTES) + chunk.blocks)]
        found = list(unpack_records(bodies(blocks)))  # type: ignore[arg-type]
        assert {(each.epoch, each.seq) for each in found if each.kind == ADMITTED} <= given | again
        assert sum(each.dropped for each in found if isinstance(each, Gap)) > 0, "what was damaged is told"
        assert agent.stop() == 0
    assert {path.name for path in state.rglob(f"*{DAMAGED}")} >= {"starts.damaged", "freed.damaged"}
    (state / "plans/state.json").write_text("5")
    with Agent(state) as agent:
        assert counters(agent)["files_damaged"] == 1
        with grpc.insecure_channel(f"127.0.0.1:{agent.ready['control']}") as channel:
            stub = agent_pb2_grpc.AgentStub(channel)
            health = stub.Health(agent_pb2.HealthRequest())
            assert not health.serving and health.why.count("state.json is damaged") == 1
            (kept,) = stub.Plans(agent_pb2.PlansRequest())
            assert kept.plan == WHOLE and not kept.why
            (*_,) = stub.Plans(agent_pb2.PlansRequest(held=[kept.hash], forget=True))
            assert stub.Health(agent_pb2.HealthRequest()).serving, "it was collected"
        with refused("refused source:in", NotAcceptedError), Source(agent.data, "in", timeout=2):
            pass
        assert agent.stop() == 0
    assert "state.json is damaged" in agent.log.read_text() and os.path.exists(state / "plans/state.json.damaged")
