"""One real agent on loopback: tuples in, results out, and what goes wrong costs what it should and no more."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from zlib import crc32

import pytest

from node_agent.client.client import Admitted, NotAcceptedError, Refused, Sink, Source
from node_agent.link.limits import MAX_FRAME_BYTES
from node_agent.wire import frames
from protos import records
from tests.node_agent.live import HASH, ROOT, Agent, alive, chain_plan, kinds, spooled, store, until
from tests.sentences import refused

OPERATORS = """
import signal
import time
from node_agent.sdk import operator

@operator("t.moody", inputs={"value": "json"}, output="json")
def moody(value):
    if value == "raise":
        raise RuntimeError("as told")
    if value == "exit":
        raise SystemExit(3)
    while value == "hang":
        pass
    if value == "hang in C":
        sum(range(10**14))
    if value == "sleep":
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
        time.sleep(10**6)
    return {"got": value}
"""


@pytest.fixture
def moody(tmp_path: Path):
    """An agent with an operator that does as it is told."""
    (tmp_path / "ops.py").write_text(OPERATORS)
    store(tmp_path / "s", chain_plan(run="t.moody"))
    with Agent(tmp_path / "s", "--operators", str(tmp_path / "ops.py")) as agent:
        yield agent


def test_what_is_admitted_runs_and_is_delivered(tmp_path: Path) -> None:
    store(tmp_path / "s", chain_plan())
    with Agent(tmp_path / "s") as agent:
        with Sink(agent.data, "out") as sink, Source(agent.data, "in") as source:
            admitted = [source.send({"n": n}, age_ms=5) for n in range(100)]
            results = [sink.get(10) for _ in range(100)]
        assert agent.stop() == 0
    assert [each.value["n"] for each in results] == list(range(100))
    assert all(each.latency_ns[0] >= 5_000_000 for each in results)
    assert [each.seq for each in admitted] == list(range(1, 101))
    found = spooled(tmp_path / "s")
    count = kinds(found)
    assert count["ADMITTED"] == count["RAN"] == count["OUTPUT"] == 100
    states = [records.STATES[record.state] for record in found if isinstance(record, records.Plan)]
    assert states == ["prepared", "committed", "ended"]
    last = found[-1]
    assert isinstance(last, records.Load) and last.records_before == len(found) - 1
    assert {record.stamp for record in found if isinstance(record, records.Plan)} == {int(HASH[:16], 16)}


def test_an_operator_that_raises_costs_its_tuple(moody: Agent) -> None:
    with Sink(moody.data, "out") as sink, Source(moody.data, "in") as source:
        answers = source.send_many(["a", "raise", "b", "exit", "c"])
        assert all(isinstance(each, Admitted) for each in answers)
        assert [sink.get(10).value["got"] for _ in "abc"] == ["a", "b", "c"]
    assert moody.stop() == 0
    lost = [record for record in spooled(moody.state) if isinstance(record, records.Lost)]
    assert [records.CAUSES[record.cause] for record in lost] == ["operator_error"] * 2
    assert "as told" in moody.log.read_text()


def test_an_operator_that_hangs_is_killed_and_costs_its_tuple(moody: Agent) -> None:
    before = moody.runtime()
    with Source(moody.data, "in") as source:
        assert isinstance(source.send("hang"), Admitted)
        until(lambda: not alive(before))
        until(lambda: len(moody.children()) == 2)
        first = source.send("after")
    with Sink(moody.data, "out") as sink, Source(moody.data, "in") as source:
        assert isinstance(source.send("more"), Admitted)
        while sink.get(10).value["got"] != "more":
            pass
    assert isinstance(first, Admitted) and first.epoch == 2  # a lineage never repeats
    assert moody.stop() == 0
    found = spooled(moody.state)
    hung = [record for record in found if isinstance(record, records.Lost)]
    assert [(records.CAUSES[each.cause], each.unit, each.seq, each.epoch) for each in hung] == [
        ("operator_hung", 1, 1, 1)
    ]
    assert hung[0].at_ns - hung[0].start_ns >= 300_000_000
    assert kinds(found)["OUTPUT"] == 2


@pytest.mark.parametrize("blocked", [False, True])
def test_a_tuple_that_hangs_where_no_signal_is_heard_is_not_retried(moody: Agent, blocked: bool) -> None:
    """Its acknowledgement had to wait for the operator, and nothing can interrupt the operator."""
    with Sink(moody.data, "out") as sink, Source(moody.data, "in", timeout=20) as source:
        for n in range(3):
            assert isinstance(source.send(n), Admitted)
            until(lambda: sink.get(10).value["got"] == n)  # noqa: B023 - called here
        hung = source.send("sleep" if blocked else "hang in C")
        assert hung == Admitted(4, 1)
        assert source.send("after") == Admitted(1, 2)
        assert source.send_many(["x", "y"]) == [Admitted(2, 2), Admitted(3, 2)]
    assert moody.stop() == 0
    found = spooled(moody.state)
    lost = [record for record in found if isinstance(record, records.Lost)]
    assert [(records.CAUSES[each.cause], each.seq, each.epoch) for each in lost] == [("operator_hung", 4, 1)]
    admitted = [(record.epoch, record.seq) for record in found if isinstance(record, records.Admitted)]
    assert admitted == [(1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (2, 2), (2, 3)]


def _speak(address: str, data: bytes) -> bytes:
    """Send bytes on a new connection and read until the agent closes it."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), 10) as end:
        end.sendall(data)
        got = b""
        try:
            while more := end.recv(65536):
                got += more
        except ConnectionResetError:
            pass
        return got


