"""Source and Sink against a small agent on loopback, made of the same machines that the runtime uses."""

import contextlib
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from node_agent.client.client import (
    Admitted,
    NoAnswerError,
    NotAcceptedError,
    Refused,
    Result,
    Sink,
    Source,
    UnreachableError,
)
from node_agent.client.connection import parse_address
from node_agent.host.clock import clock_domain, new_boot, now_ns
from node_agent.link.arrived import Arrived
from node_agent.link.clock_offset import PeerClock, Question
from node_agent.link.limits import LinkError
from node_agent.link.outcomes import OutcomeLog
from node_agent.link.receiver import Inbox, Receiver
from node_agent.link.sender import Sender
from node_agent.operators.codecs import JSON, CodecError, UnknownCodecError
from node_agent.wire import frames
from tests.sentences import Wording

SAID = Wording("feed", "clients")

MANUAL = Path(__file__).parents[3] / "docs" / "how_to" / "operators.md"
FOREVER = 1 << 60


class NoFacts:
    def sent(self, at_ns: int, link_seq: int, tag: Any) -> None: ...
    def acked(self, at_ns: int, upto: int) -> None: ...
    def gave_up(self, at_ns: int, link_seq: int, tag: Any) -> None: ...


class Agent:
    """Admits what comes from any source and delivers it at once to every sink. One thread per connection."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.lock = threading.RLock()
        self.codec, self.clock, self.offset_ns = "json", clock_domain(), 0
        self.refusal = ""  # of every connection
        self.credit = 1 << 20
        self.mute = False  # takes over nothing
        self.cut_before_answer = 0  # so many times: take the batch over, then break the connection
        self.dials = 0
        self.admitted: list[Any] = []
        self.origins: list[tuple[int, int]] = []
        self.restart()
        threading.Thread(target=self.accept, daemon=True).start()

    def restart(self) -> None:
        with self.lock:
            self.boot = new_boot()
            self.inbox = Inbox()
            self.answers: dict[int, OutcomeLog] = {}
            self.sinks: dict[int, Sender] = {}
            self.seq = 0
            self.sockets: list[socket.socket] = getattr(self, "sockets", [])
            self.cut_all()

    def cut_all(self) -> None:
        for each in self.sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self.sockets.clear()

    def stop(self) -> None:
        self.listener.close()
        self.cut_all()

    def accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError, LinkError, StopIteration), sock:
            self.dials += 1
            reader = frames.FrameReader()
            hello = self.greet(sock, reader)
            with self.lock:
                self.sockets.append(sock)
            if hello.peer.startswith("source:"):
                self.serve_source(sock, reader, hello)
            else:
                self.serve_sink(sock, reader, self.sinks[hello.boot])

    def greet(self, sock: socket.socket, reader: frames.FrameReader) -> frames.Hello:
        hello = next(iter(reader.feed(sock.recv(4096))))
        assert isinstance(hello, frames.Hello)
        if self.refusal:
            sock.sendall(frames.encode_refused(self.refusal))
            raise StopIteration
        with self.lock:
            upto = self.inbox.hello(hello.peer, hello.boot, alone=False).on_hello(self.credit).upto
            answer = frames.Hello("node:x", self.clock, self.boot, 0, upto, 100, self.credit, self.codec)
            if hello.peer.startswith("sink:"):  # before it hears of it: what is sent from then on is for it
                sender = self.sinks.setdefault(hello.boot, Sender(NoFacts()))
                known = hello.resume_after if hello.peer_boot == self.boot else 0
                sender.on_connected(now_ns(), hello.boot, known, hello.credit_bytes)
            sock.sendall(frames.encode_hello(answer))
        return hello

    def serve_source(self, sock: socket.socket, reader: frames.FrameReader, hello: frames.Hello) -> None:
        with self.lock:
            receiver = self.inbox.hello(hello.peer, hello.boot, alone=False)
            answers = self.answers.setdefault(hello.boot, OutcomeLog())
            answers.on_hello(hello.resume_after)
        clock = PeerClock(self.clock, 100, hello.clock, hello.drift_ppm)
        while True:
            with self.lock:
                sock.sendall(frames.encode_outcomes(answers.take(), receiver.last, self.credit))
            question = clock.ask(now_ns() + self.offset_ns)
            if question is not None:
                sock.sendall(frames.encode_probe(frames.Probe(*question)))
            data = sock.recv(1 << 16)
            if not data:
                return
            for frame in reader.feed(data):
                if isinstance(frame, frames.Probe):
                    question = Question(frame.id, frame.t0_ns)
                    clock.on_answer(now_ns() + self.offset_ns, question, frame.t1_ns, frame.t2_ns)
                elif isinstance(frame, frames.Batch) and not self.mute:
                    with self.lock:
                        self.admit(clock, receiver, answers, frame)
            if self.cut_before_answer and receiver.last:
                self.cut_before_answer -= 1
                return

    def admit(self, clock: PeerClock, receiver: Receiver, answers: OutcomeLog, batch: frames.Batch) -> None:
        first = batch.first + len(batch.tuples)
        fresh = receiver.on_batch(batch.first, batch.tuples)
        for link_seq, item in enumerate(fresh, first - len(fresh)):
            at_ns = now_ns() + self.offset_ns
            lo_ns, hi_ns = clock.map(at_ns, *item.lineage[4:])
            if at_ns - hi_ns > 60 * 10**9:
                answers.refused(link_seq, "older than 60 s")
                continue
            self.seq += 1
            self.admitted.append(JSON.decode(item.payload))
            self.origins.append((lo_ns, hi_ns))
            answers.admitted(link_seq, 7, self.seq)
            self.deliver(item, (1, 7, self.seq, 0, lo_ns, hi_ns))

    def deliver(self, item: Arrived, lineage: tuple[int, int, int, int, int, int]) -> None:
        data = frames.encode_tuple(lineage, 3, 0, item.payload, at_ns=now_ns() + self.offset_ns)
        for sender in self.sinks.values():
            sender.offer(now_ns(), data, FOREVER, None)

    def serve_sink(self, sock: socket.socket, reader: frames.FrameReader, sender: Sender) -> None:
        sock.settimeout(0.005)
        while True:
            with self.lock:
                out = sender.poll(now_ns())
            if out is not None:
                sock.sendall(frames.encode_batch(*out))
                if self.cut_before_answer:
                    self.cut_before_answer -= 1
                    return
            with contextlib.suppress(TimeoutError):
                data = sock.recv(4096)
                if not data:
                    return
                for frame in reader.feed(data):
                    if isinstance(frame, frames.Probe):
                        sock.sendall(frames.encode_probe(frame._replace(t1_ns=now_ns(), t2_ns=now_ns())))
                    elif isinstance(frame, frames.Ack):
                        with self.lock:
                            sender.on_ack(now_ns(), frame.upto, frame.credit_bytes)


@pytest.fixture
def agent() -> Iterator[Agent]:
    running = Agent()
    yield running
    running.stop()


def test_the_manuals_client_runs(agent: Agent, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python client\n(.*?)```", MANUAL.read_text(), re.S)
    endless = code.replace("timeout=1.0", "timeout=60").replace("in results:", "in [next(results) for _ in range(3)]:")
    exec(endless, {"address": agent.address})
    assert agent.admitted == [{"id": 1, "kg": 3.5}, {"id": 2, "kg": 50}, {"id": 3, "kg": 1}]
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and lines[0].startswith("{'id': 1, 'kg': 3.5} (1, 7, 1, 0) 1")


def test_the_manuals_batches_run(agent: Agent, capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("columns", "async"):
        (code,) = re.findall(rf"```python {kind}\n(.*?)```", MANUAL.read_text(), re.S)
        exec(code, {"address": agent.address})
    assert agent.admitted == [
        {"id": 4, "kg": 0.5}, {"id": 5, "kg": 20}, {"id": 6, "kg": 3}, {"id": 7}, {"id": 8}, {"id": 9},
    ]  # fmt: skip
    assert [lo_ns for lo_ns, _ in agent.origins][:3] == sorted(lo_ns for lo_ns, _ in agent.origins[:3])
    assert capsys.readouterr().out == "2 2\n1 1\n"


def test_a_tuple_is_admitted_with_its_origin(agent: Agent) -> None:
    with Source(agent.address, "s") as source:
        before = now_ns()
        assert source.send({"x": 1}, age_ms=(10, 20.5)) == Admitted(1, 7)
        after = now_ns()
        ((lo, hi),) = agent.origins
        assert before - 20_500_000 <= lo <= after - 20_500_000 and hi - lo == 10_500_000
        assert source.send({"x": 2}, age_ms=61_000) == Refused("older than 60 s")
        assert source.send({"x": 3}) == Admitted(2, 7)
        for age in (-1, (2, 1), float("nan"), float("inf")):
            with SAID.refuses("bad_age age_ms", kind=ValueError):
                source.send({"x": 1}, age_ms=age)
        with pytest.raises(CodecError):
            source.send(float("nan"))
        assert source.send_many([]) == []
    with SAID.refuses("closed source:s", kind=ValueError):
        source.send({"x": 4})


def test_a_burst_is_answered_in_order_whatever_the_size(agent: Agent) -> None:
    with Source(agent.address, "s", timeout=60) as source:
        outcomes = source.send_many(range(20_000))
        assert outcomes == [Admitted(seq, 7) for seq in range(1, 20_001)]
        agent.credit = 2_000
        assert len(source.send_many(range(300))) == 300
    assert agent.admitted == [*range(20_000), *range(300)]


def test_a_connection_that_breaks_before_the_answer_admits_nothing_twice(agent: Agent) -> None:
    with Source(agent.address, "s", timeout=60) as source:
        assert source.send(0) == Admitted(1, 7)
        agent.cut_before_answer = 3
        assert source.send_many([1, 2, 3]) == [Admitted(2, 7), Admitted(3, 7), Admitted(4, 7)]
        agent.cut_all()
        assert source.send(4) == Admitted(5, 7)
    assert agent.admitted == [0, 1, 2, 3, 4] and agent.dials > 2


def test_a_source_goes_on_with_the_next_incarnation_of_the_agent(agent: Agent) -> None:
    with Source(agent.address, "s", timeout=60) as source:
        assert source.send(0) == Admitted(1, 7)
        agent.restart()
        assert source.send(1) == Admitted(1, 7)


def test_nobody_there_says_where_and_what_to_check() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    for client in (lambda: Source(address, "s", timeout=0.05), lambda: Sink(address, "o", connect_timeout=0.05)):
        with SAID.refuses(f"unreachable {address}", False, UnreachableError):
            client()


def test_a_refused_client_is_told_why(agent: Agent) -> None:
    agent.refusal = "no source named s here; there are: v2v"
    with SAID.refuses("refused source:s", False, NotAcceptedError):
        Source(agent.address, "s")
    with pytest.raises(NotAcceptedError):
        Sink(agent.address, "o")


def test_an_agent_without_an_answer(agent: Agent) -> None:
    source = Source(agent.address, "s", timeout=30)
    source._timeout_s = 0.2
    agent.mute = True
    with SAID.refuses("no_answer source:s", False, NoAnswerError) as error:
        source.send_many([1, 2])
    assert error.value.results == [None, None] and isinstance(error.value, TimeoutError)
    source.close()


def test_an_agent_without_credit_refuses_by_time(agent: Agent) -> None:
    agent.credit = 0
    with Source(agent.address, "s", timeout=30) as source:
        source._timeout_s = 0.2
        outcome = source.send(1)
        assert isinstance(outcome, Refused) and "not sent within 0.2 s" in outcome.why


def test_a_stream_of_an_unknown_type_is_refused(agent: Agent) -> None:
    agent.codec = "none.Such"
    with SAID.refuses("unknown_codec none.Such", False, UnknownCodecError):
        Source(agent.address, "s")


def test_something_else_listens_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    sock, _ = other.accept()
                    sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    sock.close()

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(UnreachableError):
            Source(address, "s", timeout=0.1)


def test_results_come_with_their_latency_and_lineage(agent: Agent) -> None:
    with Sink(agent.address, "o", timeout=30) as sink, Source(agent.address, "s") as source:
        before = now_ns()
        source.send({"x": 1}, age_ms=(10, 20))
        result = next(sink)
        elapsed = now_ns() - before
    assert isinstance(result, Result)
    assert result.value == {"x": 1} and result.lineage == (1, 7, 1, 0)
    lo, hi = result.latency_ns
    assert hi - lo == 10_000_000 and 10_000_000 <= lo <= 10_000_000 + elapsed
    assert result.origin == (result.at_ns - hi, result.at_ns - lo)
    assert list(sink) == [], "closed"


def test_a_sink_ends_when_nothing_comes_and_get_says_so(agent: Agent) -> None:
    sink = Sink(agent.address, "o", timeout=0.05)
    assert list(sink) == []
    with SAID.refuses("no_result sink:o", False, TimeoutError):
        sink.get(0.01)


def test_ctrl_c_ends_the_iteration(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink(agent.address, "o")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sink, "_read", interrupt)
    assert list(sink) == [] and list(sink) == []


def test_a_sink_that_reconnects_sees_every_result_once(agent: Agent) -> None:
    with Sink(agent.address, "o", timeout=30) as sink, Source(agent.address, "s", timeout=60) as source:
        source.send_many([1, 2])
        assert [sink.get(30).value, sink.get(30).value] == [1, 2]
        assert (sink.reconnects, source.reconnects) == (0, 0)
        agent.cut_all()
        source.send_many([3, 4])
        assert [sink.get(30).value, sink.get(30).value] == [3, 4]
        source.send(5)
        assert sink.get(30).value == 5
        assert (sink.reconnects, source.reconnects) == (1, 1)


def test_values_of_one_burst_may_have_ages_of_their_own(agent: Agent) -> None:
    with Source(agent.address, "s") as source:
        assert source.send_aged([(1, 100), (2, (50, 60)), (3, 0)]) == [Admitted(1, 7), Admitted(2, 7), Admitted(3, 7)]
        assert agent.admitted == [1, 2, 3]
        (_, first), (lo, hi), (last, _) = agent.origins
        assert last - first == 100_000_000 and hi - lo == 10_000_000 and last - hi == 50_000_000
        with SAID.refuses("bad_age age_ms", kind=ValueError):
            source.send_aged([(1, 100), (2, -1)])


def test_a_sink_goes_on_with_the_next_incarnation_of_the_agent(agent: Agent) -> None:
    with Sink(agent.address, "o", timeout=30) as sink, Source(agent.address, "s") as source:
        source.send_many([1, 2])
        assert [sink.get(30).value, sink.get(30).value] == [1, 2]
        seq = agent.seq
        agent.restart()
        agent.seq = seq
        while not agent.sinks:  # it reconnects while it waits
            with pytest.raises(TimeoutError):
                sink.get(0.02)
        source.send(3)
        assert sink.get(30).value == 3


def test_an_agent_with_another_clock_measures_before_it_judges(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("node_agent.client.connection._PROBES_S", 30.0)
    agent.clock, agent.offset_ns = "another", 5_000_000_000
    with Sink(agent.address, "o", timeout=30) as sink, Source(agent.address, "s") as source:
        before = now_ns() + agent.offset_ns
        source.send(1, age_ms=50)
        after = now_ns() + agent.offset_ns
        lo, hi = agent.origins[0]
        assert lo <= after - 50_000_000 and hi >= before - 50_000_000, "the true origin is inside"
        assert lo > 0, "and the interval is finite: probes were answered first"
        assert sink.get(30).latency_ns[1] < 5_000_000_000


@pytest.mark.parametrize("address", ["pi1", "pi1:", ":7701", "pi1:0", "pi1:70000", "pi1:x"])
def test_an_address_is_host_and_port(address: str) -> None:
    with SAID.refuses(f"not_an_address {address}", kind=ValueError):
        Source(address, "s")
    assert parse_address("[::1]:7701") == ("::1", 7701) and parse_address("pi1:7701") == ("pi1", 7701)


def test_the_clock_domain_is_one_per_machine_and_the_clock_runs() -> None:
    assert re.fullmatch(r"[0-9a-f]{32}", clock_domain()) and clock_domain() == clock_domain()
    before = now_ns()
    time.sleep(0.001)
    assert now_ns() > before
    assert new_boot() != new_boot()
