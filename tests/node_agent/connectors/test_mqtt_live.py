"""A real agent and a real broker: messages in with their ages, results out, and what an outage costs."""

import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.request
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from ipaddress import IPv4Address
from itertools import islice
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
from cryptography import x509

pytest.importorskip("paho.mqtt", reason="paho-mqtt is not installed (pip install '.[connectors]')")

from node_agent.client.client import Sink, Source
from node_agent.connectors import mqtt, result_delivery
from node_agent.connectors.connector_ports import (
    ConnectionLostError,
    Connector,
    Credentials,
    Message,
    NotConnectableError,
)
from node_agent.connectors.counts import IN, OUT, Counts, Event
from node_agent.connectors.flow import Flow
from node_agent.connectors.message_intake import Intake
from node_agent.connectors.result_delivery import Delivery
from node_agent.connectors.surroundings import Surroundings
from node_agent.host.files.state_dir import StateDir
from node_agent.host.log import Log
from node_agent.host.settings import Settings
from node_agent.operators.codecs import Codecs
from protos import agent_pb2, agent_pb2_grpc
from tests.node_agent.connectors.mosquitto import MISSING, PATH, Device, Mosquitto, until
from tests.node_agent.live import Agent, chain_plan, store
from tests.tls_identities import NODES, Authority

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)
SECOND = 10**9


def plan(broker: Mosquitto, qos: int = 0, deadline_ms: int = 60_000) -> Any:
    """`in` from robot/in, `out` to robot/out, JSON, stamps in header.stamp."""
    reads = {"kind": "mqtt", "url": f"{broker.url}/robot/in", "stamp": "header.stamp", "qos": qos}
    puts = {"kind": "mqtt", "url": f"{broker.url}/robot/out", "qos": 1}
    return chain_plan(
        sources=[{"id": 1, "name": "in", "stream": 1, "max_age_ns": 30 * SECOND, "connector": reads}],
        outputs=[{"id": 1, "name": "out", "stream": 2, "deadline_ns": deadline_ms * 10**6, "connector": puts}],
    )


def counts(agent: Agent, tls: ssl.SSLContext | None = None) -> Mapping[str, int | None]:
    """Of both connectors: `in received`, and `up` of each; None: the page has no such row now, as before the process of
    the connectors has first said anything."""
    scheme = "http" if tls is None else "https"
    url = f"{scheme}://127.0.0.1:{agent.ready['metrics']}/metrics"
    with urllib.request.urlopen(url, timeout=30, context=tls) as page:
        text = page.read().decode()
    found: defaultdict[str, int | None] = defaultdict(lambda: None)
    for line in text.splitlines():
        if match := re.match(r"shimekiri_connector(_up|_messages_total|s_restarts_total)\{(.*)\} (\d+)", line):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', match[2]))
            found[" ".join([labels.get("stream", "process"), labels.get("event", match[1].strip("_"))])] = int(match[3])
    return found


def connected(agent: Agent, tls: ssl.SSLContext | None = None, restarts: int = 0) -> None:
    """Both ends are, and the counts say so: those of the process that is there after so many restarts, since a page may
    be a moment old."""
    wanted = {"in up": 1, "out up": 1, "process s_restarts_total": restarts}
    until(lambda: wanted.items() <= counts(agent, tls).items(), agent.log.read_text())


def status_of(agent: Agent) -> list[agent_pb2.ConnectorStatus]:
    """Of its connectors, as the agent tells the coordinator."""
    with grpc.insecure_channel(f"127.0.0.1:{agent.ready['control']}") as channel:
        stub: Any = agent_pb2_grpc.AgentStub(channel)  # type: ignore[no-untyped-call]
        return list(stub.Status(agent_pb2.StatusRequest(), wait_for_ready=True, timeout=30).connectors)


def message(number: int, stamp: Any = None) -> dict[str, Any]:
    return {"n": number, "header": {"stamp": time.time() if stamp is None else stamp}}


