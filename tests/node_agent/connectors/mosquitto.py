"""A real MQTT broker on loopback, and a client that publishes and listens there as a device does."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from tests.node_agent.live import free_ports

PATH = f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin"
MISSING = "" if shutil.which("mosquitto", path=PATH) else "no mosquitto here (Debian: mosquitto)"
WAIT_S = 60


def until(holds: Callable[[], Any], what: str) -> Any:
    """The value once it is true."""
    end = time.monotonic() + WAIT_S
    while not (found := holds()):
        assert time.monotonic() < end, what
        time.sleep(0.02)
    return found


class Mosquitto:
    """The context starts it, unless `late`, and ends it. lines: of its configuration."""

    def __init__(self, folder: Path, *lines: str, late: bool = False) -> None:
        (self.port,) = free_ports(1)
        self.url = f"mqtt://127.0.0.1:{self.port}"
        self._conf, self._late = folder / "mosquitto.conf", late
        root = ["user root"] if os.geteuid() == 0 else []
        given = lines or ("allow_anonymous true",)
        self._conf.write_text("\n".join([f"listener {self.port} 127.0.0.1", *root, *given, ""]))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if not self._late:
            self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Listens when this returns."""
        with (self._conf.parent / "mosquitto.log").open("ab") as log:
            program = shutil.which("mosquitto", path=PATH)
            assert program
            self._process = subprocess.Popen([program, "-c", str(self._conf)], stdout=log, stderr=log)
        until(self._listens, f"mosquitto does not listen: {(self._conf.parent / 'mosquitto.log').read_text()}")

    def stop(self) -> None:
        """In order, as at a restart of its machine."""
        if self._process is not None:
            self.go_on()
            self._process.terminate()
            self._process.wait(WAIT_S)
            self._process = None

    def pause(self) -> None:
        """It is connected to, and answers nobody until `go_on`."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Answers again."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _listens(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False


class Device:
    """A client of the broker. got: what came of `topic`, as JSON with its user properties."""

    def __init__(self, broker: Mosquitto, topic: str = "") -> None:
        self.got: list[tuple[Any, dict[str, str]]] = []
        self._client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
        self._subscribed = not topic
        self._client.on_message = lambda client, _, message: self.got.append(
            (json.loads(message.payload), dict(getattr(message.properties, "UserProperty", ())))
        )
        self._client.on_subscribe = lambda *_: setattr(self, "_subscribed", True)
        self._client.connect("127.0.0.1", broker.port)
        self._client.loop_start()
        if topic:
            until(self._client.is_connected, "no connection to the broker")
            self._client.subscribe(topic, 1)
            until(lambda: self._subscribed, "no subscription")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def publish(self, topic: str, value: Any, qos: int = 1) -> None:
        """Returns when the broker has it. value: bytes, or what becomes JSON."""
        data = value if isinstance(value, bytes) else json.dumps(value)
        self._client.publish(topic, data, qos).wait_for_publish(WAIT_S)
