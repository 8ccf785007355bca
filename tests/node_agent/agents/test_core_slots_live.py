"""One real agent with two cores: a chain across its places, of which one crashes, hangs or is missing."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest

from node_agent.client.client import Admitted, NotAcceptedError, Sink, Source
from protos import agent_pb2, agent_pb2_grpc, plan_pb2, records
from tests.node_agent.agents.test_agent_live import OPERATORS
from tests.node_agent.live import Agent, alive, free_ports, kinds, spooled, store_places, until
from tests.sentences import refused

SECOND = 10**9


def _part(core: int, **parts: Any) -> plan_pb2.LocalPlan:
    name, other = ("a", "a.1")[core], ("a", "a.1")[1 - core]
    values: dict[str, Any] = {
        "version": 1, "query": "q", "node": name, "index": core, "policy": {"name": "edf", "largest_batch": 1},
        "peers": [{"index": 1 - core, "name": other, "latency_ns": 200_000}], "cpu": core % (os.cpu_count() or 1),
    }  # fmt: skip
    return plan_pb2.LocalPlan(**{**values, **parts})


def _stream(id_: int, name: str, producers: tuple[int, ...] = ()) -> dict[str, Any]:
    return {"id": id_, "name": name, "codec": "json", "deadline_ns": SECOND, "producers": producers}


def _operator(id_: int, run: str, input_: int, output: int) -> dict[str, Any]:
    return {"id": id_, "name": f"O{id_}", "run": run, "inputs": [input_], "output": output, "hang_ns": 300_000_000}


def _unit(id_: int) -> dict[str, Any]:
    return {"id": id_, "operators": [id_], "sub_deadline_ns": 10**8, "deadline_ns": SECOND, "exits": [id_ + 1]}


def _chain() -> tuple[plan_pb2.LocalPlan, plan_pb2.LocalPlan]:
    """in@a -> O1@a -> O2@a.1 -> far@a.1; O1 is delivered at a as well."""
    first = _part(
        0,
        streams=[_stream(1, "in"), _stream(2, "O1")],
        sources=[{"id": 1, "name": "in", "stream": 1}],
        operators=[_operator(1, "pass", 1, 2)],
        units=[_unit(1)],
        outputs=[{"id": 1, "name": "near", "stream": 2, "deadline_ns": SECOND}],
        sends=[{"stream": 2, "peer": 1}],
    )
    second = _part(
        1,
        streams=[_stream(2, "O1", (0,)), _stream(3, "O2")],
        operators=[_operator(2, "t.moody", 2, 3)],
        units=[_unit(2)],
        outputs=[{"id": 2, "name": "far", "stream": 3, "deadline_ns": SECOND}],
    )
    return first, second


STALE = ((0, "a", "127.0.0.1:1"), (1, "a.1", "127.0.0.1:2"))  # ports of another day


@pytest.fixture
def options(tmp_path: Path) -> tuple[str, ...]:
    """Of an agent whose state has the chain committed."""
    (tmp_path / "ops.py").write_text(OPERATORS)
    store_places(tmp_path / "s", _chain(), STALE)
    return ("--operators", str(tmp_path / "ops.py"))


def test_a_chain_across_two_cores_goes_on_at_one_while_the_other_crashes_and_hangs(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    with Agent(tmp_path / "s", "--cores", "2", *options) as agent:
        assert [each["name"] for each in agent.ready["cores"]] == ["a", "a.1"]
        assert agent.ready["cores"][0]["data"] == agent.ready["data"]
        one, two = agent.runtime_of("a"), agent.runtime_of("a.1")
        assert len(agent.children()) == 3 and one != two
        cores = os.cpu_count() or 1
        assert [psutil.Process(pid).cpu_affinity() for pid in (one, two)] == [[0], [1 % cores]]
        with Source(agent.place("a"), "in") as source, Sink(agent.place("a"), "near") as near:
            with Sink(agent.place("a.1"), "far") as far:
                source.send_many(range(20))
                assert [near.get(10).value for _ in range(20)] == list(range(20))
                assert [far.get(10).value["got"] for _ in range(20)] == list(range(20))
                names = [each.laddr for each in psutil.Process(two).net_connections("unix") if each.laddr]
                assert len(names) == 2 and len(set(names)) == 1, "it listens, and the other core is connected there"
                os.kill(two, signal.SIGKILL)
                assert isinstance(source.send("meanwhile"), Admitted)
                assert near.get(10).value == "meanwhile", "the other core goes on"
                _await_again(far, source, near)
            two = agent.runtime_of("a.1")
            source.send("hang")
            until(lambda: not alive(two))
            with Sink(agent.place("a.1"), "far") as far:
                _await_again(far, source, near)
        assert agent.runtime_of("a") == one
        pids = agent.children()
        assert agent.stop() == 0 and not any(map(alive, pids))
    _check_traces(tmp_path / "s")
    log = agent.log.read_text()
    assert "runtime of a.1 crashed: killed by SIGKILL" in log and "runtime of a.1 operator hung: unit 2" in log
    if (os.cpu_count() or 1) <= 2:
        assert "leave none for control" in log


def _await_again(far: Sink, source: Source, near: Sink) -> None:
    """Until a tuple comes through; what was on its way to the place when it was killed may be lost."""

    def through() -> bool:
        source.send("again")
        near.get(10)
        try:
            return far.get(0.5).value == {"got": "again"}
        except TimeoutError:
            return False

    until(through)


def _check_traces(state: Path) -> None:
    """Each place writes traces of its own; three incarnations ran in a.1, each with a lineage epoch of its own."""
    nodes = sorted(records.unpack_header(path.read_bytes()).node for path in (state / "spool").glob("*/freed"))
    assert nodes == ["a", "a.1", "a.1", "a.1"]
    found = spooled(state)
    assert json.loads((state / "starts").read_bytes())["starts"] == 4
    count = kinds(found)
    assert count["ADMITTED"] == sum(isinstance(each, records.Output) and each.ref == 1 for each in found)
    lost = [each for each in found if isinstance(each, records.Lost)]
    assert [(records.CAUSES[each.cause], each.unit) for each in lost] == [("operator_hung", 2)]


def test_every_place_resumes_its_part_whatever_the_ports_and_without_enough_cores_none_does(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    with Agent(tmp_path / "s", *options) as alone:
        with refused("refused source:in", NotAcceptedError):
            Source(alone.data, "in")
        assert alone.stop() == 0
        assert "it needs place a.1, and this agent has --cores 1; start it with --cores 2" in alone.log.read_text()
    port = free_ports(3)[0]
    with Agent(tmp_path / "s", "--cores", "3", "--data", f"127.0.0.1:{port}", *options) as agent:
        assert [each["data"] for each in agent.ready["cores"]] == [port, port + 1, port + 2]
        with Source(agent.place("a"), "in") as source, Sink(agent.place("a.1"), "far") as far:
            source.send("x")
            assert far.get(10).value == {"got": "x"}
        with pytest.raises(NotAcceptedError):
            Source(agent.place("a.2"), "in")
        _check_control_is_told_again(agent)
        with Source(agent.place("a"), "in") as source, Sink(agent.place("a.1"), "far") as far:
            source.send("y")
            assert far.get(10).value == {"got": "y"}
        assert agent.stop() == 0


def _check_control_is_told_again(agent: Agent) -> None:
    """Control crashes: its successor is connected to every runtime, none of which was restarted."""
    with grpc.insecure_channel(f"127.0.0.1:{agent.ready['control']}") as channel:
        stub: Any = agent_pb2_grpc.AgentStub(channel)  # type: ignore[no-untyped-call]
        before = stub.Status(agent_pb2.StatusRequest(), wait_for_ready=True, timeout=20).places
        runtimes = [agent.runtime_of(name) for name in ("a", "a.1", "a.2")]
        (control,) = set(agent.children()) - set(runtimes)
        os.kill(control, signal.SIGKILL)
        until(lambda: not alive(control))

        def connected() -> bool:
            status = stub.Status(agent_pb2.StatusRequest(), wait_for_ready=True, timeout=20)
            return bool(status.runtime_alive)

        until(lambda: _answers(connected))
        after = stub.Status(agent_pb2.StatusRequest(), timeout=20).places
        assert [each.boot for each in after] == [each.boot for each in before]
        assert [each.node for each in after] == ["a", "a.1", "a.2"]
        described = stub.Describe(agent_pb2.DescribeRequest(), timeout=30).places
        assert [(each.name, each.data_port) for each in described] == [
            (each["name"], each["data"]) for each in agent.ready["cores"]
        ]


def _answers(question: Callable[[], bool]) -> bool:
    try:
        return question()
    except grpc.RpcError:  # the control process that was killed had the connection
        return False
