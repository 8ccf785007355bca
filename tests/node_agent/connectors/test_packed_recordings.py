"""Bags and MCAP files that are packed: what they unpack to fills neither memory nor disk."""

import gc
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from mcap.data_stream import RecordBuilder
from mcap.records import Channel, Chunk, DataEnd, Footer, Header, McapRecord, Message, Schema
from mcap.writer import MCAP0_MAGIC
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

from node_agent.connectors.connector_ports import Credentials, NotConnectableError
from node_agent.connectors.kinds import kind
from node_agent.connectors.mapping import mapping
from node_agent.operators.codecs import CodecError, Codecs
from tests.node_agent.connectors.test_recording_connectors import START_NS, STORE, TYPE, connector, point
from tests.node_agent.live import ROOT

BOMB_MIB = 1 << 10


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "recordings").mkdir()
    return tmp_path / "recordings"


def packed_bag(path: Path, mode: CompressionMode, storage: StoragePlugin, payloads: list[bytes]) -> None:
    writer = Writer(path, version=9, storage_plugin=storage)
    writer.set_compression(mode, CompressionFormat.ZSTD)
    with writer:
        points = writer.add_connection("/point", TYPE, typestore=STORE)
        for i, payload in enumerate(payloads):
            writer.write(points, START_NS + i, payload)


def payloads(folder: Path, name: str, url: str) -> list[bytes]:
    return [each.payload for each in kind(name).reader(connector(name, url), Credentials(recordings=folder)).messages()]


@pytest.mark.parametrize(
    ("mode", "storage"),
    [
        (CompressionMode.MESSAGE, StoragePlugin.SQLITE3),
        (CompressionMode.MESSAGE, StoragePlugin.MCAP),
        (CompressionMode.STORAGE, StoragePlugin.MCAP),
    ],
)
def test_a_bag_whose_messages_or_chunks_are_packed_is_replayed(
    folder: Path, mode: CompressionMode, storage: StoragePlugin
) -> None:
    points = [point(i, START_NS) for i in range(50)]
    packed_bag(folder / "run1", mode, storage, points)
    assert payloads(folder, "rosbag", "run1") == points


