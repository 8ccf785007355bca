"""The audit's part on windows and overload: local plans collect, limit, drop and shed what the plan says, and where."""

from __future__ import annotations

import json

from protos import plan_pb2
from protos.plan.operators import Queue
from protos.plan_document import Plan


def onward(plan: Plan, name: str) -> set[str]:
    """The operators that a tuple of a stream may trigger, its own among them: up to windows, and not what closes
    them."""
    operators = plan.graph.operators
    reached, waiting = {name} & set(operators), [name]
    while waiting:
        current = waiting.pop()
        for reader, operator in operators.items():
            if current in operator.inputs and reader not in reached and operator.closes != current:
                reached.add(reader)
                waiting.append(reader)
    return reached


def apart(plan: Plan) -> list[str]:
    """What collects windows, what closes them and the source that they are admitted as are on one node; the first of
    them is a unit of its own, the second begins one."""
    place, found = plan.placement, []
    members = [list(task.operators) for tasks in plan.tasks.values() for task in tasks]
    for name, facts in plan.graph.windows.items():
        add = facts.add
        if not place.get(add) == place.get(name) == facts.at:
            where = f"collected on {place.get(add)}, closed on {place.get(name)} and admitted on {facts.at}"
            found.append(f"windows of {name} are {where}")
        if [add] not in members or not any(unit[:1] == [name] for unit in members):
            found.append(f"windows of {name} are collected, or closed, within a longer task unit")
    return found


def overload(plan: Plan, node: str, local: plan_pb2.LocalPlan) -> list[str]:
    """Violations of a node's local plan."""
    return _operators(plan, local) + _sources(plan, node, local) + _queues(plan, local) + _shedding(plan, node, local)


def _operators(plan: Plan, local: plan_pb2.LocalPlan) -> list[str]:
    graph, found = plan.graph, []
    for operator in local.operators:
        stated = graph.operators.get(operator.name)
        if stated is None:
            continue
        window = stated.window
        if operator.HasField("window") != (window is not None):
            found.append(f"operator {operator.name} collects windows that the plan does not know, or none")
        elif window is not None and not _same_window(plan, operator):
            found.append(f"the windows of operator {operator.name} differ from the plan's")
        closed = graph.operators[stated.closes].id if stated.closes in graph.operators else 0
        if closed and plan.placement.get(stated.closes) != plan.placement[operator.name]:
            found.append(f"operator {operator.name} is not where its windows are")
        if operator.closes != closed or (operator.closes and stated.inputs != (stated.closes,)):
            found.append(f"operator {operator.name} closes other windows than the plan says")
        late = stated.on_late
        if operator.HasField("late"):
            said = (operator.late.run, operator.late.cost_ns)
            if late is None or said != (late.run, late.cost_ns) or operator.late.late_ns < 1:
                found.append(f"operator {operator.name} treats late tuples otherwise than the plan says")
            elif late.run and json.loads(operator.late.with_json) != late.parameters:
                found.append(f"operator {operator.name} degrades with other parameters than the plan's")
    return found


def _same_window(plan: Plan, operator: plan_pb2.Operator) -> bool:
    graph, window = plan.graph, operator.window
    stated = graph.operators[operator.name].window
    told = next((one for one in graph.windows.values() if one.add == operator.name), None)
    if stated is None or told is None or told.source != window.source:
        return False
    same = ("kind", "length", "hop", "lateness_ns", "first", "by", "size")
    if any(getattr(window, key) != getattr(one, key) for key in same for one in (stated, told)):
        return False
    if tuple(window.on) != stated.on or (window.useful_ns, window.wait_ns) != (told.useful_ns, told.wait_ns):
        return False
    ids = {name: source.id for name, source in graph.sources.items()}
    feeds = {(ids[name], number) for name, number in _feeds(plan, operator.name) if name in ids}
    named = {ids.get(name) for name in told.sources}
    return {(each.source, each.input) for each in window.feeds} == feeds and named == {one for one, _ in feeds}


