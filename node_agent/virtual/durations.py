"""Durations as a user writes them: a number and a unit, into nanoseconds."""

from __future__ import annotations

import re
from fractions import Fraction

from node_agent.virtual.errors import bad_input

UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "min": 60_000_000_000}
_SHAPE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*")


def duration_ns(text: str, name: str) -> int:
    """`10s`, `100 ms`, `1.5 min` in ns, exactly. BadInputError names the option, what is wrong and the mend."""
    found = _SHAPE.fullmatch(text)
    if found is None:
        raise bad_input(
            "no_duration",
            f"{name}: {text!r} is no duration",
            "write a number and a unit, as in 10s or 100ms",
            subject=name,
        )
    number, unit = found.groups()
    if unit not in UNITS_NS:
        wrong = f"{unit!r} is no unit" if unit else "the unit is missing"
        raise bad_input(
            "no_unit", f"{name}: {text!r}: {wrong}", f"use one of {', '.join(UNITS_NS)}, as in {number}s", subject=name
        )
    return int(Fraction(number) * UNITS_NS[unit])
