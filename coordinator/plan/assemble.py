"""A plan of all choices made: what runs where, what is promised of it, and its hash."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from coordinator.guarantee import admission_ages, bounds, policing, system
from coordinator.guarantee.analysis import Analysis, analyse, never
from coordinator.guarantee.confidence import confident_bounds
from coordinator.model.allocation import Allocation
from coordinator.model.flows import mean_selectivity
from coordinator.model.incumbent import Incumbent
from coordinator.model.progress import relative_gap
from coordinator.plan import layout_windows, local_plans, policy_choice
from coordinator.plan.deadline_breakdown import MISSED, guarantee_status
from coordinator.plan.layout import Layout
from coordinator.spec import core_assignment, graph
from coordinator.spec.checks import payload_checks
from coordinator.spec.cluster import Cluster
from coordinator.spec.query import Operator, Query
from coordinator.spec.runtime_charges import MEASURED, RuntimeOverhead
from protos.plan.analysis import Analysis as PlanAnalysis
from protos.plan.analysis import ProposedAges
from protos.plan.cluster import Cluster as PlanCluster
from protos.plan.cluster import Link, Node
from protos.plan.costs import CostOrigin
from protos.plan.graph import Graph, Stream
from protos.plan.guarantee import Claim
from protos.plan.operators import Operator as PlanOperator
from protos.plan.operators import Selectivity
from protos.plan.outputs import Output
from protos.plan.queries import Inputs
from protos.plan.search import Alternative, Objective, PaperChoice, Solver, Task
from protos.plan.sources import Source
from protos.plan_document import VERSION, Plan
from protos.plan_pb2 import LocalPlan

Alternatives = Mapping[
    str, Mapping[str, Alternative | None]
]  # operator, other node: what that would bring; None: infeasible


@dataclass(frozen=True)
class Laid:
    """What runs where, all that a guarantee is computed from."""

    placement: Mapping[str, str]
    graph: Graph
    cluster: PlanCluster
    nodes: Mapping[str, LocalPlan]


def build(
    layout: Layout,
    allocation: Allocation,
    allocator: Literal["deadline", "sqpr"],
    solver: Solver,
    held: dict[str, str],
    alternatives: Alternatives,
    charges: RuntimeOverhead = MEASURED,
    model: Literal["sound", "paper", "sqpr"] = "paper",
    paper: PaperChoice | None = None,
    incumbent: Incumbent | None = None,
    quick: bool = False,
    stop: Callable[[], bool] = never,
) -> Plan:
    """The whole plan, with its hash. `solver`: its gap and sub-deadlines are those of the allocation; `held`: operators
    that the caller held to a node; `charges`: what the bounds charge for the runtime; `paper`: what the `paper` model
    would have chosen, where another was used; `incumbent`: what runs already and stays as it is; `quick`: without ages
    that sources might declare; `stop`: ends the search for these. Raises BadInputError where a node's queues could not
    hold one payload."""
    query, cluster = layout.query, layout.cluster
    payload_checks.check_memory(query, cluster, layout.place)
    named: Literal["sound", "paper", "sqpr"] = model if allocator == "deadline" else "sqpr"
    found = _promised(layout, charges, named == "sound" and not quick, stop)
    nodes, analysed = found.laid.nodes, found.document
    if named == "sound":  # a guarantee that a source could break would be none
        nodes, policed = policing.enforced(found.laid, found.analysis)
        analysed = replace(analysed, policing=policed, ages=found.ages)
    return Plan(
        shimekiri=VERSION,
        query=query.name,
        queries=query.parts,
        status="optimal" if allocation.proven else "feasible",
        allocator=allocator,
        model=named,
        units=layout.grouping,
        solver=replace(solver, gap=_gap(allocation), sub_deadlines=allocation.sub_deadlines),
        inputs=Inputs(query=query.sha256, cluster=cluster.sha256, operators=cluster.catalog.sha256),
        objective=_objective(allocation),
        sub_deadlines_ns={operator.name: layout.sub_deadline_ns[operator.name] for operator in query.operators},
        held=held,
        alternatives=alternatives,
        tasks={node: tuple(_task(layout, *task) for task in tasks) for node, tasks in layout.tasks.items()},
        placement=found.laid.placement,
        graph=found.laid.graph,
        cluster=found.laid.cluster,
        nodes=nodes,
        costs=_costs(query) or None,
        paper=paper,
        kept=incumbent.document() if incumbent is not None else None,
        guarantee=found.guarantee,
        analysis=analysed,
        policy_why=found.policy_why,
        hash="",
    ).sealed()


@dataclass(frozen=True)
class _Promised:
    """A layout with its guarantee. `policy_why`: why nodes that name no policy run none with bounds, or nothing;
    `ages`: with which more would be guaranteed."""

    laid: Laid
    analysis: Analysis
    guarantee: Mapping[str, Claim]
    document: PlanAnalysis
    policy_why: str = ""
    ages: ProposedAges | None = None


def _promised(layout: Layout, charges: RuntimeOverhead, proposing: bool, stop: Callable[[], bool]) -> _Promised:
    """Under edf on nodes that name no policy; where that guarantees nothing, under the best of the others. `proposing`:
    also ages, which are reason enough for edf; `stop`: ends the search for them."""
    found = _analysed(layout, charges)
    ages = admission_ages.proposed(found.analysis, stop) if proposing else None
    if ages is not None:
        return replace(found, ages=ages)
    free = [node.name for node in layout.cluster.nodes.values() if node.policy is None and layout.tasks[node.name]]
    if not free or any(_any_promise(claim) for claim in found.guarantee.values()):
        return found
    best = _analysed(replace(layout, policy=policy_choice.BEST), charges)
    told = {
        name: replace(claim, why=f"{claim.why}; under edf: {found.guarantee[name].why}")
        for name, claim in best.guarantee.items()
    }
    return replace(best, guarantee=told, policy_why=policy_choice.why_best(free))


def _analysed(layout: Layout, charges: RuntimeOverhead) -> _Promised:
    what = laid(layout)
    analysis = analyse(system.read(what), charges)
    guarantee, document = bounds.analysed(analysis)
    measured = {name: origin.distributions for name, origin in _costs(layout.query).items() if origin.distributions}
    return _Promised(what, analysis, confident_bounds.documents(what, analysis, measured, guarantee), document)


def _any_promise(claim: Claim) -> bool:
    """Whether an output is promised anything: its deadline, or at least that from admission on."""
    return guarantee_status(claim) != MISSED or (claim.bound_ns is not None and claim.bound_ns <= claim.deadline_ns)


def _costs(query: Query) -> dict[str, CostOrigin]:
    """Of operators, and of sources that are called, whose cost is not simply as declared; how their calls were
    distributed where an output asks for a confidence."""
    found = {one.name: one.cost_from for one in query.operators if one.cost_from}
    found |= {one.name: one.cost_from for one in query.sources if one.cost_from}
    if any(one.confidence for one in query.outputs):
        return found
    return {name: replace(origin, distributions=()) for name, origin in found.items()}


def _objective(allocation: Allocation) -> Objective:
    """NLR, what it is at least, and traffic; where that is not proven the least, what it is at least."""
    least = allocation.traffic_bound if not allocation.proven else None
    return Objective(
        nlr=allocation.nlr,
        bound=allocation.bound,
        traffic=float(allocation.traffic),
        traffic_bound=None if least is None else round(least, 6),
    )


def _gap(allocation: Allocation) -> float:
    """Relative gap of the NLR to its bound, absolute where the bound is 0; of model `sound`, of the traffic."""
    if allocation.sub_deadlines == "sound" and not allocation.proven:
        return round(relative_gap(float(allocation.traffic), allocation.traffic_bound or 0.0), 6)
    if allocation.sub_deadlines != "model":
        return 0.0
    return round((allocation.nlr - allocation.bound) / (allocation.bound or 1.0), 6)


def _task(layout: Layout, number: int, operators: tuple[str, ...]) -> Task:
    due_ns = sum(layout.sub_deadline_ns[name] for name in operators)
    return Task(id=number, operators=operators, sub_deadline_ns=due_ns)


def laid(layout: Layout) -> Laid:
    """What runs where."""
    return Laid(
        {operator.name: layout.place[operator.name] for operator in layout.query.operators},
        _graph(layout),
        _cluster(layout),
        {node.name: local_plans.of_node(layout, node) for node in layout.cluster.nodes.values()},
    )


def _graph(layout: Layout) -> Graph:
    query = layout.query
    return Graph(
        sources={
            source.name: Source(
                id=number,
                at=source.at,
                type=layout.types[source.name],
                stream=layout.stream_id[source.name],
                max_age_ns=source.max_age_ns,
                arrival=source.arrival.written,
                forbid_streams=source.forbidden,
                limit=source.limit,
                on_full=source.on_full,
                pull=source.pull,
                max_bytes=source.max_bytes,
                connector=source.connector,
            )
            for number, source in enumerate(query.sources, start=1)
        },
        operators={operator.name: _operator(layout, operator) for operator in query.operators},
        outputs={
            output.name: Output(
                id=number,
                origin=output.origin,
                at=output.at,
                deadline_ns=output.deadline_ns,
                qos=output.qos.document(),
                age_ns=output.age.limit_ns if output.age else None,
                age_without=output.age.without if output.age else (),
                reaction_ns=output.reaction.limit_ns if output.reaction else None,
                reaction_without=output.reaction.without if output.reaction else (),
                connector=output.connector,
                confidence=output.confidence.document() if output.confidence else None,
            )
            for number, output in enumerate(query.outputs, start=1)
        },
        streams={
            name: Stream(id=number, type=layout.types[name], max_bytes=layout.max_bytes[name])
            for name, number in layout.stream_id.items()
        },
        windows=layout_windows.documents(layout),
    )


def _operator(layout: Layout, operator: Operator) -> PlanOperator:
    narrowed = operator.nodes or operator.barred
    return PlanOperator(
        id=layout.operator_id[operator.name],
        run=operator.run,
        inputs=tuple(layout.ordered_inputs(operator)),
        ports=operator.ports,
        side=operator.side,
        cost_ns=operator.cost_ns,
        selectivity=_selectivity(operator),
        nodes=tuple(core_assignment.allowed(operator, layout.cluster)) if narrowed else None,
        forbid_nodes=operator.barred,
        memory_bytes=operator.memory_bytes,
        parameters=operator.parameters,
        kind=graph.kind(operator, layout.cluster.catalog),
        join=layout.joins(operator),
        stream=layout.stream_id[operator.name],
        hang_ns=operator.hang_ns,
        state=operator.state,
        forbid_streams=operator.forbidden,
        called=operator.called,
        window=operator.window,
        on_late=operator.on_late,
        queue=operator.queue,
        closes=operator.closes,
        sync=operator.sync,
        side_rules=operator.side_rules,
        max_bytes=operator.max_bytes,
    )


def _selectivity(operator: Operator) -> Selectivity | None:
    """As declared; of a filter that declares none, what its parameters say."""
    declared = operator.selectivity
    if declared is not None:
        return Selectivity(mean=declared.mean, at_most=tuple((inputs, results) for inputs, results in declared.at_most))
    if operator.run != "filter":
        return None
    keep, of = operator.parameters.get("keep", 1), operator.parameters.get("of", 2)
    return Selectivity(mean=float(mean_selectivity(operator)), at_most=((of, keep),))


def _cluster(layout: Layout) -> PlanCluster:
    cluster: Cluster = layout.cluster
    return PlanCluster(
        nodes={
            node.name: Node(
                index=node.index,
                address=node.address,
                speed=float(node.speed),
                host=node.host,
                core=node.core,
                cores=node.cores,
                memory_bytes=node.memory_bytes,
                host_memory_bytes=node.host_memory_bytes,
                cap=float(node.cap),
                policy=(node.policy or layout.policy).name,
                policy_parameters=(node.policy or layout.policy).parameters,
                policy_by_default=node.policy is None,
                emulate_cost_ns=node.emulate_cost_ns,
                cpu=node.cpu,
                charges=node.charges,
            )
            for node in cluster.nodes.values()
        },
        links=tuple(
            Link(between=link.between, latency_ns=link.latency_ns, bandwidth_bps=link.bandwidth_bps)
            for link in cluster.links
        ),
        security=cluster.security,
        installed=cluster.catalog.document,
    )
