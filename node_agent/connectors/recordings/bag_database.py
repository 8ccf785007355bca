"""Messages of an SQLite file of a bag of ROS 2: one topic's, in the order of the file, with times.

What the file claims is not believed. One message of at most 64 MiB is in memory, and nothing is sorted, since SQLite
sorts in files without a bound.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from node_agent.client.address_book import InputError

SUFFIX = ".db3"
_MOST_MESSAGE_BYTES = 64 << 20
_MOST_TOPICS = 1 << 16


class BagDatabase:
    """An iterator of the times at which messages were recorded, and of their bytes. topic: may be "" where the file has
    one. Raises InputError where the file cannot be read, or has no such topic."""

    def __init__(self, path: Path, topic: str) -> None:
        self._path = path
        try:
            self._file = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False)
        except sqlite3.Error as error:
            raise self._damaged(error) from None
        try:
            found = self._found(topic)
        except BaseException:
            self.close()
            raise
        self.topic, self.types = found[0][1], {type_ for _, _, type_ in found}
        self._ids = [number for number, _, _ in found]

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        marks = ", ".join("?" * len(self._ids))
        asked = "SELECT timestamp, data FROM messages NOT INDEXED"
        asked += f" WHERE topic_id IN ({marks}) ORDER BY rowid"
        try:
            for at_ns, data in self._file.execute(asked, self._ids):
                if not isinstance(at_ns, int) or not isinstance(data, bytes):
                    raise self._damaged("a message without a time or bytes")
                yield at_ns, data
        except sqlite3.Error as error:
            raise self._damaged(error) from None

    def close(self) -> None:
        """The file is closed; twice is allowed."""
        self._file.close()

    def _found(self, topic: str) -> list[tuple[int, str, str]]:
        """Number, topic and type: what has that topic."""
        rows = self._topics()
        topics = sorted({str(name) for _, name, _ in rows})
        listed = ", ".join(topics)
        if not topics:
            raise InputError("empty_file", "has no topics", file=self._path)
        if not topic and len(topics) > 1:
            text = f"has several topics, choose one with topic: {listed}"
            raise InputError("several_topics", text, subject="topic", file=self._path)
        if topic and topic not in topics:
            there = f"there are: {listed}"
            raise InputError("unknown_topic", f"has no topic {topic}", there, subject="topic", file=self._path)
        return [row for row in rows if row[1] == (topic or topics[0])]

    def _topics(self) -> list[tuple[int, str, str]]:
        try:
            self._file.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_MESSAGE_BYTES)
            self._file.execute("PRAGMA trusted_schema = OFF")
            tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('messages', 'topics')"
            if len(self._file.execute(tables).fetchmany(2)) < 2:  # a view may have rows without an end
                raise self._damaged("it lacks tables")
            return self._file.execute("SELECT id, name, type FROM topics LIMIT ?", (_MOST_TOPICS,)).fetchall()
        except sqlite3.Error as error:
            raise self._damaged(error) from None

    def _damaged(self, why: object) -> InputError:
        return InputError("damaged", f"the file is no database of a bag, or damaged ({why})", file=self._path)
