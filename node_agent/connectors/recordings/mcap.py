"""The kind `mcap`: one topic of a file as a source, and an output as a new file.

A topic may carry JSON, protobuf or CDR. Of what is not JSON, the source says the type as `schema`: the file's.
"""

from collections.abc import Iterator

from node_agent.client.address_book import InputError
from node_agent.connectors.connector_ports import Connector, Credentials, NotConnectableError
from node_agent.connectors.recordings.allowed_paths import allowed, new
from node_agent.connectors.recordings.mcap_reader import LOG, SUFFIX, McapReader
from node_agent.connectors.recordings.player import Player, Recorded
from node_agent.connectors.recordings.recording_errors import not_usable
from node_agent.connectors.recordings.recording_writer import Format, RecordingWriter
from node_agent.connectors.recordings.ros_schema import ros_format
from node_agent.connectors.ros.typestore import known


def reader(connector: Connector, credentials: Credentials) -> Player:
    """Raises NotConnectableError for a file that is none, and a topic that it has not, or of another type."""
    path = allowed(credentials, connector.url)
    try:
        found = McapReader(str(path), connector.topic or None, LOG, "topic", (_encoding(connector),))
    except InputError as error:
        raise not_usable(error) from error
    return Player(connector.topic or path.name, _messages(found, connector), found.close)


def writer(connector: Connector, credentials: Credentials) -> RecordingWriter:
    """Raises NotConnectableError where its messages are neither JSON nor CDR."""
    path, topic = allowed(credentials, connector.url), connector.topic or connector.stream
    if path.suffix != SUFFIX:
        raise NotConnectableError(
            "unknown_format", f"{connector.url} does not end with {SUFFIX}", subject=connector.url
        )
    encoding = _encoding(connector)
    if encoding == "cdr":
        return RecordingWriter(new(path), topic, ros_format(connector.schema))
    if encoding != "json":
        text, mend = f"no MCAP file is written of a stream of {connector.codec}", "add 'encoding: json' to it"
        raise NotConnectableError("unknown_encoding", text, mend, subject=connector.stream)
    return RecordingWriter(new(path), topic, Format("", "json"))


def _messages(found: McapReader, connector: Connector) -> Iterator[Recorded]:
    wanted = known(connector.schema) if connector.encoding == "cdr" else connector.schema
    try:
        for data in found:
            if found.channel.encoding != "json" and found.channel.schema != wanted:
                text = f"topic {found.channel.topic} carries {found.channel.schema or 'messages of an unnamed type'}"
                mend = f"write 'schema: {found.channel.schema}', and a stream that takes it"
                raise NotConnectableError("other_type", text, mend, subject="schema", file=found.name)
            yield Recorded(data, found.at_ns, found.published_ns)
    except InputError as error:
        raise not_usable(error) from error


def _encoding(connector: Connector) -> str:
    return connector.encoding or ("json" if connector.codec == "json" else "protobuf")
