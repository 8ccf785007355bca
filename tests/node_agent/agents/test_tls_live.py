"""Real agents that speak mutual TLS: tuples between them, who is let in, and who is not."""

import contextlib
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import grpc
import pytest

from node_agent.client.client import Admitted, NotAcceptedError, NotTrustedError, Sink, Source, TlsError
from node_agent.wire import frames
from protos import agent_pb2, agent_pb2_grpc, plan_pb2, trace_pb2
from protos import tuple_pb2 as pb
from tests.node_agent.live import Agent, chain_plan, free_ports, kinds, spooled, store, store_places, until
from tests.sentences import fault, problem_of
from tests.tls_identities import OTHERS, Authority

SECOND = 10**9
NAME = "a.node.shimekiri"


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The cluster's CA, with a, b, client and coordinator."""
    authority = Authority(tmp_path_factory.mktemp("certs"))
    for node in "ab":
        authority.node(node)
    authority.client()
    authority.coordinator()
    authority.make("client.shimekiri", "expired", OTHERS, (-10, -1))
    authority.make("client.shimekiri", "early", OTHERS, (1, 10))
    return authority


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Another CA, of the same name."""
    authority = Authority(tmp_path_factory.mktemp("others"))
    authority.node("a")
    authority.node("b")
    authority.client()
    return authority


def _hop(node: str) -> plan_pb2.LocalPlan:
    """in@a -> O1@a -> O2@b -> out@b."""
    index = "ab".index(node)
    values: dict[str, Any] = {
        "version": 1, "query": "two", "node": node, "index": index, "policy": {"name": "edf", "largest_batch": 1},
        "peers": [{"index": 1 - index, "name": "ba"[index], "latency_ns": 10**6}], "cpu": -1,
    }  # fmt: skip

    def stream(id_: int, *producers: int) -> dict[str, Any]:
        return {"id": id_, "name": f"s{id_}", "codec": "json", "deadline_ns": 10 * SECOND, "producers": producers}

    def operator(id_: int) -> dict[str, Any]:
        return {
            "id": id_, "name": f"O{id_}", "run": "pass", "inputs": [id_], "output": id_ + 1, "hang_ns": 5 * SECOND
        }  # fmt: skip

    def unit(id_: int) -> dict[str, Any]:
        return {
            "id": id_, "operators": [id_], "sub_deadline_ns": 10**8, "deadline_ns": 10 * SECOND, "exits": [id_ + 1]
        }  # fmt: skip

    if node == "a":
        values |= {
            "streams": [stream(1), stream(2)], "sources": [{"id": 1, "name": "in", "stream": 1}],
            "operators": [operator(1)], "units": [unit(1)], "sends": [{"stream": 2, "peer": 1}],
        }  # fmt: skip
    else:
        values |= {
            "streams": [stream(2, 0), stream(3)], "operators": [operator(2)], "units": [unit(2)],
            "outputs": [{"id": 1, "name": "out", "stream": 3, "deadline_ns": 10 * SECOND}],
        }  # fmt: skip
    return plan_pb2.LocalPlan(**values)


def _pair(where: Path) -> tuple[int, int]:
    """The hop in both state directories; data ports of a and b."""
    a, b = free_ports(2)
    routes = ((0, "a", f"127.0.0.1:{a}"), (1, "b", f"127.0.0.1:{b}"))
    for node in "ab":
        store(where / node, _hop(node), routes)
    return a, b


def _start(where: Path, node: str, port: int, tls: Path) -> Agent:
    return Agent(where / node, "--data", f"127.0.0.1:{port}", "--tls", str(tls), name=node)


@pytest.fixture
def agent(tmp_path: Path, ours: Authority) -> Iterator[Agent]:
    """a with in -> O1 -> out, and a stream that b may send."""
    plan = chain_plan(peers=[{"index": 1, "name": "b", "latency_ns": 1}])
    plan.streams.add(id=3, name="far", codec="json", deadline_ns=SECOND).producers.append(1)
    plan.operators.add(id=2, name="O2", run="pass", inputs=[3], output=2, hang_ns=SECOND)
    plan.operators[1].output = 4
    plan.streams.add(id=4, name="O2", codec="json", deadline_ns=SECOND)
    plan.units.add(id=2, operators=[2], sub_deadline_ns=10**8, deadline_ns=SECOND, exits=[4])
    plan.outputs.add(id=2, name="second", stream=4, deadline_ns=SECOND)
    store(tmp_path / "a", plan)
    with Agent(tmp_path / "a", "--tls", str(ours.folder / "a")) as running:
        yield running


def test_two_nodes_a_source_and_a_sink(tmp_path: Path, ours: Authority) -> None:
    """Large payloads, a backlog over a slow reader, and a peer that is killed: all arrives intact and in order."""
    a_port, b_port = _pair(tmp_path)
    with (
        _start(tmp_path, "a", a_port, ours.folder / "a") as a,
        _start(tmp_path, "b", b_port, ours.folder / "b") as b,
        Source(a.data, "in", tls=ours.folder / "client", timeout=20) as source,
    ):
        assert a.ready["tls"] is True and b.ready["tls"] is True
        with Sink(b.data, "out", tls=str(ours.folder / "coordinator"), connect_timeout=20) as sink:
            large = ["x" * 100, "y" * 20_000, "z" * 300_000, "w" * 900_000]
            assert all(isinstance(each, Admitted) for each in source.send_many(large))
            assert [sink.get(20).value for _ in large] == large
            numbered = [[n, "." * 4000] for n in range(1500)]  # 6 MB, of which the sink reads nothing at first
            reader = threading.Thread(target=lambda: got.extend(sink.get(20).value for _ in range(1)))
            got: list[Any] = []
            for at in range(0, 1500, 100):
                assert all(isinstance(each, Admitted) for each in source.send_many(numbered[at : at + 100]))
            reader.start()
            reader.join()
            while len(got) < 1500 and got[-1][0] < 1499:
                got.append(sink.get(20).value)
            # What the sink is too slow for is dropped, the oldest first; what comes is whole and in order.
            assert [each[0] for each in got] == sorted(each[0] for each in got) and got[-1][0] == 1499
            assert all(each == numbered[each[0]] for each in got)
        b.stop()
        with (
            _start(tmp_path, "b", b_port, ours.folder / "b") as later,
            Sink(later.data, "out", tls=ours.folder / "b") as sink,
        ):
            assert isinstance(source.send("again"), Admitted) and sink.get(20).value == "again"
            assert later.stop() == 0
        assert a.stop() == 0
    assert kinds(spooled(tmp_path / "a"))["GAVE_UP"] == 0
    assert "Traceback" not in a.log.read_text() + b.log.read_text()


def test_two_cores_of_one_node_have_one_certificate(tmp_path: Path, ours: Authority) -> None:
    one, two = _hop("a"), _hop("b")
    one.peers[0].name, two.node, two.peers[0].name = "a.1", "a.1", "a"
    store_places(tmp_path / "a", (one, two), ((0, "a", "127.0.0.1:1"), (1, "a.1", "127.0.0.1:2")))
    folder = ours.folder / "client"
    with (
        Agent(tmp_path / "a", "--cores", "2", "--tls", str(ours.folder / "a")) as agent,
        Source(agent.place("a"), "in", tls=folder, timeout=20) as source,
        Sink(agent.place("a.1"), "out", tls=folder, connect_timeout=20) as sink,
    ):
        assert isinstance(source.send("x"), Admitted) and sink.get(20).value == "x"


def test_a_peer_of_another_ca_or_name_is_not_served(tmp_path: Path, ours: Authority, theirs: Authority) -> None:
    a_port, b_port = _pair(tmp_path)
    own = ours.folder / "a"
    with _start(tmp_path, "a", a_port, own) as a, _start(tmp_path, "b", b_port, theirs.folder / "b") as b:
        until(lambda: "ca.pem" in a.log.read_text())
        assert b.stop() == 0 == a.stop()
    # A node's own certificate at another node's address: the name is verified, not the address. The agent is started
    # anew, as refusals are told five times, then once a minute.
    store(tmp_path / "c", _hop("b"), ())
    with (
        _start(tmp_path, "a", a_port, own) as a,
        Agent(tmp_path / "c", "--data", f"127.0.0.1:{b_port}", "--tls", str(ours.node("c")), name="c"),
    ):
        until(lambda: "is of somebody else" in a.log.read_text())
        assert a.stop() == 0


def test_control_serves_the_coordinator_only(agent: Agent, ours: Authority, theirs: Authority) -> None:
    target = f"127.0.0.1:{agent.ready['control']}"

    def call(folder: Path) -> tuple[Any, Any]:
        key, certificate = (folder / "key.pem").read_bytes(), (folder / "cert.pem").read_bytes()
        credentials = grpc.ssl_channel_credentials((folder / "ca.pem").read_bytes(), key, certificate)
        options = (("grpc.ssl_target_name_override", NAME),)
        with grpc.secure_channel(target, credentials, options) as channel:
            stub = agent_pb2_grpc.AgentStub(channel)  # type: ignore[no-untyped-call]
            answers = []
            for ask in (
                lambda: stub.Health(agent_pb2.HealthRequest(), timeout=20).serving,
                lambda: len(list(stub.Trace(trace_pb2.TraceRequest(), timeout=20))) >= 0,
            ):
                try:
                    answers.append(ask())
                except grpc.RpcError as error:
                    answers.append((error.code(), error.details()))
            return answers[0], answers[1]

    assert call(ours.folder / "coordinator") == (True, True)
    for folder, whose in (("client", "a client"), ("b", "node b")):
        for code, why in call(ours.folder / folder):
            assert code is grpc.StatusCode.PERMISSION_DENIED
            assert "only the coordinator" in why and whose in why
    assert all(code is grpc.StatusCode.UNAVAILABLE for code, _ in call(theirs.folder / "client"))
    with grpc.insecure_channel(target) as channel, pytest.raises(grpc.RpcError) as error:
        stub = agent_pb2_grpc.AgentStub(channel)  # type: ignore[no-untyped-call]
        stub.Health(agent_pb2.HealthRequest(), timeout=20)
    assert error.value.code() is grpc.StatusCode.UNAVAILABLE


def test_clients_that_are_not_trusted_are_told_why(
    agent: Agent, ours: Authority, theirs: Authority, tmp_path: Path
) -> None:
    def refused(tls: Path | None, kind: type[Exception] = NotTrustedError) -> str:
        with pytest.raises(kind) as error:
            Source(agent.data, "in", tls=tls, timeout=20).close()
        problem = problem_of(error.value)
        assert problem is not None
        return fault(problem)

    assert refused(None, NotAcceptedError) == "refused source:in"
    assert refused(theirs.folder / "client") == "of_another_ca"
    assert refused(ours.folder / "expired", TlsError) == "cert.pem expired"
    assert refused(ours.folder / "early", TlsError) == "cert.pem not_valid_yet"
    assert refused(tmp_path / "nowhere", TlsError) == "key.pem no_file"
    store(tmp_path / "p", chain_plan())
    with Agent(tmp_path / "p") as plain:
        with pytest.raises(NotTrustedError, check=lambda error: error.code == "not_tls"):
            Source(plain.data, "in", tls=ours.folder / "client", timeout=20)
        until(lambda: "the other end speaks TLS and this one does not" in plain.log.read_text())
    with Source(agent.data, "in", tls=ours.folder / "client", timeout=20) as source:
        assert isinstance(source.send("still here"), Admitted)


# -- by hand, as an attacker would


class Raw:
    """One TLS connection without our client, which verifies nothing."""

    def __init__(self, agent: Agent, folder: Path | None) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if folder is not None:
            context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        plain = socket.create_connection(("127.0.0.1", agent.ready["data"]), 20)
        self.end = context.wrap_socket(plain)

    def hello(self, peer: str) -> bytes:
        """What the agent answers; empty: it closed."""
        frame = pb.Frame(hello=pb.Hello(version=frames.VERSION, peer=peer, boot=7)).SerializeToString()
        self.end.sendall(frames.HEAD.pack(len(frame), crc32(frame)) + frame)
        return self.end.recv(65536)


def _answer(agent: Agent, folder: Path | None, peer: str) -> str:
    """The kind of frame that answers that Hello, with why; or `closed`."""
    raw = Raw(agent, folder)
    try:
        data = raw.hello(peer)
    except OSError as error:
        return f"closed {error}"
    finally:
        raw.end.close()
    frame = pb.Frame.FromString(data[frames.HEAD.size :]) if data else pb.Frame()
    return f"{frame.WhichOneof('is')} {frame.refused.why}"


def test_who_may_speak_as_whom(agent: Agent, ours: Authority, theirs: Authority) -> None:
    folder = ours.folder
    for identity, peer, said in (
        ("b", "node:b", "hello "), ("b", "node:b.1", "hello "), ("b", "source:in", "hello "),
        ("client", "sink:out", "hello "), ("coordinator", "source:in", "hello "),
        ("client", "node:b", "refused it says that it is node:b, and its certificate is of a client"),
        ("coordinator", "node:b", "refused it says that it is node:b, and its certificate is of the coordinator"),
        ("b", "node:a", "refused it says that it is node:a, and its certificate is of node b"),
        ("b", "node:bb", "refused it says that it is node:bb"),
        ("b", "node:", "refused it says"),
    ):  # fmt: skip
        assert _answer(agent, folder / identity, peer).startswith(said), (identity, peer)
    stranger = ours.make("somebody.else", "stranger", OTHERS)
    assert "which is nobody here" in _answer(agent, stranger, "source:in")
    for bad in (None, theirs.folder / "b", folder / "expired", folder / "early"):
        assert re.match(r"closed .*(ALERT|alert|reset|EOF|Broken)", _answer(agent, bad, "source:in")), bad
    agent.stop()
    log = agent.log.read_text()
    assert "no connection with 127.0.0.1: the other end has shown no certificate" in log
    assert "has expired" in log and "Traceback" not in log


def test_strangers_lock_nobody_out(agent: Agent, ours: Authority) -> None:
    """Silence, garbage, half a handshake, and more of them than there is room for, while a known peer connects."""
    address = ("127.0.0.1", agent.ready["data"])
    silent = [socket.create_connection(address, 20) for _ in range(300)]
    begun = [socket.create_connection(address, 20, ("127.0.0.2", 0)) for _ in range(100)]
    try:
        for end in begun:  # each asks for a handshake, and does not go on with it
            with contextlib.suppress(OSError):
                end.sendall(_client_hello())
        with (
            Source(agent.data, "in", tls=ours.folder / "client", timeout=20) as source,
            Sink(agent.data, "out", tls=ours.folder / "client", connect_timeout=20) as sink,
        ):
            for n, end in enumerate(silent[-60:]):
                with contextlib.suppress(OSError):  # closed in favour of a later one
                    end.sendall((b"\x16\x03\x01\x02\x00\x01", b"\x00" * 100, bytes(range(1, 200)), b"\x16")[n % 4])
            for n in range(20):
                assert isinstance(source.send(n), Admitted) and sink.get(20).value == n
            silent[-1].settimeout(20)
            with contextlib.suppress(ConnectionError):
                while silent[-1].recv(1000):  # until its time is over
                    pass
            assert isinstance(source.send("last"), Admitted)
    finally:
        for end in silent + begun:
            end.close()
    assert agent.stop() == 0 and "Traceback" not in agent.log.read_text()


def _client_hello() -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    sent = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname=NAME).do_handshake()
    return sent.read()


def test_a_source_connects_again_after_a_cut(agent: Agent, ours: Authority) -> None:
    """Through a proxy that cuts the connection: tuples are neither lost nor doubled."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        Sink(agent.data, "out", tls=ours.folder / "client", connect_timeout=20) as sink,
    ):
        cut = threading.Event()
        thread = threading.Thread(target=_proxy, args=(listener, agent.ready["data"], cut), daemon=True)
        thread.start()
        via = f"127.0.0.1:{listener.getsockname()[1]}"
        with Source(via, "in", tls=ours.folder / "client", timeout=20) as source:
            assert isinstance(source.send(0), Admitted)
            cut.set()
            for n in range(1, 50):
                assert isinstance(source.send(n), Admitted)
            assert source.reconnects == 1
        assert [sink.get(20).value for _ in range(50)] == list(range(50))


def _proxy(listener: socket.socket, port: int, cut: threading.Event) -> None:
    """Forwards bytes; the first connection is cut in the middle once `cut` is set."""
    while True:
        try:
            near, _ = listener.accept()
        except OSError:
            return
        far = socket.create_connection(("127.0.0.1", port))
        ends = [threading.Thread(target=_pump, args=pair, daemon=True) for pair in ((near, far, cut), (far, near, cut))]
        for each in ends:
            each.start()


def _pump(one: socket.socket, other: socket.socket, cut: threading.Event) -> None:
    with contextlib.suppress(OSError):
        while data := one.recv(65536):
            if cut.is_set():
                cut.clear()
                other.sendall(data[: len(data) // 2])
                break
            other.sendall(data)
    for end in (one, other):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
