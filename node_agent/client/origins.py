"""Where the tuples of a burst originate in time: ages, or instants, of all or of each."""

import math
from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import index
from typing import Any

from node_agent.client.columns import column, is_array, same_length
from node_agent.link.clock_offset import FAR_NS
from node_agent.problems import UnusableValueError

MILLISECOND = 1_000_000
MOST_AGE_MS = FAR_NS // MILLISECOND // 2  # an age; the instant of the call counts as well
Origin = tuple[int, int]  # the interval (lo, hi) that holds it, in ns of this machine's clock


def origin(at_ns: int, age_ms: Any) -> Origin:
    """The origin's interval for an age in ms, rounded outwards. Raises UnusableValueError for an age that cannot be."""
    if age_ms.__class__ is float and 0 <= age_ms <= MOST_AGE_MS:  # as columns of ages have them
        age_ns = age_ms * MILLISECOND
        return at_ns - math.ceil(age_ns), at_ns - math.floor(age_ns)
    ages = age_ms if isinstance(age_ms, tuple) else (age_ms, age_ms)
    try:
        least, most = map(_number, ages)
        possible = 0 <= least <= most < math.inf
    except (TypeError, ValueError, OverflowError):
        possible = False
    if not possible:
        text = f"age_ms={age_ms!r:.80} is no age"
        mend = "give a number of 0 or more, (least, most), or a list or array with one per tuple"
        raise UnusableValueError("bad_age", text, mend, subject="age_ms")
    if most > MOST_AGE_MS:
        text = f"age_ms={age_ms!r:.80} is longer than clocks run"
        raise UnusableValueError("bad_origin", text, f"give at most {MOST_AGE_MS} ms", subject="age_ms")
    return at_ns - math.ceil(most * MILLISECOND), at_ns - math.floor(least * MILLISECOND)


def interval(given: Any) -> Origin:
    """(lo, hi) as it was given. Raises UnusableValueError where it is no interval of instants."""
    try:
        lo_ns, hi_ns = map(index, given)
        possible = -FAR_NS <= lo_ns <= hi_ns <= FAR_NS
    except (TypeError, ValueError):
        possible = False
    if not possible:
        text = f"origin {given!r:.80} is no interval of instants in ns"
        raise UnusableValueError("bad_origin", text, "give (lo, hi), as integers", subject="origin")
    return lo_ns, hi_ns


def _number(given: Any) -> float:
    """An age as Python has it: numbers of NumPy would overflow. Raises TypeError for what is no number."""
    if not hasattr(given, "__float__"):
        raise TypeError
    try:
        return index(given)
    except TypeError:
        return float(given)


def origins(at_ns: int, count: int, age_ms: Any, origin_ns: Any) -> Iterable[Origin]:
    """Of `count` tuples. age_ms: of all as in `origin`, or a column of ages. origin_ns: None, or a column of instants,
    or (lo, hi), two such columns. Raises UnusableValueError."""
    if origin_ns is not None:
        if _is_column(age_ms) or age_ms != 0:
            raise UnusableValueError("given_twice", "age_ms and origin_ns: give one of them", subject="origin_ns")
        columns = origin_ns if isinstance(origin_ns, tuple) else (origin_ns, origin_ns)
        if len(columns) != 2:
            text = f"origin_ns is a tuple of {len(columns)}"
            mend = "give one column of instants, or (lo, hi), two of them"
            raise UnusableValueError("bad_origin", text, mend, subject="origin_ns")
        los, his = columns
        lo_ns = _instants(los, count)
        return zip(lo_ns, lo_ns if his is los else _after(lo_ns, _instants(his, count)), strict=True)
    if not _is_column(age_ms):
        return repeat(origin(at_ns, age_ms), count)
    ages = column(age_ms, "age_ms").values
    same_length("age_ms", len(ages), count)
    return [origin(at_ns, age) for age in ages]


def _is_column(age_ms: Any) -> bool:
    """Rather than one age, which may be a scalar of NumPy."""
    return isinstance(age_ms, list | range) or (is_array(age_ms) and getattr(age_ms, "shape", None) != ())


def _instants(given: Any, count: int) -> Sequence[int]:
    found = column(given, "origin_ns")
    same_length("origin_ns", len(found.values), count)
    try:
        values = found.values if found.kinds <= {int} else list(map(index, found.values))
    except TypeError:
        values = [FAR_NS + 1]  # no integers
    if bool in found.kinds or (values and not -FAR_NS <= min(values) <= max(values) <= FAR_NS):
        text = "column 'origin_ns' is of instants in ns, as integers"
        mend = "take them from time.CLOCK_MONOTONIC_RAW, or give age_ms"
        raise UnusableValueError("bad_origin", text, mend, subject="origin_ns")
    return values


def _after(los: Sequence[int], his: Sequence[int]) -> Sequence[int]:
    for row, (lo_ns, hi_ns) in enumerate(zip(los, his, strict=True)):
        if lo_ns > hi_ns:
            text = f"column 'origin_ns' has an interval from {lo_ns} to {hi_ns} in row {row}"
            raise UnusableValueError("bad_origin", text, "give (lo, hi)", subject="origin_ns")
    return his
