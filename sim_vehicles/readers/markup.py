"""XML as a stream of elements with their lines, read by expat directly.

A document type declaration is refused: with none there are no entities to expand and nothing outside to fetch, which is
what defusedxml guards against (it would be one more dependency for this one handler, and its ElementTree has no lines).
Bytes are bounded by `content.opened`, depth by `MAX_DEPTH`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple
from xml.parsers import expat

from sim_vehicles.errors import bad_input
from sim_vehicles.readers.content import CHUNK

MAX_DEPTH = 32


class Start(NamedTuple):
    """An element begins; its line, name and attributes."""

    line: int
    name: str
    attributes: dict[str, str]


class End(NamedTuple):
    """An element ends; the line where it began, its name, the text directly in it (without spaces around it)."""

    line: int
    name: str
    text: str


class Elements(Iterator[Start | End]):
    """The elements in the file's order. BadInputError with file and line where it is no plain XML."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self._path = path
        self._handler = _Handler(path)
        self._events = self._parsed(stream)

    def __iter__(self) -> Iterator[Start | End]:
        return self._events

    def __next__(self) -> Start | End:
        return next(self._events)

    def end_only(self, name: str) -> None:
        """Hands on no end of other elements, and no text, of what is not parsed yet: that takes half the time."""
        self._handler.end_only(name)

    def _parsed(self, stream: BinaryIO) -> Iterator[Start | End]:
        handler = self._handler
        try:
            while chunk := stream.read(CHUNK):
                handler.parser.Parse(chunk, False)
                yield from handler.taken()
            handler.parser.Parse(b"", True)
            yield from handler.taken()
        except expat.ExpatError as bad:
            raise bad_input(
                "not_xml", f"is not XML: {expat.errors.messages[bad.code]}", file=self._path, line=bad.lineno
            ) from None
        except (LookupError, ValueError) as bad:  # an encoding that there is none of
            raise bad_input("not_xml", f"is not XML: {bad}", "save it as UTF-8", file=self._path, line=1) from None


class _Handler:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: list[tuple[int, list[str]]] = []  # line and texts of every element that has begun
        self._events: list[Start | End] = []
        self._ended: str | None = None  # the elements whose ends are handed on; None: all
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text

    def end_only(self, name: str) -> None:
        self._ended = name
        self.parser.CharacterDataHandler = None

    def taken(self) -> list[Start | End]:
        events, self._events = self._events, []
        return events

    def _doctype(self, name: str, system: str | None, public: str | None, internal: bool) -> None:
        raise bad_input(
            "document_type",
            "a document type declaration is not read (it can make a small file endless)",
            f"remove <!DOCTYPE {name} ...>",
            subject=name,
            file=self._path,
            line=self.parser.CurrentLineNumber,
        )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        if len(self._open) >= MAX_DEPTH:
            raise bad_input(
                "too_deep", f"elements lie deeper than {MAX_DEPTH} in one another", file=self._path, line=line
            )
        self._open.append((line, []))
        self._events.append(Start(line, name, attributes))

    def _text(self, text: str) -> None:
        self._open[-1][1].append(text)

    def _end(self, name: str) -> None:
        line, texts = self._open.pop()
        if self._ended is not None and name != self._ended:
            return
        self._events.append(End(line, name, "".join(texts).strip()))
