"""The places outside that a source reads from and an output goes to: which kinds there are, and how each is written."""

import re
from typing import NamedTuple
from urllib.parse import urlsplit

KINDS = ("mqtt", "zenoh", "rosbag", "mcap")
ENCODINGS = ("json", "cdr")  # of messages, beside the stream's own
MOST_BYTES = 1024  # of a place, a topic, a schema or a stamp
MOST_QOS = 1
TRANSPORT = "transport"  # as a stamp: the message's own, which its transport carries
PORTS = {"mqtt": 1883, "mqtts": 8883}
MOST_PORT = 65_535
_ROUTER = re.compile(r"(?:tcp|tls)/(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:]+\]):([0-9]{1,5})").fullmatch
_NO_ROUTER = f"is not written tcp/host:port or tls/host:port, with a port from 1 to {MOST_PORT}"
_PART = re.compile(r"\*\*?|(?!\$\*$)(?:[^*$#?]|\$\*(?!\$\*))+").fullmatch  # of a key


class Broker(NamedTuple):
    """Where an MQTT topic is. tls: the broker is to prove who it is."""

    tls: bool
    host: str
    port: int
    topic: str

    @property
    def address(self) -> str:
        """As a node's file of credentials calls it: mqtts://host:port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"mqtt{'s' if self.tls else ''}://{host}:{self.port}"


def broker(url: str) -> Broker:
    """mqtt://host/topic, mqtts://host:port/topic. Raises ValueError with what is wrong with it."""
    try:
        found = urlsplit(url, allow_fragments=False)
        port = found.port
    except ValueError as error:
        raise ValueError(f"is no address ({error})") from None
    if found.scheme not in PORTS or not found.hostname:
        raise ValueError("is not written mqtt://host/topic")
    if found.username is not None or found.password is not None:
        raise ValueError("has a name or a password, which plans do not carry: nodes have them in a file of their own")
    if port == 0:
        raise ValueError("has port 0, where nothing listens")
    topic = found.path.removeprefix("/") + (f"?{found.query}" if found.query else "")
    if not topic:
        raise ValueError("names no topic")
    if "\0" in topic or len(topic.encode()) > MOST_BYTES:
        raise ValueError("names no topic that MQTT has")
    return Broker(found.scheme == "mqtts", found.hostname, port or PORTS[found.scheme], topic)


def is_router(url: str) -> bool:
    """Whether it is the place of a router of zenoh, without options."""
    found = _ROUTER(url)
    return found is not None and 0 < int(found[1]) <= MOST_PORT


def wrong(kind: str, url: str, reads: bool) -> str:
    """What is wrong with a place of that kind; empty: nothing. reads: a source reads from it, else an output goes
    there."""
    if not url or len(url.encode()) > MOST_BYTES or not url.isprintable():
        return f"is empty, has more than {MOST_BYTES} bytes or characters that cannot be printed"
    if kind != "mqtt":
        return "" if kind != "zenoh" or is_router(url) else _NO_ROUTER
    try:
        topic = broker(url).topic
    except ValueError as error:
        return str(error)
    levels = topic.split("/")
    if not reads and ("+" in topic or "#" in topic):
        return "has a '+' or a '#', and results go to one topic"
    if any(sign in each != sign for each in levels for sign in "+#") or "#" in levels[:-1]:
        return "has a '+' beside other characters of its level, or a '#' that is not its end"
    return ""


def wrong_key(key: str, reads: bool) -> str:
    """What is wrong with a key of zenoh; empty: nothing. reads: a source reads all that it stands for, else results go
    there."""
    parts = key.split("/")
    if not all(parts):
        return "has a slash at an end, or two in a row"
    if not reads and "*" in key:
        return "has a '*', and results go to one key"
    if not all(_PART(part) for part in parts):
        return "has a '#' or a '?', or a '*' or a '$' that is neither a whole part ('*', '**') nor '$*' beside others"
    if "**/*" in key:
        return "has '**' before another '*', which zenoh writes as '**' or '*/**'"
    return ""
