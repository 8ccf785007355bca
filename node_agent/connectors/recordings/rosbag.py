"""The kind `rosbag`: one topic of a bag of ROS 2 (a directory with metadata.yaml, SQLite or MCAP) as a source, and an
output as a new bag. Messages are CDR; the type that source or output says is the bag's."""

import json
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from pathlib import Path

from node_agent.client.address_book import InputError
from node_agent.connectors.connector_ports import Connector, Credentials, Message, NotConnectableError
from node_agent.connectors.recordings import bag_database, mcap_reader
from node_agent.connectors.recordings.allowed_paths import allowed, new
from node_agent.connectors.recordings.bag_database import BagDatabase
from node_agent.connectors.recordings.bag_files import BagFiles, bag_files
from node_agent.connectors.recordings.mcap_reader import McapReader
from node_agent.connectors.recordings.player import Player, Recorded
from node_agent.connectors.recordings.recording_errors import not_usable
from node_agent.connectors.recordings.recording_writer import RecordingWriter
from node_agent.connectors.recordings.ros_schema import ros_format
from node_agent.connectors.recordings.unpacking import unpacked
from node_agent.connectors.ros.typestore import known

_VERSION = 5  # of metadata.yaml: files with figures of their own
_MOST_MESSAGE_BYTES = 16 << 20  # unpacked: more than any stream takes, so what is larger is refused alone
_NOT_HERE = ("unknown_topic", "empty_file")  # in one file of several


def reader(connector: Connector, credentials: Credentials) -> Player:
    """Raises NotConnectableError for a bag that is none, and a topic that it has not, or of another type."""
    _check(connector)
    try:
        topic, bag = _with_topic(bag_files(allowed(credentials, connector.url)), connector)
    except InputError as error:
        raise not_usable(error) from error
    messages = _messages(bag, topic)
    return Player(topic, messages, messages.close)


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

    def look(self) -> None:
        """As of the file."""
        self._file.look()

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


def _check(connector: Connector) -> None:
    if connector.encoding != "cdr":
        text, mend = "a bag has messages in CDR", "add 'encoding: cdr' and their type, 'schema: sensor_msgs/msg/Imu'"
        raise NotConnectableError("unknown_encoding", text, mend, subject="encoding")
    known(connector.schema)


def _with_topic(bag: BagFiles, connector: Connector) -> tuple[str, BagFiles]:
    """The topic that is read, and the files that have it. Raises InputError where none has, and NotConnectableError
    where it is of another type."""
    topic, having = connector.topic, []
    elsewhere = InputError("empty_file", "this bag has no files", subject=connector.url)
    for path in bag.paths:
        try:
            with closing(_opened(path, topic)) as found:
                _check_types(found, path, connector)
                topic = found.topic
            having.append(path)
        except InputError as error:
            if error.code not in _NOT_HERE:
                raise
            elsewhere = error
    if not having:
        raise elsewhere
    return topic, bag._replace(paths=tuple(having))


def _check_types(found: "_McapFile | BagDatabase", path: Path, connector: Connector) -> None:
    for type_ in found.types:
        if type_ != known(connector.schema):
            text, mend = f"topic {found.topic} carries {type_}", f"write 'schema: {type_}'"
            raise NotConnectableError("other_type", text, mend, subject="schema", file=path)


def _messages(bag: BagFiles, topic: str) -> Generator[Recorded, None, None]:
    for path in bag.paths:
        try:
            with closing(_opened(path, topic)) as found:
                for at_ns, data in found:
                    yield Recorded(unpacked(bag.packing, data, _MOST_MESSAGE_BYTES), at_ns, at_ns)
        except InputError as error:
            raise not_usable(error) from error
        except ValueError as error:
            text = f"a message cannot be unpacked ({error})"
            raise NotConnectableError("damaged", text, subject="compression_mode", file=path) from error


def _opened(path: Path, topic: str) -> "_McapFile | BagDatabase":
    """Raises InputError."""
    if path.suffix == bag_database.SUFFIX:
        return BagDatabase(path, topic)
    if path.suffix == mcap_reader.SUFFIX:
        return _McapFile(path, topic)
    mend = f"give its directory, or a file that ends with {bag_database.SUFFIX} or {mcap_reader.SUFFIX}"
    raise InputError("unknown_format", "is no file of a bag of ROS 2", mend, file=path)


class _McapFile:
    """As BagDatabase, of an MCAP file."""

    def __init__(self, path: Path, topic: str) -> None:
        self._file = McapReader(str(path), topic or None, mcap_reader.LOG, "topic", ("cdr",))
        self.topic = self._file.channels[0].topic
        self.types = {each.schema for each in self._file.channels}

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        for data in self._file:
            yield self._file.at_ns, data

    def close(self) -> None:
        """The file is closed; twice is allowed."""
        self._file.close()


__all__ = ["BagWriter", "reader", "writer"]
