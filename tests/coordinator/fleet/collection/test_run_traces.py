"""Traces into a run directory: nothing twice, nothing missing after any interruption of the collection."""

from pathlib import Path

import pytest

from coordinator.fleet.collection import run_traces
from coordinator.fleet.collection.run_traces import RunTraces, TraceError
from protos import trace_pb2
from protos.records import (
    ADMITTED,
    HEADER_BYTES,
    PLAN,
    RECORD,
    RECORD_BYTES,
    STATE_COMMITTED,
    STATE_CRASHED,
    STATE_DRAINED,
    Header,
    pack_header,
    unpack_records,
)
from protos.segments import Chain, records_in
from tests.coordinator.wording import has

HASH = "0123456789abcdef" + "0" * 48
OTHER = "ab" * 32
STAMP = int(HASH[:16], 16)


def records(first: int, count: int) -> bytes:
    return b"".join(RECORD.pack(ADMITTED, 0, 1, 1, 1, n, 0, 0, 0, 0, 0, 0) for n in range(first, first + count))


def plan_record(state: int) -> bytes:
    return RECORD.pack(PLAN, 0, state, 0, 0, 0, 0, 1, 0, 0, 0, STAMP)


def header(boot: int = 7) -> Header:
    return Header("a", 0, boot, "clock", 50, 0, 0)


def chunk(first: int, count: int, boot: int = 7, sealed: int = 0, **values: object) -> trace_pb2.TraceChunk:
    """Records numbered as their seq, each a block, as an agent has them that has written nothing else."""
    chain = Chain.of(header(boot))
    blocks = [chain.add(records(number, 1)) for number in range(first + count)][first:]
    seal = chain.seal(sealed) if sealed else b""
    fields = {"written": first + count, "ended": bool(sealed), "crashed": sealed == STATE_CRASHED} | values
    packed, body = pack_header(header(boot)), b"".join(blocks) + seal
    return trace_pb2.TraceChunk(boot=boot, first=first, header=packed, blocks=body, **fields)  # type: ignore[arg-type]


def wrote(chain: Chain, data: bytes) -> trace_pb2.TraceChunk:
    """What an agent wrote, after what it wrote before."""
    first, blocks = chain.end, chain.add(data)
    return trace_pb2.TraceChunk(
        boot=chain.boot, first=first, header=pack_header(header(chain.boot)), blocks=blocks, written=chain.end
    )


def seqs(root: Path, boot: int = 7) -> list[int]:
    files = sorted((root / "a" / f"{boot:016x}").glob("*.trace"))
    return [record.seq for file in files for record in unpack_records(records_in(file.read_bytes()))]


def test_chunks_are_appended_and_counted(tmp_path: Path) -> None:
    traces = RunTraces(tmp_path, [])
    incarnation = traces.incarnation("a", 7)
    assert incarnation.add(chunk(0, 10)) == 10
    assert incarnation.add(chunk(10, 5)) == 5
    assert incarnation.add(chunk(8, 10)) == 3, "what is held already is left out"
    incarnation.sync()
    assert seqs(tmp_path) == list(range(18)) and traces.held("a") == {7: 18}


def test_a_hole_is_refused(tmp_path: Path) -> None:
    incarnation = RunTraces(tmp_path, []).incarnation("a", 7)
    incarnation.add(chunk(0, 10))
    with pytest.raises(TraceError, check=has(("records_gone", "a"))):
        incarnation.add(chunk(12, 1))


def test_a_trace_whose_beginning_was_collected_elsewhere_starts_where_it_starts(tmp_path: Path) -> None:
    traces = RunTraces(tmp_path, [])
    traces.incarnation("a", 7).add(chunk(100, 10))
    (entry,) = traces.entries(HASH)
    assert (entry["first"], entry["records"]) == (100, 10)
    resumed = RunTraces(tmp_path, [entry])
    assert resumed.held("a") == {7: 110}


def test_where_a_trace_starts_is_known_after_a_kill_before_anything_was_said_of_it(tmp_path: Path) -> None:
    RunTraces(tmp_path, []).incarnation("a", 7).add(chunk(100, 10))
    resumed = RunTraces(tmp_path, [])
    resumed.incarnation("a", 7).add(chunk(110, 5))
    (entry,) = resumed.entries(HASH)
    assert (entry["first"], entry["records"]) == (100, 15)


