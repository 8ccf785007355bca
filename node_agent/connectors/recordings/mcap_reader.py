"""Messages of an MCAP file, for `node-agent feed` and connectors: one topic's, in the order of the file, with times.

The package `mcap` is imported here and only when such a file is given. What a file claims is not believed: records and
unpacked chunks have a limit, and a message becomes a value by the stream's codec alone.
"""

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from io import SEEK_END, BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from node_agent.client.address_book import InputError
from node_agent.connectors.recordings.unpacking import unpacked
from node_agent.operators.codecs import Codec, CodecError, decode_json

SUFFIX = ".mcap"
LOG, PUBLISH = "log", "publish"
MOST_RECORD_BYTES = 64 << 20
MOST_CHUNK_BYTES = 64 << 20  # unpacked
ENCODINGS = ("json", "protobuf")  # that streams have as well
_END_BYTES = 37  # the footer's record, and the magic after it
_MISSING = (
    "reading MCAP needs the package mcap: pip install 'shimekiri[feed]'"
    " (from a file: 'shimekiri-VERSION-py3-none-any.whl[feed]')"
)


@dataclass(frozen=True)
class Channel:
    """What one channel of the file carries; schema: the name of its messages' type, or nothing."""

    topic: str
    encoding: str
    schema: str


class McapReader:
    """The messages of one topic: an iterator of their bytes. number: of the last one, from 1; at_ns: its time;
    published_ns: when its publisher says that it published it; channel: what it came on.

    by: `log` or `publish`. topic: may be left out where the file has one; option: how it is given. encodings: of
    messages, that the caller reads. Raises InputError where the file cannot be
    read, has no such topic, or ends before its end.
    """

    live = False
    arrived_ns = 0
    before_wait: Callable[[], None] | None = None

    def __init__(
        self, path: str, topic: str | None, by: str, option: str = "--topic", encodings: Sequence[str] = ENCODINGS
    ) -> None:
        self.name = path
        self.number = 0
        self.at_ns = self.published_ns = 0
        self.channel = Channel("", "", "")
        self._by, self._option, self._encodings = by, option, encodings
        try:
            self._file: BinaryIO = Path(path).open("rb")  # noqa: SIM115  # `close` closes it
        except OSError as error:
            raise InputError("unreadable", f"cannot be opened ({error.strerror})", file=path) from error
        try:
            self._channels = self._chosen(topic)
            self.rewind()
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        data, self.at_ns, self.published_ns, self.channel = next(self._messages)
        self.number += 1
        return data

    def typed(self, codec: Codec, data: bytes) -> Any:
        """The value of a message, by the stream's codec. Raises CodecError."""
        if self.channel.encoding == "json":
            return codec.from_json(decode_json(data))
        if codec.name == "json":
            raise CodecError(
                "other_type",
                f"topic {self.channel.topic} carries protobuf messages, and the source takes json: declare its type",
                subject=self.channel.topic,
            )
        value = codec.decode(data)
        type_ = value.DESCRIPTOR.full_name
        if self.channel.schema and self.channel.schema != type_:
            raise CodecError(
                "other_type",
                f"topic {self.channel.topic} carries {self.channel.schema}, and the source takes {type_}",
                subject=self.channel.topic,
            )
        return value

    @property
    def channels(self) -> Sequence[Channel]:
        """Those of the topic."""
        return tuple(self._channels.values())

    def rewind(self) -> None:
        """From the first message again."""
        self._file.seek(0)
        self.number = 0
        self._messages = self._read()

    def close(self) -> None:
        """The file is closed."""
        self._file.close()

    def _chosen(self, topic: str | None) -> dict[int, Channel]:
        """The channels of the topic, by number."""
        found = self._all_channels()
        topics = sorted({each.topic for each in found.values()})
        listed = ", ".join(topics)
        if not topics:
            raise InputError("empty_file", "has no messages", file=self.name)
        if topic is None and len(topics) > 1:
            text = f"has several topics, choose one with {self._option}: {listed}"
            raise InputError("several_topics", text, subject=self._option, file=self.name)
        if topic is not None and topic not in topics:
            there = f"there are: {listed}"
            raise InputError("unknown_topic", f"has no topic {topic}", there, subject=topic, file=self.name)
        chosen = {number: each for number, each in found.items() if topic in (None, each.topic)}
        for each in chosen.values():
            if each.encoding not in self._encodings:
                text = f"topic {each.topic} is encoded as {each.encoding or 'nothing known'}"
                mend = f"{' and '.join(self._encodings)} are read"
                raise InputError("unknown_encoding", text, mend, subject=each.topic, file=self.name)
        return chosen

    def _all_channels(self) -> dict[int, Channel]:
        """From the summary at the file's end, where there is one; else from all of the file."""
        found = self._described(self._summary())
        if not found:
            self._file.seek(0)
            found = self._described(self._records())
        return found

    def _described(self, records: Iterator[Any]) -> dict[int, Channel]:
        schemas: dict[int, Any] = {}
        channels: dict[int, Any] = {}
        for record in records:
            kind = type(record).__name__
            if kind in ("Schema", "Channel"):
                (schemas if kind == "Schema" else channels)[record.id] = record
        return {
            number: Channel(each.topic, each.message_encoding, getattr(schemas.get(each.schema_id), "name", ""))
            for number, each in channels.items()
        }

    def _read(self) -> Iterator[tuple[bytes, int, int, Channel]]:
        for record in self._records():
            if type(record).__name__ == "Message" and (channel := self._channels.get(record.channel_id)) is not None:
                at_ns = record.log_time if self._by == LOG else record.publish_time
                yield record.data, at_ns, record.publish_time, channel

    def _summary(self) -> Iterator[Any]:
        """The records of the summary; none: there is none."""
        from mcap.data_stream import ReadDataStream
        from mcap.stream_reader import read_magic

        with self._errors_as_input():
            read_magic(ReadDataStream(self._file))
            self._file.seek(-_END_BYTES, SEEK_END)
            footer = next(self._packed(within=True))
            start = getattr(footer, "summary_start", 0)
            if start:
                self._file.seek(start)
                yield from self._packed(within=True)

    def _records(self) -> Iterator[Any]:
        """All of them, those within chunks in the chunks' places."""
        with self._errors_as_input():
            for record in self._packed():
                if type(record).__name__ == "Chunk":
                    yield from _records_in(record)
                else:
                    yield record

    def _packed(self, within: bool = False) -> Iterator[Any]:
        """The records from here on, chunks among them. within: here is not the file's begin."""
        from mcap.stream_reader import StreamReader

        reader = StreamReader(self._file, skip_magic=within, emit_chunks=True, record_size_limit=MOST_RECORD_BYTES)
        return iter(reader.records)

    def _errors_as_input(self) -> "_ErrorsAsInput":
        return _ErrorsAsInput(self)


