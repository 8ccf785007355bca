"""MQTT 5, by paho-mqtt.

qos 0: what is published while this end or the broker is away is lost, and nobody counts it. qos 1: the broker keeps a
session for this node and hands over what came meanwhile; a message is acknowledged when the agent has answered, so a
few may come twice after a connection was lost. A broker that forgets its sessions as it restarts says so, which is told
as a gap. Retained messages are not read: they are old, and say nothing of when they were published.
"""

import ssl
import threading
import time
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from node_agent.connectors.connector_ports import (
    ConnectionLostError,
    Connector,
    Credentials,
    Message,
    NotConnectableError,
)
from node_agent.connectors.credentials import FILE
from node_agent.link.limits import MAX_MESSAGE_BYTES
from protos.connectors import broker

_UNACKNOWLEDGED = 16  # messages that the broker sends ahead
_HEAD_BYTES = 1 << 16  # topic and properties of a message
_SESSION_S = 3600  # for which the broker keeps what comes while this end is away
_ALIVE_S = 15
_CONNECT_S, _ACK_S = 5.0, 5.0
_LOOK_S = 0.25  # for the word that it is to end
_STAMP = "stamp"  # user property: nanoseconds since 1970
_TAKEN_OVER, _NOT_TRUSTED, _SAYS_NOTHING = 0x8E, (0x86, 0x87), (0x00, 0x80)  # reasons


def reader(connector: Connector, credentials: Credentials) -> "MqttReader":
    """Subscribed. Raises ConnectionLostError, NotConnectableError."""
    return MqttReader(connector, credentials)


def writer(connector: Connector, credentials: Credentials) -> "MqttWriter":
    """Connected. Raises ConnectionLostError, NotConnectableError."""
    return MqttWriter(connector, credentials)


class _Session:
    """A connection to a broker. present: the broker kept the session of an earlier one; lost: why it is over."""

    def __init__(self, connector: Connector, credentials: Credentials, keeps: bool) -> None:
        self._broker = broker(connector.url)
        self._name = connector.client
        self.lost = ""
        self.present = False
        self._greeted = False
        self.client = Client(
            CallbackAPIVersion.VERSION2, self._name, protocol=MQTTProtocolVersion.MQTTv5, manual_ack=True,
            reconnect_on_failure=False,
        )  # fmt: skip
        self._identify(credentials)
        self.client.on_connect = self._on_connect
        self.client.on_disconnect = self._on_disconnect
        self._keeps = keeps

    def open(self) -> None:
        """Connect, and wait for the broker's greeting. Raises ConnectionLostError."""
        asked = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        asked.ReceiveMaximum = _UNACKNOWLEDGED
        asked.MaximumPacketSize = MAX_MESSAGE_BYTES + _HEAD_BYTES  # the broker drops what no stream carries
        asked.SessionExpiryInterval = _SESSION_S if self._keeps else 0
        self.client.connect_timeout = _CONNECT_S
        try:
            self.client.connect(
                self._broker.host, self._broker.port, _ALIVE_S, clean_start=not self._keeps, properties=asked
            )
        except (OSError, ValueError) as error:
            raise ConnectionLostError(_reason(error)) from None
        self.wait(lambda: self._greeted, "greeting")

    def wait(self, until: Any, what: str) -> None:
        """Let the client work until that is so. Raises ConnectionLostError where the broker does not answer."""
        until_s = time.monotonic() + _CONNECT_S
        while not until():
            code = self.client.loop(_LOOK_S)
            if self.lost or code != MQTTErrorCode.MQTT_ERR_SUCCESS:
                raise ConnectionLostError(self.lost or "the broker closed the connection")
            if time.monotonic() > until_s and not until():
                raise ConnectionLostError(f"no {what} from the broker within {_CONNECT_S:g} s")

    def _identify(self, given: Credentials) -> None:
        if given.username:
            self.client.username_pw_set(given.username, given.password)
        if not self._broker.tls:
            return
        try:
            self.client.tls_set(
                None if given.ca is None else str(given.ca),
                None if given.certificate is None else str(given.certificate),
                None if given.key is None else str(given.key),
            )
        except (OSError, ssl.SSLError, ValueError) as error:
            text = f"the certificates for {self._broker.address} cannot be used ({_reason(error)})"
            raise NotConnectableError("not_usable", text, f"they are named in {FILE}", subject=FILE) from None

    def _on_connect(self, client: Client, _: object, flags: Any, reason: ReasonCode, properties: object) -> None:
        if reason.is_failure:
            self.lost = f"the broker refuses it: {reason}"
            if reason.value in _NOT_TRUSTED:
                self.lost += f"; name and password for {self._broker.address} stand in {FILE} of the agent's --state"
            return
        self.present, self._greeted = bool(flags.session_present), True

    def _on_disconnect(self, client: Client, _: object, flags: Any, reason: ReasonCode, properties: object) -> None:
        if self.lost:
            return
        if reason.value == _TAKEN_OVER:
            self.lost = f"another client of this broker calls itself {self._name!r} as well: another cluster's node?"
        else:
            said = f": {reason}" if reason.value not in _SAYS_NOTHING else ""
            self.lost = f"the broker closed the connection{said}"


