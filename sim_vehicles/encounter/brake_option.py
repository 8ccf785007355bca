"""The option `--brake`: one of the usual brakes, or one with some other values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import NamedTuple

from node_agent.virtual.durations import duration_ns
from sim_vehicles.encounter.brake import AUTO, DRIVER, NONE, Brake
from sim_vehicles.errors import bad_input

NAME = "--brake"
EXAMPLE = "driver:reaction=1.5s,friction=0.4"


class _Value(NamedTuple):
    """put: the brake with this value. above, most: bounds, the former excluded. timed: a duration with its unit, else a
    number."""

    put: Callable[[Brake, float], Brake]
    above: float
    most: float
    timed: bool


OF_A_BRAKE = {
    # m/s2; no road tyre holds more
    "deceleration": _Value(lambda brake, mps2: replace(brake, deceleration_mps2=mps2), 0.0, 15.0, timed=False),
    "friction": _Value(lambda brake, friction: replace(brake, friction=friction), 0.0, 1.5, timed=False),
    "actuation": _Value(lambda brake, s: replace(brake, actuation_s=s), -inf, 10.0, timed=True),
    "build-up": _Value(lambda brake, s: replace(brake, build_up_s=s), -inf, 10.0, timed=True),
}
OF_A_DRIVER = {
    "reaction": _Value(lambda brake, s: replace(brake, reaction_s=s), -inf, 10.0, timed=True),
    "spread": _Value(lambda brake, s: replace(brake, reaction_sd_s=s), -inf, 10.0, timed=True),
}
USUAL = {"auto": (AUTO, OF_A_BRAKE), "driver": (DRIVER, OF_A_BRAKE | OF_A_DRIVER), "none": (NONE, {})}


def parse_brake(text: str) -> Brake:
    """`auto`, `driver`, `none`, or with other values `auto:deceleration=5,build-up=0s`. BadInputError."""
    kind, colon, rest = text.partition(":")
    if kind not in USUAL:
        raise bad_input(
            "unknown_word",
            f"{NAME} {text!r}: unknown",
            f"use auto, driver, none, or other values as in {EXAMPLE}",
            subject=NAME,
        )
    brake, values = USUAL[kind]
    given: set[str] = set()
    for part in rest.split(",") if colon else ():
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in values or not value:
            takes = f"some of {', '.join(values)}, as in {EXAMPLE}" if values else "no values"
            raise bad_input(
                "wrong_form", f"{NAME}: {part.strip()!r} is not understood", f"{kind} takes {takes}", subject=NAME
            )
        if key in given:
            raise bad_input("given_twice", f"{NAME}: {key} is given twice", subject=NAME)
        given.add(key)
        brake = values[key].put(brake, _read(key, value, values[key]))
    return brake


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
