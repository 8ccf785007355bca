"""The log of an agent: lines on stderr, in words, or with `--log-json` one JSON object each.

    2026-01-31T12:00:00.250Z a runtime warning: operator O1 raised; its tuple is lost
    {"at":"2026-01-31T12:00:00.250Z","node":"a","part":"runtime","level":"warning","event":"operator_error",
     "text":"operator O1 raised; its tuple is lost","fields":{"operator":"O1"}}

A line never waits for its reader: what a full pipe does not take at once is dropped, counted, and told when there is
room. The same kind of thing is told five times at once and then once a minute, with how many were left out. Nothing
here is for tuples: counters and the trace are.
"""

import json
import os
import select
import socket
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from node_agent.host.clock import now_ns

LINE_BYTES = select.PIPE_BUF  # a pipe takes so many at once, or none
FEW = 5  # of one kind, at once
AGAIN_NS = 60_000_000_000  # and then one more
MOST_KINDS = 1024  # that are told apart
INFO, WARNING, ERROR = "info", "warning", "error"

Write = Callable[[bytes], int]


class Stderr:
    """A descriptor that is written to without ever waiting.

    Its own flags are left alone: they are those of every process that shares it, a terminal's shell for instance.
    """

    def __init__(self, descriptor: int = 2) -> None:
        self._descriptor = descriptor
        self._write: Write | None = None
        self._torn = False  # the line before ended early

    def write(self, line: bytes) -> bool:
        """False: nothing of it was taken."""
        if self._descriptor == 2 and sys.stderr is not sys.__stderr__ and sys.stderr is not None:
            sys.stderr.write(line.decode())  # a test, or a program that took it over
            return True
        data = b"\n" + line if self._torn else line
        try:
            if self._write is None:
                self._write = _writer(self._descriptor)
            taken = self._write(data)
        except OSError:
            return False
        self._torn = 0 < taken < len(data)
        return taken > 0


class Log:
    """Lines of one part of an agent: `supervisor`, `runtime` or `control`. node: in a runtime, its place's name."""

    def __init__(self, node: str, part: str, as_json: bool = False, to: Stderr | None = None) -> None:
        self.node, self.part, self.as_json = node, part, as_json
        self.dropped = 0  # lines that nobody took, of all time
        self._untold = 0  # of them, since one was taken
        self._to = to or Stderr()
        self._kinds: dict[str, list[int]] = {}  # of each: told so far, when another may be, left out since

    def say(self, event: str, text: str, level: str = INFO, kind: str = "", **fields: object) -> bool:
        """One line. event: what happened, the same words each time. kind: what is told only now and then.

        False: it was left out, or nobody took it.
        """
        left_out = self._left_out(kind, now_ns()) if kind else 0
        if left_out < 0:
            return False
        if left_out:
            text = f"{text} ({left_out} more of these since)"
        lost = f"{self._untold} lines were dropped: nobody read them"
        if self._untold and self._put("log_lines_dropped", lost, WARNING):
            self._untold = 0
        if self._put(event, text, level, **fields):
            return True
        self.dropped += 1
        self._untold += 1
        return False

    def _put(self, event: str, text: str, level: str, **fields: object) -> bool:
        line = self._line(event, text, level, fields)
        while len(line) > LINE_BYTES:
            if text:
                text = text[: max(len(text) * LINE_BYTES // len(line) - 8, 0)]
            else:
                fields = {}
            line = self._line(event, text and text + " ...", level, fields)
        return self._to.write(line)

    def _line(self, event: str, text: str, level: str, fields: dict[str, object]) -> bytes:
        at = _instant(time.time_ns())
        if self.as_json:
            found = {"at": at, "node": self.node, "part": self.part, "level": level, "event": event, "text": text}
            return json.dumps(found | {"fields": fields}, separators=(",", ":"), default=str).encode() + b"\n"
        of = "" if level == INFO else f" {level}"
        return f"{at} {self.node} {self.part}{of}: {_plain(text)}\n".encode(errors="backslashreplace")

    def _left_out(self, kind: str, at_ns: int) -> int:
        """How many of that kind were left out before this one; -1: so is this one."""
        known = self._kinds.get(kind)
        if known is None:
            if len(self._kinds) >= MOST_KINDS:
                self._kinds.clear()
            known = self._kinds[kind] = [0, 0, 0]
        reported, due_ns, left_out = known
        if reported >= FEW and at_ns < due_ns:
            known[2] += 1
            return -1
        known[:] = reported + 1, at_ns + AGAIN_NS, 0
        return left_out


def _instant(at_ns: int) -> str:
    """RFC 3339, in UTC, with milliseconds."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at_ns // 10**9))}.{at_ns // 10**6 % 1000:03d}Z"


def _plain(text: str) -> str:
    """Further lines indented, so that no text from outside looks like a line of its own; no control characters."""
    escaped = "".join(each if each.isprintable() or each == "\n" else f"\\x{ord(each):02x}" for each in text)
    return escaped.replace("\n", "\n    ")


def _writer(descriptor: int) -> Write:
    """What writes there, or says with BlockingIOError that it cannot now."""
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISSOCK(kind):  # the journal of systemd
        end = socket.socket(fileno=os.dup(descriptor))
        return lambda data: end.send(data, socket.MSG_DONTWAIT)
    if stat.S_ISFIFO(kind) or stat.S_ISCHR(kind):
        with suppress(OSError):  # a terminal that belongs to another user
            again = os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            return lambda data: os.write(again, data)
        return lambda data: os.write(descriptor, data) if _ready(descriptor) else 0
    return lambda data: os.write(descriptor, data)  # a file has no reader to wait for


def _ready(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(0))
