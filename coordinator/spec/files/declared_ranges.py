"""Ranges that `may_change:` declares: which values of a file may change, and how far ([Q] 4.4, within what the user
allows).

    may_change:
      outputs.warning.deadline: 300..400 ms
      sources.v2v.arrival.burst: 10..20

A key is the one that `plan --what-if` and `explain` call the value by. Both ends have the value's unit; where they have
the same one it may stand behind the second alone. What the file has is within its own range.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from coordinator.errors import MistakeError
from coordinator.spec.files.quantities import NAME
from coordinator.spec.files.query_file import CHAIN_NAME
from coordinator.spec.files.range_texts import BETWEEN, EXAMPLE
from coordinator.spec.files.yaml_source import Source, nearest
from coordinator.units import duration_ns, rate_bps, size_bytes

MICRO, MILLI = 10**6, 1000
SECTION = "may_change"
PART = re.compile(rf"({NAME}(?:\.\.{NAME})?)\.(.+)")
QUANTITY = re.compile(r"\s*([+-]?[\d.]+)\s*(\S*)\s*")


@dataclass(frozen=True)
class Scale:
    """How a value is written: `read` gives it in its least unit."""

    read: Callable[[str], int]


def _whole(text: str) -> int:
    if not re.fullmatch(r"\s*\d{1,12}\s*", text):
        raise MistakeError("no_number", f"'{text.strip()}' is no whole number", "write one without a unit, like 1..8")
    return int(text)


def _decimal(scale: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            value = Decimal(text.strip())
        except InvalidOperation:
            raise MistakeError("no_number", f"'{text.strip()}' is no number", "write one without a unit") from None
        if not value.is_finite() or value < 0 or value > 10**9:
            raise MistakeError("out_of_range", f"'{text.strip()}' is out of range", "write one from 0 to 1e9")
        if value * scale != int(value * scale):
            raise MistakeError("too_fine", f"'{text.strip()}' is finer than {Decimal(1) / scale}", "round it")
        return int(value * scale)

    return read


def _either(text: str) -> int:
    """A count of tuples, or a duration."""
    return _whole(text) if text.strip().isdigit() else duration_ns(text)


DURATION, SIZE, BANDWIDTH = Scale(duration_ns), Scale(size_bytes), Scale(rate_bps)
WHOLE, EITHER = Scale(_whole), Scale(_either)
PER_SECOND = Scale(_decimal(MICRO))  # in millionths
PLAIN = Scale(_decimal(MILLI))  # in thousandths

KEYS: Mapping[str, Mapping[str, Scale]] = {
    "sources": {
        "arrival.burst": WHOLE,
        "arrival.period": DURATION,
        "arrival.rate": PER_SECOND,
        "arrival.jcp.period": DURATION,
        "arrival.jcp.min_gap": DURATION,
        "arrival.jcp.early": DURATION,
        "arrival.jcp.late": DURATION,
        "max_rate": WHOLE,
        "max_rate.tuples": WHOLE,
        "max_rate.per": DURATION,
        "max_age": DURATION,
        "max_size": SIZE,
        "tolerance": DURATION,
        "every": DURATION,
        "cost": DURATION,
    },
    "operators": {
        "cost": DURATION,
        "memory": SIZE,
        "max_size": SIZE,
        "window.close": DURATION,
        "window.time": DURATION,
        "window.count": WHOLE,
        "window.most": DURATION,
        "window.hop": EITHER,
        "window.lateness": DURATION,
        "window.wait": DURATION,
        "sync.timeout": DURATION,
        "sync.within": DURATION,
    },
    "outputs": {
        "deadline": DURATION,
        "wait": DURATION,
        "throughput": PER_SECOND,
        "latency": DURATION,
        "queue": SIZE,
        "age": DURATION,
        "reaction": DURATION,
    },
    "nodes": {
        "speed": PLAIN,
        "cap": PLAIN,
        "memory": SIZE,
        "core_link": DURATION,
        "emulate.cost_per_tuple": DURATION,
        "policy.batch": WHOLE,
    },
    "links": {"latency": DURATION, "bandwidth": BANDWIDTH},
}


@dataclass(frozen=True)
class Range:
    """What a value may be, both ends included, in its least unit. `section`, `name`, `field`: as of `plan --what-if`;
    `written`: as the file has it; `of`: the query that declares it, empty: the cluster; `file`, `line`: where."""

    section: str
    name: str
    field: str
    low: int
    high: int
    written: str
    of: str = ""
    file: str = ""
    line: int = 0

    @property
    def key(self) -> str:
        """`outputs.warning.deadline`."""
        return f"{self.section}.{self.name}.{self.field}"


def read(given: Mapping[str, str], file: Source, of: str = "") -> tuple[Range, ...]:
    """The ranges of a file; problems are noted in it."""
    found = []
    for key, text in given.items():
        try:
            one = _range(key, text, file.data, of)
            one = replace(one, file=str(file.path), line=file.line(SECTION, key))
        except MistakeError as error:
            file.add((SECTION, key), error.mistake.within(f"{SECTION}.{key}", " "))
        else:
            found.append(one)
    return tuple(found)


def _range(key: str, text: str, data: Mapping[str, Any], of: str) -> Range:
    section, name, field = _parts(key, [section for section in KEYS if section in data])
    _check_name(section, name, field, data)
    scale = KEYS[section][field]
    low, high = _ends(text, scale)
    if low > high:
        raise MistakeError(
            "range_reversed", f"is {text.strip()}, which ends before it begins", "write the smaller end first"
        )
    one = Range(section, name, field, low, high, text.strip(), of)
    now = _written(section, name, field, data)
    if now is not None and not low <= scale.read(now) <= high:
        raise outside(one, now)
    return one


def outside(one: Range, now: str) -> MistakeError:
    """The value that is declared is not in its range."""
    text = f"is {one.written}, and the value is {now}"
    return MistakeError("value_outside_range", text, "write a range that has the value, or change the value")


def _parts(key: str, sections: Sequence[str]) -> tuple[str, str, str]:
    """Section, name and field. Raises MistakeError."""
    section, _, rest = key.partition(".")
    match = PART.fullmatch(rest)
    if section not in sections:
        raise MistakeError("unknown_field", f"begins with '{section}'", nearest(section, sections))
    if match is None:
        raise MistakeError("unknown_field", "is not SECTION.NAME.KEY", "write it like 'outputs.warning.deadline'")
    name, field = match[1], match[2]
    if field not in KEYS[section]:
        text = f"names '{field}', for which there are no ranges"
        raise MistakeError("unknown_field", text, nearest(field, KEYS[section]))
    return section, name, field


def _check_name(section: str, name: str, field: str, data: Mapping[str, Any]) -> None:
    """Raises MistakeError where the file has no such part."""
    names = _names(data[section])
    if name in names:
        return
    chain = next((each for each in names if _is_member(name, each)), "")
    if chain:
        text, mend = f"names '{name}', which is part of chain '{chain}'", f"write '{section}.{chain}.{field}'"
        raise MistakeError("field_of_chain", text, mend)
    raise MistakeError("unknown_name", f"names '{name}', which is unknown", nearest(name, names))


def _names(section: Any) -> list[str]:
    if isinstance(section, Mapping):
        return list(map(str, section))
    pairs = [link.get("between") or () for link in section or () if isinstance(link, Mapping)]
    return ["-".join(map(str, pair)) for pair in pairs]


def _is_member(name: str, chain: str) -> bool:
    match = CHAIN_NAME.fullmatch(chain)
    number = name.removeprefix(match[1]) if match else ""
    return match is not None and number.isdigit() and int(match[2]) <= int(number) <= int(match[3])


def _ends(text: str, scale: Scale) -> tuple[int, int]:
    """Both, in the least unit. Raises MistakeError."""
    first, _, last = text.partition(BETWEEN)
    one, other = QUANTITY.fullmatch(first), QUANTITY.fullmatch(last)
    if one is None or other is None:
        raise MistakeError("no_range", f"is '{text.strip()}', which is no range", EXAMPLE)
    unit = one[2] or other[2]
    low, high = (scale.read(f"{each[1]} {each[2] or unit}".strip()) for each in (one, other))
    return low, high


def _written(section: str, name: str, field: str, data: Mapping[str, Any]) -> str | None:
    """The value as the file has it; None: it has none, or not as one text."""
    at: Any = data[section]
    keys: list[str | int] = [name, *field.split(".")]
    if section == "links":
        keys[0] = _names(at).index(name)
    for key in keys:
        if not isinstance(at, (Mapping, list)) or (isinstance(at, Mapping) and key not in at):
            return None
        at = at[key]  # type: ignore[index]
    if field in ("age", "reaction") and isinstance(at, Mapping):
        at = at.get("limit")
    return str(at) if isinstance(at, (str, int, float)) and not isinstance(at, bool) else None


__all__ = ["KEYS", "SECTION", "Range", "outside", "read"]