def _feeds(plan: Plan, name: str) -> set[tuple[str, int]]:
    """The sources of which a tuple may reach a window, with the input that it comes by. A join by lineage passes only
    what all its inputs have."""
    operators = plan.graph.operators
    carried: dict[str, set[str]] = {one: {one} for one in plan.graph.sources}

    def sources(stream: str) -> set[str]:
        if stream not in carried:
            facts = operators[stream]
            inputs = [sources(one) for one in facts.inputs]
            carried[stream] = set.intersection(*inputs) if facts.kind == "join" else set().union(*inputs)
        return carried[stream]

    return {(one, number) for number, stream in enumerate(operators[name].inputs) for one in sources(stream)}


def _sources(plan: Plan, node: str, local: plan_pb2.LocalPlan) -> list[str]:
    graph, found = plan.graph, []
    adds = {one.add: graph.operators[one.add].id for one in graph.windows.values()}
    for source in local.sources:
        if source.window != adds.get(source.name, 0):
            found.append(f"source {source.name} is of other windows than the plan says")
        stated = graph.sources.get(source.name)
        limit, on_full = (stated.limit, stated.on_full) if stated else (None, "refuse")
        said = (source.limit.tuples, source.limit.span_ns) if source.HasField("limit") else None
        if said != ((limit.tuples, limit.span_ns) if limit else None):
            found.append(f"source {source.name} has another limit than the plan's")
        elif limit and (json.loads(source.limit.value_json or "null") != limit.tree):
            found.append(f"source {source.name} values its tuples otherwise than the plan says")
        if (source.on_full or "refuse") != on_full:
            found.append(f"source {source.name} does something else with full queues than the plan says")
        leads = any(graph.operators[one].window is not None for one in onward(plan, source.name) if one != source.name)
        if leads != bool(source.beat_ns):
            found.append(f"source {source.name} gives heartbeats that no window needs, or none to one")
    return found


def _queues(plan: Plan, local: plan_pb2.LocalPlan) -> list[str]:
    """The first operator of a unit says how much may wait for it, and no other one does."""
    operators = {operator.id: operator.name for operator in local.operators}
    found = []
    for unit in local.units:
        known = [plan.graph.operators.get(operators.get(one, "")) for one in unit.operators]
        stated = [each.queue if each else None for each in known]
        first = (stated[0] if stated else None) or Queue(most_bytes=0, on_full="")
        if (unit.queue_bytes, unit.on_full) != (first.most_bytes, first.on_full) or any(stated[1:]):
            found.append(f"unit {unit.id} has another limit of its queue than its first operator says")
    return found


def _shedding(plan: Plan, node: str, local: plan_pb2.LocalPlan) -> list[str]:
    """Every window of the node that has a shedder is behind the entry units of one; windows without are behind
    none. All that enters there leads to these windows."""
    graph, found = plan.graph, []
    here = {one.add: one for one in graph.windows.values() if one.at == node}
    units = {unit.id: unit for unit in local.units}
    names = {operator.id: operator.name for operator in local.operators}
    behind: list[str] = []
    for each in local.sheddings:
        collecting = [names.get(one, "") for one in each.windows]
        behind += collecting
        if not {*each.units, *each.path} <= set(units) or not set(each.units) <= set(each.path):
            found.append(
                f"shedding {each.policy} names units that node {node} does not have, or entry units off its path"
            )
            continue
        if any(name not in here or here[name].shed != each.policy for name in collecting):
            found.append(f"shedding {each.policy} is of windows that are not on node {node}, or have another shedder")
            continue
        if each.most != min(here[name].most for name in collecting):
            found.append(f"shedding {each.policy} lets more or fewer tuples wait than its windows say")
        reached: set[str] = set()
        for entry in each.units:
            head = names[units[entry].operators[0]]
            reached |= {head} | onward(plan, head)
        passed = {names[one] for number in each.path for one in units[number].operators}
        ends = [one.origin for one in graph.outputs.values()]
        sides = [one for operator in graph.operators.values() for one in operator.side.values()]
        if reached != passed or reached.intersection((*ends, *sides)):
            found.append(f"shedding {each.policy} of node {node} would shed what leads elsewhere than to its windows")
    wanted = sorted(name for name, one in here.items() if one.shed is not None)
    if sorted(behind) != wanted:
        found.append(f"the windows of node {node} that have a shedder are not behind one each")
    return found
