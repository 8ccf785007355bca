"""The audit's second half: the local plans of the nodes say the same as the plan, in every field."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from coordinator.guarantee import policing
from coordinator.guarantee.system import read
from coordinator.plan import policy_choice
from coordinator.plan.service_curves import CURVES
from coordinator.solve.audit.audit_overload import onward, overload
from coordinator.spec.catalog import BUILTIN
from protos import plan_pb2
from protos.plan.operators import Operator, SideRule
from protos.plan.sources import Connector, Pull
from protos.plan_document import Plan

VERSION = 1  # of local plans
LARGEST_EXITS = 4


def sends(plan: Plan) -> dict[str, list[tuple[str, str]]]:
    """From the local plans: the pairs of nodes over which each stream is sent."""
    names = {facts.index: name for name, facts in plan.cluster.nodes.items()}
    streams = {facts.id: name for name, facts in plan.graph.streams.items()}
    hops: dict[str, list[tuple[str, str]]] = {}
    for node, local in plan.nodes.items():
        for send in local.sends:
            number, peer = send.stream, send.peer
            hops.setdefault(streams.get(number, f"number {number}"), []).append(
                (node, names.get(peer, f"number {peer}"))
            )
    return hops


def local_plans(plan: Plan) -> list[str]:
    """Violations of every node's local plan."""
    if set(plan.nodes) != set(plan.cluster.nodes):
        return ["the local plans are not those of the cluster's nodes"]
    found = []
    for node, local in plan.nodes.items():
        found += [f"node {node}: {text}" for text in _local(plan, node, local)]
    return found


def _local(plan: Plan, node: str, local: plan_pb2.LocalPlan) -> list[str]:
    facts = plan.cluster.nodes[node]
    found = []
    if (local.version, local.query, local.node, local.index) != (VERSION, plan.query, node, facts.index):
        found.append("its local plan is of another version, query, node or number")
    named = policy_choice.of_node(facts)
    if local.policy != plan_pb2.Policy(name=named.name, **{"largest_batch": 1, **named.parameters}):
        found.append(f"it does not run {named.written}, as the plan says")
    stated = (facts.memory_bytes, facts.emulate_cost_ns, facts.cpu)
    if (local.memory_bytes, local.emulate_cost_ns, local.cpu) != stated:
        found.append("its memory, emulated cost or core is not the cluster's")
    return (
        found
        + _operators(plan, node, local)
        + _installed(plan, local)
        + _ends(plan, node, local)
        + _policed(plan, local)
        + _streams(plan, node, local)
        + _units(plan, node, local)
        + overload(plan, node, local)
    )


def _operators(plan: Plan, node: str, local: plan_pb2.LocalPlan) -> list[str]:
    graph, found = plan.graph, []
    ids = {name: stream.id for name, stream in graph.streams.items()}
    held = {operator.name: operator for operator in local.operators}
    if set(held) != {name for name, at in plan.placement.items() if at == node}:
        found.append("its local plan does not hold the operators placed on it")
    for name, operator in held.items():
        stated = graph.operators.get(name)
        if stated is None or (
            operator.id != stated.id
            or operator.run != stated.run
            or list(operator.inputs) != [ids[one] for one in stated.inputs]
            or list(operator.called) != list(stated.called or ())
            or {side.port: side.stream for side in operator.sides} != {p: ids[s] for p, s in stated.side.items()}
            or any(_rule(side) != stated.side_rules.get(side.port, SideRule()) for side in operator.sides)
            or operator.cost_ns != stated.cost_ns
            or operator.output != stated.stream
            or operator.join != stated.join
            or not _same_sync(operator, stated)
            or operator.hang_ns != stated.hang_ns
            or _parameters(operator) != stated.parameters
            or operator.sub_deadline_ns != plan.sub_deadlines_ns[name]
            or {(pair.inputs, pair.results) for pair in operator.at_most} != _held_to(plan, stated)
        ):
            found.append(f"operator {name} differs from the plan's")
    return found


def _installed(plan: Plan, local: plan_pb2.LocalPlan) -> list[str]:
    """The node is told the identities of all that its operators run, as they were known when the plan was made."""
    runs = {operator.run for operator in local.operators}
    runs |= {run for operator in local.operators for run in (operator.late.run, operator.window.size) if run}
    runs |= {source.pull.run for source in local.sources if source.pull.run}
    known = {run: (run, one.version, one.code) for run, one in BUILTIN.items()}
    known |= {run: (run, one.version, one.code) for run, one in plan.cluster.installed.operators.items()}
    stated = [known[run] for run in sorted(runs) if run in known]
    held = [(each.run, each.version, each.code) for each in local.installed]
    return [] if held == stated else ["the operators that it needs installed are not those that the plan was made for"]


def _rule(side: plan_pb2.Side) -> SideRule:
    return SideRule(max_age_ns=side.max_age_ns, shed=side.shed)


