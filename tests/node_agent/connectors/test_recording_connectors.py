"""The kinds `rosbag` and `mcap`: bags of rosbags and files of mcap are replayed, and those made here are read there."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from mcap.exceptions import EndOfFile
from mcap.reader import make_reader
from mcap.records import Message as Record
from mcap.stream_reader import StreamReader
from mcap.writer import Writer as McapWriter
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from node_agent.connectors.connector_ports import (
    ConnectionLostError,
    Connector,
    Credentials,
    Message,
    NotConnectableError,
)
from node_agent.connectors.kinds import kind
from node_agent.connectors.mapping import mapping
from node_agent.connectors.recordings import recording_writer
from node_agent.connectors.recordings.player import Player, Recorded
from node_agent.connectors.stamps import Stamps
from node_agent.operators.codecs import Codecs
from protos.vehicle_pb2 import DESCRIPTOR, Hazard
from tests.seeds import seeds

STORE = get_typestore(Stores.ROS2_HUMBLE)
TYPE, MS, START_NS = "geometry_msgs/msg/PointStamped", 1_000_000, 1_700_000_000 * 10**9


@pytest.fixture
def here(tmp_path: Path) -> Credentials:
    (tmp_path / "recordings").mkdir()
    return Credentials(recordings=tmp_path / "recordings")


def within(here: Credentials) -> Path:
    assert here.recordings is not None
    return here.recordings


def connector(kind: str, url: str, topic: str = "/point", **given: Any) -> Connector:
    cdr = {"encoding": "cdr", "schema": TYPE}
    default = Connector("point", kind, url, topic, "json", "", "", "header.stamp", 0, "robot")
    return replace(default, **{**cdr, **given})


def point(x: float, stamp_ns: int) -> bytes:
    value = {"header": {"stamp": {"sec": stamp_ns // 10**9, "nanosec": stamp_ns % 10**9}}, "point": {"x": x}}
    return mapping(Codecs().get("json"), "cdr", TYPE).encode(value)


def bag(path: Path, times_ms: list[int], storage: StoragePlugin = StoragePlugin.MCAP, age_ms: int = 30) -> Path:
    """Points that are numbered, logged then and stamped `age_ms` earlier, beside a topic of text."""
    with Writer(path, version=9, storage_plugin=storage) as writer:
        points = writer.add_connection("/point", TYPE, typestore=STORE)
        texts = writer.add_connection("/text", "std_msgs/msg/String", typestore=STORE)
        for i, at_ms in enumerate(times_ms):
            at_ns = START_NS + at_ms * MS
            writer.write(points, at_ns, point(i, at_ns - age_ms * MS))
            writer.write(
                texts, at_ns, STORE.serialize_cdr(STORE.types["std_msgs/msg/String"]("x"), "std_msgs/msg/String")
            )
    return path


@pytest.mark.parametrize("storage", [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def test_a_bag_is_replayed_at_its_pace_with_the_ages_that_it_recorded(
    here: Credentials, storage: StoragePlugin
) -> None:
    bag(within(here) / "run1", [0, 100, 150], storage)
    of = connector("rosbag", "run1")
    mapped, stamps = mapping(Codecs().get("json"), "cdr", TYPE), Stamps("header.stamp")
    began_ns, found = time.monotonic_ns(), []
    for message in kind("rosbag").reader(of, here).messages():
        value, whole = mapped.stamped(message.payload)
        assert message.seen_ns is not None
        late_ns = time.monotonic_ns() - began_ns
        found.append((value["point"]["x"], late_ns, stamps.age_ns(whole, message.stamp_ns, message.seen_ns)))
    assert [x for x, _, _ in found] == [0.0, 1.0, 2.0]
    assert [at_ns >= due_ms * MS for (_, at_ns, _), due_ms in zip(found, (0, 100, 150), strict=True)] == [True] * 3
    assert all(age_ns >= 30 * MS for _, _, age_ns in found)
    assert min(age_ns for _, _, age_ns in found) < 10**9, "a recorded age, and not one since then"


def test_who_takes_messages_late_gets_them_older(here: Credentials) -> None:
    bag(within(here) / "run1", [0, 10])
    messages = kind("rosbag").reader(connector("rosbag", "run1"), here).messages()
    next(messages)
    time.sleep(0.3)
    late = next(messages)
    assert late.seen_ns is not None
    assert late.seen_ns >= START_NS + 10 * MS + 280 * MS


def test_a_replay_ends_when_it_is_closed(here: Credentials) -> None:
    bag(within(here) / "run1", [0, 3_600_000])
    reader = kind("rosbag").reader(connector("rosbag", "run1"), here)
    threading.Timer(0.1, reader.close).start()
    assert len(list(reader.messages())) == 1
    reader.close()
    assert list(reader.messages()) == []


def test_a_replay_that_looks_for_its_next_message_is_closed_without_waiting() -> None:
    found = threading.Event()
    closed: list[threading.Thread] = []

    def recorded() -> Iterator[Recorded]:
        found.wait(60)
        yield Recorded(b"1", 1, 1)

    player = Player("/point", recorded(), lambda: closed.append(threading.current_thread()))

    def read() -> None:
        list(player.messages())
        player.close()

    reading = threading.Thread(target=read)
    reading.start()
    time.sleep(0.1)
    ending = threading.Thread(target=player.close)
    ending.start()
    ending.join(20)
    ended = not ending.is_alive()
    found.set()
    reading.join(20)
    assert ended
    assert closed[-1] is reading


def test_a_message_that_is_due_in_centuries_is_waited_for(here: Credentials) -> None:
    with (within(here) / "x.mcap").open("wb") as stream:
        file = McapWriter(stream)
        file.start()
        channel = file.register_channel("/point", "json", 0)
        for at_ns in (1, 2**64 - 1):
            file.add_message(channel, at_ns, b"1", at_ns)
        file.finish()
    reader = kind("mcap").reader(connector("mcap", "x.mcap", encoding="", schema=""), here)
    threading.Timer(0.2, reader.close).start()
    assert len(list(reader.messages())) == 1


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        ({"topic": "/pint"}, "unknown_topic", "has no topic /pint; there are: /point, /text"),
        ({"topic": ""}, "several_topics", "has several topics, choose one with topic: /point, /text"),
        ({"topic": "/text"}, "other_type", "topic /text carries std_msgs/msg/String"),
        ({"encoding": ""}, "unknown_encoding", "add 'encoding: cdr'"),
        ({"schema": ""}, "missing_parameter", "name it"),
        ({"url": "run2"}, "unreadable", "run2: is not there"),
    ],
)
@pytest.mark.parametrize("storage", [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def test_what_a_bag_does_not_have_is_told_at_once(
    here: Credentials, storage: StoragePlugin, given: Any, code: str, says: str
) -> None:
    bag(within(here) / "run1", [0], storage)
    with pytest.raises(NotConnectableError) as told:
        kind("rosbag").reader(connector("rosbag", **{"url": "run1", **given}), here)
    assert told.value.code == code
    assert says in str(told.value)


@pytest.mark.parametrize("name", ["rosbag", "mcap"])
@pytest.mark.parametrize("url", ["../outside", "/etc/passwd", "link/run1", ".", "a/../../outside", "x\0y"])
def test_no_plan_names_a_file_outside_of_the_nodes_directory(here: Credentials, name: str, url: str) -> None:
    outside = within(here).parent / "outside"
    bag(outside / "run1", [0])
    (within(here) / "link").symlink_to(outside)
    for opened in (kind(name).reader, kind(name).writer):
        with pytest.raises(NotConnectableError) as told:
            opened(connector(name, url), here)
        assert told.value.code == "outside"
        with pytest.raises(NotConnectableError) as told:
            opened(connector(name, url), replace(here, recordings=outside / "none"))
        assert told.value.code == "outside"
    assert {each.name for each in outside.iterdir()} == {"run1"}


def test_the_directory_may_be_a_link_of_its_owner_and_be_named_in_full(here: Credentials, tmp_path: Path) -> None:
    bag(tmp_path / "disk" / "run1", [0])
    linked = tmp_path / "linked"
    linked.symlink_to(tmp_path / "disk")
    for url in ("run1", str(tmp_path / "disk" / "run1"), str(linked / "run1")):
        reader = kind("rosbag").reader(connector("rosbag", url), Credentials(recordings=linked))
        assert len(list(reader.messages())) == 1


@pytest.mark.parametrize("seed", seeds([1, 2]))
@pytest.mark.parametrize("storage", [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def test_a_damaged_bag_ends_in_a_line(here: Credentials, storage: StoragePlugin, seed: int) -> None:
    draw = random.Random(seed)
    path = bag(within(here) / "run1", [0] * 50, storage)
    for file in sorted(path.iterdir()):
        good = file.read_bytes()
        for _ in range(12):
            data = bytearray(good)
            for _ in range(draw.randrange(1, 20)):
                data[draw.randrange(len(data))] = draw.randrange(256)
            file.write_bytes(data[: draw.randrange(len(data))] if draw.random() < 0.3 else data)
            try:
                list(islice(kind("rosbag").reader(connector("rosbag", "run1"), here).messages(), 10))
            except NotConnectableError as error:
                assert "\n" not in str(error)
        file.write_bytes(good)


def test_a_bag_that_is_written_is_read_by_rosbags_and_here(here: Credentials) -> None:
    writer = kind("rosbag").writer(connector("rosbag", "out"), here)
    for i in range(5):
        writer.put(Message(point(i, START_NS), "", START_NS + i))
    writer.close()
    writer.close()
    with Reader(within(here) / "out") as read:
        assert [each.msgtype for each in read.connections] == [TYPE]
        assert (read.message_count, read.topics["/point"].msgcount) == (5, 5)
        xs = [STORE.deserialize_cdr(data, TYPE).point.x for _, _, data in read.messages()]
    assert xs == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert [each.payload for each in kind("rosbag").reader(connector("rosbag", "out"), here).messages()] == [
        point(i, START_NS) for i in range(5)
    ]


def test_nothing_is_written_over(here: Credentials) -> None:
    for name, url, made in (("rosbag", "out", {"out", "out-2"}), ("mcap", "o.mcap", {"o.mcap", "o-2.mcap"})):
        for _ in range(2):
            kind(name).writer(connector(name, url), here).close()
        assert made <= {each.name for each in within(here).iterdir()}


def test_json_and_its_instants_are_in_an_mcap_file(here: Credentials) -> None:
    before_ns = time.time_ns()
    plain = connector("mcap", "o.mcap", "", encoding="", schema="")
    writer = kind("mcap").writer(plain, here)
    writer.put(Message(b'{"x":1}', "", START_NS))
    writer.close()
    with (within(here) / "o.mcap").open("rb") as file:
        ((_, channel, message),) = make_reader(file).iter_messages()
    assert (channel.topic, channel.message_encoding, message.data) == ("point", "json", b'{"x":1}')
    assert message.publish_time == START_NS
    assert before_ns <= message.log_time <= time.time_ns()
    (found,) = kind("mcap").reader(plain, here).messages()
    assert (found.payload, found.stamp_ns) == (b'{"x":1}', START_NS)


def test_topics_of_a_file_that_are_of_another_type_are_told(here: Credentials) -> None:
    with (within(here) / "x.mcap").open("wb") as stream:
        file = McapWriter(stream)
        file.start()
        schema = file.register_schema(Hazard.DESCRIPTOR.full_name, "protobuf", DESCRIPTOR.serialized_pb)
        for topic, encoding, of in (("/json", "json", 0), ("/hazard", "protobuf", schema)):
            file.add_message(file.register_channel(topic, encoding, of), START_NS, b"1", START_NS)
        file.finish()
    plain = connector("mcap", "x.mcap", "/json", encoding="", schema="")
    assert [each.payload for each in kind("mcap").reader(plain, here).messages()] == [b"1"]
    hazard = replace(plain, topic="/hazard", codec="vehicle.Hazard", schema=Hazard.DESCRIPTOR.full_name)
    assert len(list(kind("mcap").reader(hazard, here).messages())) == 1
    for wrong, code, says in (
        (replace(plain, topic="/hazard"), "unknown_encoding", "is encoded as protobuf; json are read"),
        (replace(hazard, schema="vehicle.Ego"), "other_type", f"carries {Hazard.DESCRIPTOR.full_name}"),
        (replace(plain, topic=""), "several_topics", "choose one with topic:"),
        (replace(plain, url="y.mcap"), "unreadable", "cannot be opened"),
    ):
        with pytest.raises(NotConnectableError) as told:
            list(kind("mcap").reader(wrong, here).messages())
        assert told.value.code == code
        assert says in str(told.value)
    with pytest.raises(NotConnectableError) as told:
        kind("mcap").writer(replace(hazard, url="z.mcap"), here)
    assert told.value.code == "unknown_encoding"


KILLED = """
import sys, time
from pathlib import Path
from node_agent.connectors.connector_ports import Message
from node_agent.connectors.recordings.recording_writer import Format, RecordingWriter
writer = RecordingWriter(Path(sys.argv[1]), "/x", Format("", "json"))
for i in range(10**9):
    writer.put(Message(b"%d" % i, ""))
    print(i, flush=True)
