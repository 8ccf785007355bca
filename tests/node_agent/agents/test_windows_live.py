"""Windows across two real agents: every result equals what the admitted tuples say, after any loss on the way."""

import hashlib
import json
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import grpc
from google.protobuf.json_format import MessageToDict, ParseDict

from node_agent.client.client import Admitted, Sink, Source
from node_agent.client.connection import AgentError
from protos import agent_pb2, agent_pb2_grpc, plan_pb2, records
from tests.node_agent.live import Agent, free_ports, spooled, store, until, with_identities

SECOND, MS = 10**9, 10**6
LENGTH, HOP, LATENESS = 100 * MS, 50 * MS, 5 * MS
MAX_AGE = 100 * MS
SHORT, LONG = 250 * MS, 60 * SECOND  # deadlines, and how long a number may be missing
OPERATORS = """
from node_agent.sdk import aggregate, operator

@operator("t.keep", inputs={"in": "json"}, output="json")
def keep(value):
    return value if value["v"] % 3 else None

@aggregate("t.list", inputs={"in": "json"}, output="json")
class List:
    def start(self):
        return []

    def add(self, state, value):
        return [*state, value["v"]]

    def result(self, state):
        return state
"""
Result = dict[str, Any]
Json = dict[str, object]


def _plans(version: int = 1, deadline_ns: int = LONG) -> dict[str, plan_pb2.LocalPlan]:
    """in@a -> keep@a (leaves out every third) -> add@b -> W@b -> out@b. The second version has an operator behind W and
    other ids for what is the same."""
    ids = {"in": 1, "keep": 2, "W.add": 3, "W": 4}
    source, windows = 1, 2
    if version > 1:
        ids = {"P": 1, "W": 3, "W.add": 5, "keep": 6, "in": 7}
        source, windows = 2, 1
    plain: Json = {"codec": "json", "deadlineNs": deadline_ns}
    counted: Json = {**plain, "marked": True, "counted": True}

    def node(index: int, **parts: object) -> plan_pb2.LocalPlan:
        written = {
            "version": 1, "query": "q", "node": "ab"[index], "index": index, "cpu": -1,
            "policy": {"name": "edf", "largestBatch": 1},
            "peers": [{"index": 1 - index, "name": "ba"[index], "latencyNs": MS}], **parts,
        }  # fmt: skip
        return ParseDict(written, plan_pb2.LocalPlan())

    def stream(name: str, kind: Json, *producers: int) -> Json:
        return {"id": ids[name], "name": name, **kind, "producers": list(producers)}

    def operator(name: str, run: str, given: str, **more: object) -> Json:
        return {
            "id": ids[name], "name": name, "run": run, "inputs": [ids[given]], "output": ids[name],
            "hangNs": 10 * SECOND, **more,
        }  # fmt: skip

    def unit(name: str, *exits: str) -> Json:
        return {
            "id": ids[name], "operators": [ids[name]], "subDeadlineNs": SECOND, "deadlineNs": deadline_ns,
            "exits": [ids[each] for each in exits],
        }  # fmt: skip

    window = {
        "kind": "time", "length": LENGTH, "hop": HOP, "latenessNs": LATENESS, "waitNs": deadline_ns,
        "usefulNs": LONG, "source": windows, "feeds": [{"source": source, "input": 0, "name": "in@a"}],
    }  # fmt: skip
    figures = {"n": "count", "total": {"sum": "v"}, "top": {"max": "v"}, "p50": {"quantile": 0.5, "of": "v"}}
    given = {"withJson": json.dumps(figures)}
    last = [name for name in ("W", "P") if name in ids]
    a = node(
        0,
        streams=[stream("in", counted), stream("keep", counted)],
        sources=[{"id": source, "name": "in", "stream": ids["in"], "maxAgeNs": MAX_AGE, "beatNs": 12 * MS}],
        operators=[operator("keep", "t.keep", "in")],
        units=[unit("keep", "keep")],
        sends=[{"stream": ids["keep"], "peer": 1}],
    )
    b = node(
        1,
        streams=[stream("keep", counted, 0), *(stream(name, plain) for name in ("W.add", *last))],
        sources=[{"id": windows, "name": "W.add", "stream": ids["W.add"], "window": ids["W.add"]}],
        operators=[
            operator("W.add", "aggregate", "keep", window=window, **given),
            operator("W", "aggregate", "W.add", closes=ids["W.add"], **given),
            *(operator("P", "pass", "W") for name in last if name == "P"),
        ],
        units=[unit("W.add"), *(unit(name, name) for name in last)],
        outputs=[{"id": 1, "name": "out", "stream": ids[last[-1]], "deadlineNs": deadline_ns}],
    )
    return {"a": a, "b": b}


