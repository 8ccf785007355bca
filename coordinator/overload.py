"""What a query says about windows and overload, as values; durations in ns. plan.json holds their documents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from coordinator.expressions import Tree
from coordinator.units_of_measure import show_ns

ADD = ".add"  # behind the name of a window operator: the part that collects tuples; no user's name has a dot


@dataclass(frozen=True)
class Limit:
    """Of a source: at most `tuples` in any `span_ns`. `value`: the expression's text, `tree` what agents evaluate;
    both empty: the earliest go on."""

    tuples: int
    span_ns: int
    value: str = ""
    tree: Tree = None

    @property
    def value_json(self) -> str:
        """For a local plan."""
        return json.dumps(self.tree, separators=(",", ":")) if self.value else ""

    def document(self) -> dict[str, Any]:
        """For plan.json."""
        return asdict(self)

    @staticmethod
    def read(facts: Mapping[str, Any] | None) -> Limit | None:
        """Of a document, or of nothing."""
        return Limit(**facts) if facts is not None else None


@dataclass(frozen=True)
class Window:
    """`kind`: time, count or sized; `length` and `hop` in ns, or in tuples by count; `first`: deadlines count from the
    oldest tuple; `wait_ns` 0: as the cluster's links ask; `shed`: a policy, or none; `most`:
    tuples that may wait; `on`: of a join, the field of each input; `keep`: results that are too late are given."""

    kind: str
    length: int
    hop: int
    lateness_ns: int = 0
    first: bool = False
    wait_ns: int = 0
    by: str = ""
    on: tuple[str, ...] = ()
    size: str = ""
    shed: str = "window-aware"
    most: int = 3000
    keep: bool = False

    @property
    def policy(self) -> str | None:
        """The shedder; None: there is none."""
        return None if self.shed == "none" else self.shed

    @property
    def said(self) -> str:
        """`5 s every 4 s`, `100 tuples`, `up to 20 s, as my.size says, every 4 s`."""
        length, hop = ((f"{one} tuples" if self.kind == "count" else show_ns(one)) for one in (self.length, self.hop))
        found = f"up to {length}, as {self.size} says," if self.kind == "sized" else length
        return found if self.hop == self.length and self.kind != "sized" else f"{found} every {hop}"

    def document(self) -> dict[str, Any]:
        """For plan.json."""
        return {**asdict(self), "on": list(self.on)}

    @staticmethod
    def read(facts: Mapping[str, Any] | None) -> Window | None:
        """Of a document, or of nothing."""
        return Window(**{**facts, "on": tuple(facts["on"])}) if facts is not None else None


@dataclass(frozen=True)
class OnLate:
    """Of an operator: tuples that can be in time for no output are dropped, or `run` runs in its place."""

    run: str = ""
    cost_ns: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def with_json(self) -> str:
        """For a local plan."""
        return json.dumps(self.parameters, sort_keys=True, separators=(",", ":"), allow_nan=False)

    def document(self) -> dict[str, Any]:
        """For plan.json."""
        return {"run": self.run, "cost_ns": self.cost_ns, "with": dict(self.parameters)}

    @staticmethod
    def read(facts: Mapping[str, Any] | None) -> OnLate | None:
        """Of a document, or of nothing."""
        return OnLate(facts["run"], facts["cost_ns"], dict(facts["with"])) if facts is not None else None


@dataclass(frozen=True)
class Queue:
    """The most bytes that wait before an operator, and what goes beyond them."""

    most_bytes: int
    on_full: str = "drop-tail"

    def document(self) -> dict[str, Any]:
        """For plan.json."""
        return asdict(self)

    @staticmethod
    def read(facts: Mapping[str, Any] | None) -> Queue | None:
        """Of a document, or of nothing."""
        return Queue(**facts) if facts is not None else None
