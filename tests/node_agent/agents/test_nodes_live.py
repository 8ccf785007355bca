"""Two real agents: links, joins and side inputs across them, clocks that differ, a node that crashes."""

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from node_agent.client.client import Admitted, Sink, Source
from protos import plan_pb2, records
from tests.node_agent.live import Agent, free_ports, kinds, spooled, store, until

SECOND = 10**9
TOLD = "is already here as incarnation"


def _plan(node: str, **parts: Any) -> plan_pb2.LocalPlan:
    index = 0 if node == "a" else 1
    peer = {"index": 1 - index, "name": "b" if node == "a" else "a", "latency_ns": 1_000_000}
    values: dict[str, Any] = {
        "version": 1, "query": "two", "node": node, "index": index, "policy": {"name": "edf", "largest_batch": 1},
        "peers": [peer], "cpu": -1,
    }  # fmt: skip
    return plan_pb2.LocalPlan(**{**values, **parts})


def _stream(id_: int, name: str, producers: tuple[int, ...] = (), marked: bool = False) -> dict[str, Any]:
    return {
        "id": id_, "name": name, "codec": "json", "deadline_ns": SECOND, "producers": producers, "marked": marked
    }  # fmt: skip


def _operator(id_: int, run: str, inputs: list[int], output: int, **more: Any) -> dict[str, Any]:
    return {"id": id_, "name": f"O{id_}", "run": run, "inputs": inputs, "output": output, "hang_ns": SECOND, **more}


def _unit(id_: int, operator: int, exit_: int) -> dict[str, Any]:
    return {"id": id_, "operators": [operator], "sub_deadline_ns": 10**8, "deadline_ns": SECOND, "exits": [exit_]}


def _diamond() -> tuple[plan_pb2.LocalPlan, plan_pb2.LocalPlan]:
    """in@a -> half@a (filters) and in@a -> pass@b; both -> join@b -> out@b."""
    marked = {"marked": True}
    a = _plan(
        "a",
        streams=[_stream(1, "in", **marked), _stream(2, "half", **marked)],
        sources=[{"id": 1, "name": "in", "stream": 1}],
        operators=[_operator(1, "filter", [1], 2, with_json='{"keep":1,"of":2}')],
        units=[_unit(1, 1, 2)],
        sends=[{"stream": 1, "peer": 1}, {"stream": 2, "peer": 1}],
    )
    b = _plan(
        "b",
        streams=[
            _stream(1, "in", (0,), True), _stream(2, "half", (0,), True), _stream(3, "all", (), True),
            _stream(4, "both"),
        ],
        operators=[_operator(2, "pass", [1], 3), _operator(3, "join", [2, 3], 4, join=True)],
        units=[_unit(2, 2, 3), _unit(3, 3, 4)],
        outputs=[{"id": 1, "name": "out", "stream": 4, "deadline_ns": SECOND}],
    )  # fmt: skip
    return a, b


@pytest.fixture
def two(tmp_path: Path):
    """Directories and data ports of a and b with the diamond committed."""
    a_port, b_port = free_ports(2)
    ports = a_port, b_port
    routes = ((0, "a", f"127.0.0.1:{ports[0]}"), (1, "b", f"127.0.0.1:{ports[1]}"))
    for plan in _diamond():
        store(tmp_path / plan.node, plan, routes)
    return tmp_path, ports


def _start(two: tuple[Path, tuple[int, int]], node: str, *options: str) -> Agent:
    directory, ports = two
    port = ports[0 if node == "a" else 1]
    return Agent(directory / node, "--data", f"127.0.0.1:{port}", *options, name=node)


def test_a_diamond_with_a_filtered_branch_across_nodes(two: tuple[Path, tuple[int, int]]) -> None:
    with _start(two, "a") as a, _start(two, "b") as b:
        with Sink(b.data, "out") as sink, Source(a.data, "in") as source:
            source.send_many(range(100))
            got = [sink.get(10).value for _ in range(50)]
        assert [each["half"] for each in got] == [each["all"] for each in got] == list(range(1, 100, 2))
        assert a.stop() == 0 and b.stop() == 0
    at_a, at_b = kinds(spooled(two[0] / "a")), kinds(spooled(two[0] / "b"))
    assert at_a["ADMITTED"] == at_a["RAN"] == 100
    assert at_a["SENT"] == at_b["RECEIVED"] == 150  # absence marks leave no records
    assert at_b["OUTPUT"] == 50 and at_b["RAN"] == 150
    assert at_b["MERGED"] == 100 and at_b["LOST"] == 0  # 50 joined, 50 whose partner was filtered


def test_a_peer_that_comes_late_gets_what_is_still_in_time(two: tuple[Path, tuple[int, int]]) -> None:
    with _start(two, "a") as a, Source(a.data, "in") as source:
        source.send_many(range(10))
        with _start(two, "b") as b, Sink(b.data, "out") as sink:
            until(lambda: source.send_many(range(2)) and _some(sink))
            b.stop(signal.SIGKILL)
        assert isinstance(source.send(1), Admitted)
        with _start(two, "b") as b, Sink(b.data, "out") as sink:
            until(lambda: source.send_many(range(2)) and _some(sink))
        a.stop()
    found = spooled(two[0] / "a")
    count = kinds(found)
    ended = count["SENT"] + sum(isinstance(record, records.Lost) and record.never_left for record in found)
    assert ended == count["ADMITTED"] + count["ADMITTED"] // 2


