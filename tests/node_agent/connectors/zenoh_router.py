"""A router of zenoh, from its wheel, as a process of its own."""

import json
import os
import signal
import subprocess
import sys
from types import TracebackType
from typing import Self

import zenoh


class ZenohRouter:
    """On a loopback port, which stays the same when it starts again. more: of its configuration."""

    def __init__(self, port: int, protocol: str = "tcp", **more: object) -> None:
        self.endpoint, self._more = f"{protocol}/127.0.0.1:{port}", more
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "tests.node_agent.connectors.zenoh_router",
            self.endpoint,
            json.dumps(self._more),
        ]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"up\n"

    def kill(self) -> None:
        assert self._process is not None
        with self._process as process:
            process.kill()

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)  # all of its threads stand

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


def configuration(mode: str, endpoint: str) -> zenoh.Config:
    """Of a session that neither looks for others nor lets itself be found."""
    config = zenoh.Config()
    config.insert_json5("mode", json.dumps(mode))
    config.insert_json5(f"{'listen' if mode == 'router' else 'connect'}/endpoints", json.dumps([endpoint]))
    for each in ("multicast", "gossip"):
        config.insert_json5(f"scouting/{each}/enabled", "false")
    return config


if __name__ == "__main__":
    given = configuration("router", sys.argv[1])
    for key, value in json.loads(sys.argv[2]).items():
        given.insert_json5(key, json.dumps(value))
    session = zenoh.open(given)
    print("up", flush=True)
    sys.stdin.read()
    session.close()
