"""Choices of a user beside the query and the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from coordinator.model.incumbent import Incumbent
from coordinator.model.limits import Limits
from coordinator.model.task_units import Units
from coordinator.spec.cluster import Cluster
from coordinator.spec.runtime_charges import MEASURED, RuntimeOverhead

Allocator = Literal["deadline", "sqpr"]
Model = Literal["sound", "paper"]
SubDeadlines = Literal["model", "deadline", "proportional"]  # where the allocator `sqpr` takes them from


@dataclass(frozen=True)
class Choices:
    """What a user may choose beside the two files. `place`: operators held to a node; `policy` overrides every
    node's, written like bts:phi=100ms,k=5; `charges`: what bounds charge for the runtime; `tighten`: the output whose
    bound is made as small as the others allow; `survive`: how many nodes may fail; `best_effort`: a plan even where no
    guarantee is possible; `quick`: without alternatives and without reasons, for planning again and again;
    `conflicts`: operators that may not all be in these places; `incumbent`: what runs already and stays as it is;
    `loading_ns`: the longest stretch of loading another plan that has to have room as well (model `sound`)."""

    allocator: Allocator = "deadline"
    model: Model = "sound"
    units: Units = "path"
    policy: str | None = None
    place: dict[str, str] = field(default_factory=dict)
    sub_deadlines: SubDeadlines = "model"
    limits: Limits = field(default_factory=Limits)
    charges: RuntimeOverhead = MEASURED
    tighten: str | None = None
    survive: int = 0
    best_effort: bool = False
    quick: bool = False
    conflicts: tuple[Mapping[str, frozenset[str]], ...] = ()
    incumbent: Incumbent = field(default_factory=Incumbent)
    loading_ns: int = 0

    def held(self, cluster: Cluster) -> dict[str, str]:
        """Operators that are not free, and where they are: by choice, or since they run there."""
        return {**self.place, **self.incumbent.exact({node.name: node.cores for node in cluster.nodes.values()})}
