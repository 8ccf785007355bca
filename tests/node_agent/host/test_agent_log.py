"""What an agent says of itself on stderr: forms, limits, a reader that does not read, and the events of real agents."""

import json
import os
import re
import socket
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from node_agent.client.client import Sink, Source
from node_agent.control.spool.spool_files import SpoolFiles
from node_agent.host import log
from node_agent.host.log import LINE_BYTES, WARNING, Log, Stderr
from node_agent.host.operator_output import MOST_CHARACTERS, OperatorOutput
from node_agent.host.trace_ring import Ring, RingFacts
from node_agent.link.clock_offset import Offset
from node_agent.runtime.deployments.announcements import CALM_NS, EventAnnouncer
from node_agent.runtime.links.acceptor import Accepted
from node_agent.runtime.links.peer_link import UNREACHABLE_NS, PeerLink
from node_agent.wire.frames import Probe
from protos import records
from tests.extension_modules import only_python
from tests.node_agent.folder_rings import FolderRings
from tests.node_agent.live import Agent, chain_plan, store, until

KEYS = ["at", "node", "part", "level", "event", "text", "fields"]
PLAIN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (\S+) (\S+)( warning| error)?: (.*)")

OPERATORS = """
from node_agent.sdk import operator

@operator("t.raises", inputs={"value": "json"}, output="json")
def raises(value):
    print("got", value)
    if value == "raise":
        raise RuntimeError("as told")
    while value == "hang":
        pass
    return value
"""


@pytest.fixture
def pipe():
    """Both ends of a pipe: (read, write)."""
    ends = os.pipe()
    yield ends
    for each in ends:
        os.close(each)


def _read(end: int) -> str:
    return os.read(end, 1 << 20).decode()


def test_words_and_json_say_the_same(pipe: tuple[int, int]) -> None:
    for as_json in (False, True):
        told = Log("a.1", "runtime", as_json, Stderr(pipe[1]))
        assert told.say("peer_lost", "b is gone: ü", WARNING, peer="b")
    plain, as_json = _read(pipe[0]).splitlines()
    found = PLAIN.fullmatch(plain)
    assert found and found.groups() == ("a.1", "runtime", " warning", "b is gone: ü")
    line = json.loads(as_json)
    assert list(line) == KEYS and line["fields"] == {"peer": "b"} and line["text"] == "b is gone: ü"
    assert (line["node"], line["part"], line["level"], line["event"]) == ("a.1", "runtime", "warning", "peer_lost")
    assert re.fullmatch(r"[\d-]{10}T[\d:]{8}\.\d{3}Z", line["at"])


def test_text_from_outside_makes_no_lines_and_no_colours(pipe: tuple[int, int]) -> None:
    Log("a", "runtime", to=Stderr(pipe[1])).say("x", "one\n2026-01-01T00:00:00.000Z a control: forged \x1b[31m\udc80")
    first, second = _read(pipe[0]).splitlines()
    assert PLAIN.fullmatch(first) and second.startswith("    2026") and "\x1b" not in second
    Log("a", "runtime", True, Stderr(pipe[1])).say("x", "one\ntwo\x1b")
    assert json.loads(_read(pipe[0]))["text"] == "one\ntwo\x1b"


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("letter", ["x", "ü", "\n"])
def test_a_line_fits_into_a_pipe_at_once(pipe: tuple[int, int], as_json: bool, letter: str) -> None:
    assert Log("a", "runtime", as_json, Stderr(pipe[1])).say("x", letter * 9000, much=letter * 9000)
    line = os.read(pipe[0], 1 << 20)
    assert len(line) <= LINE_BYTES and line.endswith(b"\n")


def test_a_reader_that_does_not_read_stops_nobody(pipe: tuple[int, int]) -> None:
    told = Log("a", "runtime", to=Stderr(pipe[1]))
    said = 0
    while told.say("x", "y" * 1000):
        said += 1
    assert said > 10 and not told.say("x", "y" * 1000) and told.dropped == 2
    assert os.get_blocking(pipe[1]), "the flags of a process that shares the descriptor are left alone"
    read = _read(pipe[0])
    assert told.say("x", "again")
    read += _read(pipe[0])
    assert sum(map(int, re.findall(r"(\d+) lines were dropped", read))) == told.dropped == 2
    assert read.endswith("again\n")