"""


def test_a_process_that_is_killed_loses_no_message_that_it_has_put(here: Credentials) -> None:
    path = within(here) / "o.mcap"
    command = [sys.executable, "-c", KILLED, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]) as process:
        assert process.stdout is not None
        put = [int(line) for line in islice(process.stdout, 500)]
        os.kill(process.pid, signal.SIGKILL)
        put += [int(line) for line in process.stdout if line.endswith(b"\n")]
    assert recovered(path)[: len(put)] == put


def recovered(path: Path) -> list[int]:
    """What a file without an end has."""
    found: list[int] = []
    with path.open("rb") as file, contextlib.suppress(EndOfFile):
        for record in StreamReader(file).records:
            if isinstance(record, Record):
                found.append(int(record.data))
    return found


def test_a_disk_without_room_is_a_connection_that_is_lost(here: Credentials, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = connector("mcap", "o.mcap", encoding="", schema="")
    writer = kind("mcap").writer(plain, here)
    monkeypatch.setattr(recording_writer, "FREE_BYTES", 1 << 60)
    with pytest.raises(ConnectionLostError):
        writer.put(Message(b"1", ""))
    writer.close()
    assert recovered(within(here) / "o.mcap") == [], "it is put again, elsewhere"
    with pytest.raises(ConnectionLostError):
        kind("mcap").writer(plain, here)
    with pytest.raises(ConnectionLostError):
        kind("rosbag").writer(connector("rosbag", "bags/out"), here)
    assert {each.name for each in within(here).iterdir()} == {"o.mcap"}
    with pytest.raises(ConnectionLostError):
        writer.put(Message(b"1", ""))


def test_metadata_of_a_bag_is_yaml_and_json(here: Credentials) -> None:
    kind("rosbag").writer(connector("rosbag", "out"), here).close()
    about = json.loads((within(here) / "out" / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert about["message_count"] == 0
