"""plan.json: built from an allocation, written, loaded and verified. `protos.plan_document` says what is in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from google.protobuf import json_format

from coordinator import graph, places, policies, windowed
from coordinator.cluster import Cluster
from coordinator.deadline_parts import MISSED, standing
from coordinator.errors import BadInputError, Problem, unwritable
from coordinator.guarantee import bounds, policing, system
from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.charges import MEASURED, Charges
from coordinator.local_plan import Layout
from coordinator.placement.deadline import Allocation
from coordinator.placement.flows import mean_selectivity
from coordinator.placement.kept import Kept
from coordinator.placement.progress import relative_gap
from coordinator.query import Operator, Query
from coordinator.yaml_file import nearest
from protos import plan_document, plan_pb2
from protos.plan_document import VERSION, NotJsonError, PlanFileError, digest

PARTS = ("window", "on_late", "queue")  # of operators that have them
LARGEST_PLAN = 64 << 20
Plan = dict[str, Any]
Alternatives = Mapping[
    str, Mapping[str, Mapping[str, Any] | None]
]  # operator, other node: its NLR and traffic, and whether it is guaranteed; None: infeasible


def build(
    layout: Layout,
    allocation: Allocation,
    allocator: str,
    solver: dict[str, Any],
    held: dict[str, str],
    alternatives: Alternatives,
    charges: Charges = MEASURED,
    model: str = "paper",
    paper: dict[str, Any] | None = None,
    kept: Kept | None = None,
) -> Plan:
    """The whole plan as JSON values, with its hash. `held`: operators that the caller held to a node; `charges`: what
    the bounds charge for the runtime; `paper`: what the `paper` model would have chosen, where another was used;
    `kept`: what runs already and stays as it is."""
    query, cluster = layout.query, layout.cluster
    plan: Plan = {
        "shimekiri": VERSION,
        "query": query.name,
        "queries": members(query),
        "status": "optimal" if allocation.proven else "feasible",
        "allocator": allocator,
        "model": model if allocator == "deadline" else "sqpr",
        "units": layout.grouping,
        "solver": {**solver, "gap": _gap(allocation), "sub_deadlines": allocation.sub_deadlines},
        "inputs": {"query": query.sha256, "cluster": cluster.sha256, "operators": cluster.catalog.sha256},
        "objective": _objective(allocation),
        "sub_deadlines_ns": {operator.name: layout.sub_deadline_ns[operator.name] for operator in query.operators},
        "held": held,
        "alternatives": alternatives,
        "tasks": {
            node: [
                {
                    "id": unit_id,
                    "operators": list(members),
                    "sub_deadline_ns": sum(layout.sub_deadline_ns[name] for name in members),
                }
                for unit_id, members in tasks
            ]
            for node, tasks in layout.tasks.items()
        },
        **facts(layout),
    }
    if origins := {one.name: one.cost_from.document() for one in query.operators if one.cost_from}:
        plan["costs"] = origins
    if paper is not None:
        plan["paper"] = paper
    if kept is not None and (kept.place or kept.spared):
        plan["kept"] = kept.document()
    analysis = analyse(system.read(plan), charges)
    plan["guarantee"], plan["analysis"] = bounds.analysed(analysis)
    free = [node.name for node in cluster.nodes.values() if node.policy is None and layout.tasks[node.name]]
    if free and not any(_promised(claim) for claim in plan["guarantee"].values()):
        under_edf = plan["guarantee"]
        plan |= {"policy_why": policies.why_best(free), **facts(replace(layout, policy=policies.BEST))}
        analysis = analyse(system.read(plan), charges)
        plan["guarantee"], plan["analysis"] = bounds.analysed(analysis)
        for name, claim in plan["guarantee"].items():
            claim["why"] += f"; under edf: {under_edf[name]['why']}"
    if plan["model"] == "sound":  # a guarantee that a source could break would be none
        policing.enforce(plan, analysis)
    plan["hash"] = digest(plan)
    return plan


def _promised(claim: Mapping[str, Any]) -> bool:
    """Whether an output is promised anything: its deadline, or at least that from admission on."""
    bound_ns = claim["bound_ns"]
    return standing(claim) != MISSED or (bound_ns is not None and bound_ns <= claim["deadline_ns"])


def facts(layout: Layout) -> Plan:
    """The part of a plan that says what runs where, all that its guarantee is computed from."""
    query, cluster = layout.query, layout.cluster
    return {
        "placement": {operator.name: layout.place[operator.name] for operator in query.operators},
        "graph": _graph(layout, query),
        "cluster": _cluster(layout, cluster),
        "nodes": {
            node.name: json_format.MessageToDict(layout.local_plan(node), preserving_proto_field_name=True)
            for node in cluster.nodes.values()
        },
    }


def _objective(allocation: Allocation) -> dict[str, float]:
    """NLR, what it is at least, and traffic; where that is not proven the least, what it is at least."""
    found = {"nlr": allocation.nlr, "bound": allocation.bound, "traffic": float(allocation.traffic)}
    if not allocation.proven and allocation.traffic_bound is not None:
        found["traffic_bound"] = round(allocation.traffic_bound, 6)
    return found


def _gap(allocation: Allocation) -> float:
    """Relative gap of the NLR to its bound, absolute where the bound is 0; of model `sound`, of the traffic."""
    if allocation.sub_deadlines == "sound" and not allocation.proven:
        return round(relative_gap(float(allocation.traffic), allocation.traffic_bound or 0.0), 6)
    if allocation.sub_deadlines != "model":
        return 0.0
    return round((allocation.nlr - allocation.bound) / (allocation.bound or 1.0), 6)


def members(query: Query) -> dict[str, Any]:
    """What belongs to which query, by names in the plan; `called`: what its file calls an operator, where that
    differs."""
    return {
        name: {
            "sources": list(part.sources),
            "operators": list(part.operators),
            "outputs": list(part.outputs),
            "sha256": part.sha256,
            "called": dict(part.called),
        }
        for name, part in query.parts.items()
    }


def _graph(layout: Layout, query: Query) -> dict[str, Any]:
    return {
        "sources": {
            source.name: {
                "id": number,
                "at": source.at,
                "type": source.type,
                "stream": layout.stream_id[source.name],
                "max_age_ns": source.max_age_ns,
                "arrival": dict(source.arrival.written),
                "forbid_streams": [list(pair) for pair in source.forbidden],
                **({"limit": source.limit.document()} if source.limit else {}),
                **({"on_full": source.on_full} if source.on_full != "refuse" else {}),
            }
            for number, source in enumerate(query.sources, start=1)
        },
        "operators": {operator.name: _operator(layout, operator) for operator in query.operators},
        "outputs": {
            output.name: {
                "id": number,
                "from": output.origin,
                "at": output.at,
                "deadline_ns": output.deadline_ns,
                **({"qos": output.qos.document()} if output.qos else {}),
            }
            for number, output in enumerate(query.outputs, start=1)
        },
        "streams": {name: {"id": number, "type": layout.types[name]} for name, number in layout.stream_id.items()},
        **({"windows": windowed.documents(layout)} if layout.windows else {}),
    }


def _operator(layout: Layout, operator: Operator) -> dict[str, Any]:
    declared = operator.selectivity
    selectivity: dict[str, Any] | None = None
    if declared is not None:
        selectivity = {"mean": declared.mean, "at_most": [list(pair) for pair in declared.at_most]}
    elif operator.run == "filter":
        keep, of = operator.parameters.get("keep", 1), operator.parameters.get("of", 2)
        selectivity = {"mean": float(mean_selectivity(operator)), "at_most": [[of, keep]]}
    return {
        "id": layout.operator_id[operator.name],
        "run": operator.run,
        "in": layout.ordered_inputs(operator),
        "ports": list(operator.ports) if operator.ports is not None else None,
        "side": dict(operator.side),
        "cost_ns": operator.cost_ns,
        "selectivity": selectivity,
        "nodes": list(places.allowed(operator, layout.cluster)) if operator.nodes or operator.barred else None,
        "forbid_nodes": list(operator.barred),
        "memory_bytes": operator.memory_bytes,
        "with": dict(operator.parameters),
        "kind": graph.kind(operator, layout.cluster.catalog),
        "join": layout.joins(operator),
        "stream": layout.stream_id[operator.name],
        "hang_ns": operator.hang_ns,
        "state": operator.state,
        "forbid_streams": [list(pair) for pair in operator.forbidden],
        **({"called": list(operator.called)} if operator.called is not None else {}),
        **{name: given.document() for name in PARTS if (given := getattr(operator, name)) is not None},
        **({"closes": operator.closes} if operator.closes else {}),
    }


def _cluster(layout: Layout, cluster: Cluster) -> dict[str, Any]:
    return {
        "nodes": {
            node.name: {
                "index": node.index,
                "address": node.address,
                "speed": float(node.speed),
                "host": node.host,
                "core": node.core,
                "cores": node.cores,
                "memory_bytes": node.memory_bytes,
                "host_memory_bytes": node.host_memory_bytes,
                "cap": float(node.cap),
                **policies.facts(node.policy, layout.policy),
                "emulate_cost_ns": node.emulate_cost_ns,
                "cpu": node.cpu,
                **({"charges": node.charges.document()} if node.charges is not None else {}),
            }
            for node in cluster.nodes.values()
        },
        "links": [
            {"between": list(link.between), "latency_ns": link.latency_ns, "bandwidth_bps": link.bandwidth_bps}
            for link in cluster.links
        ],
        "security": cluster.security,
        "installed": cluster.catalog.document(),
    }


def write(plan: plan_document.Plan | Plan, path: Path) -> None:
    """Writes the plan, readable, through a temporary file beside it, so that a reader never sees half of it."""
    values = plan.to_json() if isinstance(plan, plan_document.Plan) else plan
    text = json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if path.is_dir():
        raise BadInputError([Problem(str(path), 0, "is a directory; give the path of a file, like plan.json")])
    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise unwritable(path, error) from error


def load(path: Path) -> Plan:
    """A plan as parsed JSON, read and verified as by `read`."""
    return read(path).to_json()


def read(path: Path) -> plan_document.Plan:
    """Reads and verifies a plan. Raises BadInputError where it is not one, is of another version, or its hash is
    wrong."""

    def refuse(text: str) -> BadInputError:
        return BadInputError([Problem(str(path), 0, f"{text}; make it again with 'coordinator plan'")])

    try:
        if path.stat().st_size > LARGEST_PLAN:
            raise refuse(f"has more than {LARGEST_PLAN} bytes")
        return plan_document.parse(path.read_bytes())
    except OSError as error:
        text = f"cannot be read ({error.strerror or error}); 'coordinator plan query.yaml cluster.yaml' makes a plan"
        raise BadInputError([Problem(str(path), 0, text)]) from error
    except NotJsonError as error:
        if path.suffix in (".yaml", ".yml"):
            text = "is YAML, not a plan; give the plan.json that 'coordinator plan' makes of a query and a cluster"
            raise BadInputError([Problem(str(path), 0, text)]) from error
        raise refuse(error.text) from error
    except PlanFileError as error:
        raise refuse(error.text) from error


def local_plan(plan: Plan, node: str) -> plan_pb2.LocalPlan:
    """One node's part of a plan. Raises KeyError for a node the plan does not have."""
    return json_format.ParseDict(plan["nodes"][node], plan_pb2.LocalPlan())


def after(plan: plan_document.Plan, host: str, path: Path) -> tuple[plan_document.Plan, Path]:
    """The fail-over plan for a host, and where it was written, beside the plan that it is part of. Raises BadInputError
    where there is none."""

    def refuse(text: str) -> BadInputError:
        return BadInputError([Problem(str(path), 0, text)])

    if plan.failover is None:
        raise refuse("has no fail-over plans; make it again with 'coordinator plan --survive 1'")
    if host not in plan.failover:
        raise refuse(f"has no fail-over plan without '{host}'{nearest(host, plan.failover)}")
    found = plan.failover[host].plan
    if found is None:
        raise refuse(f"without '{host}' no output is left, so there is nothing to deploy")
    if digest(found.to_json()) != found.hash:
        raise refuse(f"its fail-over plan without '{host}' was changed after it was made; make it again")
    beside = path.with_name(f"{path.stem}-without-{host}{path.suffix}")
    write(found, beside)
    return found, beside
