"""Values from lines, for `node-agent feed`: JSON lines or CSV, out of a file, standard input or a serial device."""

import contextlib
import csv
import errno
import os
import re
import stat
import termios
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from node_agent.client.address_book import InputError
from node_agent.error_codes import Code
from node_agent.host.clock import now_ns
from node_agent.operators.codecs import CodecError, decode_json

MOST_LINE_BYTES = 1 << 22
_CHUNK = 1 << 16
_BOM = b"\xef\xbb\xbf"
_IFLAG, _OFLAG, _CFLAG, _LFLAG, _ISPEED, _OSPEED, _CC = range(7)  # what tcgetattr gives
_number = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII).fullmatch


class LineError(InputError):
    """One line that cannot be used; those after it can be read."""


class LineReader:
    """The lines of a file, without their newlines. live: not a regular file, so lines come when they come.

    Raises InputError where the file cannot be opened or read, LineError for a line that is too long.
    """

    before_wait: Callable[[], None] | None = None
    """Called before a read that may wait."""

    def __init__(self, path: str, baud: int | None = None) -> None:
        self.name = "stdin" if path == "-" else path
        self.number = 0
        self.arrived_ns = 0  # when the line was read, of a live file; else 0
        self._lines: deque[bytes] = deque()
        self._rest = b""
        self._ended = False
        self._settings: list[Any] | None = None
        try:
            self._fd = 0 if path == "-" else _open(path)
            self.live = not stat.S_ISREG(os.fstat(self._fd).st_mode)
        except (OSError, ValueError) as error:
            why = f"cannot be opened ({getattr(error, 'strerror', error)})"
            mend = "give a file, a device, or - for standard input"
            raise InputError("unreadable", why, mend, file=self.name) from error
        try:
            if baud is not None:
                self._set_speed(baud)
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        while not self._lines:
            if self._ended:
                raise StopIteration
            self._read()
        self.number += 1
        line = self._lines.popleft()
        if len(line) > MOST_LINE_BYTES:
            text = f"a line of more than {MOST_LINE_BYTES} bytes"
            raise LineError("too_large", text, file=self.name, line=self.number)
        return line.removeprefix(_BOM) if self.number == 1 else line

    def rewind(self) -> None:
        """From the first line again; not for a live file."""
        os.lseek(self._fd, 0, os.SEEK_SET)
        self.number, self._rest, self._ended = 0, b"", False
        self._lines.clear()

    def close(self) -> None:
        """A serial device gets back the settings that it had."""
        if self._settings is not None:
            with contextlib.suppress(termios.error):  # it may have been unplugged
                termios.tcsetattr(self._fd, termios.TCSANOW, self._settings)
            self._settings = None
        if self._fd:
            os.close(self._fd)
            self._fd = 0

    def _read(self) -> None:
        if self.live and self.before_wait is not None:
            self.before_wait()
        try:
            data = os.read(self._fd, _CHUNK)
        except OSError as error:
            if error.errno != errno.EIO or not self.live:
                raise InputError("unreadable", f"cannot be read ({error.strerror})", file=self.name) from error
            data = b""  # the other end of a terminal has gone
        if self.live:
            self.arrived_ns = now_ns()
        self._ended = not data
        *whole, rest = (self._rest + data).split(b"\n")
        if self._ended and rest:
            whole, rest = [rest], b""
        self._lines.extend(whole)
        self._rest = rest[: MOST_LINE_BYTES + 1]  # enough to see that it is too long

    def _set_speed(self, baud: int) -> None:
        speeds = {int(each[1:]): getattr(termios, each) for each in dir(termios) if re.fullmatch(r"B[1-9]\d*", each)}
        if baud not in speeds:
            text = f"--baud {baud}: one of {', '.join(map(str, sorted(speeds)))}"
            raise InputError("unknown_speed", text, subject="--baud")
        if not os.isatty(self._fd):
            raise InputError("not_serial", f"--baud: {self.name} is not a serial device", subject="--baud")
        try:
            self._settings = termios.tcgetattr(self._fd)
            raw = termios.tcgetattr(self._fd)
            raw[_IFLAG] = raw[_OFLAG] = raw[_LFLAG] = 0
            raw[_CFLAG] = termios.CS8 | termios.CREAD | termios.CLOCAL
            raw[_ISPEED] = raw[_OSPEED] = speeds[baud]
            raw[_CC][termios.VMIN], raw[_CC][termios.VTIME] = 1, 0
            termios.tcsetattr(self._fd, termios.TCSANOW, raw)
        except termios.error as error:
            text = f"--baud {baud}: {self.name} does not take it ({error.args[-1]})"
            raise InputError("unknown_speed", text, subject="--baud") from error


