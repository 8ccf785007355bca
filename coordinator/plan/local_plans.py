"""Local plans: what one node runs of a layout, as a protos.plan.LocalPlan message.

A stream is listed on every node that admits, produces, receives or reads it; `producers` are the nodes that may send
it there.
"""

from __future__ import annotations

import json

from coordinator.plan import layout_shedding, layout_windows
from coordinator.plan.layout import Layout
from coordinator.plan.service_curves import CURVES
from coordinator.spec.cluster import Node
from coordinator.spec.query import KEEP, Operator
from protos import plan_pb2
from protos.plan.operators import SideRule


def of_node(layout: Layout, node: Node) -> plan_pb2.LocalPlan:
    """What one node runs."""
    plan = plan_pb2.LocalPlan(
        version=1,
        query=layout.query.name,
        node=node.name,
        index=node.index,
        policy=_policy(layout, node),
        memory_bytes=node.memory_bytes,
        emulate_cost_ns=node.emulate_cost_ns,
        cpu=node.cpu,
    )
    _add_streams(layout, plan, node)
    plan.sources.extend(layout_windows.sources(layout, node.name))
    for operator in layout.query.operators:
        if layout.place[operator.name] == node.name:
            _add_operator(layout, plan, operator)
    curves = plan.policy.name in CURVES
    for unit_id, members in layout.tasks[node.name]:
        plan.units.add(
            id=unit_id,
            operators=[layout.operator_id[name] for name in members],
            sub_deadline_ns=sum(layout.sub_deadline_ns[name] for name in members),
            deadline_ns=layout.deadline_ns[members[0]],
            exits=[layout.stream_id[name] for name in layout.exits(members)],
            last_deadline_ns=layout.last_deadline_ns[members[0]],
            service=layout.division.service(members) if curves else [],
            **layout_windows.queue(layout.by_name[members[0]]),
        )
    for output_id, output in enumerate(layout.query.outputs, start=1):
        if output.at == node.name:
            stream = layout.stream_id[output.origin]
            plan.outputs.add(
                id=output_id,
                name=output.name,
                stream=stream,
                deadline_ns=output.deadline_ns,
                connector=layout_windows.connector(output.connector),
            )
    plan.sheddings.extend(layout_shedding.of_node(layout, node.name))
    for run in sorted(_runs(plan)):
        known = layout.cluster.catalog.operators[run]
        plan.installed.add(run=run, version=known.version, code=known.code)
    _add_links(layout, plan, node)
    return plan


def _policy(layout: Layout, node: Node) -> plan_pb2.Policy:
    runs = node.policy or layout.policy
    given = plan_pb2.Policy(name=runs.name, largest_batch=1)
    for parameter, value in runs.parameters.items():
        setattr(given, parameter, value)
    return given


def _add_operator(layout: Layout, plan: plan_pb2.LocalPlan, operator: Operator) -> None:
    plan.operators.add(
        id=layout.operator_id[operator.name],
        name=operator.name,
        run=operator.run,
        with_json=json.dumps(operator.parameters, sort_keys=True, separators=(",", ":"), allow_nan=False),
        cost_ns=operator.cost_ns,
        inputs=[layout.stream_id[name] for name in layout.ordered_inputs(operator)],
        called=operator.called or (),
        sides=[_side(layout, operator, port, name) for port, name in operator.side.items()],
        output=layout.stream_id[operator.name],
        join=layout.joins(operator),
        hang_ns=operator.hang_ns,
        sub_deadline_ns=layout.sub_deadline_ns[operator.name],
        fresh=operator.state != KEEP,
        window=layout_windows.message(layout, operator),
        closes=layout.operator_id[operator.closes] if operator.closes else 0,
        late=layout_windows.late(layout, operator),
        sync=_sync(operator),
    )


def _side(layout: Layout, operator: Operator, port: str, name: str) -> plan_pb2.Side:
    rule = operator.side_rules.get(port, SideRule())
    return plan_pb2.Side(port=port, stream=layout.stream_id[name], max_age_ns=rule.max_age_ns, shed=rule.shed)


def _sync(operator: Operator) -> plan_pb2.Sync | None:
    """Of an operator that fuses its inputs; None of all others."""
    given = operator.sync
    if given is None:
        return None
    by_stamp = given.within_ns is not None
    within_ns = given.within_ns or 0
    return plan_pb2.Sync(
        by_stamp=by_stamp, within_ns=within_ns, timeout_ns=given.timeout_ns, keep=given.keep, each=given.each
    )


def _add_streams(layout: Layout, plan: plan_pb2.LocalPlan, node: Node) -> None:
    here = {source.name for source in layout.query.sources if source.at == node.name}
    here |= {name for name, at in layout.place.items() if at == node.name}
    for name, stream_id in layout.stream_id.items():
        producers = sorted({one for one, other in layout.hops.get(name, ()) if other == node.index})
        if name in here or producers:
            plan.streams.add(
                id=stream_id,
                name=name,
                codec=layout.types[name],
                marked=name in layout.marked,
                deadline_ns=layout.deadline_ns[name],
                producers=producers,
                last_deadline_ns=layout.last_deadline_ns[name],
                counted=name in layout.counted,
                max_bytes=layout.max_bytes[name],
            )


def _add_links(layout: Layout, plan: plan_pb2.LocalPlan, node: Node) -> None:
    names = list(layout.cluster.nodes)
    peers: set[int] = set()
    for name, stream_id in layout.stream_id.items():
        for one, other in layout.hops.get(name, ()):
            if one == node.index:
                plan.sends.add(stream=stream_id, peer=other)
                peers.add(other)
            elif other == node.index:
                peers.add(one)
    for index in sorted(peers):
        link = layout.cluster.link(node.name, names[index])
        assert link is not None  # hops are taken over links only
        plan.peers.add(index=index, name=names[index], latency_ns=link.latency_ns, bandwidth_bps=link.bandwidth_bps)


def _runs(plan: plan_pb2.LocalPlan) -> set[str]:
    """The installed operators that a node's part names."""
    found = {operator.run for operator in plan.operators}
    found |= {operator.late.run for operator in plan.operators}
    found |= {operator.window.size for operator in plan.operators}
    found |= {source.pull.run for source in plan.sources}
    return found - {""}