class Feeder(threading.Thread):
    """Sends {"v": i}, a few at a time and some of them a little older, until it is told to stop; also after a crash."""

    def __init__(self, agent: Agent, seed: int) -> None:
        super().__init__(daemon=True)
        self.agent, self.random = agent, random.Random(seed)
        self.sent = 0
        self.answered: dict[tuple[int, int], int] = {}  # values by epoch and number
        self.stopping = threading.Event()
        self.start()

    def run(self) -> None:
        """Until told."""
        while not self.stopping.is_set():
            with suppress(AgentError, OSError), Source(self.agent.data, "in", timeout=30) as source:
                while not self.stopping.wait(self.random.uniform(0, 0.008)):
                    burst = [self.sent + i for i in range(self.random.randint(1, 4))]
                    self.sent += len(burst)
                    answers = source.send_aged([({"v": v}, self.random.uniform(0, 12)) for v in burst])
                    for v, answer in zip(burst, answers, strict=True):
                        if isinstance(answer, Admitted):
                            self.answered[answer.epoch, answer.seq] = v

    def stop(self) -> None:
        """No more."""
        self.stopping.set()
        self.join(60)
        assert not self.is_alive()


class Listener(threading.Thread):
    """Keeps every result."""

    def __init__(self, agent: Agent) -> None:
        super().__init__(daemon=True)
        self.sink = Sink(agent.data, "out", connect_timeout=30)
        self.got: list[Result] = []
        self.stopping = threading.Event()
        self.start()

    def run(self) -> None:
        """Until told."""
        with self.sink:
            while not self.stopping.is_set():
                with suppress(TimeoutError):
                    self.got.append(self.sink.get(0.1).value)

    def stop(self) -> list[Result]:
        """What came."""
        self.stopping.set()
        self.join(30)
        return self.got

    def wait(self, windows: int, from_ns: int = 0, filled: bool = True) -> None:
        """Until so many windows that began then or later have come; filled: only those that have tuples."""
        until(lambda: sum(each["start_ns"] >= from_ns and each["count"] >= filled for each in self.got) >= windows, 60)


class Tuple(NamedTuple):
    """One that was admitted."""

    origin_ns: int
    value: int | None  # None: its client was never told


def _in_windows(found: list[records.Record], answered: dict[tuple[int, int], int]) -> list[Tuple]:
    """What may be in windows, by the facts of admission and by definition: a tuple is late, and in none, if one of a
    lower number is younger by more than the lateness. All numbers count, those that a filter leaves out as well."""
    admitted = sorted(
        (record.epoch, record.seq, record.origin_lo_ns) for record in found if isinstance(record, records.Admitted)
    )
    youngest_ns, kept = 0, []
    for epoch, seq, origin_ns in admitted:
        value = answered.get((epoch, seq))
        if origin_ns >= youngest_ns - LATENESS and (value is None or value % 3):
            kept.append(Tuple(origin_ns, value))
        youngest_ns = max(youngest_ns, origin_ns)
    return kept