class _ErrorsAsInput:
    """What the library raises for a file that is none, or is damaged, becomes an InputError."""

    def __init__(self, recording: McapReader) -> None:
        self._recording = recording

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        from mcap.exceptions import EndOfFile, InvalidMagic, McapError

        name, after = self._recording.name, self._recording.number
        if isinstance(error, InvalidMagic):
            text = "is not MCAP, or was not written to its end"
            raise InputError("not_mcap", text, "try `mcap recover`", file=name) from error
        if isinstance(error, (EndOfFile, struct.error)):
            mend = "`mcap recover` mends it"
            raise InputError("cut_off", "the file ends in the middle", mend, file=name, line=after) from error
        if isinstance(error, OSError):
            raise InputError(
                "unreadable", f"cannot be read ({error.strerror or error})", file=name, line=after
            ) from error
        if isinstance(error, (McapError, _DamagedError, ValueError, KeyError, MemoryError, OverflowError)):
            text, mend = f"the file is damaged ({error})", "`mcap recover` may mend it"
            raise InputError("damaged", text, mend, file=name, line=after) from error


class _DamagedError(Exception):
    """A chunk that cannot be unpacked."""


def _records_in(chunk: Any) -> Iterator[Any]:
    """Of a chunk, one by one: the library makes all of them at once, which of small ones is many times their bytes."""
    from mcap.data_stream import ReadDataStream
    from mcap.opcode import Opcode
    from mcap.records import Channel, Message, Schema

    plain = _plain(chunk)
    stream = ReadDataStream(BytesIO(plain))
    while stream.count < len(plain):
        opcode, length = stream.read1(), stream.read8()
        if opcode == Opcode.MESSAGE:
            yield Message.read(stream, length)
        elif opcode == Opcode.CHANNEL:
            yield Channel.read(stream)
        elif opcode == Opcode.SCHEMA:
            yield Schema.read(stream)
        else:
            stream.read(length)


def _plain(chunk: Any) -> bytes:
    """A chunk, unpacked."""
    size = chunk.uncompressed_size
    if size > MOST_CHUNK_BYTES:
        raise _DamagedError(f"a chunk of more than {MOST_CHUNK_BYTES} bytes")
    plain = unpacked(chunk.compression, chunk.data, size)
    if len(plain) != size:
        raise _DamagedError(f"a chunk that does not have the {size} bytes that it says")
    if chunk.uncompressed_crc and zlib.crc32(plain) != chunk.uncompressed_crc:
        raise _DamagedError("a chunk whose checksum is another one")
    return plain


def opened(path: str, topic: str | None, by: str | None) -> McapReader:
    """The recording. by: None: `log`. Raises InputError, also where mcap is not installed."""
    if find_spec("mcap") is None:
        raise InputError("not_installed", _MISSING, subject="mcap")
    if by not in (None, LOG, PUBLISH):
        text = f"--by {by}: of an MCAP file it is log or publish, the time that counts"
        raise InputError("unknown_word", text, subject="--by")
    return McapReader(path, topic, by or LOG)


class Stamps:
    """The gaps of a recording's times. What has an earlier time than one before it is due at once."""

    def __init__(self, recording: McapReader) -> None:
        self._recording = recording
        self._last_ns: int | None = None
        self._gap_ns = 0

    def gap_ns(self, value: Any) -> int:
        """From the message before."""
        at_ns = self._recording.at_ns
        if self._last_ns is not None:
            self._gap_ns = max(0, at_ns - self._last_ns)
        self._last_ns = at_ns if self._last_ns is None else max(at_ns, self._last_ns)
        return self._gap_ns

    def again(self) -> None:
        """The recording begins anew: its last gap stands before its first message."""
        self._last_ns = None