def test_messages_come_in_with_their_ages_and_what_an_outage_costs_is_counted(tmp_path: Path) -> None:
    with Mosquitto(tmp_path, late=True) as broker:
        store(tmp_path / "state", plan(broker))
        with Agent(tmp_path / "state", "--no-rt", "--metrics", "127.0.0.1:0") as agent:
            until(
                lambda: "not connected (Connection refused)" in agent.log.read_text(), "a broker that is away is told"
            )
            away = [("in", "from", "Connection refused"), ("out", "to", "Connection refused")]
            until(
                lambda: sorted((each.stream, each.direction, each.why) for each in status_of(agent)) == away,
                "in the status",
            )
            assert not any(each.connected or each.was_connected for each in status_of(agent))
            broker.start()
            connected(agent)
            with Device(broker, "robot/out") as device:
                at = time.time() - 2
                device.publish("robot/in", message(0, {"sec": int(at), "nanosec": int(at % 1 * SECOND)}))
                device.publish("robot/in", b"\xff another type")
                device.publish("robot/in", {"n": "without a stamp"})
                device.publish("robot/in", message(1, time.time() + 3600))
                device.publish("robot/in", message(2, time.time() - 3600))
                device.publish("robot/in", message(3))
                until(lambda: len(device.got) == 2, agent.log.read_text())
            (first, properties), (last, _) = device.got
            assert (first["n"], last["n"]) == (0, 3)
            assert -20 < int(properties["stamp"]) / SECOND - at < 0.001  # its age went all the way, and none is lost
            expected = {
                "in received": 6, "in admitted": 2, "in refused_unreadable": 1, "in refused_stamp": 2,
                "in refused_by_agent": 1, "out received": 2, "out delivered": 2,
            }  # fmt: skip
            until(lambda: expected.items() <= counts(agent).items(), str(expected))
            broker.stop()
            until(lambda: {"in up": 0, "out up": 0}.items() <= counts(agent).items(), "the connections are lost")
            broker.start()
            until(lambda: counts(agent)["in up"] == 1, "connected again")
            with Device(broker, "robot/out") as device:
                device.publish("robot/in", message(4))
                until(lambda: device.got, agent.log.read_text())
            expected = {
                "in received": 7, "in admitted": 3, "in connections_lost": 1, "in gaps": 1, "out delivered": 3,
                "out connections_lost": 1, "out lost": 0, "process s_restarts_total": 0,
            }  # fmt: skip
            until(lambda: expected.items() <= counts(agent).items(), f"{expected} {counts(agent)}")
            log = agent.log.read_text()
    assert "source in from" in log and "nobody knows how much it was" in log
    assert "set the clocks of both machines" in log and "it has no header.stamp" in log


def test_connectors_that_are_killed_start_again_and_the_broker_has_kept_what_came(tmp_path: Path) -> None:
    """The agent speaks TLS: its connectors are its clients by its own certificate."""
    authority = Authority(tmp_path / "certs")
    node, client = authority.node("a"), authority.client()
    tls = ssl.create_default_context(cafile=node / "ca.pem")
    tls.check_hostname = False
    tls.load_cert_chain(client / "cert.pem", client / "key.pem")
    kept = ("allow_anonymous true", "persistence true", f"persistence_location {tmp_path}/")
    with Mosquitto(tmp_path, *kept) as broker:
        store(tmp_path / "state", plan(broker, qos=1))
        with Agent(tmp_path / "state", "--no-rt", "--metrics", "127.0.0.1:0", "--tls", str(node)) as agent:
            connected(agent, tls)
            before = set(agent.children())
            os.kill(connectors_of(agent, broker), signal.SIGKILL)
            with Device(broker, "robot/out") as device:
                for number in range(5):
                    device.publish("robot/in", message(number))
                until(lambda: len(device.got) == 5, agent.log.read_text())
                connected(agent, tls, restarts=1)
                assert len(before - set(agent.children())) == 1  # neither the runtime nor control ended with it
                assert [value["n"] for value, _ in device.got] == list(range(5))
            broker.stop()
            until(lambda: counts(agent, tls)["in up"] == 0, "the connection is lost")
            broker.start()
            with Device(broker, "robot/out") as device:
                device.publish("robot/in", message(5))
                until(lambda: device.got, agent.log.read_text())
            expected = {"in admitted": 6, "in gaps": 0, "process s_restarts_total": 1}
            until(lambda: expected.items() <= counts(agent, tls).items(), f"{expected} {counts(agent, tls)}")
        assert "connectors crashed: killed by SIGKILL; they are started again" in agent.log.read_text()


def test_a_broker_that_is_there_again_gets_no_result_that_is_too_old(tmp_path: Path) -> None:
    """The results come while the connector waits for its greeting."""
    with Mosquitto(tmp_path) as broker, Device(broker, "robot/out") as device:
        without_source = plan(broker, deadline_ms=500)
        without_source.sources[0].ClearField("connector")
        store(tmp_path / "state", without_source)
        broker.pause()
        with Agent(tmp_path / "state", "--no-rt", "--metrics", "127.0.0.1:0") as agent:
            until(lambda: counts(agent)["out up"] is not None, "connectors run")
            with Source(agent.data, "in") as source:
                for number in range(5):
                    source.send({"n": number})
                time.sleep(1)
                broker.go_on()
                until(lambda: counts(agent)["out up"], agent.log.read_text())
                source.send({"n": 5})
                until(lambda: device.got, agent.log.read_text())
                until(lambda: counts(agent)["out delivered"], agent.log.read_text())
            expected = {"out received": 6, "out delivered": 1, "out lost": 5}
            until(lambda: expected.items() <= counts(agent).items(), f"{expected} {counts(agent)}")
        assert [value["n"] for value, _ in device.got] == [5]


