"""Calls over mutual TLS to real gRPC servers, and what a user reads where a handshake fails."""

import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

from coordinator.errors import BadInputError
from coordinator.fleet import addresses as address_file
from coordinator.fleet.addresses import Addresses, AgentAddress
from coordinator.fleet.agents import Agents, AgentsError
from coordinator.fleet.identity import certificate_folder, certificates, identity
from coordinator.fleet.identity.tls_probe import probe
from protos import agent_pb2, agent_pb2_grpc
from tests.coordinator.wording import Wording, facts, mended, printed

WORDING = Wording("deploy", "identities")
NOW = certificates.now()


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of nodes a, b and old, which has expired; of another CA in `others`; of one that is not valid yet in `early`."""
    folder: Path = tmp_path_factory.mktemp("identities") / "certs"
    make(folder, "a", "b")
    pair = (folder / "ca.pem").read_bytes(), (folder / "ca.key").read_bytes()
    put(folder / "old", pair[0], certificates.issue(certificates.read_ca(*pair, NOW), "a", NOW - timedelta(days=900)))
    put(folder / "former", pair[0], _coordinator_of(pair, NOW - timedelta(days=900)))
    make(folder / "others", "a")
    make(folder / "early", "a", now=NOW + timedelta(days=6 * 365))
    return folder


def _coordinator_of(pair: tuple[bytes, bytes], at: Any) -> certificates.Issued:
    return certificates.issue(certificates.read_ca(*pair, NOW), "coordinator", at)


def make(folder: Path, *nodes: str, now: Any = NOW) -> None:
    certificate_folder.make(folder, nodes, renew=False, new_ca=False, now=now)


def put(path: Path, ca: bytes, issued: certificates.Issued) -> None:
    path.mkdir()
    for name, data in (("ca.pem", ca), ("cert.pem", issued.cert), ("key.pem", issued.key)):
        (path / name).write_bytes(data)


class Healthy(agent_pb2_grpc.AgentServicer):
    """Answers, or refuses the caller as an agent refuses all but the coordinator."""

    refusing = False

    def Status(self, request: agent_pb2.StatusRequest, context: Any) -> agent_pb2.StatusReply:  # noqa: N802
        if self.refusing:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "client.shimekiri may not")
        return agent_pb2.StatusReply(node="a")


@contextmanager
def serving(folder: Path | None, refusing: bool = False) -> Iterator[str]:
    """An agent's control with that identity, None: without TLS; its address."""
    server = grpc.server(futures.ThreadPoolExecutor(2), options=[("grpc.so_reuseport", 0)])
    servicer = Healthy()
    servicer.refusing = refusing
    agent_pb2_grpc.add_AgentServicer_to_server(servicer, server)  # type: ignore[no-untyped-call]
    if folder is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        ca, cert, key = ((folder / name).read_bytes() for name in ("ca.pem", "cert.pem", "key.pem"))
        credentials = grpc.ssl_server_credentials([(key, cert)], ca, require_client_auth=True)
        port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def failure(at: str, tls: Path | None, node: str = "a") -> str:
    with Agents({node: AgentAddress(node, at, "127.0.0.1:1", tls=tls)}) as agents:
        with pytest.raises(AgentsError) as failed:
            agents.status()
        (line,) = failed.value.lines()
        return line


def test_an_agent_is_talked_to_by_its_name_wherever_it_is(certs: Path) -> None:
    with serving(certs / "a") as at, Agents({"a.1": AgentAddress("a.1", at, at, tls=certs / "coordinator")}) as agents:
        assert agents.status()["a"].node == "a"


@pytest.mark.parametrize(
    ("agent", "ours", "said"),
    [
        ("b", "coordinator", "the certificate there is node b's, not node a's; correct the address"),
        ("others/a", "coordinator", r"the agent's certificate is of another CA than .*certs/coordinator; both need"),
        ("a", "others/coordinator", "the agent's certificate is of another CA than .*others/coordinator; both need"),
        ("old", "coordinator", "the agent's certificate has expired; 'coordinator certs cluster.yaml --renew'"),
        ("client", "coordinator", "the certificate there is no node's; start the agent with --tls and the node's own"),
        ("", "coordinator", "TLS is not spoken there; start the agent with --tls|the connection ended before TLS"),
        ("a", "", "TLS is spoken there, and addresses.json has no 'tls'.*run 'coordinator addresses cluster.yaml'"),
    ],
)
def test_which_handshake_failed_and_why(certs: Path, agent: str, ours: str, said: str) -> None:
    with serving(certs / agent if agent else None) as at:
        line = failure(at, certs / ours if ours else None)
    assert line.startswith(f"node a: the agent at {at} cannot be reached: ")
    assert re.search(said, line), line


