"""The variables of one programme of MathOpt, which every model of a placement shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coordinator.errors import CoordinatorError, Mistake
from coordinator.model.capacity import Room
from coordinator.model.problem import Problem


@dataclass
class Model:
    """The variables of one programme, by the names of [P]: z[i,n], D[i] (5.2.6), d[s,i], E[s,i], x as hops."""

    problem: Problem
    routed: bool
    mathopt: Any = field(init=False)
    programme: Any = field(init=False)
    z: dict[tuple[int, int], Any] = field(default_factory=dict)
    d: dict[int, Any] = field(default_factory=dict)
    hop: dict[tuple[str, int, int], Any] = field(default_factory=dict)
    copy: dict[tuple[str, int], Any] = field(default_factory=dict)
    share: dict[tuple[int, int], Any] = field(default_factory=dict)
    nlr: list[Any] = field(default_factory=list)
    excess: list[Any] = field(default_factory=list)
    lack: list[tuple[Room, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        try:
            from ortools.math_opt.python import mathopt
        except ImportError as error:
            raise CoordinatorError(
                Mistake(
                    "no_solver",
                    "OR-Tools is not installed",
                    "pip install 'shimekiri[coordinator]'"
                    " (from a file: 'shimekiri-VERSION-py3-none-any.whl[coordinator]')",
                )
            ) from error
        self.mathopt = mathopt
        self.programme = mathopt.Model()

    def total(self, terms: list[Any]) -> Any:
        """A sum that is built in linear time."""
        return self.mathopt.fast_sum(terms)

    def exclude(self, place: Mapping[int, int]) -> Any:
        """Not this placement, a node per item, again. The row that says so."""
        terms = [self.z[index, node] for index, node in place.items()]
        return self.programme.add_linear_constraint(self.total(terms) <= len(terms) - 1)

    def traffic(self) -> Any:
        """Tuples per burst that cross between nodes."""
        tuples = {stream.name: float(stream.tuples) for stream in self.problem.streams}
        terms = [tuples[name] * variable for (name, *_), variable in (self.hop if self.routed else self.copy).items()]
        return self.total(terms)
