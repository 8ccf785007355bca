"""TLS on the runtime's side without an agent: records and kept bytes, whose turn it is, what identities say."""

import hashlib
import json
import select
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtensionOID

from node_agent.client.address_book import identity_folder
from node_agent.control.plan_check import RefusalError, checked_prepare
from node_agent.host.clock import clock_domain, new_boot, now_ns
from node_agent.host.files.state_dir import StateDir
from node_agent.host.live_ports import live_ports
from node_agent.host.settings import Settings
from node_agent.host.trace_ring import Ring, RingFacts
from node_agent.link.limits import LinkError
from node_agent.runtime.context import Shared
from node_agent.runtime.links.credit import Backpressure
from node_agent.runtime.links.peer_link import PeerLink
from node_agent.runtime.links.tls_connection import TlsConnection, TlsSecurity
from node_agent.tls import identity
from node_agent.tls.names import TlsError, certificate_name, node_of, why_not
from node_agent.tls.session import HANDSHAKE_BYTES, RECORD_BYTES, Session, SessionError
from node_agent.tools import agent_start, cli, overhead
from node_agent.tools.doctor import agent_certificate as doctor
from node_agent.wire import frames
from protos import agent_pb2, records
from tests.node_agent.live import ROOT
from tests.sentences import Wording, refused
from tests.tls_identities import OTHERS, Authority

SAID = Wording("feed", "identities")


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    authority = Authority(tmp_path_factory.mktemp("certs"))
    for node in "ab":
        authority.node(node)
    authority.client()
    return authority


class Owner:
    """What a connection tells, and its frames."""

    def __init__(self) -> None:
        self.masks: list[int] = []
        self.connection: TlsConnection | None = None
        self.frames: list[frames.Frame] = []
        self.reading = True

    def on_ready(self, at_ns: int, mask: int) -> None:
        self.masks.append(mask)
        assert self.connection is not None
        if mask & select.EPOLLOUT:
            self.connection.flush()
        if mask & select.EPOLLIN and self.reading:
            self.frames.extend(self.connection.read())


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Shared]:
    header = records.Header("a", 0, new_boot(), clock_domain(), 50, now_ns(), 0)
    ring = Ring.create(tmp_path / "x.ring", header)
    yield Shared("a", live_ports(header.clock, 50), header.boot, 1, RingFacts(ring))
    ring.close()


def _connected(shared: Shared, ours: Authority, *, small: bool = False) -> tuple[Owner, Owner]:
    """An accepted and a dialled end, both on one network, after their handshake."""
    ends = socket.socketpair(socket.AF_UNIX)
    a, b = TlsSecurity(shared, ours.folder / "a"), TlsSecurity(shared, ours.folder / "b")
    near, far = Owner(), Owner()
    for end in ends:
        end.setblocking(False)
    near.connection = a.accepted(ends[0], "10.0.0.2")
    near.connection.owner = near
    far.connection = b.dialled(ends[1], "10.0.0.1", "a", far)
    for _ in range(100):
        shared.network.wait(0.01)
        for security in (a, b):
            security.tick(now_ns())
        if near.connection.session.done and far.connection.session.done:
            break
    assert near.connection.session.name == "b.node.shimekiri" and far.connection.session.name == "a.node.shimekiri"
    assert far.masks == [select.EPOLLOUT]
    return near, far


def test_what_the_socket_does_not_take_arrives_later_intact(shared: Shared, ours: Authority) -> None:
    near, far = _connected(shared, ours)
    assert near.connection is not None and far.connection is not None
    near.reading = False
    sent: list[bytes] = []
    near.connection.write(frames.encode_hello(frames.Hello("node:a", "c", 1)))
    far.connection.write(frames.encode_hello(frames.Hello("node:b", "c", 1)))
    for n in range(12):
        payload = bytes([n]) * (1 + n * 25_000)
        sent.append(payload)
        data = frames.encode_tuple((1, 1, n + 1, 0, 0, 0), 1, 1, payload)
        far.connection.write(frames.encode_batch(n + 1, 0, [data]))
    assert 1 << 20 < len(far.connection.unwritten) == shared.unwritten_bytes
    near.reading = True
    while len(near.frames) < 13:
        shared.network.wait(0.01)
        assert near.connection.session.waiting is False, "nothing stays behind where no poll would find it"
    assert shared.unwritten_bytes == 0 and not far.connection.unwritten
    got = [each.tuples[0].payload for each in near.frames if isinstance(each, frames.Batch)]
    assert got == sent
    far.connection.close()
    shared.network.wait(0.01)
    assert near.connection.closed