def test_the_agent_does_not_trust_us(certs: Path, tmp_path: Path) -> None:
    """As where a node has a certificate of this CA, and another CA beside it."""
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    for name, whose in (("ca.pem", "others/a"), ("cert.pem", "a"), ("key.pem", "a")):
        (mixed / name).write_bytes((certs / whose / name).read_bytes())
    with serving(mixed) as at:
        line = failure(at, certs / "coordinator")
    assert "does not trust" in line and "certs/coordinator: its ca.pem is of another CA, or its clock is wrong" in line


def test_not_the_coordinators_certificate(certs: Path) -> None:
    with serving(certs / "a", refusing=True) as at:
        line = failure(at, certs / "client")
    assert "does not take" in line and "certs/client for the coordinator's certificate" in line


def test_nobody_there(certs: Path) -> None:
    assert "no agent is running there; start node-agent on that machine" in failure(
        "127.0.0.1:9", certs / "coordinator"
    )
    named = failure("nowhere.invalid:9", certs / "coordinator")
    assert "host 'nowhere.invalid' is unknown here; write an IP address" in named


@contextmanager
def talking(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Something on a port that treats its first caller like that."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def _silent(connection: socket.socket) -> None:
    while connection.recv(4096):
        pass


def _old_tls(folder: Path) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        with pytest.raises(ssl.SSLError):
            context.wrap_socket(connection, server_side=True)

    return answer


def test_what_is_no_agent_at_all(certs: Path) -> None:
    own, name = identity.load(certs / "coordinator"), "a.node.shimekiri"
    with talking(_silent) as at:
        assert "does not finish a TLS handshake" in str(probe(at, own, name, 0.2))
    with talking(lambda connection: connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")) as at:
        assert "TLS is not spoken there" in str(probe(at, own, name, 5))
    with talking(lambda connection: None) as at:
        assert "ended before TLS was agreed on" in str(probe(at, own, name, 5))
    with talking(_old_tls(certs / "a")) as at:
        assert "TLS 1.3 is not spoken there" in str(probe(at, own, name, 5))


def test_an_identity_that_cannot_be_used_is_bad_input(certs: Path, tmp_path: Path) -> None:
    def refused(file: str, code: str) -> None:
        with pytest.raises(BadInputError) as raised:
            Agents({"a": AgentAddress("a", "127.0.0.1:1", "127.0.0.1:2", tls=tmp_path / "own")})
        assert [facts(problem) for problem in raised.value.problems] == [(file, 0, code, "")]
        assert mended(raised.value.problems)
        WORDING.check(f"{file} {code}", printed(raised.value, tmp_path))

    refused("own", "no_identity")
    (tmp_path / "own").mkdir()
    refused("ca.pem", "unreadable")
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (tmp_path / "own" / name).write_bytes((certs / "coordinator" / name).read_bytes())
    (tmp_path / "own" / "key.pem").write_bytes((certs / "a" / "key.pem").read_bytes())
    refused("own", "no_key_pair")
    (tmp_path / "own" / "ca.pem").write_text("nothing")
    refused("ca.pem", "no_certificate")
    (tmp_path / "own" / "ca.pem").write_bytes((certs / "others" / "ca.pem").read_bytes())
    (tmp_path / "own" / "key.pem").write_bytes((certs / "coordinator" / "key.pem").read_bytes())
    refused("cert.pem", "of_another_ca")
    for odd in ("x" * 5000, "a\0b"):
        with pytest.raises(BadInputError) as raised:
            identity.load(tmp_path / odd)
        assert [problem.mistake.code for problem in raised.value.problems] == ["no_identity"]
    for folder, code in ((certs / "former", "expired"), (certs / "early" / "coordinator", "not_valid_yet")):
        with pytest.raises(BadInputError) as raised:
            identity.load(folder)
        assert [facts(problem) for problem in raised.value.problems] == [("cert.pem", 0, code, "")]
        WORDING.check(code, printed(raised.value, certs))


def test_addresses_keep_the_identity_relative_to_their_folder(tmp_path: Path) -> None:
    (tmp_path / "certs" / "coordinator").mkdir(parents=True)
    agent = AgentAddress("a", "10.0.0.1:7700", "10.0.0.1:7701", tls=tmp_path / "certs" / "coordinator")
    Addresses(tmp_path / "addresses.json", {"a": agent}).write()
    text = (tmp_path / "addresses.json").read_text()
    assert '"tls": "certs/coordinator"' in text and text.count("tls") == 1
    assert address_file.load(tmp_path / "addresses.json").nodes == {"a": agent}
    Addresses(tmp_path / "run" / "addresses.json", {"a": agent}).write()
    again = address_file.load(tmp_path / "run" / "addresses.json")
    assert again.tls == (tmp_path / "certs" / "coordinator").resolve()
    (tmp_path / "addresses.json").write_text(text.replace('"certs/coordinator"', "7"))
    with pytest.raises(BadInputError) as raised:
        address_file.load(tmp_path / "addresses.json")
    assert [problem.mistake.code for problem in raised.value.problems] == ["bad_tls_folder"]
