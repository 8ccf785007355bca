"""plan.json as typed objects: with its parts in `plan/`, the sole definition of its keys.

Self-contained: nothing else is needed to run a plan. Its hash is the SHA-256 of the canonical JSON without the key
`hash` (sorted keys, no spaces, UTF-8, no NaN). Neither wall time nor solve time stands in it, so the same input gives
the same hash. `deadline_ns` is end to end, from a tuple's origin to its result; `sub_deadline_ns` is a task unit's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from protos import digests, plan_pb2
from protos.json_shape import ShapeError, coded, omitted, read, write
from protos.plan.analysis import Analysis
from protos.plan.cluster import Cluster
from protos.plan.costs import CostOrigin
from protos.plan.graph import Graph
from protos.plan.guarantee import (
    Claim,
)
from protos.plan.queries import Inputs, QueryPart
from protos.plan.search import (
    Alternative,
    IncumbentPart,
    Objective,
    PaperChoice,
    Solver,
    Task,
)

VERSION = 1
PlanFault = Literal["not_json", "not_a_plan", "other_version", "not_finite", "changed"]


class PlanFileError(ValueError):
    """Not a plan, of another version, or changed since it was made. path: the keys that lead to what is wrong."""

    def __init__(self, code: PlanFault, text: str, path: str = "") -> None:
        super().__init__(text)
        self.code, self.text, self.path = code, text, path


@dataclass(frozen=True, slots=True, kw_only=True)
class Survivor:
    """The plan for the time after one host has failed, and what is lost then. plan: None: no output is left."""

    lost_outputs: tuple[str, ...]
    lost_sources: tuple[str, ...]
    lost_operators: tuple[str, ...]
    lost_sides: Mapping[str, tuple[str, ...]]
    moved: Mapping[str, str]
    plan: Plan | None


def _local_plans(values: Any, path: str) -> Mapping[str, plan_pb2.LocalPlan]:
    """Of proto-JSON. Raises ShapeError."""
    if not isinstance(values, dict):
        raise ShapeError(path, "is not an object")
    from google.protobuf import json_format  # not needed to check a query

    found = {}
    for node, local in values.items():
        try:
            found[node] = json_format.ParseDict(local, plan_pb2.LocalPlan())
        except (json_format.ParseError, AttributeError, TypeError, ValueError) as error:
            why = str(error).partition("\n")[0]  # the rest lists what protobuf knows
            raise ShapeError(f"{path}.{node}", f"is no node's part of a plan: {why}") from None
    return found


def _local_plans_json(plans: Mapping[str, plan_pb2.LocalPlan]) -> dict[str, Any]:
    from google.protobuf import json_format

    return {node: json_format.MessageToDict(one, preserving_proto_field_name=True) for node, one in plans.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A whole plan. units: path or operator; placement: operator -> node; nodes: what runs on each; held: operators
    that were held to a node; alternatives: what other nodes would
    bring, None: no plan; apart_why: why what queries have in common does not run once."""

    shimekiri: int
    query: str
    queries: Mapping[str, QueryPart]
    status: Literal["optimal", "feasible"]
    allocator: Literal["deadline", "sqpr"]
    model: Literal["sound", "paper", "sqpr"]
    units: Literal["path", "operator"]
    solver: Solver
    inputs: Inputs
    objective: Objective
    sub_deadlines_ns: Mapping[str, int]
    held: Mapping[str, str]
    alternatives: Mapping[str, Mapping[str, Alternative | None]]
    tasks: Mapping[str, tuple[Task, ...]]
    placement: Mapping[str, str]
    graph: Graph
    cluster: Cluster
    nodes: Mapping[str, plan_pb2.LocalPlan] = coded(_local_plans, _local_plans_json)
    costs: Mapping[str, CostOrigin] | None = omitted()
    paper: PaperChoice | None = omitted()
    kept: IncumbentPart | None = omitted()
    guarantee: Mapping[str, Claim]
    analysis: Analysis
    policy_why: str = omitted("")
    apart_why: str = omitted("")
    hash: str
    failover: Mapping[str, Survivor] | None = omitted()

    @property
    def intact(self) -> bool:
        """Whether it is as it was made: its hash is that of the rest."""
        try:
            return digest(write(self)) == self.hash
        except ValueError:  # numbers that are not finite, half of a surrogate pair
            return False

    def canonical(self) -> bytes:
        """The bytes that are hashed."""
        return canonical(self.to_json())

    def sealed(self) -> Plan:
        """With its hash."""
        return replace(self, hash=digest(self.to_json()))

    def to_json(self) -> dict[str, Any]:
        """As parsed JSON, keys in the order of the fields."""
        values: dict[str, Any] = write(self)
        return values

    def text(self) -> str:
        """As the file has it: readable, keys in the order of the fields."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def canonical(values: Mapping[str, Any]) -> bytes:
    """The bytes that are hashed, of parsed JSON."""
    rest = {name: value for name, value in values.items() if name != "hash"}
    return json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest(values: Mapping[str, Any]) -> str:
    """The hash of parsed JSON, 64 hex digits. Raises ValueError for a number that is not finite."""
    return digests.sha256(canonical(values)).hexdigest()


def shaped(values: Any) -> Plan:
    """A plan of parsed JSON; its hash is not compared. Raises PlanFileError: no plan, another version, other keys."""
    if not isinstance(values, dict) or "shimekiri" not in values:
        raise PlanFileError("not_a_plan", "is not a plan")
    if values["shimekiri"] != VERSION:
        text = f"is a plan of version {values['shimekiri']}, this reads version {VERSION}"
        raise PlanFileError("other_version", text, "shimekiri")
    try:
        return read(Plan, values)
    except ShapeError as error:
        raise PlanFileError("not_a_plan", f"is not a plan: {error}", error.path) from None


def of(values: Any) -> Plan:
    """A plan of parsed JSON. Raises PlanFileError: no plan, another version, keys that are not its, a wrong hash."""
    plan = shaped(values)
    try:
        found = digest(values)
    except ValueError:
        raise PlanFileError("not_finite", "holds a number that is not finite") from None
    if found != plan.hash:
        told = f"its hash is {found[:8]}, but it says {plan.hash[:8]}"
        raise PlanFileError("changed", f"was changed after it was made: {told}", "hash")
    return plan


def parse(data: bytes) -> Plan:
    """A plan of a file's bytes. Raises PlanFileError."""
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise PlanFileError("not_json", f"is not JSON ({error})") from None
    return of(values)
