"""Durations, sizes and rates as a user writes them, `30 ms`, `256 MiB`, `100 Mbit/s`, turned into integers.

These are ns, bytes and bit/s.

Every quantity carries its unit: a bare number is refused, because a deadline that is read in the wrong unit is wrong
by a thousand. Decimal fractions are exact (`0.1 ms` is 100000 ns); what is finer than a nanosecond, byte or bit is
refused.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

from coordinator.errors import MistakeError

DURATIONS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
RATES = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9}
LARGEST = 2**62  # every quantity has to fit into a signed 64-bit integer, with room for sums
_QUANTITY = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([^\d\s.+-][^\s]*)\s*")


def parse(text: object, units: dict[str, int], what: str, example: str) -> int:
    """`text` in the smallest of `units`. Raises ValueError with what is wrong and how to write it."""
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        raise MistakeError("no_quantity", f"is not a {what}", f"write it like {example}")
    if isinstance(text, float) and not math.isfinite(text):
        raise MistakeError("not_finite", f"is {text}, not a {what}", f"write a finite one like {example}")
    if isinstance(text, (int, float)):
        raise MistakeError(
            "missing_unit", f"is a {what} without a unit", f"write {text} and one of {', '.join(units)}, like {example}"
        )
    match = _QUANTITY.fullmatch(text)
    if match is None:
        bare = re.fullmatch(r"\s*[+-]?\d+(\.\d+)?\s*", text)
        wrong = f"'{text}' has no unit" if bare else f"'{text}' is not a {what}"
        raise MistakeError("no_quantity", wrong, f"write it like {example}")
    number, unit = match.groups()
    if unit not in units:
        raise MistakeError(
            "unknown_unit", f"'{text}': unit '{unit}' is unknown", f"use one of {', '.join(units)}, like {example}"
        )
    value = Fraction(Decimal(number)) * units[unit]
    if value.denominator != 1:
        raise MistakeError("too_fine", f"'{text}' is finer than 1 {next(iter(units))}", "round it")
    if abs(value) > LARGEST:
        raise MistakeError("too_large_quantity", f"'{text}' is too large for a {what}")
    return int(value)


def duration_ns(text: object) -> int:
    """A duration such as `30 ms` in nanoseconds."""
    return parse(text, DURATIONS, "duration", "'30 ms'")


def size_bytes(text: object) -> int:
    """A size such as `256 MiB` in bytes."""
    return parse(text, SIZES, "size", "'256 MiB'")


def rate_bps(text: object) -> int:
    """A bandwidth such as `100 Mbit/s` in bits per second."""
    return parse(text, RATES, "bandwidth", "'100 Mbit/s'")


def show_ns(value_ns: int | Fraction) -> str:
    """A duration for people: the largest unit that leaves a number of at least 1, at most four digits after the
    point."""
    for unit, scale in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if abs(Fraction(value_ns)) >= scale:
            return f"{float(value_ns / Fraction(scale)):.4f}".rstrip("0").rstrip(".") + f" {unit}"
    return f"{float(value_ns):g} ns"


def step_of(quantity: int) -> int:
    """A round step of about a thousandth of a quantity: 300 ms in steps of 0.1 ms, 3 s in steps of 1 ms."""
    step = 1
    while step * 10_000 <= quantity:
        step *= 10
    return step


def exact(ns: int) -> str:
    """A duration as a file has it, to the nanosecond: `31.21 ms`."""
    for unit, scale in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if ns >= scale:
            return f"{Decimal(ns) / scale:f} {unit}"
    return f"{ns} ns"


def show_bytes(value: int) -> str:
    """A size for people, in the largest binary unit that leaves a number of at least 1."""
    return _scaled(value, (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)), "B")


def show_bps(value: int) -> str:
    """A bandwidth for people."""
    return _scaled(value, (("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 10**3)), "bit/s")


def _scaled(value: int, units: tuple[tuple[str, int], ...], least: str) -> str:
    unit, scale = next(((unit, scale) for unit, scale in units if value >= scale), (least, 1))
    return f"{value / scale:.4f}".rstrip("0").rstrip(".") + f" {unit}"


def counted(number: int, what: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def exact_bytes(value: int) -> str:
    """A size as a file has it, to the byte."""
    return _exact(value, (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1)))


def exact_bps(value: int) -> str:
    """A bandwidth as a file has it, to the bit per second."""
    return _exact(value, (("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 10**3), ("bit/s", 1)))


def _exact(value: int, units: tuple[tuple[str, int], ...]) -> str:
    """In the largest unit that leaves a number of at least 1 with few digits."""
    unit, scale = next(
        (unit, scale) for unit, scale in units if (value >= scale and value * 10_000 % scale == 0) or scale == 1
    )
    return f"{(Decimal(value) / scale).normalize():f} {unit}"