def test_a_source_whose_topic_has_changed_gets_nothing_of_the_old_one(tmp_path: Path) -> None:
    with Mosquitto(tmp_path) as broker, Device(broker) as device:
        for topic in ("old", "new"):
            there = replace(connector(f"{broker.url}/{topic}"), qos=1)
            reader = mqtt.reader(there, Credentials())
            device.publish("old", topic)
            device.publish("new", topic)
            came = reader.messages()
            assert next(came).topic == topic
            came.close()


def test_a_source_that_is_stopped_while_it_connects_ends(tmp_path: Path) -> None:
    with Mosquitto(tmp_path) as broker:
        store(tmp_path / "state", chain_plan())
        with Agent(tmp_path / "state", "--no-rt") as agent:
            intake = Intake(around(Flow("from", connector(f"{broker.url}/robot/in"), agent.data), tmp_path, IN))
            broker.pause()
            thread = threading.Thread(target=intake.run)
            thread.start()
            until(lambda: broker.port in ports_of(os.getpid()), "it connects")
            intake.stop()
            broker.go_on()
            thread.join(20)
            ended = not thread.is_alive()
            intake.stop()
        assert ended


@pytest.mark.soak  # six seconds, and it wants a machine that other programs leave alone
def test_an_agent_that_stands_still_costs_no_message_of_a_broker_that_waits(tmp_path: Path) -> None:
    """For longer than an answer may take, and nobody replaces it: the whole agent does, but for its connectors."""
    with Mosquitto(tmp_path) as broker:
        store(tmp_path / "state", plan(broker, qos=1))
        with Agent(tmp_path / "state", "--no-rt", "--metrics", "127.0.0.1:0") as agent:
            connected(agent)
            standing = [agent.process.pid, *({*agent.children()} - {connectors_of(agent, broker)})]
            with Device(broker, "robot/out") as device:
                device.publish("robot/in", message(0))
                until(lambda: device.got, agent.log.read_text())
                for pid in standing:
                    os.kill(pid, signal.SIGSTOP)
                for number in (1, 2):
                    device.publish("robot/in", message(number))
                time.sleep(6)
                for pid in reversed(standing):
                    os.kill(pid, signal.SIGCONT)
                until(lambda: {0, 1, 2} == {value["n"] for value, _ in device.got}, agent.log.read_text())
            until(lambda: (counts(agent)["in admitted"] or 0) >= 3, agent.log.read_text())
            until(lambda: counts(agent)["in refused_no_agent"] == 0, f"{counts(agent)}")


def test_a_file_of_credentials_that_is_being_written_is_waited_for(tmp_path: Path) -> None:
    with Mosquitto(tmp_path) as broker:
        directory = store(tmp_path / "state", plan(broker))
        file = directory.root / "connectors.json"
        file.write_text("{")
        with Agent(tmp_path / "state", "--no-rt", "--metrics", "127.0.0.1:0") as agent:
            until(lambda: agent.log.read_text().count("connectors.json") >= 2, agent.log.read_text())
            file.chmod(0o600)
            file.write_text("{}")
            connected(agent)


