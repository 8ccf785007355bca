"""The kind `rosbag`: one topic of a bag of ROS 2 (a directory with metadata.yaml, SQLite or MCAP) as a source, and an
output as a new bag. Messages are CDR; the type that source or output says is the bag's."""

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rosbags.interfaces import Connection
from rosbags.rosbag2 import Reader as Bag

from node_agent.connectors.connector_ports import Connector, Credentials, Message, NotConnectableError
from node_agent.connectors.recordings.allowed_paths import allowed, new
from node_agent.connectors.recordings.player import Player, Recorded
from node_agent.connectors.recordings.recording_writer import RecordingWriter
from node_agent.connectors.recordings.ros_schema import ros_format
from node_agent.connectors.ros.typestore import known

_VERSION = 5  # of metadata.yaml: files with figures of their own


def reader(connector: Connector, credentials: Credentials) -> Player:
    """Raises NotConnectableError for a bag that is none, and a topic that it has not, or of another type."""
    _check(connector)
    path = allowed(credentials, connector.url)
    try:
        bag = Bag(path)
        bag.open()
    except Exception as error:  # of rosbags, SQLite, YAML and compression, over files that may be anything
        raise _unreadable(path, error) from None
    try:
        chosen = _chosen(bag, path, connector)
    except BaseException:
        bag.close()
        raise
    return Player(chosen[0].topic, _messages(bag, path, chosen), _Once(bag).close)


def writer(connector: Connector, credentials: Credentials) -> "BagWriter":
    """Raises NotConnectableError where its messages are no CDR."""
    _check(connector)
    return BagWriter(new(allowed(credentials, connector.url)), connector)


class BagWriter:
    """A directory with one MCAP file; metadata.yaml comes as it is closed. A bag that was killed has none, and its file
    no end: `mcap recover` and `ros2 bag reindex` make them."""

    def __init__(self, folder: Path, connector: Connector) -> None:
        self._type = known(connector.schema)
        self._file = RecordingWriter(
            folder / f"{folder.name}_0.mcap", connector.topic or f"/{connector.stream}", ros_format(connector.schema)
        )

    def put(self, message: Message) -> None:
        """As of the file."""
        self._file.put(message)

    def close(self) -> None:
        """From any thread; twice is allowed."""
        self._file.close()
        part = self._file.path.with_name("metadata.yaml.part")
        with suppress(OSError):  # a full disk: as after a kill
            part.write_text(json.dumps(self._described(), indent=1))  # JSON is YAML
            part.replace(part.with_name("metadata.yaml"))

    def _described(self) -> dict[str, object]:
        file = self._file
        figures: dict[str, object] = {
            "starting_time": {"nanoseconds_since_epoch": file.first_ns},
            "duration": {"nanoseconds": file.last_ns - file.first_ns},
            "message_count": file.count,
        }
        topic = {"name": file.topic, "type": self._type, "serialization_format": "cdr", "offered_qos_profiles": ""}
        about = {
            "version": _VERSION,
            "storage_identifier": "mcap",
            "relative_file_paths": [file.path.name],
            **figures,
            "topics_with_message_count": [{"topic_metadata": topic, "message_count": file.count}],
            "compression_format": "",
            "compression_mode": "",
            "files": [{"path": file.path.name, **figures}],
        }
        return {"rosbag2_bagfile_information": about}


class _Once:
    """Closes a bag the first time."""

    def __init__(self, bag: Bag) -> None:
        self._bag, self._first = bag, threading.Lock()

    def close(self) -> None:
        if self._first.acquire(blocking=False):
            self._bag.close()


def _check(connector: Connector) -> None:
    if connector.encoding != "cdr":
        text, mend = "a bag has messages in CDR", "add 'encoding: cdr' and their type, 'schema: sensor_msgs/msg/Imu'"
        raise NotConnectableError("unknown_encoding", text, mend, subject="encoding")
    known(connector.schema)


def _chosen(bag: Bag, path: Path, connector: Connector) -> list[Connection]:
    """The connections of the topic."""
    topics = sorted({each.topic for each in bag.connections})
    topic = connector.topic or (topics[0] if len(topics) == 1 else "")
    if topic not in topics:
        text = f"has no topic {topic}" if topic else "has several topics"
        mend = f"there are: {', '.join(topics)}" if topics else "it is empty"
        raise NotConnectableError("unknown_topic", text, mend, subject="topic", file=path)
    found = [each for each in bag.connections if each.topic == topic]
    for each in found:
        if each.msgtype != known(connector.schema):
            text, mend = f"topic {topic} carries {each.msgtype}", f"write 'schema: {each.msgtype}'"
            raise NotConnectableError("other_type", text, mend, subject="schema", file=path)
    return found


def _messages(bag: Bag, path: Path, chosen: list[Connection]) -> Iterator[Recorded]:
    try:
        for _, logged_ns, data in bag.messages(chosen):
            yield Recorded(data, logged_ns, logged_ns)
    except Exception as error:  # as above
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> NotConnectableError:
    mend = "`ros2 bag reindex`, or `mcap recover` of its files, may mend it"
    why = " ".join(str(error).split())  # YAML says it in several lines
    return NotConnectableError("unreadable", f"cannot be read as a bag ({why:.200})", mend, file=path)


__all__ = ["BagWriter", "reader", "writer"]
