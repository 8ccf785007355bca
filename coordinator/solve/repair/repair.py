"""A repair: changes of the two files that make every output hold, and what they gain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from coordinator.solve.repair.what_if_runs import Case

Way = Literal[
    "free", "move", "policy", "speed", "deadline", "input", "age", "both",
    "streams", "link", "memory", "cap", "latency", "bandwidth", "cost", "size", "quality", "window", "fusion", "place",
]  # fmt: skip
FILES = {"nodes": "cluster", "links": "cluster", "sources": "query", "operators": "query", "outputs": "query"}


@dataclass(frozen=True)
class Edit:
    """A key of a file and its new value, as YAML. `section`, `name`, `field`: as of `plan --what-if`; without a name
    the value is one more of the section's list; `after` empty: the key is removed."""

    section: str
    name: str
    field: str
    after: str

    @property
    def key(self) -> str:
        """`nodes.a.memory`."""
        return ".".join(part for part in (self.section, self.name, self.field) if part)

    @property
    def option(self) -> str:
        """Of `plan --what-if`; empty: it has none, and the file has to be edited."""
        return f"{self.key}={self.after or 'null'}" if self.name else ""

    @property
    def file(self) -> str:
        """Which of the two has it: query or cluster."""
        return FILES[self.section]

    @property
    def line(self) -> str:
        """What has to stand in the file."""
        if not self.name:
            return f"{self.key}: one more, {self.after}"
        return f"{self.key}: {self.after}" if self.after else f"remove {self.key}"


@dataclass(frozen=True)
class Change:
    """One change. `text`: what to do; `case`: with it; `edits`: of the files, none where `place` holds operators to a
    node instead; `ratios`: by how much each quantity changes, all at least 1, so that changes of different kinds
    compare; none: a promise is neither bought nor broken (an operator freed or moved)."""

    way: Way
    text: str
    case: Case = field(repr=False)
    edits: tuple[Edit, ...] = ()
    ratios: tuple[Fraction, ...] = ()
    place: Mapping[str, str] = field(default_factory=dict)

    @property
    def exact(self) -> str:
        """Everything that it changes, for nothing else."""
        places = [f"--place {name}={node}" for name, node in self.place.items()]
        return ", ".join([*(edit.option or edit.line for edit in self.edits), *places]) or self.text

    def document(self) -> dict[str, Any]:
        """For --json."""
        edits = [
            {"file": edit.file, "key": edit.key, "value": edit.after or None, "add": not edit.name}
            for edit in self.edits
        ]
        return {
            "way": self.way,
            "text": self.text,
            "edits": edits,
            "place": dict(self.place),
            "ratios": [float(ratio) for ratio in self.ratios],
        }


@dataclass(frozen=True)
class Repair:
    """Changes that together make every output hold, and were planned to make sure. `settled`: one step less of any of
    them does not hold."""

    changes: tuple[Change, ...]
    settled: bool = True

    @property
    def way(self) -> Way:
        """Of the change; both: of several of different kinds. Ages that are declared with another change are none."""
        ways = {change.way for change in self.changes}
        return self.changes[0].way if len(ways - {"age"}) <= 1 else "both"

    @property
    def text(self) -> str:
        """What to do."""
        return "; and ".join(change.text for change in self.changes)

    @property
    def case(self) -> Case:
        """The changed query and cluster."""
        return self.changes[-1].case

    @property
    def ratios(self) -> tuple[Fraction, ...]:
        """Of all changes."""
        return tuple(ratio for change in self.changes for ratio in change.ratios)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Of all changes."""
        return tuple(edit for change in self.changes for edit in change.edits)

    @property
    def what_if(self) -> tuple[str, ...]:
        """Options of `plan --what-if` that make the changes; none where a file has to be edited."""
        options = tuple(edit.option for edit in self.edits)
        return options if all(options) else ()

    @property
    def place(self) -> dict[str, str]:
        """Operators held to a node."""
        return {name: node for change in self.changes for name, node in change.place.items()}

    @property
    def size(self) -> float:
        """For ordering only: the sum of the ratios' logarithms."""
        return sum(math.log(ratio) for ratio in self.ratios)

    def options(self) -> str:
        """For the command line of `coordinator plan`; empty where a file has to be edited."""
        if self.edits and not self.what_if:
            return ""
        told = [f"--what-if '{change}'" for change in self.what_if]
        return " ".join([*told, *(f"--place {name}={node}" for name, node in self.place.items())])

    def document(self) -> dict[str, Any]:
        """For --json."""
        return {
            "way": self.way,
            "text": self.text,
            "ratios": [float(ratio) for ratio in self.ratios],
            "what_if": list(self.what_if),
            "place": self.place,
            "settled": self.settled,
            "changes": [change.document() for change in self.changes],
        }