class MqttReader:
    """`Reader` of one topic, or of those that a filter names."""

    def __init__(self, connector: Connector, credentials: Credentials) -> None:
        self._qos = connector.qos
        self._closed = False
        self._came: deque[MQTTMessage] = deque()
        self._subscribed: list[ReasonCode] = []
        topic, keeps = broker(connector.url).topic, connector.qos > 0
        if keeps:  # a session has the subscriptions of before as well
            connector = replace(connector, client=f"{connector.client}-{zlib.crc32(topic.encode()):08x}")
        self._session = _Session(connector, credentials, keeps)
        client = self._session.client
        client.on_message = lambda client, _, message: self._came.append(message)
        client.on_subscribe = lambda client, _, mid, reasons, properties: self._subscribed.extend(reasons)
        try:
            self._session.open()
            options = SubscribeOptions(qos=connector.qos, retainHandling=SubscribeOptions.RETAIN_DO_NOT_SEND)
            client.subscribe(topic, options=options)
            self._session.wait(lambda: self._subscribed, "answer to a subscription")
            if self._subscribed[0].is_failure:
                raise ConnectionLostError(f"the broker refuses the subscription: {self._subscribed[0]}")
        except ConnectionLostError:
            self.close()
            self._hang_up()
            raise

    @property
    def resumed(self) -> bool:
        """Only with qos 1, and a broker that has not forgotten."""
        return self._session.present

    def messages(self) -> Iterator[Message]:
        """Each is acknowledged when the next one is asked for."""
        client = self._session.client
        try:
            while not self._closed:
                while self._came:
                    message = self._came.popleft()
                    yield Message(bytes(message.payload), _topic(message), _stamp(message))
                    if message.qos:
                        client.ack(message.mid, message.qos)
                code = client.loop(_LOOK_S)
                if (code != MQTTErrorCode.MQTT_ERR_SUCCESS or self._session.lost) and not self._came:
                    raise ConnectionLostError(self._session.lost or "the broker closed the connection")
        finally:
            self._hang_up()

    def close(self) -> None:
        """Within a moment."""
        self._closed = True

    def _hang_up(self) -> None:
        self._session.client.disconnect()


class MqttWriter:
    """`Writer` to one topic. With qos 0 `put` returns when the system has the message, with qos 1 when the broker
    has."""

    def __init__(self, connector: Connector, credentials: Credentials) -> None:
        self._topic, self._qos = broker(connector.url).topic, connector.qos
        self._session = _Session(connector, credentials, keeps=False)
        self._moved = threading.Event()
        self._session.open()
        client = self._session.client
        client.on_publish = lambda *_: self._moved.set()
        client.loop_start()  # answers the broker while there is nothing to put

    def put(self, message: Message) -> None:
        """Raises ConnectionLostError."""
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        if message.stamp_ns is not None:
            properties.UserProperty = (_STAMP, str(message.stamp_ns))
        client = self._session.client
        self.look()
        self._moved.clear()
        sent = client.publish(self._topic, message.payload, self._qos, properties=properties)
        looks = int(_ACK_S / _LOOK_S)
        while not _published(sent):
            self._moved.wait(_LOOK_S)
            self._moved.clear()
            looks -= 1
            self.look()
            if not looks:
                raise ConnectionLostError(f"the broker does not take it over within {_ACK_S:g} s")

    def look(self) -> None:
        """Raises ConnectionLostError."""
        if not self._session.client.is_connected():
            raise ConnectionLostError(self._session.lost or "the broker closed the connection")

    def close(self) -> None:
        """Twice is allowed."""
        self._session.client.disconnect()
        self._session.client.loop_stop()


def _published(sent: Any) -> bool:
    try:
        return bool(sent.is_published())
    except (ValueError, RuntimeError) as error:
        raise ConnectionLostError(str(error)) from None


def _topic(message: MQTTMessage) -> str:
    try:
        return message.topic
    except UnicodeDecodeError:
        return "a topic that is no UTF-8"


def _stamp(message: MQTTMessage) -> int | None:
    """Of the user property that a writer here sends along."""
    for name, value in getattr(message.properties, "UserProperty", ()):
        if name == _STAMP and value.isascii() and value.isdigit() and len(value) < 20:
            return int(value)
    return None


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