def test_a_record_that_was_changed_ends_the_connection(shared: Shared, ours: Authority) -> None:
    near, far = _connected(shared, ours)
    assert near.connection is not None and far.connection is not None
    data = bytearray(far.connection.session.seal(b"x" * 100))
    data[-1] ^= 1
    far.connection.stream.send(data)
    with pytest.raises(LinkError) as error:
        shared.network.wait(0.01)
    assert error.value.counter == "tls_broken"
    near.connection.refuse(error.value)
    assert near.connection.closed
    with pytest.raises(SessionError) as again:
        shared.network.wait(0.01)
    assert (again.value.counter, again.value.code) == ("tls_broken", "refused")
    far.connection.close()


def test_a_node_whose_name_no_certificate_can_have(shared: Shared, ours: Authority) -> None:
    security = TlsSecurity(shared, ours.folder / "a")
    none = SimpleNamespace(engine_slots=[], by_loaded={})
    link = PeerLink(shared, Backpressure(shared, none), "a..b", "127.0.0.1:1", {}, security)  # type: ignore[arg-type]
    link.tick(now_ns())
    assert shared.counters["links_refused"] == 1 and link.sender.connect_at_ns
    assert security.due_ns == 1 << 62


def test_without_an_identity_openssl_is_not_loaded() -> None:
    code = (
        "import sys, node_agent.tools.cli, node_agent.supervisor.supervisor, node_agent.runtime.process\n"
        "import node_agent.client.client, node_agent.runtime.in_process, node_agent.tools.feed\n"
        "import node_agent.tools.doctor.examine\n"
        "sys.exit('loaded' if '_ssl' in sys.modules else 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("size", [1, RECORD_BYTES, RECORD_BYTES + 1, 300_000])
def test_sizes_around_a_record(ours: Authority, size: int) -> None:
    near, far = _sessions(ours)
    wire = near.seal(bytes(size))
    got = b"".join(far.open(wire[at : at + 1000]) for at in range(0, len(wire), 1000))
    assert got == bytes(size) and not far.waiting


def _sessions(ours: Authority, place: str = "a") -> tuple[Session, Session]:
    a, b = ours.folder / "a", ours.folder / "b"
    near = Session(identity.server_context(a), a, server_side=True)
    far = Session(identity.client_context(b, named=True), b, server_side=False, name=certificate_name(place))
    data = far.handshake(b"")
    while not near.done:
        data = far.handshake(near.handshake(data))
    return near, far


def test_a_name_that_differs_in_case_is_another_name(ours: Authority) -> None:
    with SAID.refuses("other_name a.node.shimekiri", kind=SessionError):
        _sessions(ours, "A")


def test_handshakes_take_turns_and_known_addresses_come_first(shared: Shared, ours: Authority) -> None:
    security = TlsSecurity(shared, ours.folder / "a")
    context = identity.client_context(ours.folder / "b", named=False)
    pairs = []
    for host in ("10.0.0.7", "10.0.0.8", "10.0.0.9"):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            far = socket.create_connection(listener.getsockname())
            near = listener.accept()[0]
        owner = Owner()
        owner.connection = security.accepted(near, host)
        owner.connection.give_to(owner)
        session = Session(context, ours.folder / "b", server_side=False)
        far.sendall(session.handshake(b""))
        far.settimeout(10)
        pairs.append((owner.connection, far, session))
    security.let_in("10.0.0.9")
    security._next_ns = now_ns() + 10**12  # a step has just been taken
    shared.network.wait(1)
    assert [connection.silent for connection, _, _ in pairs] == [False] * 3, "all have something that waits"
    assert shared.network.wait(0) and not any(connection.permitted for connection, _, _ in pairs)
    security.tick(now_ns())
    assert not any(connection.permitted for connection, _, _ in pairs)
    order = []
    for _ in range(3):
        security._next_ns = 0
        assert security.due_ns == 0
        security.tick(now_ns())
        (turn,) = (pair for pair in pairs if pair[0].permitted)
        shared.network.wait(1)
        assert security._next_ns > now_ns() - 10**9 and not turn[0].permitted
        order.append(turn[0].host)
    assert order == ["10.0.0.9", "10.0.0.7", "10.0.0.8"]
    for connection, far, session in pairs:
        far.sendall(session.handshake(far.recv(1 << 16)))
        assert session.done and not connection.session.done, "its second step waits again"
    shared.network.wait(1)
    assert security.due_ns == security._next_ns
    for connection, far, _ in pairs:
        connection.close()
        far.close()
    assert security.due_ns == 1 << 62, "nobody is in the line any more"


def test_what_a_stranger_can_ask_for_is_short(ours: Authority) -> None:
    """One handshake keeps the scheduling thread: neither a long list of certificates nor a slow group may be in it."""
    list_ = (ours.folder / "client" / "cert.pem").read_bytes() * 20
    (ours.folder / "long.pem").write_bytes((ours.folder / "client" / "key.pem").read_bytes() + list_)
    long = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    long.load_cert_chain(ours.folder / "long.pem")
    slow = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    slow.set_ecdh_curve("secp384r1")
    for context, code in ((long, "too_large"), (slow, "not_tls13")):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        for at_once in (1 << 16, 100):
            here = Session(identity.server_context(ours.folder / "a"), ours.folder / "a", server_side=True)
            there = Session(context, ours.folder / "client", server_side=False)
            with refused(code, SessionError):
                data, answer = there.handshake(b""), b""
                while not here.done:
                    for at in range(0, len(data), at_once):
                        answer += here.handshake(data[at : at + at_once])
                    data, answer = there.handshake(answer), b""
            assert not here.done


def test_a_client_with_groups_of_its_own_gets_in(ours: Authority) -> None:
    """By default OpenSSL 3.5 sends 1.2 KB for a group against quantum computers, and is asked for another one; where
    there is an older one, so long a list of protocols makes as large a hello."""
    default, long = (ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) for _ in range(2))
    long.set_ecdh_curve(identity.GROUP)
    long.set_alpn_protocols(["x" * 200] * 6)
    for context, least in ((default, 0), (long, 1400)):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.load_cert_chain(ours.folder / "client" / "cert.pem", ours.folder / "client" / "key.pem")
        here = Session(identity.server_context(ours.folder / "a"), ours.folder / "a", server_side=True)
        there = Session(context, ours.folder / "client", server_side=False)
        data = there.handshake(b"")
        assert len(data) > least
        heard = len(data)
        while not here.done:
            data = there.handshake(here.handshake(data))
            heard += len(data)
        assert here.name == "client.shimekiri" and heard < HANDSHAKE_BYTES