def test_what_is_printed_is_told_line_by_line(pipe: tuple[int, int]) -> None:
    to = OperatorOutput(Log("a", "runtime", to=Stderr(pipe[1])))
    print("one", 1, file=to)
    print("two", end="", file=to)
    print(" and more\n\nthree", file=to, flush=True)
    to.write("x" * (MOST_CHARACTERS + 1))
    said = [found[4] for line in _read(pipe[0]).splitlines() if (found := PLAIN.fullmatch(line))]
    assert said[:3] == ["one 1", "two and more", "three"] and said[3].startswith("xxx") and len(said) == 4


def test_a_socket_takes_lines_and_a_closed_pipe_drops_them(tmp_path: Path) -> None:
    one, other = socket.socketpair()
    with one, other:
        told = Log("a", "control", to=Stderr(one.fileno()))
        assert told.say("x", "to the journal") and other.recv(4096).endswith(b"to the journal\n")
        while told.say("x", "y" * 4000):
            pass
    assert told.dropped == 1
    read, write = os.pipe()
    os.close(read)
    assert not Log("a", "control", to=Stderr(write)).say("x", "nobody")
    os.close(write)
    with (tmp_path / "log").open("ab") as file:
        assert Log("a", "control", to=Stderr(file.fileno())).say("x", "into a file")
    assert (tmp_path / "log").read_text().endswith("into a file\n")