def _same_sync(operator: plan_pb2.Operator, stated: Operator) -> bool:
    held, said = operator.sync, stated.sync
    if said is None:
        return not operator.HasField("sync")
    within_ns = held.within_ns if held.by_stamp else None
    told = (within_ns, held.timeout_ns, held.keep, held.each)
    return told == (said.within_ns, said.timeout_ns, said.keep, said.each)


def _held_to(plan: Plan, stated: Operator) -> set[tuple[int, int]]:
    """What an operator's results are policed by, in plans of model `sound` only: its pairs, and one per input where
    none allows more."""
    if stated.window is not None:
        return set()  # it has no results
    pairs = set(stated.declared.at_most)
    if plan.model != "sound" or (not pairs and stated.declared.mean > 1):
        return set()
    pairs |= {(1, 1)} if all(results <= inputs for inputs, results in pairs) else set()
    return pairs if len(pairs) <= policing.MOST_PAIRS else set()


def _policed(plan: Plan, local: plan_pb2.LocalPlan) -> list[str]:
    """Sources are policed in plans of model `sound`, by what the analysis says, or it says why not."""
    told = (plan.analysis.policing or {}) if plan.model == "sound" else {}
    system = read(plan) if any(source.window for source in local.sources) else None
    found = []
    for source in local.sources:
        stated, held = plan.graph.sources.get(source.name), told.get(source.name)
        expected = plan_pb2.Source()
        if stated is not None and held is not None and not held.why:
            expected = policing.declared_limits(stated.arrival, held.jitter_ns, held.horizon_ns)
        elif system is not None and source.name in system.windows and held is not None and not held.why:
            windows, jitter_ns, horizon_ns = system.windows[source.name], held.jitter_ns, held.horizon_ns
            expected = policing.closing_promise(plan.graph, system, windows, jitter_ns, horizon_ns, told)
        if (list(source.paces), list(source.spans)) != (list(expected.paces), list(expected.spans)):
            found.append(f"source {source.name} is held to other arrivals than the plan's")
    return found


def _parameters(operator: plan_pb2.Operator) -> Any:
    try:
        return json.loads(operator.with_json)
    except ValueError:
        return None


def _ends(plan: Plan, node: str, local: plan_pb2.LocalPlan) -> list[str]:
    """Sources, outputs and peers."""
    graph, found = plan.graph, []
    ids = {name: stream.id for name, stream in graph.streams.items()}
    outputs = {
        (o.id, name, ids[o.origin], o.deadline_ns, o.connector) for name, o in graph.outputs.items() if o.at == node
    }
    if {(o.id, o.name, o.stream, o.deadline_ns, _connected(o)) for o in local.outputs} != outputs:
        found.append("its outputs differ from the plan's")
    sources = {(s.id, name, s.stream, s.max_age_ns) for name, s in graph.sources.items() if s.at == node}
    sources |= {(w.source, w.add, ids[w.add], 0) for w in graph.windows.values() if w.at == node}
    if {(source.id, source.name, source.stream, source.max_age_ns) for source in local.sources} != sources:
        found.append("its sources differ from the plan's")
    for source in local.sources:
        stated = graph.sources.get(source.name)
        if stated is not None and _pulled(source, stated.pull) != stated.pull:
            found.append(f"source {source.name} is made otherwise than the plan says")
        if _connected(source) != (stated.connector if stated else None):
            found.append(f"source {source.name} is fed from another place than the plan says")
    pairs = {pair for every in sends(plan).values() for pair in every if node in pair}
    neighbours = {other for pair in pairs for other in pair if other != node}
    peers = set()
    for link in plan.cluster.links:
        for here, there in (link.between, link.between[::-1]):
            if here == node and there in neighbours:
                index = plan.cluster.nodes[there].index
                peers.add((index, there, link.latency_ns, link.bandwidth_bps))
    if {(peer.index, peer.name, peer.latency_ns, peer.bandwidth_bps) for peer in local.peers} != peers:
        found.append("its peers are not those that it sends to or receives from, over their links")
    return found


def _connected(end: plan_pb2.Source | plan_pb2.Output) -> Connector | None:
    """The place outside of a source or an output."""
    if not end.HasField("connector"):
        return None
    held = end.connector
    return Connector(
        kind=held.kind,
        url=held.url,
        topic=held.topic,
        encoding=held.encoding,
        schema=held.schema,
        stamp=held.stamp,
        qos=held.qos,
    )


def _pulled(source: plan_pb2.Source, stated: Pull | None) -> Pull | None:
    """How its node makes a source's tuples, with what only the plan says of that."""
    if not source.HasField("pull"):
        return None
    told, given = stated or Pull(), source.pull
    return replace(
        told,
        run=given.run,
        parameters=json.loads(given.with_json or "{}"),
        every_ns=given.every_ns,
        offset_ns=given.offset_ns,
    )