def test_what_comes_with_the_end_of_a_handshake_is_not_part_of_it(ours: Authority) -> None:
    here = Session(identity.server_context(ours.folder / "a"), ours.folder / "a", server_side=True)
    there = Session(identity.client_context(ours.folder / "b", named=False), ours.folder / "b", server_side=False)
    last = there.handshake(here.handshake(there.handshake(b"")))
    payload = bytes(range(256)) * 200
    here.handshake(last + there.seal(payload))
    assert here.done and here.waiting and here.open(b"") == payload


def test_odd_names_of_the_own_ca_are_nobodys(ours: Authority) -> None:
    """Several, none that is text, or one that only begins or matches as it should, under any signature."""
    two = x509.SubjectAlternativeName([x509.DNSName("client.shimekiri"), x509.DNSName("coordinator.shimekiri")])
    odd: dict[str, x509.ExtensionType] = {"two": two}
    for name, value in (
        ("latin", b"a\xff.node.shimekiri"),
        ("nul", b"client.shimekiri\0.x"),
        ("case", b"CLIENT.shimekiri"),
    ):
        san = bytes((0x30, len(value) + 2, 0x82, len(value))) + value
        odd[name] = x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, san)
    for name, names in odd.items():
        folder = ours.make("client.shimekiri", f"odd-{name}", OTHERS, names=names)
        here = Session(identity.server_context(ours.folder / "a"), ours.folder / "a", server_side=True)
        there = Session(identity.client_context(folder, named=False), folder, server_side=False)
        here.handshake(there.handshake(here.handshake(there.handshake(b""))))
        assert here.done and why_not("source:in", here.name) and why_not("node:a", here.name)


