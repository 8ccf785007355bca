"""Where the costs in a plan come from, and what was measured of them."""

from __future__ import annotations

from dataclasses import dataclass

from protos.json_shape import omitted


@dataclass(frozen=True, slots=True, kw_only=True)
class CostDistribution:
    """Measured calls of an operator on one node. calls: how many in each bucket, ascending, by its upper end in ns of
    that node's time, at its speed."""

    node: str
    speed: float
    calls: tuple[tuple[int, int], ...]

    @property
    def samples(self) -> int:
        """Calls in all."""
        return sum(calls for _, calls in self.calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostOrigin:
    """Where a cost comes from that is not simply as declared. declared_ns: what the query says, 0: nothing; of: the
    figure of `file` that was taken, times `margin`; samples: the least of the `nodes`; why: what is wrong with it;
    distributions: where an output asks for a bound with a confidence, one for each node."""

    kind: str
    declared_ns: int = 0
    file: str = ""
    of: str = ""
    margin: str = ""
    samples: int = 0
    nodes: tuple[str, ...] = ()
    measured: str = ""
    why: str = ""
    distributions: tuple[CostDistribution, ...] = omitted(())
