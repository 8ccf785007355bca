"""Aggregates of `run: aggregate`, as `with:` declares them: {result: figure}.

count | sum | mean | min | max           of the field of the result's name (count: of none)
{mean: FIELD}                            of another field
{quantile: 0.95, of: FIELD}              above 0, at most 1
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from coordinator.errors import Mistake
from coordinator.spec.expressions import kinds
from coordinator.spec.expressions.kinds import Kind, KindError
from coordinator.spec.files.yaml_source import nearest

COUNT, QUANTILE = "count", "quantile"
FIGURES = (COUNT, "sum", "mean", "min", "max", QUANTILE)
NAMES = ("window", "start_ns", "end_ns", "first", "last")  # of what every result says of its window
MOST = 64
PPM = 1_000_000
_FIELD = re.compile(r"[^.\s]+(\.[^.\s]+)*")
Wrong = Iterator[tuple[tuple[str, ...], Mistake]]


def wrong(parameters: Mapping[str, Any], known: Kind) -> Wrong:
    """What is wrong with `with:`, each with the keys below it; `known`: of the tuples, None where nothing is."""
    if not parameters:
        mend = "write what to make of a window, like with: {n: count, speed: mean}"
        yield (), Mistake("no_figure", "names no figure", mend)
    if len(parameters) > MOST:
        text = f"names {len(parameters)} figures, at most {MOST} are made"
        yield (), Mistake("too_many_figures", text, "use a second aggregate")
    for name, figure in parameters.items():
        if name in NAMES or (name == COUNT and figure != COUNT):
            text = f"'{name}' says something else of every window"
            yield (name,), Mistake("reserved_name", text, "give the figure another name")
            continue
        if not isinstance(figure, str) and not (
            isinstance(figure, Mapping) and (QUANTILE in figure or len(figure) == 1)
        ):
            mend = f"write {name}: mean, {name}: {{mean: FIELD}} or {name}: {{quantile: 0.95}}"
            yield (name,), Mistake("bad_figure", f"'{name}' is no figure", mend)
            continue
        for mistake in _figure(name, figure, known):
            yield (name,), mistake.within(f"'{name}'")


def _figure(name: str, figure: str | Mapping[str, Any], known: Kind) -> Iterator[Mistake]:
    if isinstance(figure, str):
        what, field = figure, name
    elif QUANTILE in figure:
        yield from _quantile(name, figure, known)
        return
    else:
        what, field = next(iter(figure.items()))
        if what == COUNT:
            yield Mistake("count_of_field", "a count needs no field", f"write '{name}: count'")
            return
    if what not in FIGURES:
        yield Mistake("unknown_figure", f"figure '{what}' is unknown", nearest(str(what), FIGURES))
    elif what == QUANTILE:
        yield Mistake("which_quantile", "which quantile?", f"write {name}: {{quantile: 0.95, of: {name}}}")
    elif what != COUNT:
        yield from _number(field, known)


def _quantile(name: str, figure: Mapping[str, Any], known: Kind) -> Iterator[Mistake]:
    rank = figure[QUANTILE]
    fits = isinstance(rank, (int, float)) and not isinstance(rank, bool) and math.isfinite(rank) and 0 < rank <= 1
    if not fits or round(rank * PPM) < 1:
        yield Mistake("bad_quantile", f"a quantile of {rank!r}", "write a number above 0 and at most 1, like 0.95")
    if extra := sorted(set(figure) - {QUANTILE, "of"}):
        yield Mistake("unknown_key", f"'{extra[0]}' is not known here", "write {quantile: 0.95, of: FIELD}")
    yield from _number(figure.get("of", name), known)


def _number(field: Any, known: Kind) -> Iterator[Mistake]:
    if mistake := unknown(field, known):
        yield mistake
        return
    kind = kinds.field(known, field.split("."))
    if kind not in (None, "number"):
        yield Mistake("no_number", f"field '{field}' is {kinds.worded(kind)}, no number", "count them, or name another")


def unknown(field: Any, known: Kind) -> Mistake | None:
    """Why a path is no field of such tuples; None: it is, or that is not known."""
    if not isinstance(field, str) or not _FIELD.fullmatch(field):
        return Mistake("names_no_field", f"{field!r} names no field", "write one like 'speed' or 'car.speed'")
    try:
        kinds.field(known, field.split("."))
    except KindError as error:
        return Mistake.of("unknown_field", str(error))
    return None


def no_key(field: str, known: Kind) -> Mistake | None:
    """Why a field cannot be grouped or joined by; None: it can, or that is not known."""
    if mistake := unknown(field, known):
        return mistake
    kind = kinds.field(known, field.split("."))
    if kind in (None, "number", "condition", "text"):
        return None
    text = f"field '{field}' is {kinds.worded(kind)}, which is no key"
    return Mistake("no_key", text, "name a text, a whole number or a condition")