def test_who_may_say_what() -> None:
    assert [node_of(place) for place in ("a", "a.1", "a.b", "x.12", ".1")] == ["a", "a", "a.b", "x", ".1"]
    assert why_not("node:a.3", "a.node.shimekiri") == "" == why_not("sink:out", "client.shimekiri")
    for peer, name in (
        ("node:a", "b.node.shimekiri"), ("node:a", "coordinator.shimekiri"), ("node:a", ""),
        ("node:", ".node.shimekiri"), ("source:in", "a.node.elsewhere"), ("sink:out", ""), ("", "x"),
    ):  # fmt: skip
        assert why_not(peer, name), (peer, name)


def _copy(ours: Authority, tmp_path: Path, name: str = "a") -> Path:
    folder = tmp_path / "id"
    folder.mkdir()
    for each in (ours.folder / name).iterdir():
        (folder / each.name).write_bytes(each.read_bytes())
    (folder / "key.pem").chmod(0o600)
    return folder


def test_identities_that_cannot_be_used(ours: Authority, tmp_path: Path) -> None:
    good = identity.load(ours.folder / "a", "a")
    assert (good.name, good.loose) == ("a.node.shimekiri", "") and 363 < good.days_left <= 365
    assert identity.load(ours.folder / "client").name == "client.shimekiri"
    folder = _copy(ours, tmp_path)

    def is_refused(expected: str, node: str = "a", worded: bool = True) -> None:
        with SAID.refuses(expected, worded, TlsError):
            identity.load(folder, node)

    is_refused("id other_node b", "b")
    (folder / "key.pem").chmod(0o644)
    is_refused("key.pem open_to_all")
    (folder / "key.pem").chmod(0o640)
    assert "its group" in identity.load(folder, "a").loose
    (folder / "key.pem").write_bytes((ours.folder / "b" / "key.pem").read_bytes())
    is_refused("key.pem other_key")
    (folder / "key.pem").write_text(
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n"
    )
    is_refused("key.pem encrypted")
    (folder / "key.pem").write_text("no key")
    is_refused("id not_pem", worded=False)
    (folder / "ca.pem").write_text("no certificate")
    is_refused("ca.pem no_certificate")
    (folder / "ca.pem").unlink()
    is_refused("ca.pem no_file")
    with SAID.refuses("key.pem no_file", kind=TlsError):
        identity.load(tmp_path / "none")
    for odd, code in (("a\0b", "bad_name"), ("\ud800", "bad_name"), ("x" * 5000, "unreadable")):
        with pytest.raises(TlsError, check=lambda error, code=code: error.code == code):  # type: ignore[misc]
            identity.load(tmp_path / odd)


