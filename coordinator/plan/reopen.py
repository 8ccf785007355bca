"""The query and the cluster that a plan was made from, rebuilt from plan.json alone, to plan again.

A plan holds everything that placement, local plans and bounds need, so planning with what is rebuilt here makes the
same plan. What it does not hold, because it no longer matters: the files' lines, nodes that a host's places were
written as.
"""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from coordinator.model import incumbent
from coordinator.model.choices import Choices, SubDeadlines
from coordinator.model.limits import Limits
from coordinator.plan import policy_choice
from coordinator.spec.arrivals import Arrival
from coordinator.spec.catalog import BUILTIN, Catalog, Installed
from coordinator.spec.cluster import Cluster, Link, Node
from coordinator.spec.files import yaml_source
from coordinator.spec.files.query_file import SelectivityFile
from coordinator.spec.quality import Confidence, Freshness, Qos
from coordinator.spec.query import Operator, Output, Query, Source
from coordinator.spec.runtime_charges import RuntimeOverhead
from coordinator.spec.sharing.compose import SEPARATOR
from protos import json_shape
from protos.plan.arrivals import Arrival as PlanArrival
from protos.plan.arrivals import BurstArrival, JcpArrival, RateArrival, TraceArrival
from protos.plan.cluster import Node as PlanNode
from protos.plan.costs import CostOrigin
from protos.plan.operators import Operator as PlanOperator
from protos.plan.operators import Selectivity
from protos.plan_document import Plan


def inputs(plan: Plan, path: Path) -> tuple[Query, Cluster, dict[str, str], Choices]:
    """Query, cluster, the streams' types and the choices of a plan; `path`: what it is called in
    messages."""
    file = yaml_source.Source(path, b"", {})
    types = {name: facts.type for name, facts in plan.graph.streams.items()}
    return query(plan, file), cluster(plan, file), types, choices(plan)


def query(plan: Plan, file: yaml_source.Source) -> Query:
    """The query; `keys` of its parts are those of a file in which chains are written as chains."""
    graph, costed = plan.graph, plan.costs or {}
    sources = tuple(
        Source(
            name,
            facts.at,
            facts.type,
            _arrival(facts.arrival),
            facts.max_age_ns,
            facts.forbid_streams,
            ("sources", name),
            facts.limit,
            facts.on_full,
            facts.pull,
            facts.max_bytes,
            costed.get(name),
            facts.connector,
        )
        for name, facts in graph.sources.items()
    )
    entries = _entries(plan)
    known = catalog(plan)
    operators = tuple(
        _operator(name, facts, entries[name], known, costed.get(name)) for name, facts in graph.operators.items()
    )
    outputs = tuple(
        Output(
            name,
            facts.origin,
            facts.at,
            facts.deadline_ns,
            ("outputs", name),
            Qos.read(facts.qos),
            Freshness.read(facts.age_ns, facts.age_without),
            Freshness.read(facts.reaction_ns, facts.reaction_without),
            facts.connector,
            Confidence.read(facts.confidence),
        )
        for name, facts in graph.outputs.items()
    )
    return Query(plan.query, sources, operators, outputs, plan.inputs.query, file, plan.queries)


def _arrival(written: PlanArrival) -> Arrival:
    """Mean rates as `query` computes them."""
    match written:
        case BurstArrival():
            rate = Fraction(written.burst, written.period_ns)
        case JcpArrival():
            rate = Fraction(1, written.period_ns)
        case RateArrival():
            rate = Fraction(str(written.rate_per_s)) / 10**9
        case TraceArrival():
            rate = Fraction(written.tuples, written.span_ns)
    return Arrival(written.burst, rate, written)


def _operator(name: str, facts: PlanOperator, entry: str, known: Catalog, cost_from: CostOrigin | None) -> Operator:
    inputs, ports = facts.inputs, facts.ports
    fixed = facts.window is None and not known.operators[facts.run].variadic
    if ports is not None and fixed:  # as they were written
        by_port = dict(zip(known.operators[facts.run].inputs, inputs, strict=True))
        inputs = tuple(by_port[port] for port in ports)
    said = _declared(facts)
    return Operator(
        name=name,
        run=facts.run,
        inputs=inputs,
        ports=ports,
        side=facts.side,
        cost_ns=facts.cost_ns,
        selectivity=SelectivityFile.model_validate(json_shape.write(said)) if said is not None else None,
        nodes=facts.nodes,
        parameters=facts.parameters,
        hang_ns=facts.hang_ns,
        forbidden=facts.forbid_streams,
        keys=("operators", entry),
        barred=facts.forbid_nodes,
        memory_bytes=facts.memory_bytes,
        state=facts.state,
        called=facts.called,
        window=facts.window,
        closes=facts.closes,
        on_late=facts.on_late,
        queue=facts.queue,
        cost_from=cost_from,
        sync=facts.sync,
        side_rules=facts.side_rules,
        max_bytes=facts.max_bytes,
    )