def test_what_repeats_is_told_five_times_and_then_once_a_minute(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_ns = [0]
    monkeypatch.setattr(log, "now_ns", lambda: at_ns[0])
    told = Log("a", "runtime", to=Stderr(pipe[1]))
    assert [told.say("x", "again", kind="k") for _ in range(7)] == [True] * 5 + [False] * 2
    assert told.say("x", "another", kind="other") and told.dropped == 0
    at_ns[0] = log.AGAIN_NS
    assert told.say("x", "again", kind="k") and not told.say("x", "again", kind="k")
    assert _read(pipe[0]).splitlines()[-1].endswith("again (2 more of these since)")


class _Shared:
    def __init__(self, end: int) -> None:
        self.counters, self.log = Counter[str](), Log("a", "runtime", True, Stderr(end))


def test_shedding_is_told_as_it_begins_and_ends(pipe: tuple[int, int]) -> None:
    shared: Any = _Shared(pipe[1])
    announced = EventAnnouncer(shared)
    shared.counters["shed.window"] = 1
    announced.shedding(0)
    shared.counters["shed.late"] = 3
    announced.shedding(1)
    shared.counters.update({"shed.late": 4, "shed.memory": 2})
    announced.shedding(CALM_NS)
    announced.shedding(2 * CALM_NS - 1)
    announced.shedding(2 * CALM_NS)
    announced.shedding(4 * CALM_NS)
    shared.counters["shed.late"] += 1
    announced.shedding(5 * CALM_NS)
    found = [json.loads(line) for line in _read(pipe[0]).splitlines()]
    assert [(each["event"], each["fields"]) for each in found] == [
        ("shedding_begins", {"late": 3}), ("shedding_ends", {"late": 7, "memory": 2}), ("shedding_begins", {"late": 1}),
    ]  # fmt: skip


def _events(agent: Agent) -> list[dict[str, Any]]:
    """Every line of an agent that writes JSON."""
    found = [json.loads(line) for line in agent.log.read_text().splitlines()]
    assert all(list(each) == KEYS for each in found)
    return found


def test_a_real_agent_tells_its_life_in_json(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(OPERATORS)
    store(tmp_path / "s", chain_plan(run="t.raises"))
    with Agent(tmp_path / "s", "--operators", str(tmp_path / "ops.py"), "--log-json") as agent:
        with Sink(agent.data, "out") as sink, Source(agent.data, "in") as source:
            source.send("raise")
            source.send("fine")
            assert sink.get(10).value == "fine"
            runtime = agent.runtime()
            source.send("hang")
            until(lambda: "operator_hung" in agent.log.read_text() and runtime not in agent.children())
        assert agent.stop() == 0
    found = _events(agent)
    by_event = {each["event"]: each for each in found}
    assert found[-1]["event"] == "ended" and by_event["started"]["fields"]["control"] == agent.ready["control"]
    assert by_event["plan_committed"]["part"] == "control" and by_event["plan_committed"]["fields"]["query"] == "q"
    assert by_event["operator_error"]["fields"] == {"operator": "O1"}
    assert "RuntimeError: as told" in by_event["operator_error"]["text"]
    printed = [each["text"] for each in found if each["event"] == "printed"]
    assert printed == ["got raise", "got fine", "got hang"]
    assert by_event["operator_hung"]["part"] == "supervisor" and "unit 1" in by_event["operator_hung"]["text"]


def _two(port: int, other: int) -> Any:
    routes = ((0, "a", f"127.0.0.1:{port}"), (1, "b", f"127.0.0.1:{other}"))
    stream = {"id": 1, "name": "in", "codec": "json", "deadline_ns": 10**9}
    a = chain_plan(
        "a", operators=[], units=[], outputs=[], streams=[stream], peers=[{"index": 1, "name": "b"}],
        sends=[{"stream": 1, "peer": 1}],
    )  # fmt: skip
    b = chain_plan(
        "b", index=1, sources=[], peers=[{"index": 0, "name": "a"}],
        streams=[{**stream, "producers": [0]}, {"id": 2, "name": "O1", "codec": "json", "deadline_ns": 10**9}],
    )  # fmt: skip
    return routes, a, b


def test_peers_that_come_and_go_are_told(tmp_path: Path) -> None:
    ports = []
    for _ in range(2):
        with socket.create_server(("127.0.0.1", 0)) as server:
            ports.append(server.getsockname()[1])
    routes, *plans = _two(*ports)
    for plan in plans:
        store(tmp_path / plan.node, plan, routes)
    with Agent(tmp_path / "a", "--data", f"127.0.0.1:{ports[0]}", "--log-json") as a:
        with Agent(tmp_path / "b", "--data", f"127.0.0.1:{ports[1]}", name="b") as b:
            with Sink(b.data, "out") as sink, Source(a.data, "in") as source:
                source.send(1)
                assert sink.get(20).value == 1
            assert b.stop() == 0
        until(lambda: "peer_lost" in a.log.read_text())
    peers = [(each["event"], each["fields"]) for each in _events(a) if each["event"].startswith("peer")]
    assert peers[:2] == [("peer_connected", {"peer": "b"}), ("peer_lost", {"peer": "b"})]
    assert all(PLAIN.fullmatch(line) for line in b.log.read_text().splitlines())


def test_a_full_spool_is_told(tmp_path: Path, pipe: tuple[int, int]) -> None:
    ring = Ring.create(tmp_path / "1.ring", records.Header("a", 0, 1, "clock", 50, 1, 0), 1024)
    (tmp_path / "spool").mkdir()
    said = Log("a", "control", True, Stderr(pipe[1]))
    files = SpoolFiles(tmp_path / "spool", FolderRings(tmp_path), 10 * records.RECORD_BYTES, said)
    facts = RingFacts(ring)
    for _ in range(2):
        for _ in range(20):
            facts.write(records.LOAD, 0, records.NO_REF, 0, 0, 0)
        facts.publish()
        files.drain()
    found = [json.loads(line) for line in _read(pipe[0]).splitlines()]
    assert {each["event"] for each in found} == {"spool_full"} and "coordinator collect" in found[0]["text"]
    assert files.dropped == 40


def test_a_clock_that_jumped_is_told_once_per_era(pipe: tuple[int, int]) -> None:
    only_python()
    shared: Any = _Shared(pipe[1])
    eras = iter([0, 0, 1, 1, 2])
    clock = SimpleNamespace(on_answer=lambda *_: Offset(0, 1, 1, next(eras)))
    context = SimpleNamespace(shared=shared)
    accepted = Accepted(cast(Any, SimpleNamespace(context=context)), cast(Any, None), 0, "here")
    accepted.role = cast(Any, SimpleNamespace(name="source:in", clock=clock))
    for _ in range(5):
        accepted._on_probe(0, Probe(1, 2, 3, 4))
    found = [json.loads(line) for line in _read(pipe[0]).splitlines()]
    assert [each["fields"] for each in found] == [{"peer": "source:in", "era": 1}, {"peer": "source:in", "era": 2}]


def test_a_peer_that_cannot_be_reached_is_told_once_after_a_while(pipe: tuple[int, int]) -> None:
    only_python()
    shared: Any = _Shared(pipe[1])
    link = PeerLink(shared, cast(Any, None), "b", "127.0.0.1:1", {})
    for at_ns in (1, UNREACHABLE_NS, UNREACHABLE_NS + 1, 2 * UNREACHABLE_NS):
        link._unreachable(at_ns)
    (line,) = _read(pipe[0]).splitlines()
    assert json.loads(line)["event"] == "peer_unreachable" and "127.0.0.1:1" in line
