"""The kind `zenoh`, over a real router that is killed and starts again."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from random import Random

import pytest
import zenoh as library
from cryptography import x509

from node_agent.connectors import zenoh
from node_agent.connectors.connector_ports import (
    ConnectionLostError,
    Connector,
    Credentials,
    Message,
    NotConnectableError,
    Reader,
    Writer,
)
from protos.connectors import wrong_key
from tests.node_agent.connectors.zenoh_router import ZenohRouter, configuration
from tests.node_agent.live import free_ports, until
from tests.seeds import seeds
from tests.tls_identities import NODES, Authority

NOBODY = Credentials()


@pytest.fixture(scope="module")
def router() -> Iterator[ZenohRouter]:
    with ZenohRouter(free_ports(1)[0]) as router:
        yield router


def connector(router: ZenohRouter, topic: str = "robot/camera") -> Connector:
    return Connector("camera", "zenoh", router.endpoint, topic, "json", "", "", "", 0, "robot")


def subscribed(router: ZenohRouter, topic: str = "robot/camera") -> Reader:
    """A reader whose subscription the router has."""
    reader = zenoh.reader(connector(router, topic), NOBODY)
    with library.open(configuration("client", router.endpoint)) as session:
        publisher = session.declare_publisher(topic)
        until(lambda: publisher.matching_status.matching)
    return reader


def test_messages_go_through_with_their_keys_and_the_clock_of_zenoh(router: ZenohRouter) -> None:
    before_ns = time.time_ns()
    reader = subscribed(router, "robot/**")
    writer = zenoh.writer(connector(router), NOBODY)
    for i in range(3):
        writer.put(Message(b"%d" % i, "robot/camera"))
    found = [message for _, message in zip(range(3), reader.messages(), strict=False)]
    assert [(each.payload, each.topic) for each in found] == [(b"%d" % i, "robot/camera") for i in range(3)]
    assert all(each.stamp_ns and before_ns - 10**9 < each.stamp_ns < time.time_ns() + 10**9 for each in found)
    for each in (reader, writer, reader, writer):
        each.close()


def test_a_reader_that_is_closed_ends_and_is_not_lost(router: ZenohRouter) -> None:
    reader = subscribed(router)
    threading.Timer(0.1, reader.close).start()
    assert list(reader.messages()) == []


def test_who_puts_waits_while_nobody_reads_and_nothing_is_lost(router: ZenohRouter) -> None:
    reader, writer = subscribed(router), zenoh.writer(connector(router), NOBODY)
    count, put = 400, []

    def flood() -> None:
        for i in range(count):
            writer.put(Message(i.to_bytes(4) + bytes(100_000), ""))
            put.append(i)

    thread = threading.Thread(target=flood, daemon=True)
    thread.start()
    stood = waited(put)
    assert zenoh.QUEUE <= stood < count, "queues and sockets on the way are full, and no more is put"
    found = [int.from_bytes(each.payload[:4]) for _, each in zip(range(count), reader.messages(), strict=False)]
    thread.join(20)
    assert found == list(range(count)) == put
    reader.close()
    writer.close()


def waited(put: list[int]) -> int:
    """How many are put when no more is put for half a second."""
    last, since = -1, time.monotonic()
    while time.monotonic() - since < 0.5:
        if len(put) != last:
            last, since = len(put), time.monotonic()
        time.sleep(0.02)
    return last


def test_a_router_that_is_killed_is_noticed_at_both_ends_and_served_again(
    router: ZenohRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zenoh, "OPEN_S", 0.5)
    reader, writer = subscribed(router), zenoh.writer(connector(router), NOBODY)
    writer.put(Message(b"before", ""))
    messages = reader.messages()
    assert next(messages).payload == b"before"
    writer.look()
    router.kill()
    with pytest.raises(ConnectionLostError):
        next(messages)
    until(lambda: is_lost(writer))
    with pytest.raises(ConnectionLostError):
        writer.put(Message(b"lost", ""))
    with pytest.raises(ConnectionLostError):
        zenoh.reader(connector(router), NOBODY)
    router.start()
    for each in (reader, writer):
        each.close()
    reader, writer = subscribed(router), zenoh.writer(connector(router), NOBODY)
    assert not reader.resumed
    writer.put(Message(b"after", ""))
    assert next(reader.messages()).payload == b"after"
    reader.close()
    writer.close()


def is_lost(writer: Writer) -> bool:
    """As it sees without a message."""
    try:
        writer.look()
    except ConnectionLostError:
        return True
    return False


def test_who_puts_waits_for_a_router_that_stands_still(router: ZenohRouter) -> None:
    """And is told that the message may be lost where it never answers."""
    writer: Writer = zenoh.writer(connector(router), NOBODY)
    writer.put(Message(b"1", ""))
    router.pause()
    went_on = threading.Event()
    threading.Timer(0.3, lambda: (went_on.set(), router.go_on())).start()
    writer.put(Message(b"2", ""))
    assert went_on.is_set()
    router.pause()
    threading.Timer(0.3, router.kill).start()
    with pytest.raises(ConnectionLostError):
        writer.put(Message(b"3", ""))
    writer.close()
    router.start()


def test_what_no_attempt_can_mend_is_told_at_once(router: ZenohRouter) -> None:
    good = connector(router)
    for bad, code in (
        (replace(good, url="127.0.0.1:7447"), "not_an_address"),
        (replace(good, url=f"{router.endpoint}#iface=lo"), "not_an_address"),
        (replace(good, url="udp/224.0.0.1:7447"), "not_an_address"),
        (replace(good, topic="/camera"), "unknown_topic"),
    ):
        with pytest.raises(NotConnectableError) as told:
            zenoh.reader(bad, NOBODY)
        assert told.value.code == code
    with pytest.raises(NotConnectableError):
        zenoh.writer(replace(good, topic="robot/*"), NOBODY)


@pytest.mark.parametrize("seed", seeds(range(4)))
def test_keys_are_those_of_zenoh(seed: int) -> None:
    """What is refused here is refused there, and the other way."""
    random = Random(seed)
    for _ in range(2000):
        key = "".join(random.choices("a/*$#?@", (4, 4, 4, 2, 1, 1, 1), k=random.randint(0, 9)))
        assert bool(wrong_key(key, reads=True)) != is_key(key), key
        assert bool(wrong_key(key, reads=False)) != (is_key(key) and "*" not in key), key


def is_key(text: str) -> bool:
    try:
        library.KeyExpr(text)
    except library.ZError:
        return False
    return True


def test_a_router_under_tls_is_checked_and_asks_for_a_certificate_and_a_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, other = Authority(tmp_path / "certs"), Authority(tmp_path / "other")
    here = x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))])
    server, client = authority.make("router", "router", NODES, names=here), authority.client()
    (tmp_path / "passwords").write_text("robot:secret\n")
    tls, login = "transport/link/tls", "transport/auth/usrpwd"
    more = {
        f"{tls}/root_ca_certificate": f"{server}/ca.pem",
        f"{tls}/listen_certificate": f"{server}/cert.pem",
        f"{tls}/listen_private_key": f"{server}/key.pem",
        f"{tls}/enable_mtls": True,
        f"{login}/user": "router",
        f"{login}/password": "other",
        f"{login}/dictionary_file": f"{tmp_path}/passwords",
    }
    known = Credentials("robot", "secret", client / "ca.pem", client / "cert.pem", client / "key.pem")
    with ZenohRouter(free_ports(1)[0], "tls", **more) as router:
        zenoh.reader(connector(router), known).close()
        monkeypatch.setattr(zenoh, "OPEN_S", 0.3)
        for wrong in (
            replace(known, ca=other.client() / "ca.pem"),
            replace(known, certificate=None, key=None),
            replace(known, password="another"),
        ):
            with pytest.raises(ConnectionLostError) as told:
                zenoh.reader(connector(router), wrong)
            assert "secret" not in str(told.value)
            assert "another" not in str(told.value)
        with pytest.raises(NotConnectableError) as unreadable:
            zenoh.reader(connector(router), replace(known, ca=tmp_path / "nothing"))
        assert unreadable.value.code == "unreadable"


def test_deletions_are_no_messages(router: ZenohRouter) -> None:
    reader = subscribed(router)
    with library.open(configuration("client", router.endpoint)) as session:
        session.delete("robot/camera")
        session.put("robot/camera", b"x")
    assert next(reader.messages()).payload == b"x"
    reader.close()
