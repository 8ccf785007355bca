"""A repair: what to change in the files, and what that gains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from coordinator.solve.repair.what_if_runs import Case

Way = Literal["free", "move", "policy", "speed", "deadline", "input", "age", "both"]


@dataclass(frozen=True)
class Repair:
    """One change that makes every output hold, and was planned to make sure. `text`: what to do; `ratios`: by how much
    each quantity changes, all at least 1, so that changes of different kinds compare; none: a promise is neither
    bought nor broken (an operator freed or moved). `what_if`: options of `plan --what-if` that make the change,
    `place`: operators held to a node, `case`: the changed query and cluster; `settled`: one step less does not hold."""

    way: Way
    text: str
    case: Case = field(repr=False)
    ratios: tuple[Fraction, ...] = ()
    what_if: tuple[str, ...] = ()
    place: Mapping[str, str] = field(default_factory=dict)
    settled: bool = True

    @property
    def size(self) -> float:
        """For ordering only: the sum of the ratios' logarithms."""
        return sum(math.log(ratio) for ratio in self.ratios)

    def options(self) -> str:
        """For the command line of `coordinator plan`; empty where the file has to be edited."""
        told = [f"--what-if '{change}'" for change in self.what_if]
        return " ".join([*told, *(f"--place {name}={node}" for name, node in self.place.items())])

    def document(self) -> dict[str, Any]:
        """For --json."""
        return {
            "way": self.way,
            "text": self.text,
            "ratios": [float(ratio) for ratio in self.ratios],
            "what_if": list(self.what_if),
            "place": dict(self.place),
            "settled": self.settled,
        }
