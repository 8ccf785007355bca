"""Rechecks every constraint of a plan, from the plan alone: no solver, no floats, no code shared with the model.

Trust no solver: a plan that fails here is never written. What is checked: placement, sub-deadlines against every path
(5), the demand of every node under EDF (6), utilisation, memory, bandwidth, that every stream reaches its readers over
links it may use, task units (5.3), that the nodes' local plans say the same as the plan, which
query needs what; and all of it of each fail-over plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from math import ceil

from coordinator.solve.audit.audit_capacity import room
from coordinator.solve.audit.audit_failover import failover
from coordinator.solve.audit.audit_local import local_plans, sends
from coordinator.solve.audit.audit_overload import apart
from coordinator.solve.audit.audit_queries import queries
from coordinator.solve.audit.audit_served import served
from protos.plan.arrivals import Arrival, BurstArrival, JcpArrival, RateArrival, TraceArrival
from protos.plan.guarantee import Claim
from protos.plan.operators import Operator, Sync, Window
from protos.plan.outputs import Output
from protos.plan_document import Plan


def audit(plan: Plan) -> list[str]:
    """Violations, one sentence each; empty: the plan holds all its constraints."""
    violations = _placement(plan)
    if violations:
        return violations
    try:
        order = _order(plan)
    except CycleError:
        return ["the operators feed each other in a cycle"]
    flow = _flows(plan, order)
    violations += _paths(plan, order)
    violations += _demand(plan, order, flow)
    violations += _utilisation(plan, flow)
    violations += _routes(plan, flow)
    violations += room(plan, flow)
    violations += served(plan, {name: flow[f"({name})"][1] * _tuple_cost_ns(plan, name) for name in order})
    violations += _units(plan)
    violations += _guarantees(plan)
    violations += queries(plan)
    return violations + local_plans(plan) + failover(plan, audit)


def _placement(plan: Plan) -> list[str]:
    """Every operator on one known node that it may run on, with a positive sub-deadline in whole ns."""
    operators, nodes = plan.graph.operators, plan.cluster.nodes
    found = []
    for name, operator in operators.items():
        at = plan.placement.get(name)
        if at not in nodes:
            found.append(f"operator {name} is placed on {at!r}, which is no node")
        elif operator.nodes is not None and at not in operator.nodes:
            found.append(f"operator {name} is placed on {at}, but may run on {', '.join(operator.nodes)} only")
        due = plan.sub_deadlines_ns.get(name)
        if due is None or due <= 0:
            found.append(f"operator {name} has the sub-deadline {due!r}, not a positive number of ns")
    found += apart(plan)
    for key, names in (("placement", plan.placement), ("sub_deadlines_ns", plan.sub_deadlines_ns)):
        found += [f"{key} names {name}, which is no operator" for name in names if name not in operators]
    return found


def _order(plan: Plan) -> list[str]:
    operators = plan.graph.operators
    edges = {name: [one for one in operator.inputs if one in operators] for name, operator in operators.items()}
    return list(TopologicalSorter(edges).static_order())


def _flows(plan: Plan, order: list[str]) -> dict[str, tuple[Fraction, Fraction]]:
    """Tuples per burst and per ns of every stream, and under `(name)` how often each operator runs."""
    flow: dict[str, tuple[Fraction, Fraction]] = {}
    for name, source in plan.graph.sources.items():
        burst, rate = Fraction(source.arrival.burst), _rate(source.arrival)
        if limit := source.limit:
            most = Fraction(limit.tuples)
            burst, rate = min(burst, most), min(rate, most / limit.span_ns)
        flow[name] = (burst, rate)
    for name in order:
        operator = plan.graph.operators[name]
        inputs = [flow[one] for one in operator.inputs]
        gather = sum if operator.kind == "union" else min
        runs = (Fraction(gather(one[0] for one in inputs)), Fraction(gather(one[1] for one in inputs)))
        if operator.sync is not None and (operator.sync.timeout_ns or operator.sync.each):
            runs = _on_timeout(operator.sync, inputs)
        selectivity = operator.selectivity
        mean = Fraction(str(selectivity.mean)) if selectivity else Fraction(1)
        if operator.run == "filter" and selectivity and selectivity.at_most == (_keep_ratio(operator)[::-1],):
            mean = (
                Fraction(*_keep_ratio(operator))
                if float(Fraction(*_keep_ratio(operator))) == selectivity.mean
                else mean
            )
        flow[f"({name})"] = runs
        if window := operator.window:
            flow[name] = _window_closings(window, runs)
            continue
        flow[name] = (runs[0] * mean, runs[1] * mean)
    return flow


def _on_timeout(sync: Sync, inputs: list[tuple[Fraction, Fraction]]) -> tuple[Fraction, Fraction]:
    """How often a fusion runs at most that does not wait for sets: by stamps for each tuple, else once a timeout."""
    every = Fraction(sum(one[0] for one in inputs)), Fraction(sum(one[1] for one in inputs))
    if sync.within_ns is not None:
        return every
    sets = min(one[1] for one in inputs) + Fraction(1, sync.timeout_ns)
    return min(one[0] for one in inputs), min(every[1], sets)


def _rate(arrival: Arrival) -> Fraction:
    """Tuples per ns."""
    match arrival:
        case BurstArrival():
            return Fraction(arrival.burst, arrival.period_ns)
        case JcpArrival():
            return Fraction(1, arrival.period_ns)
        case RateArrival():
            return Fraction(str(arrival.rate_per_s)) / 10**9
        case TraceArrival():
            return Fraction(arrival.tuples, arrival.span_ns)


def _window_closings(window: Window, runs: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    """One window per hop, and at least one with a burst."""
    if window.kind == "count":
        return max(Fraction(1), runs[0] / window.hop), runs[1] / window.hop
    return Fraction(1), Fraction(1, window.hop)


def _keep_ratio(operator: Operator) -> tuple[int, int]:
    """What a built-in filter keeps of how many: its mean is this fraction, not the rounded float of it."""
    return operator.parameters.get("keep", 1), operator.parameters.get("of", 2)


def _tuple_cost_ns(plan: Plan, name: str) -> int:
    node = plan.cluster.nodes[plan.placement[name]]
    cost_ns, least_ns = plan.graph.operators[name].cost_ns, node.emulate_cost_ns
    return max(ceil(cost_ns / Fraction(str(node.speed))), least_ns)


def _paths(plan: Plan, order: list[str]) -> list[str]:
    """(5): along every path to an output the sub-deadlines add up to at most its deadline; not where those that were
    kept from an earlier plan leave no room for the others, even at 1 ns each, nor for outputs that need not hold or
    give way."""
    kept, spared = (plan.kept.operators, plan.kept.spared) if plan.kept else ((), ())
    spared = (*spared, *(plan.solver.served or ()))
    ends: dict[str, int] = {}
    least: dict[str, int] = {}
    for name in order:
        inputs, due_ns = plan.graph.operators[name].inputs, plan.sub_deadlines_ns[name]
        ends[name] = max(ends.get(one, 0) for one in inputs) + due_ns
        least[name] = max(least.get(one, 0) for one in inputs) + (due_ns if name in kept else 1)
    return [
        f"output {name}: the sub-deadlines on its longest path add up to {ends[output.origin]} ns, its deadline is "
        f"{output.deadline_ns} ns"
        for name, output in plan.graph.outputs.items()
        if ends[output.origin] > output.deadline_ns >= least[output.origin] and name not in spared
    ]


def _demand(plan: Plan, order: list[str], flow: Mapping[str, tuple[Fraction, Fraction]]) -> list[str]:
    """(6): for every sub-deadline t, what is due by t on a node costs at most t. Jobs are runs of operators that
    follow each other on a node (5.3). A plan whose sub-deadlines are not of its own placement makes no such claim."""
    if plan.solver.sub_deadlines != "model":
        return []
    jobs: dict[str, list[tuple[int, int, str]]] = {node: [] for node in plan.cluster.nodes}
    for run in _runs(plan, order):
        due_ns = sum(plan.sub_deadlines_ns[name] for name in run)
        cost_ns = sum(max(1, ceil(flow[f"({name})"][0] * _tuple_cost_ns(plan, name))) for name in run)
        jobs[plan.placement[run[0]]].append((due_ns, cost_ns, run[0]))
    found = []
    for node, due in jobs.items():
        for deadline_ns in sorted({one[0] for one in due}):
            first = [one for one in due if one[0] <= deadline_ns]
            need_ns = sum(one[1] for one in first)
            if need_ns > deadline_ns:
                names = ", ".join(one[2] for one in first)
                found.append(f"node {node}: {names} need {need_ns} ns before {deadline_ns} ns")
    return found


def _runs(plan: Plan, order: list[str]) -> list[list[str]]:
    """Maximal runs of operators on one node, each the only reader of the one before, which is no output."""
    operators, place = plan.graph.operators, plan.placement
    delivered = {output.origin for output in plan.graph.outputs.values()}
    readers: dict[str, list[str]] = {name: [] for name in operators}
    for name, operator in operators.items():
        for one in operator.inputs:
            if one in readers:
                readers[one].append(name)
    runs: dict[str, list[str]] = {}
    for name in order:
        before = operators[name].inputs[0]
        follows = (
            (operators[name].kind == "map" or operators[name].closes)
            and before in operators
            and readers[before] == [name]
            and before not in delivered
            and place[before] == place[name]
        )
        runs[name] = runs[before] if follows else []
        runs[name].append(name)
    return list({id(run): run for run in runs.values()}.values())


def _utilisation(plan: Plan, flow: Mapping[str, tuple[Fraction, Fraction]]) -> list[str]:
    """What a node's operators use on average stays within its cap, or what a plan under protest owns up to."""
    found = []
    over = plan.solver.over_caps or {}
    for node, facts in plan.cluster.nodes.items():
        held = [name for name, at in plan.placement.items() if at == node]
        load = sum((flow[f"({name})"][1] * _tuple_cost_ns(plan, name) for name in held), Fraction(0))
        most = max(Fraction(str(facts.cap)), Fraction(str(over.get(node, 0))))
        if load > most * (1 + Fraction(1, 10**6)):
            found.append(f"node {node}: its operators use {float(load):.4f} of it, its cap is {facts.cap}")
    return found


