"""What `run: aggregate` makes of a window, as `with:` says it: {result: figure}.

count | sum | mean | min | max           of the field of the result's name (count: of none)
{mean: FIELD}                            of another field
{quantile: 0.95, of: FIELD}              above 0, at most 1
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from coordinator.spec.expressions import kinds
from coordinator.spec.expressions.kinds import Kind, KindError
from coordinator.spec.files.yaml_source import nearest

COUNT, QUANTILE = "count", "quantile"
FIGURES = (COUNT, "sum", "mean", "min", "max", QUANTILE)
NAMES = ("window", "start_ns", "end_ns", "first", "last")  # of what every result says of its window
MOST = 64
PPM = 1_000_000
_FIELD = re.compile(r"[^.\s]+(\.[^.\s]+)*")
Wrong = Iterator[tuple[tuple[str, ...], str]]


def wrong(parameters: Mapping[str, Any], known: Kind) -> Wrong:
    """What is wrong with `with:`, each with the keys below it; `known`: of the tuples, None where nothing is."""
    if not parameters:
        yield (), "names no figure; write what to make of a window, like with: {n: count, speed: mean}"
    if len(parameters) > MOST:
        yield (), f"names {len(parameters)} figures, at most {MOST} are made; use a second aggregate"
    for name, figure in parameters.items():
        if name in NAMES or (name == COUNT and figure != COUNT):
            yield (name,), f"'{name}' says something else of every window; give the figure another name"
            continue
        for text in _figure(name, figure, known):
            yield (name,), text


def _figure(name: str, figure: Any, known: Kind) -> Iterator[str]:
    if isinstance(figure, str):
        what, field = figure, name
    elif isinstance(figure, Mapping) and QUANTILE in figure:
        yield from _quantile(name, figure, known)
        return
    elif isinstance(figure, Mapping) and len(figure) == 1:
        what, field = next(iter(figure.items()))
        if what == COUNT:
            yield f"'{name}': a count needs no field; write '{name}: count'"
            return
    else:
        yield f"'{name}' is no figure; write {name}: mean, {name}: {{mean: FIELD}} or {name}: {{quantile: 0.95}}"
        return
    if what not in FIGURES:
        yield f"'{name}': figure '{what}' is unknown{nearest(str(what), FIGURES)}"
    elif what == QUANTILE:
        yield f"'{name}': which quantile? write {name}: {{quantile: 0.95, of: {name}}}"
    elif what != COUNT:
        yield from _number(name, field, known)


def _quantile(name: str, figure: Mapping[str, Any], known: Kind) -> Iterator[str]:
    rank = figure[QUANTILE]
    fits = isinstance(rank, (int, float)) and not isinstance(rank, bool) and math.isfinite(rank) and 0 < rank <= 1
    if not fits or round(rank * PPM) < 1:
        yield f"'{name}': a quantile of {rank!r}; write a number above 0 and at most 1, like 0.95"
    if extra := sorted(set(figure) - {QUANTILE, "of"}):
        yield f"'{name}': '{extra[0]}' is not known here; write {{quantile: 0.95, of: FIELD}}"
    yield from _number(name, figure.get("of", name), known)


def _number(name: str, field: Any, known: Kind) -> Iterator[str]:
    text = unknown(field, known)
    if text:
        yield f"'{name}': {text}"
        return
    kind = kinds.field(known, field.split("."))
    if kind not in (None, "number"):
        yield f"'{name}': field '{field}' is {kinds.worded(kind)}, no number; count them, or name another"


def unknown(field: Any, known: Kind) -> str:
    """Why a path is no field of such tuples; empty: it is, or that is not known."""
    if not isinstance(field, str) or not _FIELD.fullmatch(field):
        return f"{field!r} names no field; write one like 'speed' or 'car.speed'"
    try:
        kinds.field(known, field.split("."))
    except KindError as error:
        return str(error)
    return ""


def no_key(field: str, known: Kind) -> str:
    """Why a field cannot be grouped or joined by; empty: it can, or that is not known."""
    if text := unknown(field, known):
        return text
    kind = kinds.field(known, field.split("."))
    if kind in (None, "number", "condition", "text"):
        return ""
    return f"field '{field}' is {kinds.worded(kind)}, which is no key; name a text, a whole number or a condition"