def _streams(plan: Plan, node: str, local: plan_pb2.LocalPlan) -> list[str]:
    """A stream is listed where it is produced or arrives, and its sender is its producer."""
    graph, index = plan.graph, {name: facts.index for name, facts in plan.cluster.nodes.items()}
    arriving: dict[str, set[int]] = {}
    for name, pairs in sends(plan).items():
        for one, end in pairs:
            if end == node:
                arriving.setdefault(name, set()).add(index[one])
    own = {name for name, at in plan.placement.items() if at == node}
    own |= {name for name, source in graph.sources.items() if source.at == node}
    listed = {stream.name: stream for stream in local.streams}
    found = []
    if set(listed) != own | set(arriving):
        found.append("its streams are not those that it produces or receives")
    for name in set(listed) & set(graph.streams):
        stream, stated = listed[name], graph.streams[name]
        if stream.max_bytes != stated.max_bytes:
            found.append(f"stream {name} takes payloads of another size than the plan's")
        if set(stream.producers) != arriving.get(name, set()) or stream.id != stated.id:
            found.append(f"stream {name} has other producers or another id than the plan's")
        if stream.codec != stated.type:
            found.append(f"stream {name} has another codec than the plan's")
        leads_to = [graph.operators[one] for one in onward(plan, name) if one != name]
        if stream.counted != any(one.window is not None for one in leads_to):
            found.append(f"stream {name} is counted as leading to a window, or not counted, against the graph")
        if stream.marked != (stream.counted or any(one.kind == "join" for one in leads_to)):
            found.append(f"stream {name} is marked as leading to a join, or not marked, against the graph")
        if (stream.deadline_ns, stream.last_deadline_ns) != _least_and_last(plan, name):
            found.append(f"stream {name} has other deadlines than the least and the last of its outputs")
    return found


def _units(plan: Plan, node: str, local: plan_pb2.LocalPlan) -> list[str]:
    """The units are the plan's tasks; exits are the streams with a consumer beside the next operator, at most four."""
    graph, names = plan.graph, {stream.id: name for name, stream in plan.graph.streams.items()}
    operators = {operator.id: name for name, operator in graph.operators.items()}
    stated = [(task.id, list(task.operators), task.sub_deadline_ns) for task in plan.tasks[node]]
    units = [
        (unit.id, [operators.get(one, "") for one in unit.operators], unit.sub_deadline_ns) for unit in local.units
    ]
    if units != stated:
        return ["its units are not the plan's tasks"]
    by_curves = local.policy.name in CURVES
    asking = {one.origin for one in graph.outputs.values() if by_curves and one.qos is not None}
    found, sent = [], {name for name, pairs in sends(plan).items() for one, _ in pairs if one == node}
    for unit in local.units:
        members = [operators[one] for one in unit.operators]
        leaving = []
        for position, name in enumerate(members):
            following = members[position + 1] if position + 1 < len(members) else None
            read = any(
                name in op.side.values() or (name in op.inputs and reader != following)
                for reader, op in graph.operators.items()
                if plan.placement[reader] == node
            )
            delivered = any(o.origin == name and o.at == node for o in graph.outputs.values())
            if (read or delivered or name in sent) and graph.operators[name].window is None:
                leaving.append(name)
        if [names.get(one) for one in unit.exits] != leaving:
            found.append(f"unit {unit.id} has other exits than the streams that leave it")
        curves = bool(asking) and not asking.isdisjoint(downstream(plan, members[0]))
        if bool(unit.service) != curves:
            found.append(f"unit {unit.id} has service curves that nothing asks for, or none of what is asked")
        if len(unit.exits) > LARGEST_EXITS:
            found.append(f"unit {unit.id} has more than {LARGEST_EXITS} exits")
        if (unit.deadline_ns, unit.last_deadline_ns) != _least_and_last(plan, members[0]):
            found.append(f"unit {unit.id} has other deadlines than the least and the last of its outputs")
    return found


def _least_and_last(plan: Plan, name: str) -> tuple[int, int]:
    """The least deadline of the outputs that a stream leads to through trigger inputs, 0: none; and the greatest one,
    0: the same. A window of time is as much longer of use to what it holds as it is long."""
    reached = downstream(plan, name)
    due = [o.deadline_ns for o in plan.graph.outputs.values() if o.origin in reached]
    least, last = min(due, default=0), _last(plan, name, {})
    return least, last if last != least else 0


def _last(plan: Plan, name: str, known: dict[str, int]) -> int:
    if name not in known:
        found = [o.deadline_ns for o in plan.graph.outputs.values() if o.origin == name]
        for reader, operator in plan.graph.operators.items():
            if name in operator.inputs and (behind := _last(plan, reader, known)):
                window = operator.window
                longer = window is not None and not window.first and window.kind != "count"
                found.append(behind + (window.length if window and longer else 0))
        known[name] = max(found, default=0)
    return known[name]


def downstream(plan: Plan, name: str) -> set[str]:
    """The operators that a stream leads to through trigger inputs; an operator's own among them."""
    operators = plan.graph.operators
    reached, waiting = {name} & set(operators), [name]
    while waiting:
        current = waiting.pop()
        for reader, operator in operators.items():
            if current in operator.inputs and reader not in reached:
                reached.add(reader)
                waiting.append(reader)
    return reached