def _check(results: list[Result], tuples: list[Tuple]) -> None:
    """Each of them is exact, and there is one per window at most."""
    numbers = [each["window"] for each in results]
    assert numbers == sorted(set(numbers))
    for each in results:
        start, end = each["start_ns"], each["end_ns"]
        assert (start, end) == (each["window"] * HOP, each["window"] * HOP + LENGTH)
        values = sorted(value for origin, value in tuples if start <= origin < end)  # type: ignore[type-var]
        figures: Result = {"count": len(values), "n": len(values), "total": sum(values)}
        figures |= {"top": values[-1] if values else None, "p50": values[(len(values) - 1) // 2] if values else None}
        assert {key: each[key] for key in figures} == figures, f"window {each['window']}"


def _ends(found: list[records.Record]) -> dict[str, int]:
    """How many windows ended in which way before the node did, by what it wrote down."""
    ends = dict.fromkeys(records.WINDOW_STATES, 0)
    for record in found:
        if isinstance(record, records.Window) and records.WINDOW_CAUSES[record.cause] != "stopped":
            skipped = record.state == records.WINDOW_SKIPPED
            ends[records.WINDOW_STATES[record.state]] += record.last_number + 1 - record.seq if skipped else 1
    return ends


class Cable:
    """A connection from the one who dials `address` to another address, that can be cut and mended."""

    def __init__(self, to: str) -> None:
        host, _, port = to.rpartition(":")
        self.to = host, int(port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.ends: list[socket.socket] = []
        self.whole = True
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Turns callers away."""
        self.whole = False
        for end in self.ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """From the next time somebody dials."""
        self.whole = True

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self.listener.accept()
            except OSError:
                return
            try:
                there = socket.create_connection(self.to) if self.whole else None
            except OSError:
                there = None
            if there is None:
                here.close()
                continue
            self.ends += [here, there]
            for one, other in ((here, there), (there, here)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()
            if not self.whole:  # it was cut meanwhile
                self.cut()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """For good."""
        self.listener.close()
        self.cut()


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def _options(folder: Path) -> tuple[str, str]:
    (folder / "operators.py").write_text(OPERATORS)
    return "--operators", str(folder / "operators.py")


class Two(NamedTuple):
    """The source's agent and the windows'."""

    a: Agent
    b: Agent
    cable: Cable


@contextmanager
def _two(
    folder: Path, deadline_ns: int = LONG, plans: dict[str, plan_pb2.LocalPlan] | None = None, clocks: str = ""
) -> Iterator[Two]:
    """Both with the first plan, and b's address known to a as the cable's; clocks: a name, so that each has its own."""
    options = {name: (*_options(folder), *(("--clock-domain", clocks + name) if clocks else ())) for name in "ab"}
    at_b = f"127.0.0.1:{free_ports(1)[0]}"
    cable = Cable(at_b)
    routes = ((0, "a", "127.0.0.1:1"), (1, "b", cable.address))
    for name, plan in (plans or _plans(1, deadline_ns)).items():
        store(folder / name, plan, routes)
    with (
        Agent(folder / "b", "--data", at_b, *options["b"], name="b") as b,
        Agent(folder / "a", *options["a"], name="a") as a,
    ):
        yield Two(a, b, cable)
    cable.close()


def _judged(folder: Path, feeders: list[Feeder], got: list[Result]) -> tuple[list[Tuple], dict[str, int]]:
    """Every result is exact. Returns what may be in windows, and how windows ended."""
    answered: dict[tuple[int, int], int] = {}
    for feeder in feeders:
        answered |= feeder.answered
    tuples = _in_windows(spooled(folder / "a"), answered)
    _check(got, tuples)
    return tuples, _ends(spooled(folder / "b"))


def test_all_windows_come_empty_ones_too_and_each_is_exact(tmp_path: Path) -> None:
    with _two(tmp_path) as (a, b, _):
        listener = Listener(b)
        feeders = [Feeder(a, 1)]
        listener.wait(6)
        feeders[0].stop()
        listener.wait(2, _now_ns(), filled=False)  # by heartbeats alone
        feeders.append(Feeder(a, 2))
        listener.wait(4, _now_ns())
        feeders[1].stop()
        got = listener.stop()
        assert a.stop() == 0 and b.stop() == 0
    tuples, ends = _judged(tmp_path, feeders, got)
    numbers = [each["window"] for each in got]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert {0} < {each["count"] for each in got} and len(tuples) > 20
    assert not ends["abandoned"] and ends["closed"] >= len(got)


def test_a_source_that_crashes_costs_windows_and_none_is_wrong(tmp_path: Path) -> None:
    with _two(tmp_path, SHORT) as (a, b, _):
        listener, feeder = Listener(b), Feeder(a, 3)
        listener.wait(4)
        crashed = a.runtime()
        os.kill(crashed, signal.SIGKILL)
        until(lambda: _restarted(a, crashed))
        listener.wait(5, _now_ns())
        feeder.stop()
        got = listener.stop()
        assert a.stop() == 0 and b.stop() == 0
    _, ends = _judged(tmp_path, [feeder], got)
    assert ends["abandoned"] + ends["skipped"]
    assert len({record.epoch for record in spooled(tmp_path / "a") if isinstance(record, records.Admitted)}) == 2


def _restarted(agent: Agent, crashed: int) -> bool:
    try:
        return agent.runtime() != crashed
    except (OSError, StopIteration):
        return False


def test_a_link_that_is_cut_costs_the_windows_of_what_it_loses_and_none_is_wrong(tmp_path: Path) -> None:
    with _two(tmp_path, SHORT) as (a, b, cable):
        listener, feeder = Listener(b), Feeder(a, 4)
        listener.wait(4)
        cable.cut()
        cut_ns, sent = _now_ns(), feeder.sent
        until(lambda: feeder.sent > sent + 20 and _now_ns() > cut_ns + 2 * SHORT)
        cable.mend()
        listener.wait(5, _now_ns())
        feeder.stop()
        got = listener.stop()
        assert a.stop() == 0 and b.stop() == 0
    _, ends = _judged(tmp_path, [feeder], got)
    assert ends["abandoned"] + ends["skipped"]
    lost = [record for record in spooled(tmp_path / "a") if record.kind in {records.LOST, records.GAVE_UP}]
    assert lost


def test_between_clocks_each_tuple_is_in_one_tumbling_window(tmp_path: Path) -> None:
    """Where a tuple lies is known up to the clocks' offset; that it is in one window, and in one only, is certain."""
    plans = _plans()
    plans["a"].sources[0].max_age_ns = 3 * MAX_AGE  # of which the client's clock takes some
    add, last = plans["b"].operators
    for each in (add, last):
        each.run, each.with_json = "t.list", "{}"
    add.window.hop, add.window.lateness_ns = LENGTH, 3 * MAX_AGE
    with _two(tmp_path, plans=plans, clocks="clock-") as (a, b, _):
        listener, feeder = Listener(b), Feeder(a, 6)
        listener.wait(5)
        feeder.stop()
        listener.wait(1, _now_ns(), filled=False)
        got = listener.stop()
        assert a.stop() == 0 and b.stop() == 0
    assert not _ends(spooled(tmp_path / "b"))["abandoned"]
    numbers = [each["window"] for each in got]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    values = [value for each in got for value in each["result"]]
    kept = {value for value in feeder.answered.values() if value % 3}
    assert len(values) == len(set(values)) and set(values) == {value for value in kept if value >= min(values)}


class Controlled:
    """Both agents, and what a coordinator would say to them."""

    def __init__(self, folder: Path) -> None:
        options = ("--control", "127.0.0.1:0", *_options(folder))
        self.operators = folder / "operators.py"
        self.agents = {name: Agent(folder / name, *options, name=name) for name in "ab"}

    def __enter__(self) -> "Controlled":
        return self

    def __exit__(self, *error: object) -> None:
        for agent in self.agents.values():
            if agent.process.poll() is None:
                agent.stop()

    def deploy(self, version: int) -> None:
        """Both phases."""
        nodes = with_identities({name: MessageToDict(plan) for name, plan in _plans(version).items()}, self.operators)
        whole = json.dumps({"nodes": nodes}, sort_keys=True, separators=(",", ":")).encode()
        hash_ = hashlib.sha256(whole).digest()
        routes = [
            agent_pb2.Route(index=index, node=name, address=agent.data)
            for index, (name, agent) in enumerate(self.agents.items())
        ]
        stubs = [
            agent_pb2_grpc.AgentStub(  # type: ignore[no-untyped-call]
                grpc.insecure_channel(f"127.0.0.1:{agent.ready['control']}")
            )
            for agent in self.agents.values()
        ]
        for stub in stubs:
            reply = stub.Prepare(agent_pb2.PrepareRequest(plan=whole, hash=hash_, epoch=version, routes=routes))
            assert reply.accepted, reply.why
        for stub in stubs:
            reply = stub.Commit(agent_pb2.CommitRequest(hash=hash_, epoch=version))
            assert reply.accepted, reply.why


def test_windows_go_on_across_a_change_of_plans(tmp_path: Path) -> None:
    with Controlled(tmp_path) as cluster:
        cluster.deploy(1)
        a, b = cluster.agents["a"], cluster.agents["b"]
        listener, feeder = Listener(b), Feeder(a, 5)
        listener.wait(4)
        cluster.deploy(2)
        listener.wait(4, _now_ns())
        feeder.stop()
        got = listener.stop()
        assert a.stop() == 0 and b.stop() == 0
    _, ends = _judged(tmp_path, [feeder], got)
    numbers = [each["window"] for each in got]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert not ends["abandoned"]
    at_b = [record for record in spooled(tmp_path / "b") if isinstance(record, records.Admitted)]
    assert {record.flags & 0x7F for record in at_b} == {1, 2} and {record.source for record in at_b} == {1, 2}
