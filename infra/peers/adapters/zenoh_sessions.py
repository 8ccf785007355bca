"""zenoh: a session that subscribes with callbacks and publishes what they give; the feeder is a session of its own.

Urgent keys have a higher priority than others. Every put is `express`, and waits rather than being dropped.
"""

import json
import sys
import time
from typing import Any

import zenoh

from infra.peers.burn import work
from infra.peers.feeder import Received, feed, say
from infra.peers.lines import HOST, Setup

PRIORITIES = (zenoh.Priority.REAL_TIME, zenoh.Priority.DATA, zenoh.Priority.BACKGROUND)


def _session(role: str, port: int) -> zenoh.Session:
    config = zenoh.Config()
    config.insert_json5("mode", '"peer"')
    config.insert_json5(f"{role}/endpoints", json.dumps([f"tcp/{HOST}:{port}"]))
    if role == "connect":
        config.insert_json5("listen/endpoints", "[]")
    config.insert_json5("scouting/multicast/enabled", "false")
    return zenoh.open(config)


def _publisher(session: zenoh.Session, key: str, rank: int) -> zenoh.Publisher:
    block = zenoh.CongestionControl.BLOCK
    return session.declare_publisher(key, congestion_control=block, priority=PRIORITIES[rank], express=True)


def _operator(session: zenoh.Session, stream: str, stage: int, rank: int) -> None:
    result = _publisher(session, f"{stream}/{stage + 1}", rank)

    def run(sample: zenoh.Sample) -> None:
        item = work(json.loads(sample.payload.to_bytes()))
        result.put(json.dumps(item).encode())

    session.declare_subscriber(f"{stream}/{stage}", run)


class Device:
    """The transport of a feeder that publishes and subscribes."""

    def __init__(self, setup: Setup) -> None:
        self._session, self._setup = _session("listen", setup.results), setup
        self._publishers = {name: _publisher(self._session, f"{name}/0", i) for i, name in enumerate(setup.ports)}
        say("listening")

    def open(self, received: Received) -> None:
        """Results from now on."""

        def take(sample: zenoh.Sample) -> None:
            item = json.loads(sample.payload.to_bytes())
            received(item["stream"], item["seq"], time.monotonic_ns())

        for name in self._setup.ports:
            self._session.declare_subscriber(f"{name}/{self._setup.workload.stages}", take)

    def send(self, item: dict[str, Any]) -> None:
        """Published under its stream's key."""
        self._publishers[item["stream"]].put(json.dumps(item).encode())


def main(setup: Setup) -> None:
    """Operators, until the process is ended."""
    session = _session("connect", setup.results)
    for rank, stream in enumerate(setup.ports):
        for stage in range(setup.workload.stages):
            _operator(session, stream, stage, rank)
    while True:
        time.sleep(1)


if __name__ == "__main__":
    given = Setup.read(sys.argv[1])
    if "feed" in sys.argv[2:]:
        feed(given, Device(given))
    else:
        main(given)
