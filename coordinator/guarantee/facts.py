"""Facts that a guarantee is computed from: the parts of a plan that say what runs where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from protos.plan.cluster import Cluster
from protos.plan.graph import Graph
from protos.plan_pb2 import LocalPlan


class Facts(Protocol):
    """Of a whole plan, or of one that is only thought of; as `protos.plan_document.Plan` has them."""

    @property
    def placement(self) -> Mapping[str, str]:
        """The node of every operator, by names."""

    @property
    def graph(self) -> Graph:
        """The query: operators, streams, sources and outputs."""

    @property
    def cluster(self) -> Cluster:
        """Nodes and links with their declared limits."""

    @property
    def nodes(self) -> Mapping[str, LocalPlan]:
        """The local plan of every node, by the node's name."""