def _open(path: str) -> int:
    """A serial device is opened without waiting for its carrier; reading waits."""
    device = stat.S_ISCHR(os.stat(path).st_mode)
    file = os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC | (os.O_NONBLOCK if device else 0))
    os.set_blocking(file, True)
    return file


class Rows(Protocol):
    """Values, one after the other. After a LineError the next one can be asked for."""

    number: int
    """Line where the last one began, from 1."""

    def __iter__(self) -> Iterator[Any]: ...

    def __next__(self) -> Any: ...


class JsonRows:
    """One JSON value in each line that is not blank."""

    def __init__(self, lines: LineReader) -> None:
        self.number = 0
        self._lines = lines

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        data = next(self._lines).strip()
        while not data:
            data = next(self._lines).strip()
        self.number = self._lines.number
        try:
            return decode_json(data)
        except CodecError as error:
            name, text, mend = self._lines.name, str(error), "write one JSON value per line"
            raise LineError(error.code, text, mend, file=name, line=self.number) from None


class CsvRows:
    """One object for each row under the header. Raises InputError for a header that cannot be used."""

    def __init__(self, lines: LineReader) -> None:
        self.number = 0
        self._lines = lines
        self._reader = csv.reader(map(self._text, lines), strict=True)
        self._header: list[str] = []

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self._header:
            self._header = self._names()
        cells = self._cells()
        if len(cells) != len(self._header):
            what = f"{len(cells)} cells under a header of {len(self._header)}"
            raise self._error("wrong_shape", what, "leave a cell empty where there is no value")
        try:
            return {name: _cell(cell) for name, cell in zip(self._header, cells, strict=True)}
        except CodecError as error:
            raise self._error(error.code, str(error)) from None

    def _names(self) -> list[str]:
        try:
            names = [name.strip() for name in self._cells()]
        except LineError as error:
            told, problem = error.mistake, error.problem
            raise InputError(error.code, told.text, told.mend, file=problem.file, line=problem.line) from error
        if all(map(_number, names)):
            what = f"a row of numbers ({', '.join(names)}), not a header; put one above it that names the columns"
            raise self._unfit("no_header", what[:200])
        if len(names) == 1 and (marks := {";", "\t", "|"} & set(names[0])):
            what = f"one column called {names[0][:80]!r}; columns are parted by commas, not by {min(marks)!r}"
            raise self._unfit("other_separator", what, subject=names[0])
        for name in names:
            if not name or names.count(name) > 1:
                what = f"two columns are called {name!r}" if name else "a column without a name"
                code: Code = "given_twice" if name else "no_name"
                raise self._unfit(code, what, "the first line names the columns", subject=name)
        return names

    def _cells(self) -> list[str]:
        cells: list[str] = []
        while not cells:  # blank lines
            self.number = self._lines.number + 1
            try:
                cells = next(self._reader)
            except csv.Error as error:
                raise self._error("not_csv", f"not CSV: {error}") from None
        return cells

    def _text(self, line: bytes) -> str:
        try:
            return line.decode() + "\n"
        except UnicodeDecodeError as error:
            raise self._error("not_utf8", f"not UTF-8: {error.reason}") from None

    def _unfit(self, code: Code, what: str, mend: str = "", *, subject: str = "") -> InputError:
        return InputError(code, what, mend, subject=subject, file=self._lines.name, line=self.number)

    def _error(self, code: Code, what: str, mend: str = "") -> LineError:
        return LineError(code, what, mend, file=self._lines.name, line=self.number)


def _cell(text: str) -> Any:
    """Raises CodecError for a number that is too large."""
    if _number(text) or text in {"true", "false"}:
        return decode_json(text.encode())
    return text or None


def format_of(path: str, given: str | None) -> str:
    """`jsonl`, `csv` or `mcap`, by the suffix where it is not given. Raises InputError."""
    suffix = os.path.splitext(path)[1].lower()
    if given or suffix in {".csv", ".mcap"}:
        return given or suffix[1:]
    if path != "-" and not path.startswith("/dev/") and suffix not in {".jsonl", ".ndjson", ".json"}:
        raise InputError(
            "unknown_format", "say what it is with --format jsonl, csv or mcap", subject="--format", file=path
        )
    return "jsonl"
