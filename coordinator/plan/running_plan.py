"""Running plan: the query, the cluster and every choice made, rebuilt from plan.json alone for the next change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from coordinator.plan import reopen
from coordinator.spec.cluster import Cluster
from coordinator.spec.files import yaml_source
from coordinator.spec.query import Query
from coordinator.spec.sharing import compose
from coordinator.spec.sharing.compose import Composite
from protos.plan.queries import QueryPart
from protos.plan_document import Plan


@dataclass(frozen=True)
class RunningPlan:
    """A plan as values. Query and cluster are what planning uses of the files; `types` of every stream; `members`: what
    belongs to which query; `place` and `sub_deadlines_ns` of every operator."""

    query: Query
    cluster: Cluster
    types: Mapping[str, str]
    members: Mapping[str, QueryPart]
    place: Mapping[str, str]
    sub_deadlines_ns: Mapping[str, int]

    @property
    def composite(self) -> Composite:
        """Its queries, for `compose.extend` and `compose.without`."""
        return compose.of(self.query)


def read(plan: Plan, path: Path = Path("plan.json")) -> RunningPlan:
    """Of a plan; `path`: what it is called in messages."""
    file = yaml_source.Source(path, b"", {})
    query = reopen.query(plan, file)
    return RunningPlan(
        query,
        reopen.cluster(plan, file),
        {name: facts.type for name, facts in plan.graph.streams.items()},
        query.parts,
        plan.placement,
        plan.sub_deadlines_ns,
    )