def test_a_killed_collection_goes_on_behind_the_torn_record(tmp_path: Path) -> None:
    traces = RunTraces(tmp_path, [])
    traces.incarnation("a", 7).add(chunk(0, 10))
    (path,) = tmp_path.rglob("*.trace")
    path.write_bytes(path.read_bytes()[:-10])
    other = tmp_path / "a" / f"{8:016x}"
    other.mkdir()
    (other / "0000.trace").write_bytes(b"half a header")
    resumed = RunTraces(tmp_path, [])
    assert resumed.held("a") == {7: 9}
    resumed.incarnation("a", 7).add(chunk(9, 3))
    resumed.incarnation("a", 8).add(chunk(0, 2, boot=8))
    assert seqs(tmp_path) == list(range(12)) and seqs(tmp_path, 8) == [0, 1]


def test_segments_are_rolled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_traces, "SEGMENT_BYTES", HEADER_BYTES + 40 * RECORD_BYTES)
    traces = RunTraces(tmp_path, [])
    for first in range(0, 50, 10):
        traces.incarnation("a", 7).add(chunk(first, 10))
    assert [path.name for path in sorted(tmp_path.rglob("*.trace"))] == ["0000.trace", "0001.trace", "0002.trace"]
    assert seqs(tmp_path) == list(range(50)) and RunTraces(tmp_path, []).held("a") == {7: 50}


def test_an_incarnation_that_was_over_before_is_left_out(tmp_path: Path) -> None:
    traces = RunTraces(tmp_path, [])
    incarnation = traces.incarnation("a", 7)
    empty = trace_pb2.TraceChunk(boot=7, first=40, header=pack_header(header()), ended=True, written=40)
    assert incarnation.add(empty) == 0
    assert traces.entries(HASH) == []


def test_a_plan_that_has_drained_is_over_there_though_the_runtime_goes_on(tmp_path: Path) -> None:
    traces = RunTraces(tmp_path, [])
    incarnation, chain = traces.incarnation("a", 7), Chain.of(header())
    incarnation.add(wrote(chain, plan_record(STATE_COMMITTED) + records(1, 5)))
    assert not incarnation.entry(HASH)["ended"]
    incarnation.add(wrote(chain, plan_record(STATE_DRAINED)))
    assert incarnation.entry(HASH)["ended"]
    incarnation.add(wrote(chain, plan_record(STATE_COMMITTED)))
    assert not incarnation.entry(HASH)["ended"], "it was deployed again"


def test_a_run_of_several_plans_is_over_when_the_last_of_them_has_drained(tmp_path: Path) -> None:
    traces = RunTraces(tmp_path, [])
    incarnation, chain = traces.incarnation("a", 7), Chain.of(header())
    incarnation.add(wrote(chain, plan_record(STATE_COMMITTED) + plan_record(STATE_DRAINED)))
    other = bytearray(plan_record(STATE_COMMITTED))
    other[-8:] = int(OTHER[:16], 16).to_bytes(8, "little")
    assert incarnation.entry(HASH, OTHER)["ended"], "the other one has not run here"
    incarnation.add(wrote(chain, bytes(other)))
    assert incarnation.states() == {int(HASH[:16], 16): STATE_DRAINED, int(OTHER[:16], 16): STATE_COMMITTED}
    assert incarnation.entry(HASH)["ended"] and not incarnation.entry(HASH, OTHER)["ended"]


def test_crashes_and_unreachable_nodes_are_kept(tmp_path: Path) -> None:
    traces = RunTraces(tmp_path, [])
    traces.incarnation("a", 7).add(chunk(0, 3, sealed=STATE_CRASHED))
    traces.incarnation("a", 8).add(chunk(0, 3, boot=8, written=9))
    traces.incarnation("a", 8).reachable = False
    crashed, cut_off = traces.entries(HASH)
    assert crashed["ended"] and crashed["crashed"] and crashed["records"] == 3
    assert not cut_off["reachable"] and cut_off["records"] == 9


def test_a_chunk_of_another_node_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, check=has(("other_trace", "b"))):
        RunTraces(tmp_path, []).incarnation("b", 7).add(chunk(0, 1))
