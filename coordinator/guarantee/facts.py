"""Facts that a guarantee is computed from: the parts of a plan that say what runs where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from protos.plan_document import Cluster, Graph
from protos.plan_pb2 import LocalPlan


class Facts(Protocol):
    """Of a whole plan, or of one that is only thought of; as `protos.plan_document.Plan` has them."""

    @property
    def placement(self) -> Mapping[str, str]: ...

    @property
    def graph(self) -> Graph: ...

    @property
    def cluster(self) -> Cluster: ...

    @property
    def nodes(self) -> Mapping[str, LocalPlan]: ...