HELLO = frames.encode_hello(frames.Hello("source:in", "clock", 77))
MALFORMED = {
    "oversized": HELLO + (MAX_FRAME_BYTES + 1).to_bytes(4, "big"),
    "no protobuf": HELLO + frames.HEAD.pack(5, crc32(5 * b"\xff")) + 5 * b"\xff",
    "damaged": HELLO + frames.HEAD.pack(5, 0) + 5 * b"\xff",
    "empty": HELLO + bytes(4),
    "no hello": frames.encode_ack(0, 0),
    "not our protocol": b"GET / HTTP/1.1\r\n\r\n",
    "stranger": frames.encode_hello(frames.Hello("ghost:in", "clock", 77)),
    "unknown source": frames.encode_hello(frames.Hello("source:nothing", "clock", 77)),
    "foreign stream": frames.encode_hello(frames.Hello("node:b", "clock", 77))
    + frames.encode_batch(1, 1, [frames.encode_tuple((1, 1, 1, 0, 0, 0), 2, int(HASH[:16], 16), b"1")]),
}


def test_frames_that_are_none_close_their_connection_and_nothing_else(tmp_path: Path) -> None:
    store(tmp_path / "s", chain_plan())
    with Agent(tmp_path / "s") as agent, Source(agent.data, "in") as source, Sink(agent.data, "out") as sink:
        for name, data in MALFORMED.items():
            assert _speak(agent.data, data) != b"", name
            assert isinstance(source.send({"after": name}), Admitted)
            assert sink.get(10).value == {"after": name}
        with socket.create_connection(("127.0.0.1", agent.ready["data"])) as end:
            end.sendall(HELLO[:-3])  # truncated, then gone
        assert isinstance(source.send(1), Admitted)
        with refused("refused source:nothing", NotAcceptedError):
            Source(agent.data, "nothing")


def test_payloads_that_cannot_be_read_and_old_tuples_are_refused(tmp_path: Path) -> None:
    sources = [{"id": 1, "name": "in", "stream": 1, "max_age_ns": 50_000_000}]
    store(tmp_path / "s", chain_plan(sources=sources))
    with Agent(tmp_path / "s") as agent:
        with Source(agent.data, "in") as source:
            old = source.send(1, age_ms=60)
            assert isinstance(old, Refused) and "50 ms" in old.why
            assert isinstance(source.send(1, age_ms=(10, 60)), Admitted)  # it may be young enough
        hello = frames.encode_hello(frames.Hello("source:in", agent.ready["clock"], 78))
        batch = frames.encode_batch(1, 1, [frames.encode_tuple((0, 0, 0, 0, 0, 0), 0, 0, b"{")])
        with socket.create_connection(("127.0.0.1", agent.ready["data"]), 10) as end:
            end.sendall(hello + batch)
            reader, got = frames.FrameReader(), []
            while not any(isinstance(each, frames.Refused) for each in got):
                got += reader.feed(end.recv(65536))
        assert any(isinstance(each, frames.Refused) and each.link_seq == 1 for each in got)
        agent.stop()
    assert kinds(spooled(tmp_path / "s"))["ADMITTED"] == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_everything(tmp_path: Path, number: int) -> None:
    store(tmp_path / "s", chain_plan())
    with Agent(tmp_path / "s") as agent:
        children = agent.children()
        assert len(children) == 2
        shown = {Path(f"/proc/{each}/comm").read_text().split()[0] for each in children}
        assert shown == {"control", "runtime"}, "what `ps` shows tells them apart"
        assert agent.stop(number) == 0
        assert not any(map(alive, children))