def test_the_doctor_looks_at_the_identity(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    good, soon = authority.node("a"), authority.node("b", "soon", (-1, 12.5))
    past, client = authority.node("c", "past", (-9, -1)), authority.client()
    assert (doctor.identity(good).state, doctor.identity(good).mend) == ("ok", "")
    assert doctor.identity(soon).state == "note" and "12 days from now" in doctor.identity(soon).what
    for folder, said in ((past, "has expired"), (client, "of a client, not of a node"), (tmp_path / "x", "no such")):
        found = doctor.identity(folder)
        assert found.state == "wrong" and said in found.what and found.mend
    (good / "key.pem").chmod(0o660)
    assert doctor.identity(good).state == "note" and "its group" in doctor.identity(good).what


def test_certificates_that_strict_verifiers_refuse_are_used_and_told(ours: Authority, tmp_path: Path) -> None:
    old = Authority(tmp_path, bare=True).node("a")
    assert identity.lax(ours.folder / "a") == identity.lax(ours.folder / "client") == ""
    assert identity.load(old, "a").name == "a.node.shimekiri"
    found = doctor.identity(old)
    assert found.state == "note" and "missing" in found.what and "renew" in found.mend, found


def test_addresses_off_loopback_need_an_identity(
    ours: Authority, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agent_start.address("--data", "0.0.0.0:7701", tmp_path) == ("0.0.0.0", 7701)
    assert agent_start.address("--data", "[::]:7701", tmp_path) == ("::", 7701)
    routes = ((0, "a", "10.0.0.1:1"), (1, "b", "10.0.0.2:2"), (2, "a.1", "10.0.0.1:2"))
    for everywhere, here in (("0.0.0.0", "127.0.0.1:7701"), ("::", "[::1]:7701")):
        places = (("a", (everywhere, 7701)),)
        settings = Settings("a", ("", 0), ("", 0), StateDir(tmp_path), places=places)
        assert settings.own_routes(routes) == ((0, "a", here), *routes[1:])
    run = ["run", "--name", "b", "--state", str(tmp_path / "state")]
    assert cli.main([*run, "--data", "0.0.0.0:7701"]) == 2
    said = capsys.readouterr().err
    assert "coordinator certs" in said and "--tls" in said
    assert cli.main([*run, "--tls", str(ours.folder / "a")]) == 2
    assert "is the identity of node a, not of node b" in capsys.readouterr().err


def test_routes_off_loopback_are_taken_under_tls_only() -> None:
    def route(address: str, tls: bool) -> None:
        plan = json.dumps({"nodes": {"a": {}}}).encode()
        routes = [agent_pb2.Route(index=1, node="b", address=address)]
        digest = hashlib.sha256(plan).digest()
        checked_prepare(agent_pb2.PrepareRequest(plan=plan, hash=digest, epoch=1, routes=routes), "a", tls=tls)

    taken = "other_node a"  # what is wrong with this plan comes after its routes
    for address, tls, expected in (
        ("127.0.0.1:1", False, taken), ("127.0.0.1:1", True, taken), ("10.0.0.2:1", True, taken),
        ("[fe80::1]:1", True, taken), ("10.0.0.2:1", False, "insecure_off_loopback b"),
        ("pi2:1", True, "not_an_address b"), ("localhost:1", True, "not_an_address b"),
        ("0.0.0.0:1", True, "no_machine b"), ("[ff02::1]:1", True, "no_machine b"),
    ):  # fmt: skip
        with SAID.refuses(expected, kind=RefusalError):
            route(address, tls)


def test_the_identity_of_clients_comes_from_the_addresses(tmp_path: Path) -> None:
    file = tmp_path / "addresses.json"
    file.write_text(json.dumps({"nodes": {}, "tls": "certs/coordinator"}))
    assert identity_folder(None, file) == tmp_path / "certs" / "coordinator"
    assert identity_folder(Path("mine"), file) == Path("mine")
    file.write_text(json.dumps({"nodes": {}, "tls": "/etc/certs"}))
    assert identity_folder(None, file) == Path("/etc/certs")
    file.write_text('{"nodes": {}}')
    assert identity_folder(None, file) is None is identity_folder(None, None)
    file.write_text('{"tls": 1}')
    with SAID.refuses("addresses.json wrong_shape tls"):
        identity_folder(None, file)


def test_charges_are_measured_under_tls(ours: Authority) -> None:
    found = overhead.measure(0.5, rt=False, tls=ours.folder / "a")
    assert found.tls and found.drain.samples and "under TLS" in overhead.report_text(found)
    with SAID.refuses("client no_node", kind=TlsError):
        overhead.measure(0.5, rt=False, tls=ours.folder / "client")