def test_an_output_that_ends_puts_what_has_come_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the broker takes nothing, results wait in the agent."""
    monkeypatch.setattr(result_delivery, "END_NS", 30 * SECOND)  # a machine may be busy
    with Mosquitto(tmp_path) as broker, Device(broker, "robot/out") as device:
        store(tmp_path / "state", chain_plan())
        with Agent(tmp_path / "state", "--no-rt") as agent, Source(agent.data, "in") as source:
            there = replace(connector(f"{broker.url}/robot/out"), stream="out", qos=1)
            surroundings = around(Flow("to", there, agent.data, 60 * SECOND), tmp_path, OUT)
            delivery = Delivery(surroundings)
            thread = threading.Thread(target=delivery.run)
            thread.start()
            until(lambda: surroundings.connection.up, "connected")
            broker.pause()
            with Sink(agent.data, "out") as sink:
                source.send_many([{"n": number} for number in range(20)])
                for _ in range(20):
                    sink.get(20)
            delivery.stop()
            broker.go_on()
            thread.join(20)
            assert not thread.is_alive()
            until(lambda: len(device.got) == 20, str(device.got))
            found = dict(surroundings.counts.rows())
        assert [value["n"] for value, _ in device.got] == list(range(20))
        assert (found["received"], found["delivered"], found["lost"]) == (20, 20, 0)


def around(flow: Flow, tmp_path: Path, events: tuple[Event, ...]) -> Surroundings:
    settings = Settings("a", ("127.0.0.1", 0), ("127.0.0.1", 0), StateDir(tmp_path / "state"))
    return Surroundings(flow, Counts(events), settings, Codecs, Log("a", "connectors", False))


def connectors_of(agent: Agent, broker: Mosquitto) -> int:
    """Their process: the child that is connected to the broker."""
    (found,) = (pid for pid in agent.children() if broker.port in ports_of(pid))
    return found


def ports_of(pid: int) -> set[int]:
    return {each.raddr.port for each in psutil.Process(pid).net_connections() if each.raddr}


def connector(url: str) -> Connector:
    return Connector("in", "mqtt", url, "", "json", "", "", "", 0, "shimekiri-a-in")


def test_a_broker_that_asks_for_a_password_is_told_it_and_says_so_where_it_is_wrong(tmp_path: Path) -> None:
    maker = shutil.which("mosquitto_passwd", path=PATH)
    assert maker
    subprocess.run([maker, "-c", "-b", str(tmp_path / "passwords"), "robot", "word"], check=True, capture_output=True)
    with Mosquitto(tmp_path, "allow_anonymous false", f"password_file {tmp_path}/passwords") as broker:
        there = connector(f"{broker.url}/robot/in")
        for given in (Credentials(), Credentials("robot", "wrong")):
            with pytest.raises(ConnectionLostError) as raised:
                mqtt.reader(there, given)
            assert "Not authorized" in str(raised.value) and "connectors.json" in str(raised.value)
        reader, writer = (make(there, Credentials("robot", "word")) for make in (mqtt.reader, mqtt_writer))
        writer.put(Message(b"7", "", 5 * SECOND))
        assert next(iter(reader.messages())) == Message(b"7", "robot/in", 5 * SECOND)
        reader.close()
        writer.close()


def test_a_broker_under_tls_is_checked_and_asks_for_a_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "certs")
    here = x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))])
    server, client = authority.make("broker", "broker", NODES, names=here), authority.client()
    files = [f"{what}file {server}/{name}.pem" for what, name in (("ca", "ca"), ("cert", "cert"), ("key", "key"))]
    with Mosquitto(tmp_path, *files, "require_certificate true", "allow_anonymous true") as broker:
        there = connector(f"mqtts://127.0.0.1:{broker.port}/robot/in")
        known = Credentials(ca=client / "ca.pem", certificate=client / "cert.pem", key=client / "key.pem")
        mqtt.reader(there, known).close()
        for given in (Credentials(certificate=known.certificate, key=known.key), Credentials(ca=known.ca)):
            with pytest.raises(ConnectionLostError):
                mqtt.reader(there, given)
        with pytest.raises(NotConnectableError):
            mqtt.reader(there, Credentials(ca=tmp_path / "nothing"))


def mqtt_writer(there: Connector, given: Credentials) -> Any:
    return mqtt.writer(Connector(**{each: getattr(there, each) for each in there.__slots__} | {"client": "w"}), given)


def test_a_broker_that_ends_a_connection_for_another_client_of_that_name_is_understood() -> None:
    """Debian's mosquitto closes such a connection without a word, other brokers say why."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            end, _ = listening.accept()
            with end:
                end.recv(4096)
                end.sendall(bytes.fromhex("2003000000"))  # CONNACK
                number = end.recv(4096)[2:4]  # of SUBSCRIBE
                end.sendall(b"\x90\x04" + number + b"\0\0" + bytes.fromhex("e0018e"))  # SUBACK, DISCONNECT
                end.recv(4096)

        broker = threading.Thread(target=serve)
        broker.start()
        reader = mqtt.reader(connector(f"mqtt://127.0.0.1:{listening.getsockname()[1]}/robot/in"), Credentials())
        with pytest.raises(ConnectionLostError) as raised:
            next(iter(reader.messages()))
        broker.join()
    assert "shimekiri-a-in" in str(raised.value)


def test_messages_that_come_before_the_answer_to_a_subscription_are_waited_out() -> None:
    """As of a session that the broker has kept."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            end, _ = listening.accept()
            with end:
                end.recv(4096)
                end.sendall(bytes.fromhex("2003010000"))  # CONNACK
                number = end.recv(4096)[2:4]  # of SUBSCRIBE
                for _ in range(60):
                    end.sendall(b"\x30\x0c\0\x08robot/in\x007")  # PUBLISH
                end.sendall(b"\x90\x04" + number + b"\0\0")  # SUBACK
                end.recv(4096)

        broker = threading.Thread(target=serve)
        broker.start()
        reader = mqtt.reader(connector(f"mqtt://127.0.0.1:{listening.getsockname()[1]}/robot/in"), Credentials())
        came = list(islice(reader.messages(), 60))
        broker.join()
    assert {each.payload for each in came} == {b"7"}


def test_counts_are_json_for_the_channel() -> None:
    from node_agent.connectors.counts import IN, Counts

    found = Counts(IN)
    found.add("received", 3)
    assert json.loads(json.dumps(found.rows()))[0] == ["received", 3]
