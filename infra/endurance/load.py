"""The load: three paced sources in threads of their own, which remember what was admitted."""

from __future__ import annotations

import threading
import time
from array import array
from dataclasses import dataclass, field

from node_agent.sdk import Admitted, Source

EVERY_S = 0.02  # a burst
MOST_AT_ONCE = 500


@dataclass
class Feed:
    """One source. rate: tuples a second at load 1. `seqs` and `values`: of what was admitted, in step."""

    name: str
    address: str
    rate: float
    factor: float = 0.0
    offered: int = 0
    refused: int = 0
    behind_s: float = 0.0  # the longest time between two bursts
    seqs: array[int] = field(default_factory=lambda: array("q"))
    values: array[int] = field(default_factory=lambda: array("q"))
    error: str = ""
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Send from now on, at `factor` times the rate; it may be changed at any time."""
        self._thread = threading.Thread(target=self._run, name=f"feed {self.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Send no more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(30)

    def _run(self) -> None:
        try:
            with Source(self.address, self.name, timeout=20.0) as source:
                self._send(source)
        except Exception as error:  # told at the end: a run without its load proves nothing
            self.error = f"{type(error).__name__}: {error}"

    def _send(self, source: Source) -> None:
        """Open loop: what could not be sent while answers were awaited is sent with the next burst."""
        due = last = time.monotonic()
        owed = 0.0
        while not self._stop.is_set():
            due = max(due + EVERY_S, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))
            now = time.monotonic()
            owed += self.rate * self.factor * (now - last)
            self.behind_s, last = max(self.behind_s, now - last), now
            count, owed = int(owed), owed % 1
            for first in range(0, count, MOST_AT_ONCE):
                self._burst(source, min(MOST_AT_ONCE, count - first))

    def _burst(self, source: Source, count: int) -> None:
        values = [(self.offered + i) * 7919 % 1000 for i in range(count)]
        for value, answer in zip(values, source.send_many({"x": v, "worth": v} for v in values), strict=True):
            if isinstance(answer, Admitted):
                self.seqs.append(answer.seq)
                self.values.append(value)
            else:
                self.refused += 1
        self.offered += count
