"""Results into an MCAP file, as the one topic that it has.

The file has no chunks: each message is handed to the system by the time `put` returns, so a process that is killed
loses none, and a machine that loses its power the last second. What a killed process leaves has no end, and
`mcap recover` gives it one. Each opening begins a file of its own.

No message is in two files. One that cannot be written leaves nothing that is read as a message, and is put into the
next file. One that is written and cannot be synced is not put again, like those before it since the last time.
"""

import os
import shutil
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

from mcap.writer import Writer as McapWriter

from node_agent.connectors.connector_ports import ConnectionLostError, Message

SYNCED_S = 1.0
FREE_BYTES = 1 << 29  # of the disk, that stay


class Format(NamedTuple):
    """What a file says of its messages. schema: the name of their type, definition: what it is, in schema_encoding;
    empty where it has none."""

    profile: str
    encoding: str
    schema: str = ""
    schema_encoding: str = ""
    definition: str = ""


class RecordingWriter:
    """Puts the messages of one topic. first_ns, last_ns: when the first and the last one of `count` were recorded."""

    def __init__(self, path: Path, topic: str, format_: Format) -> None:
        self.path, self.topic = path, topic
        self.count = self.first_ns = self.last_ns = 0
        self._closing = threading.Lock()
        self._synced_s, self._synced = time.monotonic(), 0
        try:
            _check_room(next(each for each in path.parents if each.exists()))
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = _WholeRecords(path)
            self._mcap: Any = McapWriter(cast(Any, self._file), use_chunking=False)  # it asks for `write` and `tell`
            self._mcap.start(profile=format_.profile, library="shimekiri")
            schema = 0
            if format_.schema:
                definition = format_.definition.encode()
                schema = self._mcap.register_schema(format_.schema, format_.schema_encoding, definition)
            self._channel = self._mcap.register_channel(topic, format_.encoding, schema)
        except OSError as error:
            raise _lost(error) from error

    def put(self, message: Message) -> None:
        """Recorded now, and published when it originated. Raises ConnectionLostError."""
        with self._closing:
            if self._file.closed:
                raise ConnectionLostError("the recording is closed")
            at_ns = max(time.time_ns(), self.last_ns)
            published_ns = at_ns if message.stamp_ns is None else message.stamp_ns
            try:
                _check_room(self.path.parent)
                self._mcap.add_message(self._channel, at_ns, message.payload, published_ns, self.count)
            except OSError as error:
                raise _lost(error) from error
            self.first_ns, self.last_ns, self.count = self.first_ns or at_ns, at_ns, self.count + 1
            self._sync()

    def look(self) -> None:
        """What no other message has followed is synced as well. Raises ConnectionLostError."""
        with self._closing:
            if self._synced < self.count and not self._file.closed:
                self._sync()

    def close(self) -> None:
        """The file gets its end. From any thread; twice is allowed."""
        with self._closing:
            if self._file.closed:
                return
            try:
                if not self._file.failed:
                    self._mcap.finish()
                    self._file.sync()
            except OSError:
                pass  # as after a kill: the messages are there, the end is not
            finally:
                self._file.close()

    def _sync(self) -> None:
        if time.monotonic() - self._synced_s < SYNCED_S:
            return
        try:
            self._file.sync()
        except OSError as error:
            doubt = f"the recording cannot be synced: {error.strerror}; its last {self.count - self._synced} messages"
            raise ConnectionLostError(f"{doubt} may not be on the disk", taken=True) from error
        self._synced_s, self._synced = time.monotonic(), self.count


class _WholeRecords:
    """What is written to a new file, record by record. failed: one could not be written, and nothing may follow it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb", buffering=0)
        self._bytes = 0
        self.failed = False

    @property
    def closed(self) -> bool:
        return self._file.closed

    def tell(self) -> int:
        """How many bytes there are."""
        return self._bytes

    def write(self, record: bytes) -> None:
        """All of it. Raises OSError: of it there is less than all, and what there is goes where that is possible."""
        rest = memoryview(record)
        try:
            while rest:
                rest = rest[self._file.write(rest) or 0 :]
        except OSError:
            self.failed = True
            with suppress(OSError):
                self._file.truncate(self._bytes)
            raise
        self._bytes += len(record)

    def sync(self) -> None:
        """It is on the disk. Raises OSError."""
        os.fdatasync(self._file.fileno())

    def close(self) -> None:
        with suppress(OSError):
            self._file.close()


def _check_room(folder: Path) -> None:
    if shutil.disk_usage(folder).free < FREE_BYTES:
        raise ConnectionLostError(f"the disk has less than {FREE_BYTES >> 20} MiB left")


def _lost(error: OSError) -> ConnectionLostError:
    return ConnectionLostError(f"the recording cannot be written: {error.strerror}")


__all__ = ["Format", "RecordingWriter"]
