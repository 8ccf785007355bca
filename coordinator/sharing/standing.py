"""What runs: the query, the cluster and every choice made, rebuilt from plan.json alone, for whoever changes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coordinator import plan_inputs, yaml_file
from coordinator.cluster import Cluster
from coordinator.errors import BadInputError, Problem
from coordinator.query import Member, Query
from coordinator.sharing import compose
from coordinator.sharing.compose import Composite


@dataclass(frozen=True)
class Standing:
    """A plan as values. Query and cluster are what planning uses of the files; `types` of every stream; `members`: what
    belongs to which query; `place` and `sub_deadlines_ns` of every operator."""

    query: Query
    cluster: Cluster
    types: Mapping[str, str]
    members: Mapping[str, Member]
    place: Mapping[str, str]
    sub_deadlines_ns: Mapping[str, int]

    @property
    def composite(self) -> Composite:
        """Its queries, for `compose.extend` and `compose.without`."""
        return compose.of(self.query)


def read(plan: Mapping[str, Any], path: Path = Path("plan.json")) -> Standing:
    """Of a parsed and verified plan; `path`: what it is called in messages. Raises BadInputError for a plan that does
    not say which queries it runs, or what its cluster has installed."""
    if "queries" not in plan or "installed" not in plan["cluster"]:
        text = "was made before plans held several queries; make it again with 'coordinator plan'"
        raise BadInputError([Problem(str(path), 0, text)])
    file = yaml_file.Source(path, b"", {})
    query = plan_inputs.query(plan, file)
    return Standing(
        query,
        plan_inputs.cluster(plan, file),
        {name: str(facts["type"]) for name, facts in plan["graph"]["streams"].items()},
        query.parts,
        dict(plan["placement"]),
        dict(plan["sub_deadlines_ns"]),
    )
