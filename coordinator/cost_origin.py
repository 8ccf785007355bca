"""Where an operator's cost comes from, when it is not simply what its query declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

GUESS_NS = 10**6
MEASURED, GUESSED, UNUSED = "measured", "guessed", "declared"  # where a cost is from; UNUSED: measured, but not this


@dataclass(frozen=True)
class CostOrigin:
    """Of a cost that is not simply as declared. `declared_ns`: what the query says, 0: nothing; `of`: the figure of
    `file` that was taken, times `margin`; `samples`: the least of the `nodes`; `why`: what is wrong with it."""

    kind: str
    declared_ns: int = 0
    file: str = ""
    of: str = ""
    margin: str = ""
    samples: int = 0
    nodes: tuple[str, ...] = ()
    measured: str = ""
    why: str = ""

    def document(self) -> dict[str, Any]:
        """For plan.json."""
        return {**asdict(self), "nodes": list(self.nodes)}

    @staticmethod
    def read(facts: Mapping[str, Any] | None) -> CostOrigin | None:
        """Of a document, or of nothing."""
        return CostOrigin(**{**facts, "nodes": tuple(facts["nodes"])}) if facts is not None else None
