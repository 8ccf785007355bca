"""Operators and sources of the sensors: each result says of which output it is and of which tuples it was made."""

from typing import Any

from node_agent.sdk import Tick, operator, source

LEAST_BYTES, MORE_BYTES = 70_000, 60_000


def drawn(number: int) -> bytes:
    """A large payload that says by itself whether it is whole."""
    size = LEAST_BYTES + number * 7919 % MORE_BYTES
    return number.to_bytes(8, "big") + bytes([number % 251]) * (size - 8)


def number_of(payload: bytes | None) -> int:
    """Of a payload: which one it is. -1: there is none; -2: it is not what it was."""
    if payload is None:
        return -1
    number = int.from_bytes(bytes(payload[:8]), "big")
    return number if bytes(payload) == drawn(number) else -2


@source("sensors.image", output="bytes")
class Image:
    """A large value at each tick, but for every fifth, and an error at every eleventh."""

    def __init__(self, every: int) -> None:
        self.every = every

    def __call__(self, *, tick: Tick) -> bytes | None:
        if tick.number % 11 == 10:
            raise OSError("no frame")
        return None if tick.number % 5 == 4 else drawn(tick.number)


@operator("sensors.together", inputs={"image": "bytes", "scan": "bytes"}, output="bytes")
def together(image: bytes | None, scan: bytes | None) -> bytes:
    """Both as one, with the length of the first before them."""
    first, second = bytes(image or b""), bytes(scan or b"")
    return len(first).to_bytes(8, "big") + first + second


@operator("sensors.look", inputs={"pair": "bytes"}, output="json")
def look(pair: bytes) -> Any:
    """Which ones."""
    data = bytes(pair)
    end = 8 + int.from_bytes(data[:8], "big")
    return {"of": "fused", "image": number_of(data[8:end] or None), "scan": number_of(data[end:] or None)}


@operator("sensors.attach", inputs={"value": "json"}, side={"image": "bytes"}, output="json")
def attach(value: Any, *, image: bytes | None) -> Any:
    """With the number of the latest image."""
    return {"of": "near", "n": value["n"], "image": number_of(image)}


@operator("sensors.beats", inputs={"first": "json", "second": "json"}, output="json")
def beats(first: Any, second: Any) -> Any:
    """The instants of two timers; None of one that did not come."""
    ticks = [None if each is None else each["planned_ns"] for each in (first, second)]
    return {"of": "beats", "planned_ns": ticks}


@operator("sensors.mark", inputs={"value": "json"}, output="json")
def mark(value: Any) -> Any:
    """Says where it was."""
    return {"of": "far", "n": value["n"]}
