"""`node-agent feed` as processes, one per source: watched, counted, ended in order."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coordinator import signals
from coordinator.fleet.addresses import AgentAddress
from coordinator.local_run.files import Feed

LOOK_S = 0.1
END_S = 10.0  # a feed waits for an answer for 5 s
MOST_SAID = 3

Watch = Callable[[], str]
"""Asked again and again: why there is no point in going on, or nothing."""


@dataclass
class FeedProcess:
    """What became of one feed. said: its complaints, a line each; code: of its process, None while it runs."""

    feed: Feed
    process: subprocess.Popen[bytes]
    log: Path
    counts: dict[str, Any] = field(default_factory=dict)
    code: int | None = None
    seconds: float = 0.0
    _rest: bytes = b""

    @property
    def sent(self) -> int:
        """Tuples that left, whether or not they were admitted."""
        return int(self.counts.get("sent", 0))

    @property
    def admitted(self) -> int:
        """Tuples that the node took."""
        return int(self.counts.get("admitted", 0))

    @property
    def refused(self) -> dict[str, int]:
        """Tuples that the node did not take, by reason."""
        return dict(self.counts.get("refused", {}))

    @property
    def said(self) -> list[str]:
        """Its last words on stderr, without its name."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line.removeprefix("node-agent feed: ") for line in lines[-MOST_SAID:]]

    def read(self) -> bool:
        """Take what it has written; False at its end."""
        assert self.process.stdout is not None
        data = os.read(self.process.stdout.fileno(), 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            with suppress(ValueError):
                self.counts = json.loads(line)
        return bool(data)

    def document(self) -> dict[str, Any]:
        """For --json."""
        return {
            "source": self.feed.source,
            "file": str(self.feed.path),
            "pace": self.feed.pace.wording,
            "sent": self.sent,
            "admitted": self.admitted,
            "refused": self.refused,
            "bad": self.counts.get("bad", 0),
            "exit_code": self.code,
            "said": self.said,
        }


class InputFeeder:
    """Feeds that run. Use it in a `with` statement: none is left behind."""

    def __init__(
        self,
        feeds: Sequence[Feed],
        nodes: dict[str, AgentAddress],
        at: dict[str, str],
        operators: Sequence[Path],
        logs: Path,
        repeat: bool,
    ) -> None:
        self.feeds: list[FeedProcess] = []
        self._selector = selectors.DefaultSelector()
        self._began = time.monotonic()
        try:
            for feed in feeds:
                with signals.held():  # else a signal as it starts would leave a feed that nobody ends
                    self._start(feed, nodes[at[feed.source]], operators, logs, repeat)
        except BaseException:
            self.__exit__()
            raise

    def _start(self, feed: Feed, node: AgentAddress, operators: Sequence[Path], logs: Path, repeat: bool) -> None:
        again = ("--repeat",) if repeat and feed.path.is_file() else ()
        command = [
            *(
                sys.executable,
                "-m",
                "node_agent",
                "feed",
                feed.source,
                str(feed.path),
                "--to",
                node.data,
                "--json",
                "--outage",
                "5",
            ),
            *(*feed.pace.options, *feed.options, *again),
            *(word for file in operators for word in ("--operators", str(file))),
        ]
        log = logs / f"feed-{feed.source}.log"
        with log.open("wb") as said:
            # A session of its own: Ctrl-C reaches this command, which then ends the feeds in order.
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, start_new_session=True
            )
        fed = FeedProcess(feed, process, log)
        self.feeds.append(fed)
        assert process.stdout is not None
        self._selector.register(process.stdout, selectors.EVENT_READ, fed)

    def __enter__(self) -> InputFeeder:
        return self

    def __exit__(self, *_: object) -> None:
        for fed in self.feeds:
            if fed.process.poll() is None:
                fed.process.kill()
            fed.code = fed.process.wait()
            if fed.process.stdout is not None:
                fed.process.stdout.close()
        self._selector.close()

    def wait(self, seconds: float | None, watch: Watch, progress: Callable[[str], None]) -> str:
        """Until all have ended, `seconds` are over (None: never), or there is no point in going on: then why. Where
        there are none the time alone counts."""
        end = None if seconds is None else self._began + seconds
        while self._selector.get_map() or (end is not None and not self.feeds):
            if why := watch():
                return why
            if end is not None and time.monotonic() >= end:
                break
            self._read(LOOK_S)
            progress(self.progress_text())
        return ""

    def end(self) -> None:
        """As by Ctrl-C: what has been sent is answered and counted."""
        for fed in self.feeds:
            if fed.process.poll() is None:
                fed.process.send_signal(signal.SIGINT)
        limit = time.monotonic() + END_S
        while self._selector.get_map() and time.monotonic() < limit:
            self._read(LOOK_S)

    def progress_text(self) -> str:
        """How far they are, in a few words."""
        done = ", ".join(f"{fed.feed.source} {fed.admitted} of {fed.sent}" for fed in self.feeds)
        return f"{time.monotonic() - self._began:.0f} s{': admitted ' if done else ''}{done}"

    def _read(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            fed: FeedProcess = key.data
            if not fed.read():
                self._selector.unregister(key.fileobj)
                fed.code = fed.process.wait()
                fed.seconds = time.monotonic() - self._began