def _declared(facts: PlanOperator) -> Selectivity | None:
    """None where it follows from the parameters, exactly."""
    said = facts.selectivity
    if facts.run != "filter" or said is None:
        return said
    keep, of = facts.parameters.get("keep", 1), facts.parameters.get("of", 2)
    return None if said == Selectivity(mean=float(Fraction(keep, of)), at_most=((of, keep),)) else said


NUMBERED = re.compile(r"(.*?)(\d+)")


def _entries(plan: Plan) -> dict[str, str]:
    """What each operator stands under: itself, or the chain `O7..O21` that a run of operators may be written as."""
    operators = plan.graph.operators
    runs: list[list[str]] = []
    for name, facts in operators.items():
        before = NUMBERED.fullmatch(runs[-1][-1]) if runs else None
        number = NUMBERED.fullmatch(name)
        follows = (
            before is not None
            and number is not None
            and (before[1], str(int(before[2]) + 1)) == (number[1], number[2])
            and facts.inputs == (runs[-1][-1],)
            and facts.nodes == operators[runs[-1][-1]].nodes
            and not facts.side
            and not any(operators[one].closes for one in (name, runs[-1][-1]))
        )
        if follows:
            runs[-1].append(name)
        else:
            runs.append([name])
    found: dict[str, str] = {}
    for run in runs:
        first, last = (name.rpartition(SEPARATOR)[2] for name in (run[0], run[-1]))
        found |= dict.fromkeys(run, run[0] if len(run) == 1 else f"{first}..{last}")
    return found | {facts.closes: name for name, facts in operators.items() if facts.closes}


def cluster(plan: Plan, file: yaml_source.Source) -> Cluster:
    """The cluster, with its catalogue."""
    nodes = {name: _node(name, facts) for name, facts in plan.cluster.nodes.items()}
    links = tuple(Link(link.between, link.latency_ns, link.bandwidth_bps) for link in plan.cluster.links)
    return Cluster(nodes, links, catalog(plan), plan.cluster.security, plan.inputs.cluster, file)


def catalog(plan: Plan) -> Catalog:
    """What the nodes have installed."""
    given = plan.cluster.installed
    listed = {name: Installed.model_validate(json_shape.write(facts)) for name, facts in given.operators.items()}
    return Catalog(
        {**listed, **BUILTIN}, frozenset(given.codecs), given.complete, plan.inputs.operators, dict(given.fields)
    )


def _node(name: str, facts: PlanNode) -> Node:
    return Node(
        name=name,
        index=facts.index,
        address=facts.address,
        speed=Fraction(str(facts.speed)),
        cores=facts.cores,
        memory_bytes=facts.memory_bytes,
        cap=Fraction(str(facts.cap)),
        policy=policy_choice.given(facts),
        emulate_cost_ns=facts.emulate_cost_ns,
        cpu=facts.cpu,
        charges=facts.charges,
        host=facts.host,
        core=facts.core,
        host_memory_bytes=facts.host_memory_bytes,
    )


def choices(plan: Plan) -> Choices:
    """Those that a plan was made with. Its policy is that of the nodes by now, or the planner's to choose again."""
    solver = plan.solver
    return Choices(
        allocator=plan.allocator,
        model="sound" if plan.model == "sound" else "paper",
        units=plan.units,
        place=dict(plan.held),
        sub_deadlines=_sub_deadlines(plan),
        tighten=solver.tighten or None,
        limits=Limits(seed=solver.seed, solver=solver.name),
        charges=RuntimeOverhead.read(plan.analysis.charges),
        incumbent=incumbent.read(plan),
    )


def _sub_deadlines(plan: Plan) -> SubDeadlines:
    said = plan.solver.sub_deadlines
    if plan.allocator != "sqpr":
        return "model"
    if said == "model":
        return said
    return said if said == "deadline" else "proportional"