def _routes(plan: Plan, flow: Mapping[str, tuple[Fraction, Fraction]]) -> list[str]:
    """Every stream reaches its readers, once each, over links that it may use; the traffic is as stated."""
    graph, place, found, traffic = plan.graph, plan.placement, [], Fraction(0)
    linked = {frozenset(link.between) for link in plan.cluster.links}
    hops = sends(plan)
    for name in (*graph.sources, *graph.operators):
        start = place[name] if name in place else graph.sources[name].at
        wants = {place[one] for one, op in graph.operators.items() if name in (*op.inputs, *op.side.values())}
        wants |= {output.at for output in graph.outputs.values() if output.origin == name}
        pairs = hops.pop(name, [])
        traffic += flow[name][0] * len(pairs)
        forbidden = (graph.sources.get(name) or graph.operators[name]).forbid_streams
        reached, before = {start}, 0
        while len(reached) != before:
            before = len(reached)
            reached |= {end for one, end in pairs if one in reached}
        found += [f"stream {name} does not reach node {node}" for node in sorted(wants - reached)]
        for one, end in pairs:
            if frozenset((one, end)) not in linked:
                found.append(f"stream {name} goes from {one} to {end}, which are not linked")
            if (one, end) in forbidden:
                found.append(f"stream {name} goes from {one} to {end}, where it is forbidden")
            if end == start or one not in reached or [other for _, other in pairs].count(end) > 1:
                found.append(f"stream {name} arrives at {end} twice, from itself or from nowhere")
    found += [f"a node sends {name}, which is no stream" for name in hops]
    stated = plan.objective
    if abs(Fraction(stated.traffic) - traffic) > Fraction(1, 10**6):
        found.append(f"the traffic is {float(traffic)} tuples per burst, stated as {stated.traffic}")
    if not 0 <= stated.bound <= stated.nlr:
        found.append(f"the objective {stated.nlr} is below its bound {stated.bound}")
    return found