@pytest.mark.parametrize("storage", [StoragePlugin.SQLITE3, StoragePlugin.MCAP])
def test_a_bag_whose_files_are_packed_is_refused_and_nothing_of_it_is_unpacked(
    folder: Path, storage: StoragePlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed_bag(folder / "run1", CompressionMode.FILE, storage, [point(0, START_NS)])
    monkeypatch.setattr(tempfile, "tempdir", str(folder.parent / "nowhere"))
    with pytest.raises(NotConnectableError) as told:
        payloads(folder, "rosbag", "run1")
    assert told.value.code == "unknown_format"
    assert "packed (mode file); `rosbags-convert --src BAG --dst OTHER` makes one that is not" in str(told.value)
    converted = [Path(sys.executable).parent / "rosbags-convert", "--src", "run1", "--dst", "run2"]
    monkeypatch.undo()
    subprocess.run(converted, cwd=folder, check=True, timeout=60)
    assert payloads(folder, "rosbag", "run2") == [point(0, START_NS)]


def test_a_message_that_unpacks_to_more_than_any_stream_takes_is_refused_alone(folder: Path) -> None:
    packed_bag(
        folder / "run1", CompressionMode.MESSAGE, StoragePlugin.MCAP, [point(0, 1), bytes(40 << 20), point(1, 1)]
    )
    mapped = mapping(Codecs().get("json"), "cdr", TYPE)
    first, large, last = payloads(folder, "rosbag", "run1")
    assert [mapped.decode(each)["point"]["x"] for each in (first, last)] == [0.0, 1.0]
    assert len(large) < 20 << 20
    with pytest.raises(CodecError) as told:
        mapped.decode(large)
    assert told.value.code == "too_large"


def test_a_message_that_cannot_be_unpacked_is_told_in_a_line(folder: Path) -> None:
    packed_bag(folder / "run1", CompressionMode.MESSAGE, StoragePlugin.SQLITE3, [point(0, 1)])
    with sqlite3.connect(next((folder / "run1").glob("*.db3"))) as file:
        file.execute("UPDATE messages SET data = CAST('no zstd' AS BLOB)")
    file.close()
    with pytest.raises(NotConnectableError) as told:
        payloads(folder, "rosbag", "run1")
    assert told.value.code == "damaged"
    assert "a message cannot be unpacked" in str(told.value)


@pytest.mark.parametrize("about", ["x: " + "[" * 800, "x: &a [1]\ny: *b", "a\0b", "[]", "- 1", "x" * (2 << 20)])
def test_a_bags_metadata_that_are_none_are_told_in_a_line(folder: Path, about: str) -> None:
    packed_bag(folder / "run1", CompressionMode.NONE, StoragePlugin.MCAP, [point(0, 1)])
    (folder / "run1" / "metadata.yaml").write_text(about)
    with pytest.raises(NotConnectableError) as told:
        payloads(folder, "rosbag", "run1")
    assert told.value.code in ("damaged", "too_large")
    assert "\n" not in str(told.value)


def test_files_of_a_bag_that_lack_its_topic_are_passed_over(folder: Path) -> None:
    for i, topic in enumerate(("/point", "/other", "/point")):
        with Writer(folder / f"part{i}", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
            points = writer.add_connection(topic, TYPE, typestore=STORE)
            writer.write(points, START_NS + i, point(i, 1))
    whole = folder / "part0"
    for i in (1, 2):
        (folder / f"part{i}" / f"part{i}.mcap").rename(whole / f"part{i}.mcap")
    about = (whole / "metadata.yaml").read_text()
    (whole / "metadata.yaml").write_text(
        about.replace("- part0.mcap", "- part0.mcap\n  - part1.mcap\n  - x/part2.mcap")
    )
    assert payloads(folder, "rosbag", "part0") == [point(0, 1), point(2, 1)]


def test_tables_of_a_bag_are_not_believed(folder: Path) -> None:
    """A view may have messages without an end, and a computed column messages without a limit."""
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, 1 AS topic_id, i, x''"
    for messages in (
        f"VIEW messages(id, topic_id, timestamp, data) AS {endless} FROM n",
        "TABLE messages(id INTEGER PRIMARY KEY, topic_id, timestamp, data AS (zeroblob(1000000000)))",
        "TABLE messages(id INTEGER PRIMARY KEY, topic_id, timestamp, data AS ('text'))",
        "TABLE messages(id INTEGER PRIMARY KEY, topic_id)",
    ):
        path = folder / "x.db3"
        path.unlink(missing_ok=True)
        with sqlite3.connect(path) as file:
            file.execute("CREATE TABLE topics(id INTEGER PRIMARY KEY, name, type)")
            file.execute("INSERT INTO topics VALUES(1, '/point', ?)", (TYPE,))
            file.execute(f"CREATE {messages}")
            if messages.startswith("TABLE"):
                file.execute("INSERT INTO messages(topic_id) VALUES(1)")
        file.close()
        with pytest.raises(NotConnectableError) as told:
            payloads(folder, "rosbag", "x.db3")
        assert told.value.code == "damaged"


def zeros(mib: int, declared: bool = True) -> bytes:
    """So many, packed as blocks of one repeated byte. declared: the frame says how many they are."""
    blocks = mib * 8  # of 128 KiB
    head = b"\x28\xb5\x2f\xfd" + (b"\x80\x38" + (mib << 20).to_bytes(4, "little") if declared else b"\x00\x38")
    block = (1 << 20 | 1 << 1).to_bytes(3, "little") + b"\0"
    last = (1 << 20 | 1 << 1 | 1).to_bytes(3, "little") + b"\0"
    return head + block * (blocks - 1) + last


def records_of(*records: McapRecord) -> bytes:
    made = RecordBuilder()
    for each in records:
        each.write(made)
    return bytes(made.end())


def chunk(data: bytes, size: int, compression: str = "zstd") -> Chunk:
    return Chunk(compression, data, 1, 1, 0, size)


SCHEMA, CHANNEL = Schema(1, b"", "ros2msg", TYPE), Channel(1, "/point", "cdr", {}, 1)


def chunked(path: Path, of: Chunk, in_summary: bool = False) -> None:
    """An MCAP file with one chunk. in_summary: which is part of the summary, in front of the types and topics."""
    head = MCAP0_MAGIC + records_of(Header("ros2", ""))
    described = records_of(SCHEMA, CHANNEL)
    if in_summary:
        body, start = records_of(DataEnd(0), of) + described, len(head) + len(records_of(DataEnd(0)))
    else:
        body, start = described + records_of(of, DataEnd(0)), 0
    path.write_bytes(head + body + records_of(Footer(start, 0, 0)) + MCAP0_MAGIC)


def small_messages(count: int) -> Chunk:
    one = records_of(Message(1, 1, b"", 1, 0))
    plain = zstandard.ZstdCompressor().compress(one * count)
    return chunk(plain, len(one) * count)


def of_messages(path: Path, packed: bytes) -> None:
    """A bag whose only message is that."""
    packed_bag(path, CompressionMode.MESSAGE, StoragePlugin.SQLITE3, [b""])
    with sqlite3.connect(next(path.glob("*.db3"))) as file:
        file.execute("UPDATE messages SET data = ?", (packed,))
    file.close()


BOMBS: dict[str, Callable[[Path], None]] = {
    "a chunk that says that it is small": lambda path: chunked(path, chunk(zeros(BOMB_MIB, False), 1000)),
    "a chunk": lambda path: chunked(path, chunk(zeros(BOMB_MIB), BOMB_MIB << 20)),
    "a chunk in the summary": lambda path: chunked(path, chunk(zeros(BOMB_MIB), 1000), True),
    "a message": lambda path: of_messages(path, zeros(BOMB_MIB, False)),
    "a message that says its size": lambda path: of_messages(path, zeros(BOMB_MIB)),
}


READ = """
import sys
from pathlib import Path
from tests.node_agent.connectors.test_packed_recordings import grown_mib
print(grown_mib(Path(sys.argv[1])))
"""


def grown_mib(folder: Path) -> float:
    """By how much this process grows as it reads each bomb, after it has read another recording."""
    base = 0
    for url in ["first.mcap", *(f"{number}.mcap" for number in range(len(BOMBS)))]:
        for name in ("rosbag",) if (folder / url).is_dir() else ("rosbag", "mcap"):
            try:
                reader = kind(name).reader(connector(name, url), Credentials(recordings=folder))
                assert all(len(each.payload) < 20 << 20 for each in reader.messages())
                reader.close()
            except NotConnectableError as error:
                assert base, error
        base = base or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) / 1024


def test_memory_has_a_bound_whatever_a_recording_unpacks_to(folder: Path) -> None:
    chunked(folder / "first.mcap", small_messages(10))
    for number, made in enumerate(BOMBS.values()):
        made(folder / f"{number}.mcap")
    command = [sys.executable, "-c", READ, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 220, "a chunk or message, the window of zstd, and a copy"


def test_of_a_chunks_messages_one_at_a_time_is_in_memory(folder: Path) -> None:
    chunked(folder / "x.mcap", small_messages(1000))
    messages = kind("mcap").reader(connector("mcap", "x.mcap"), Credentials(recordings=folder)).messages()
    next(messages)
    assert sum(isinstance(each, Message) for each in gc.get_objects()) < 10
    assert len(list(messages)) == 999
