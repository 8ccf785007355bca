"""Shimekiri itself: an agent on this machine, started, planned and fed as a user does it.

`python -m infra.peers.ours FOLDER` plans, starts the agent, deploys, and stops it when it is ended. With `feed` it is
the feeder: a Source and a Sink for each stream.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from infra.peers.feeder import START_LIMIT_S, Received, feed, say
from infra.peers.lines import Setup
from infra.peers.workload import MS, US, Stream, Workload
from node_agent.sdk import Sink, Source

BIN = Path(sys.executable).parent
OPERATORS = Path(__file__).parent / "operators.py"
ADDRESSES, DEPLOYED, COUNTED = "addresses.json", "deployed", "counted.json"
TOLERANCE_MS = 20  # what comes while a long instance runs is read at once after it
MARGIN, LEAST_COST_US = 1.1, 100  # a declared cost is the worst of a call
CLUSTER = """shimekiri: 1
nodes: {a: {address: "127.0.0.1:0"}}
operators: operators.json
"""


def query(workload: Workload) -> str:
    """Sources as they are fed: periodic, with jitter. What is too late for its deadline may be left out."""
    sources, operators, outputs = [], [], []
    for stream in workload.streams:
        sources.append(f"  {stream.name}: {{at: a, type: json, {_arrival(stream)}}}")
        before = stream.name
        for stage in range(workload.stages):
            cost_us = max(LEAST_COST_US, round(stream.cost_ns * MARGIN / US)) if stage == 0 else LEAST_COST_US
            name = f"{stream.name}_{stage}"
            operators.append(f"  {name}: {{run: peers.work, in: {before}, cost: {cost_us} us, on_late: drop}}")
            before = name
        outputs.append(f"  {stream.name}_out: {{from: {before}, at: a, deadline: {stream.deadline_ns // MS} ms}}")
    parts = ("sources:", *sources), ("operators:", *operators), ("outputs:", *outputs)
    return "\n".join(["shimekiri: 1", "query: peers", *(line for part in parts for line in part)]) + "\n"


def _arrival(stream: Stream) -> str:
    span = f"{{period: {stream.period_ns // US} us, late: {stream.jitter_ns // US} us}}"
    return f"arrival: {{jcp: {span}}}, tolerance: {TOLERANCE_MS} ms"


def main(setup: Setup) -> None:
    """Until the process is ended."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    folder = setup.folder
    (folder / "query.yaml").write_text(query(setup.workload))
    (folder / "cluster.yaml").write_text(CLUSTER)
    listed = subprocess.run(
        [BIN / "node-agent", "operators", "--operators", OPERATORS, "--json"], capture_output=True, check=True
    )
    (folder / "operators.json").write_bytes(listed.stdout)
    _coordinator(folder, "plan", "query.yaml", "cluster.yaml", "--best-effort")
    _coordinator(folder, "up", "cluster.yaml", "--any-port", "--detach", "--operators", str(OPERATORS))
    try:
        _coordinator(folder, "deploy", "plan.json")
        agents = json.loads((folder / ADDRESSES).read_text())["nodes"].values()
        (folder / COUNTED).write_text(json.dumps([each["pid"] for each in agents]))
        (folder / DEPLOYED).touch()
        while True:
            time.sleep(1)
    finally:
        _coordinator(folder, "down")


def _coordinator(folder: Path, *words: str) -> None:
    subprocess.run([BIN / "coordinator", *words], cwd=folder, check=True)


class Clients:
    """The transport of a feeder with a Source and a Sink, and a thread for each of them."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._waiting: dict[str, SimpleQueue[dict[str, Any]]] = {name: SimpleQueue() for name in setup.ports}
        say("listening")

    def open(self, received: Received) -> None:
        """As soon as the plan is deployed."""
        until_s = time.monotonic() + START_LIMIT_S
        while not (self._setup.folder / DEPLOYED).exists():
            if time.monotonic() > until_s:
                raise SystemExit("nothing was deployed")
            time.sleep(0.1)
        node = json.loads((self._setup.folder / ADDRESSES).read_text())["nodes"]["a"]
        for name in self._setup.ports:
            Thread(target=_take, args=(Sink(node["data"], f"{name}_out"), received), daemon=True).start()
            Thread(target=_put, args=(Source(node["data"], name), self._waiting[name]), daemon=True).start()

    def send(self, item: dict[str, Any]) -> None:
        """By the thread of its source."""
        self._waiting[item["stream"]].put(item)


def _take(results: Sink, received: Received) -> None:
    for result in results:
        received(result.value["stream"], result.value["seq"], time.monotonic_ns())


def _put(source: Source, waiting: SimpleQueue[dict[str, Any]]) -> None:
    """`send` waits until the agent has the tuple; what came meanwhile goes as one burst."""
    while True:
        burst = [waiting.get()]
        while not waiting.empty():
            burst.append(waiting.get())
        at_ns = time.monotonic_ns()
        source.send_aged([(item, max(0, at_ns - item["origin_ns"]) / MS) for item in burst])


if __name__ == "__main__":
    given = Setup.read(sys.argv[1])
    if "feed" in sys.argv[2:]:
        feed(given, Clients(given))
    else:
        main(given)
