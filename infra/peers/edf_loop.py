"""The floor: a heap by deadline and one thread that nothing interrupts. No framework. Standard library only.

`python -m infra.peers.edf_loop FOLDER [drop]`; drop: a tuple that would be late by its cost is left out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from heapq import heappop, heappush
from select import select
from typing import Any

from infra.peers.burn import work
from infra.peers.lines import Ready, Results, Setup


class EdfQueue:
    """What waits, by deadline, then by arrival. deadlines: ns by stream; drops: see above."""

    def __init__(self, deadlines: Mapping[str, int], drops: bool = False) -> None:
        self._deadlines, self._drops = deadlines, drops
        self._heap: list[tuple[int, int, dict[str, Any]]] = []
        self._number = 0

    def __len__(self) -> int:
        return len(self._heap)

    def offer(self, item: dict[str, Any]) -> None:
        """One that has come."""
        self._number += 1
        heappush(self._heap, (item["origin_ns"] + self._deadlines[item["stream"]], self._number, item))

    def next(self, at_ns: int) -> dict[str, Any] | None:
        """What runs now; None: nothing is left."""
        while self._heap:
            due_ns, _, item = heappop(self._heap)
            if not self._drops or at_ns + item["cost_ns"] <= due_ns:
                return item
        return None


def run(setup: Setup, drops: bool) -> None:
    """Until the feed is over."""
    queue = EdfQueue({each.name: each.deadline_ns for each in setup.workload.streams}, drops)
    inputs, results = [Ready(port) for port in setup.ports.values()], Results(setup.results)
    while True:
        readable, _, _ = select(inputs, [], [], 0 if len(queue) else None)
        for ready in readable:
            for item in ready.take():
                queue.offer(item)
        if (chosen := queue.next(time.monotonic_ns())) is not None:
            for _ in range(setup.workload.stages):
                chosen = work(chosen)
            results(chosen)


if __name__ == "__main__":
    with suppress(EOFError):
        run(Setup.read(sys.argv[1]), "drop" in sys.argv[2:])
