"""The audit's second half: the local plans of the nodes say the same as the plan."""

from __future__ import annotations

from typing import Any

from google.protobuf import json_format

from protos import plan_pb2

LARGEST_EXITS = 4
Plan = dict[str, Any]


def sends(plan: Plan) -> dict[str, list[tuple[str, str]]]:
    """From the local plans: the pairs of nodes over which each stream is sent."""
    names = {facts["index"]: name for name, facts in plan["cluster"]["nodes"].items()}
    streams = {facts["id"]: name for name, facts in plan["graph"]["streams"].items()}
    hops: dict[str, list[tuple[str, str]]] = {}
    for node, local in plan["nodes"].items():
        for send in local.get("sends", []):
            stream = streams.get(send["stream"], f"number {send['stream']}")
            hops.setdefault(stream, []).append((node, names[send.get("peer", 0)]))
    return hops


def local_plans(plan: Plan) -> list[str]:
    """Violations of every node's local plan."""
    if set(plan["nodes"]) != set(plan["cluster"]["nodes"]):
        return ["the local plans are not those of the cluster's nodes"]
    found = []
    for node in plan["nodes"]:
        try:
            local = json_format.ParseDict(plan["nodes"][node], plan_pb2.LocalPlan())
        except json_format.ParseError as error:
            found.append(f"node {node}: its local plan cannot be read: {error}")
            continue
        found += [f"node {node}: {text}" for text in _local(plan, node, local)]
    return found


def _local(plan: Plan, node: str, local: plan_pb2.LocalPlan) -> list[str]:
    graph, facts = plan["graph"], plan["cluster"]["nodes"][node]
    ids = {name: stream["id"] for name, stream in graph["streams"].items()}
    found = []
    if (local.node, local.index, local.policy.name) != (node, facts["index"], facts["policy"]):
        found.append("its local plan is of another node, number or policy")
    held = {operator.name: operator for operator in local.operators}
    if set(held) != {name for name, at in plan["placement"].items() if at == node}:
        found.append("its local plan does not hold the operators placed on it")
    for name, operator in held.items():
        stated = graph["operators"].get(name)
        if stated is None or (
            operator.id != stated["id"]
            or operator.run != stated["run"]
            or list(operator.inputs) != [ids[one] for one in stated["in"]]
            or {side.port: side.stream for side in operator.sides} != {p: ids[s] for p, s in stated["side"].items()}
            or operator.cost_ns != stated["cost_ns"]
            or operator.output != stated["stream"]
            or operator.join != stated["join"]
            or operator.sub_deadline_ns != plan["sub_deadlines_ns"][name]
        ):
            found.append(f"operator {name} differs from the plan's")
    outputs = {(o["id"], ids[o["from"]], o["deadline_ns"]) for o in graph["outputs"].values() if o["at"] == node}
    if {(output.id, output.stream, output.deadline_ns) for output in local.outputs} != outputs:
        found.append("its outputs differ from the plan's")
    sources = {(s["id"], s["stream"], s["max_age_ns"]) for s in graph["sources"].values() if s["at"] == node}
    if {(source.id, source.stream, source.max_age_ns) for source in local.sources} != sources:
        found.append("its sources differ from the plan's")
    return found + _streams(plan, node, local) + _units(plan, node, local)


def _streams(plan: Plan, node: str, local: plan_pb2.LocalPlan) -> list[str]:
    """A stream is listed where it is produced or arrives, and whoever sends it is its producer."""
    graph, index = plan["graph"], {name: facts["index"] for name, facts in plan["cluster"]["nodes"].items()}
    arriving: dict[str, set[int]] = {}
    for name, pairs in sends(plan).items():
        for one, end in pairs:
            if end == node:
                arriving.setdefault(name, set()).add(index[one])
    own = {name for name, at in plan["placement"].items() if at == node}
    own |= {name for name, source in graph["sources"].items() if source["at"] == node}
    listed = {stream.name: stream for stream in local.streams}
    found = []
    if set(listed) != own | set(arriving):
        found.append("its streams are not those that it produces or receives")
    for name, stream in listed.items():
        if set(stream.producers) != arriving.get(name, set()) or stream.id != graph["streams"][name]["id"]:
            found.append(f"stream {name} has other producers or another id than the plan's")
        if stream.codec != graph["streams"][name]["type"]:
            found.append(f"stream {name} has another codec than the plan's")
    neighbours = {end for pairs in sends(plan).values() for one, end in pairs if one == node}
    neighbours |= {one for pairs in sends(plan).values() for one, end in pairs if end == node}
    if {peer.name for peer in local.peers} != neighbours:
        found.append("its peers are not those that it sends to or receives from")
    return found


def _units(plan: Plan, node: str, local: plan_pb2.LocalPlan) -> list[str]:
    """The units are the plan's tasks; exits are the streams with a consumer beside the next operator, at most four."""
    graph, names = plan["graph"], {stream["id"]: name for name, stream in plan["graph"]["streams"].items()}
    operators = {operator["id"]: name for name, operator in graph["operators"].items()}
    stated = [(task["id"], task["operators"], task["sub_deadline_ns"]) for task in plan["tasks"][node]]
    units = [(unit.id, [operators.get(one) for one in unit.operators], unit.sub_deadline_ns) for unit in local.units]
    if units != stated:
        return ["its units are not the plan's tasks"]
    found, sent = [], {name for name, pairs in sends(plan).items() for one, _ in pairs if one == node}
    for unit in local.units:
        members = [operators[one] for one in unit.operators]
        leaving = []
        for position, name in enumerate(members):
            following = members[position + 1] if position + 1 < len(members) else None
            read = any(
                name in op["side"].values() or (name in op["in"] and reader != following)
                for reader, op in graph["operators"].items()
                if plan["placement"][reader] == node
            )
            delivered = any(o["from"] == name and o["at"] == node for o in graph["outputs"].values())
            if read or delivered or name in sent:
                leaving.append(name)
        if [names.get(one) for one in unit.exits] != leaving:
            found.append(f"unit {unit.id} has other exits than the streams that leave it")
        if len(unit.exits) > LARGEST_EXITS:
            found.append(f"unit {unit.id} has more than {LARGEST_EXITS} exits")
        if unit.deadline_ns != _least(plan, members[0]):
            found.append(f"unit {unit.id} has another deadline than the least of the outputs that it leads to")
    return found


def _least(plan: Plan, name: str) -> int:
    """The least deadline of the outputs that an operator leads to through trigger inputs; 0: none."""
    graph, reached, waiting = plan["graph"], {name}, [name]
    while waiting:
        current = waiting.pop()
        for reader, operator in graph["operators"].items():
            if current in operator["in"] and reader not in reached:
                reached.add(reader)
                waiting.append(reader)
    return min((o["deadline_ns"] for o in graph["outputs"].values() if o["from"] in reached), default=0)