def _units(plan: Plan) -> list[str]:
    """Each operator in one unit, on its node; a unit is a path; its sub-deadline is the sum of its operators' (5.3)."""
    found: list[str] = []
    seen: list[str] = []
    ids: list[int] = []
    operators = plan.graph.operators
    for node, tasks in plan.tasks.items():
        for task in tasks:
            members = task.operators
            seen += members
            ids.append(task.id)
            if unknown := [one for one in members if one not in operators]:
                found.append(f"unit {task.id} of {node} holds {', '.join(map(str, unknown))}, no operator")
                continue
            found += [
                f"unit {task.id} of {node} holds {one}, placed elsewhere"
                for one in members
                if plan.placement.get(one) != node
            ]
            for one, after in pairwise(members):
                if operators[after].inputs != (one,) or operators[after].kind != "map":
                    found.append(f"unit {task.id}: {after} does not follow {one} alone")
            if task.sub_deadline_ns != sum(plan.sub_deadlines_ns[one] for one in members):
                found.append(f"unit {task.id}: its sub-deadline is not the sum of its operators'")
    if sorted(seen) != sorted(operators):
        found.append("the task units do not hold every operator exactly once")
    if len(set(ids)) != len(ids) or any(one < 1 for one in ids):
        found.append("the ids of task units are not unique numbers from 1")
    return found