def test_killing_the_supervisor_leaves_no_orphan(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(OPERATORS)
    patient = {"id": 1, "name": "O1", "run": "t.moody", "inputs": [1], "output": 2, "hang_ns": 10**12, "cost_ns": 10**6}
    state = store(tmp_path / "s", chain_plan(operators=[patient])).root
    with Agent(state, "--operators", str(tmp_path / "ops.py")) as agent:
        children = agent.children()
        with Source(agent.data, "in") as source:
            source.send("hang")  # not even a runtime that listens to nobody
            agent.stop(signal.SIGKILL)
        until(lambda: not any(map(alive, children)))
    with Agent(state, "--operators", str(tmp_path / "ops.py")) as again:
        with Sink(again.data, "out") as sink, Source(again.data, "in") as source:
            source.send("hello")
            assert sink.get(10).value == {"got": "hello"}
        again.stop()
    found = spooled(state)
    assert kinds(found)["ADMITTED"] == 2  # those of the killed agent's ring as well
    assert {record.epoch for record in found if isinstance(record, records.Admitted)} == {1, 2}


COUNTING = """
from node_agent.sdk import operator

@operator("t.count", version="1", inputs={"a": "json"}, output="json")
class Count:
    def __init__(self):
        self.n = 0

    def __call__(self, a):
        self.n += 1
        return {"n": self.n}
"""


@pytest.mark.parametrize(("run", "lost"), [("t.count", 1), ("pass", 0)])
def test_a_runtime_that_began_again_says_whose_state_went_with_the_one_before(
    tmp_path: Path, run: str, lost: int
) -> None:
    (tmp_path / "ops.py").write_text(COUNTING)
    counting = {"id": 1, "name": "O1", "run": run, "inputs": [1], "output": 2, "hang_ns": 10**12, "cost_ns": 10**6}
    state = store(tmp_path / "s", chain_plan(operators=[counting])).root
    with Agent(state, "--operators", str(tmp_path / "ops.py")) as agent:
        agent.stop()
    found = [record for record in spooled(state) if isinstance(record, records.Reset)]
    assert [(record.ref, record.source) for record in found] == [(1, 0)] * lost
    assert ("state_lost" in (tmp_path / "a.log").read_text() or "its state went with" in agent.log.read_text()) == bool(
        lost
    )


def test_a_crash_of_control_stops_no_tuple(moody: Agent) -> None:
    runtime = moody.runtime()
    control = next(pid for pid in moody.children() if pid != runtime)
    with Sink(moody.data, "out") as sink, Source(moody.data, "in") as source:
        os.kill(control, signal.SIGKILL)
        for n in range(50):
            source.send(n)
        assert [sink.get(10).value["got"] for _ in range(50)] == list(range(50))
        until(lambda: len(moody.children()) == 2)
        assert runtime in moody.children()
    assert moody.stop() == 0
    assert kinds(spooled(moody.state))["OUTPUT"] == 50


def test_a_crash_of_the_runtime_is_mended(moody: Agent) -> None:
    with Source(moody.data, "in") as source:
        source.send(1)
        os.kill(moody.runtime(), signal.SIGKILL)
        answer = source.send(2)
    assert isinstance(answer, Admitted) and answer.epoch == 2
    assert moody.stop() == 0
    assert "killed by SIGKILL" in moody.log.read_text()


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "node_agent", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_a_second_agent_on_the_same_state_is_refused(tmp_path: Path) -> None:
    with Agent(tmp_path / "s") as agent:
        second = _run("--name", "a", "--state", str(tmp_path / "s"))
        assert second.returncode == 1
        assert f"another agent (pid {agent.ready['pid']})" in second.stderr


def test_a_taken_port_is_said_in_one_line_and_nothing_is_left(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for option in ("--data", "--control"):
            ended = _run("--name", "a", "--state", str(tmp_path / "s"), option, f"127.0.0.1:{port}")
            assert ended.returncode == 1 and ended.stdout == ""
            assert str(port) in ended.stderr and "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--name", "a b"], "letters"),
        (["--name", "a", "--data", "0.0.0.0:0"], "other machines"),
        (["--name", "a", "--data", "127.0.0.1"], "HOST:PORT"),
        (["--name", "a", "--operators", "none.py"], "no such file"),
    ],
)
def test_bad_arguments_are_exit_code_2(tmp_path: Path, arguments: list[str], why: str) -> None:
    ended = _run(*arguments, "--state", str(tmp_path / "s"))
    assert ended.returncode == 2 and why in ended.stderr


def test_a_broken_operators_file_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("x = 1\ny = undefined\n")
    ended = _run("--name", "a", "--state", str(tmp_path / "s"), "--operators", str(tmp_path / "bad.py"))
    assert ended.returncode == 2 and "bad.py:2" in ended.stderr


def test_a_plan_that_cannot_run_here_is_not_resumed_and_the_agent_serves(tmp_path: Path) -> None:
    store(tmp_path / "s", chain_plan(run="t.unknown"))
    with Agent(tmp_path / "s") as agent, pytest.raises(NotAcceptedError):
        Source(agent.data, "in")
    assert "no operator 't.unknown'" in agent.log.read_text()


def test_a_slow_sink_loses_its_oldest_results_and_delays_nobody(tmp_path: Path) -> None:
    store(tmp_path / "s", chain_plan())
    with Agent(tmp_path / "s") as agent, Sink(agent.data, "out") as slow, Source(agent.data, "in") as source:
        done = threading.Event()
        text = "x" * 20_000
        for _ in range(1000):
            assert isinstance(source.send(text), Admitted)
        done.set()
        source.send("last")
        got = 0
        while slow.get(10).value != "last":
            got += 1
        assert got < 1000
        agent.stop()
    assert kinds(spooled(tmp_path / "s"))["OUTPUT"] == 1001
