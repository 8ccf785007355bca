"""What is handed to the witness, and what it says, as JSON. Both environments import this: standard library only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class Driven:
    """One vehicle's motion from a pair's first instant on: columns of one length, an entry every `NearPair.step_s`.
    Metres, radians, m/s; (x, y) is the centre of its box."""

    id: str
    length_m: float
    width_m: float
    x_m: list[float]
    y_m: list[float]
    heading_rad: list[float]
    speed_mps: list[float]


@dataclass(frozen=True)
class NearPair:
    """Two vehicles that came close. `begins_s`: the first instant, at which both are recorded. The witness is handed no
    more than motion: nothing of our judgement."""

    begins_s: float
    step_s: float
    one: Driven
    other: Driven


Outcome = Literal["time", "both within", "no area", "unfinished", "failed"]


@dataclass(frozen=True)
class Encroachment:
    """PET over one area, in s; infinity unless the outcome is `time`.

    `both within`: the second came into the area before the first had left it. `no area`: the library finds none, for
    instance where the first one's centre has left it when the pair begins. `unfinished`: one of the two never comes
    into the area, or never leaves it, while it is recorded.
    """

    pet_s: float
    outcome: Outcome


@dataclass(frozen=True)
class Statement:
    """What the witness says of a pair; seconds and metres, infinity where a measure gives nothing.

    `across`: over the ground where the two lanes cross, None where they do not. `joint`: over all the ground that the
    two lanes share. `closest_m`: the least distance of the boxes. `ttc_of_one_s`,
    `ttc_of_other_s`: at each instant that has both. `failed`: what its measures raised.
    """

    across: Encroachment | None
    joint: Encroachment
    closest_m: float
    ttc_of_one_s: list[float]
    ttc_of_other_s: list[float]
    failed: list[str]


def write_pairs(pairs: Sequence[NearPair], file: Path) -> None:
    file.write_text(json.dumps([asdict(one) for one in pairs]))


def read_pairs(file: Path) -> list[NearPair]:
    return [
        NearPair(**{**one, "one": Driven(**one["one"]), "other": Driven(**one["other"])})
        for one in json.loads(file.read_text())
    ]


def write_statements(said: Sequence[Statement], file: Path) -> None:
    file.write_text(json.dumps([asdict(one) for one in said]))


def read_statements(file: Path) -> list[Statement]:
    return [
        Statement(**{**one, "joint": Encroachment(**one["joint"]), "across": _or_none(one["across"])})
        for one in json.loads(file.read_text())
    ]


def _or_none(across: Mapping[str, Any] | None) -> Encroachment | None:
    return None if across is None else Encroachment(**across)


__all__ = [
    "Driven",
    "Encroachment",
    "NearPair",
    "Statement",
    "read_pairs",
    "read_statements",
    "write_pairs",
    "write_statements",
]