def _guarantees(plan: Plan) -> list[str]:
    """Every output has its entry; guaranteed is only what a bound within the deadline proves."""
    outputs, given = plan.graph.outputs, plan.guarantee
    found = [f"output {name} has no guarantee entry, or it is of no output" for name in outputs.keys() ^ given.keys()]
    for name in outputs.keys() & given.keys():
        deadline_ns, bound_ns = outputs[name].deadline_ns, given[name].bound_ns
        if given[name].deadline_ns != deadline_ns:
            found.append(f"output {name}: its guarantee speaks of another deadline")
        if given[name].guaranteed and not (bound_ns is not None and 0 <= bound_ns <= deadline_ns):
            found.append(f"output {name} is called guaranteed, but its bound is {bound_ns} ns of {deadline_ns} ns")
        found += _freshness(name, outputs[name], given[name])
    return sorted(found)


def _freshness(name: str, output: Output, claim: Claim) -> list[str]:
    """The longest of an output's data paths is its bound, and guaranteed is only what that is within."""
    found = []
    for of, limit_ns, asked_ns, bound_ns in (
        ("age", output.age_ns, claim.age_ns, claim.age_bound_ns),
        ("reaction", output.reaction_ns, claim.reaction_ns, claim.reaction_bound_ns),
    ):
        paths = [path for path in claim.data_paths if path.of == of]
        if limit_ns != asked_ns or bool(paths) != (limit_ns is not None):
            found.append(f"output {name}: its guarantee speaks of another {of}")
        known = [path.bound_ns for path in paths if path.bound_ns is not None]
        longest = max(known, default=None) if len(known) == len(paths) else None
        if longest != bound_ns or any(sum(one.ns for one in path.steps) != (path.bound_ns or 0) for path in paths):
            found.append(f"output {name}: its {of} is not that of its data paths")
    if claim.guaranteed and not claim.is_fresh:
        found.append(f"output {name} is called guaranteed, but not its age or its reaction")
    return found
