"""The client: one source and one sink, in a process of their own at the desk, which write down what they see.

    python -m infra.chaos.traffic FOLDER --source HOST:PORT --sink HOST:PORT --tls DIR

`fed.jsonl` has a line for each tuple: its number, the instants before and after `send`, and the answer ([epoch, seq] of
an admitted one, why it was refused, or null: not known). `got.jsonl` has one for each result: number, lineage, the
instants of its delivery and of its reading. On stdin `pause` ends the feed after the tuple that is under way, `go`
begins it again; `fed.jsonl` gets {"paused": N} once nothing more is sent.
"""

import argparse
import json
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from node_agent.host.clock import now_ns
from node_agent.sdk import Admitted, AgentError, Sink, Source

EVERY_S = 0.04
PATIENCE_S = 5.0  # for an answer
AGAIN_S = 0.1  # after a connection that could not be made


class Feed:
    """Sends numbers while `go` is set."""

    def __init__(self, address: str, tls: Path, out: TextIO) -> None:
        self.go = threading.Event()
        self._address, self._tls, self._out = address, tls, out
        self._source: Source | None = None
        self._number = 0

    def run(self) -> None:
        """For ever."""
        while True:
            if not self.go.is_set():
                _write(self._out, paused=self._number)
                self.go.wait()
            due = time.monotonic() + EVERY_S
            source = self._connected()
            if source is None:
                continue
            self._number += 1
            at_ns = now_ns()
            answer = self._answer(source)
            _write(self._out, n=self._number, at=at_ns, end=now_ns(), answer=answer)
            time.sleep(max(0.0, due - time.monotonic()))

    def _connected(self) -> Source | None:
        """Before a tuple originates: the time that a connection takes is none of its latency."""
        if self._source is None:
            try:
                self._source = Source(self._address, "s", timeout=PATIENCE_S, tls=self._tls)
            except AgentError:
                time.sleep(AGAIN_S)
        return self._source

    def _answer(self, source: Source) -> list[int] | str | None:
        """Of one tuple. None: it may have been admitted, or never have left."""
        try:
            answer = source.send({"n": self._number})
        except AgentError:
            source.close()
            self._source = None
            return None
        return [answer.epoch, answer.seq] if isinstance(answer, Admitted) else answer.why


def listen(address: str, tls: Path, out: TextIO) -> None:
    """For ever: what is delivered while there is no connection is not seen."""
    while True:
        try:
            with Sink(address, "out", connect_timeout=PATIENCE_S, tls=tls) as sink:
                for result in sink:
                    _write(out, n=result.value["n"], lineage=result.lineage, at=result.at_ns, got=now_ns())
        except AgentError:
            time.sleep(AGAIN_S)


def _write(out: TextIO, **line: object) -> None:
    out.write(json.dumps(line) + "\n")
    out.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Until stdin ends."""
    options = argparse.ArgumentParser(prog="traffic", description=(__doc__ or "").partition("\n")[0])
    options.add_argument("folder", type=Path)
    options.add_argument("--source", required=True)
    options.add_argument("--sink", required=True)
    options.add_argument("--tls", type=Path, required=True)
    given = options.parse_args(arguments)
    with (given.folder / "fed.jsonl").open("a") as fed, (given.folder / "got.jsonl").open("a") as got:
        feed = Feed(given.source, given.tls, fed)
        threading.Thread(target=listen, args=(given.sink, given.tls, got), daemon=True).start()
        threading.Thread(target=feed.run, daemon=True).start()
        for line in sys.stdin:
            if line.strip() == "go":
                feed.go.set()
            else:
                feed.go.clear()
    return 0


if __name__ == "__main__":
    sys.exit(main())
