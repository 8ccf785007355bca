"""The option `--brake`: one of the usual brakes, or one with some other values."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

from node_agent.virtual.durations import duration_ns
from sim_vehicles.encounter.brake import AUTO, DRIVER, NONE, Brake
from sim_vehicles.errors import bad_input

NAME = "--brake"
EXAMPLE = "driver:reaction=1.5s,friction=0.4"


class _Value(NamedTuple):
    """field: of Brake. above, most: bounds, the former excluded. timed: a duration with its unit, else a number."""

    field: str
    above: float
    most: float
    timed: bool


OF_A_BRAKE = {
    "deceleration": _Value("deceleration_mps2", 0.0, 15.0, timed=False),  # m/s2; no road tyre holds more
    "friction": _Value("friction", 0.0, 1.5, timed=False),
    "actuation": _Value("actuation_s", -inf, 10.0, timed=True),
    "build-up": _Value("build_up_s", -inf, 10.0, timed=True),
}
OF_A_DRIVER = {
    "reaction": _Value("reaction_s", -inf, 10.0, timed=True),
    "spread": _Value("reaction_sd_s", -inf, 10.0, timed=True),
}
USUAL = {AUTO: OF_A_BRAKE, DRIVER: {**OF_A_BRAKE, **OF_A_DRIVER}, NONE: {}}


def parse_brake(text: str) -> Brake:
    """`auto`, `driver`, `none`, or with other values `auto:deceleration=5,build-up=0s`. BadInputError."""
    kind, colon, rest = text.partition(":")
    usual = {brake.kind: (brake, values) for brake, values in USUAL.items()}
    if kind not in usual:
        raise bad_input(
            "unknown_word",
            f"{NAME} {text!r}: unknown",
            f"use auto, driver, none, or other values as in {EXAMPLE}",
            subject=NAME,
        )
    brake, values = usual[kind]
    given: dict[str, Any] = {}
    for part in rest.split(",") if colon else ():
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in values or not value:
            takes = f"some of {', '.join(values)}, as in {EXAMPLE}" if values else "no values"
            raise bad_input(
                "wrong_form", f"{NAME}: {part.strip()!r} is not understood", f"{kind} takes {takes}", subject=NAME
            )
        if key in given:
            raise bad_input("given_twice", f"{NAME}: {key} is given twice", subject=NAME)
        given[key] = _read(key, value, values[key])
    return replace(brake, **{values[key].field: number for key, number in given.items()})


def _read(key: str, text: str, value: _Value) -> float:
    try:
        number = duration_ns(text, NAME) / 1e9 if value.timed else float(text)
    except ValueError:
        raise bad_input("no_number", f"{NAME}: {key}={text} is no number", subject=NAME) from None
    if not value.above < number <= value.most:
        above = "" if value.timed else f"above {value.above:g} and "
        raise bad_input(
            "out_of_range",
            f"{NAME}: {key}={text} must be {above}at most {value.most:g}{' s' if value.timed else ''}",
            subject=NAME,
        )
    return number