def _some(sink: Sink) -> bool:
    try:
        sink.get(0.2)
    except TimeoutError:
        return False
    return True


def test_clocks_of_their_own_are_mapped_by_probes(two: tuple[Path, tuple[int, int]]) -> None:
    with _start(two, "a", "--clock-domain", "clock-a") as a, _start(two, "b", "--clock-domain", "clock-b") as b:
        with Sink(b.data, "out") as sink, Source(a.data, "in") as source:
            until(lambda: source.send_many(range(2)) and _some(sink))
            until(lambda: _near(source, sink))
        a.stop()
        b.stop()
    offsets = [record for record in spooled(two[0] / "b") if isinstance(record, records.Clock)]
    assert offsets and all(
        record.offset_lo_ns <= 0 <= record.offset_hi_ns for record in offsets
    )  # it is one clock in truth
    assert all(record.ref == 0 for record in offsets)


def _near(source: Source, sink: Sink) -> bool:
    source.send_many(range(2))
    lo_ns, hi_ns = sink.get(10).latency_ns
    return 0 < hi_ns - lo_ns < SECOND


def test_a_tuple_stamped_with_a_prepared_plan_commits_it(two: tuple[Path, tuple[int, int]]) -> None:
    from node_agent.control.deployment import Deployment, Durable, State
    from node_agent.control.plan_store import PlanStore
    from node_agent.host.files.state_dir import StateDir

    plans = PlanStore(StateDir(two[0] / "b").plans)
    (deployment,) = plans.load().deployments
    plans.write(Durable(1, 0, (Deployment(deployment.hash, 1, State.PREPARED, "two", deployment.routes),)))
    with _start(two, "a") as a, _start(two, "b") as b:
        with Sink(b.data, "out") as sink, Source(a.data, "in") as source:
            source.send_many(range(2))
            assert sink.get(10).value == {"half": 1, "all": 1}
        until(lambda: PlanStore(StateDir(two[0] / "b").plans).load().deployments[0].state == State.COMMITTED)
    states = [records.STATES[each.state] for each in spooled(two[0] / "b") if isinstance(each, records.Plan)]
    assert states == ["prepared", "committed", "ended"]


def test_a_node_that_crashes_costs_what_it_held_and_the_rest_goes_on(two: tuple[Path, tuple[int, int]]) -> None:
    with _start(two, "a") as a, _start(two, "b") as b:
        with Sink(b.data, "out") as sink, Source(a.data, "in") as source:
            source.send_many(range(20))
            os.kill(b.runtime(), signal.SIGKILL)
            until(lambda: source.send_many(range(2)) and _some(sink))
        a.stop()
        b.stop()
    at_a, at_b = spooled(two[0] / "a"), spooled(two[0] / "b")
    sent = {(each.source, each.epoch, each.seq, each.stream) for each in at_a if isinstance(each, records.Sent)}
    received = {(each.source, each.epoch, each.seq, each.stream) for each in at_b if isinstance(each, records.Received)}
    assert received <= sent
    assert len(sent) == kinds(at_a)["SENT"]  # once per tuple and stream, however often it was sent again


def test_a_copy_of_a_node_is_refused_and_the_node_goes_on(two: tuple[Path, tuple[int, int]]) -> None:
    """As from a cloned card: the same name, plan and count of starts."""
    with _start(two, "a") as a:
        a.stop()
    directory, _ = two
    shutil.copytree(directory / "a", directory / "copy" / "a")
    with _start(two, "b") as b, _start(two, "a") as a:
        with Sink(b.data, "out") as sink, Source(a.data, "in") as source:
            until(lambda: source.send_many(range(2)) and _some(sink))
            with Agent(directory / "copy" / "a", "--data", "127.0.0.1:0", name="a") as copy:
                until(lambda: TOLD in copy.log.read_text())
                assert source.send_many(range(100)) and sum(_some(sink) for _ in range(50)) == 50
                copy.stop()
        a.stop()
        b.stop()
    assert TOLD not in a.log.read_text(), "nobody refused the node itself"
    (first, *_) = [line for line in b.log.read_text().splitlines() if TOLD in line]
    assert "node:a" in first and "(boot " in first and "incarnation 2" in first and "--name" in first


def test_tuples_of_a_plan_that_is_gone_at_the_peer_are_given_up_on_record(two: tuple[Path, tuple[int, int]]) -> None:
    """As of a node that comes back after the others were given another plan."""
    directory, _ = two
    store(directory / "b", _plan("b", query="other"), whole=b'{"another":"plan"}')
    with _start(two, "a") as a, _start(two, "b") as b, Source(a.data, "in") as source:
        until(lambda: source.send_many(range(2)) and "refused tuples" in a.log.read_text())
        a.stop()
        b.stop()
    at_a, at_b = spooled(directory / "a"), kinds(spooled(directory / "b"))
    given_up = {record.link_seq for record in at_a if isinstance(record, records.GaveUp)}
    sent = {record.link_seq for record in at_a if isinstance(record, records.Sent)}
    assert given_up == sent and at_b["RECEIVED"] == 0
    assert "which is not here: it was refused" in b.log.read_text()
