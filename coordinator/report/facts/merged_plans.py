"""Merged plans: several plans of one run, judged side by side as one. Outputs of the same name are one output.

A tuple runs under the plan that it was admitted under and under no other, so nothing joins plans but the names of what
they give. Plan 0 is the last that ran; the earlier ones are 1, 2, ... An id of plan n carries n in the bits above its
own 16, in the view here and in the records (`moved`), so that ids of different plans never meet. Plan 0 moves nothing.
Nodes are joined by their names: a plan that numbers them otherwise, as one without a node that failed does, has its
numbers changed to those of the joined view, in both as well.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from coordinator.report.facts.plan_view import (
    OUTPUT,
    PEER,
    Freshness,
    OutputView,
    PlanUnreadableError,
    PlanView,
    UnitView,
    consumer_id,
    consumer_parts,
)
from protos import records as rec
from protos.records import PLAN_EPOCH_MASK, Record

ID_BITS = 16  # of an id in a trace record
AnyRecord = TypeVar("AnyRecord", bound=Record)
MOST_PLANS = 256  # whose numbers fit above an id within the 24 bits that a consumer id has for it


def join(plans: Sequence[PlanView]) -> PlanView:
    """One view of all plans, the last that ran first. Raises PlanUnreadableError where they are too many."""
    last = plans[0]
    if len(plans) == 1:
        return last
    if len(plans) > MOST_PLANS:
        raise PlanUnreadableError(
            "too_many_plans", f"{len(plans)} plans in one run; at most {MOST_PLANS} can be judged together"
        )
    nodes, known = _nodes(plans)
    plans = [_renumbered(plan, known[n]) for n, plan in enumerate(plans)]
    outputs, same = _outputs(plans)
    numbered = list(enumerate(plans))
    return PlanView(
        hash=last.hash,
        query=last.query,
        nodes=nodes,
        streams={_id(n, s): name for n, plan in numbered for s, name in plan.streams.items()},
        sources={_id(n, s): (node, _id(n, stream)) for n, p in numbered for s, (node, stream) in p.sources.items()},
        units={_id(n, u): _unit(n, view) for n, plan in numbered for u, view in plan.units.items()},
        outputs=outputs,
        operators={_id(n, o): name for n, plan in numbered for o, name in plan.operators.items()},
        consumers={
            (node, _id(n, stream)): tuple(sorted(_consumer(n, each, same) for each in found))
            for n, plan in numbered
            for (node, stream), found in plan.consumers.items()
        },
        before={(_id(n, u), _id(n, o)): exits for n, plan in numbered for (u, o), exits in plan.before.items()},
        through={(_id(n, u), _id(n, o)): exits for n, plan in numbered for (u, o), exits in plan.through.items()},
        made=last.made,
        numbers={plan.hash_u64: n for n, plan in reversed(numbered)},
        same=same,
        queries=_queries(plans),
        windows={_id(n, s): view.moved(partial(_id, n)) for n, plan in numbered for s, view in plan.windows.items()},
        bounds={(same.get(_id(n, o), _id(n, o)), n): ns for n, plan in numbered for (o, _), ns in plan.bounds.items()},
        peers={(n, own): node for n, found in enumerate(known) for own, node in found.items() if own != node},
        side_ages={(_id(n, o), _id(n, s)): ages for n, p in numbered for (o, s), ages in p.side_ages.items()},
        freshness=_freshness(plans, same),
    )


def _nodes(plans: Sequence[PlanView]) -> tuple[dict[int, str], list[dict[int, int]]]:
    """All nodes, those of the last plan as it numbers them; and for each plan what its own numbers are there."""
    nodes = dict(plans[0].nodes)
    index = {name: number for number, name in nodes.items()}
    for plan in plans[1:]:
        for _, name in sorted(plan.nodes.items()):
            if name not in index:
                index[name] = max(nodes, default=-1) + 1
                nodes[index[name]] = name
    return nodes, [{own: index[name] for own, name in plan.nodes.items()} for plan in plans]


def _renumbered(plan: PlanView, known: Mapping[int, int]) -> PlanView:
    """The plan with other node numbers."""

    def consumer(each: int) -> int:
        kind, ref, stream = consumer_parts(each)
        return consumer_id(kind, known.get(ref, ref), stream) if kind == PEER else each

    return replace(
        plan,
        nodes={known[own]: name for own, name in plan.nodes.items()},
        sources={id_: (known[node], stream) for id_, (node, stream) in plan.sources.items()},
        units={id_: replace(unit, node=known[unit.node]) for id_, unit in plan.units.items()},
        outputs={id_: replace(output, node=known[output.node]) for id_, output in plan.outputs.items()},
        consumers={
            (known[node], stream): tuple(map(consumer, found)) for (node, stream), found in plan.consumers.items()
        },
        windows={id_: replace(view, node=known[view.node]) for id_, view in plan.windows.items()},
    )


def own(records: Iterable[AnyRecord], epochs: Mapping[int, int], plan: PlanView) -> Iterator[AnyRecord]:
    """The records of the run's plans, moved. epochs: the number of the plan that each plan epoch stands for."""
    for record in records:
        number = epochs.get(record.flags & PLAN_EPOCH_MASK)
        if number is not None:
            yield moved(record, number, plan) if number else record


def moved(record: AnyRecord, number: int, plan: PlanView) -> AnyRecord:
    """A record of that plan with the joined view's ids. Words that damage made anything stay within 64 bits."""
    each: Record = record
    shift = number << ID_BITS
    found: dict[str, int] = {"source": record.source ^ shift}
    if isinstance(each, (rec.Sent, rec.Received, rec.GaveUp)) or (isinstance(each, rec.Lost) and each.never_left):
        found |= {"peer": plan.peers.get((number, each.peer), each.peer), "stream": each.stream ^ shift}
    elif isinstance(each, (rec.Shed, rec.Lost)) and each.of_arrival:
        found["stream"] = each.stream ^ shift
    else:
        found["ref"] = record.ref ^ shift
    if isinstance(each, rec.Output):
        found["ref"] = plan.same.get(found["ref"], found["ref"])
    elif isinstance(each, rec.Absorbed):
        found["stream"] = each.stream ^ shift
    elif isinstance(each, rec.Merged):
        found["parent_source"] = each.parent_source ^ shift
    elif isinstance(each, rec.Degraded):
        found["operator"] = each.operator ^ shift
    elif isinstance(each, rec.Shed):
        found |= {"stream": each.stream ^ shift, "operator": each.operator ^ shift if each.operator else 0}
    return record.changed(**found)


def number_of(moved_id: int) -> int:
    """The plan that an id of the joined view is of."""
    return moved_id >> ID_BITS


def epochs_before(epoch: int, others: Iterable[int]) -> list[int]:
    """Of an incarnation's plan epochs, modulo 128, itself and those before it, the nearest first."""
    back = sorted(((epoch - each) & PLAN_EPOCH_MASK, each) for each in set(others))
    return [each for distance, each in back if distance <= PLAN_EPOCH_MASK // 2]


def _id(number: int, own_id: int) -> int:
    return own_id | number << ID_BITS


def _unit(number: int, view: UnitView) -> UnitView:
    return UnitView(
        id=_id(number, view.id),
        node=view.node,
        operators=view.operators,
        inputs=tuple(_id(number, each) for each in view.inputs),
        exits=tuple(_id(number, each) for each in view.exits),
        join=view.join,
        filters=view.filters,
        gives=view.gives,
        fuses=view.fuses,
        unnamed=view.unnamed,
    )


def _consumer(number: int, consumer: int, same: Mapping[int, int]) -> int:
    kind, ref, stream = consumer_parts(consumer)
    if kind == PEER:
        return consumer_id(kind, ref, _id(number, stream))
    if kind == OUTPUT:
        return consumer_id(kind, same.get(_id(number, ref), _id(number, ref)))
    return consumer_id(kind, _id(number, ref), _id(number, stream) if stream else 0)


def _outputs(plans: Sequence[PlanView]) -> tuple[dict[int, OutputView], dict[int, int]]:
    """The outputs, and for those of earlier plans that are the same as one of them, whose id they have.

    One that has the name of another but its own deadline or node is told apart by its plan's hash.
    """
    found: dict[int, OutputView] = {}
    same: dict[int, int] = {}
    by_name: dict[str, OutputView] = {}
    for number, plan in enumerate(plans):
        for output in plan.outputs.values():
            id_ = _id(number, output.id)
            known = by_name.get(output.name)
            if known is not None and (known.node, known.deadline_ns) == (output.node, output.deadline_ns):
                same[id_] = known.id
                continue
            name = output.name if known is None else f"{output.name} (plan {plan.hash[:8]})"
            stream = _id(number, output.stream)
            view = OutputView(id_, name, output.node, stream, output.deadline_ns, output.share)
            found[id_] = view
            by_name.setdefault(output.name, view)
    return found, same


def _freshness(plans: Sequence[PlanView], same: Mapping[int, int]) -> dict[int, Freshness]:
    """Of the last plan where the output asks."""
    found: dict[int, list[Freshness | None]] = {}
    for number, plan in enumerate(plans):
        for output in plan.outputs:
            id_ = _id(number, output)
            found.setdefault(same.get(id_, id_), []).append(plan.freshness.get(output))
    return {
        output: replace(asked, alike=all(each == asked for each in said))
        for output, said in found.items()
        if (asked := next((each for each in said if each is not None), None)) is not None
    }


def _queries(plans: Sequence[PlanView]) -> dict[str, tuple[str, ...]]:
    """By query, of all plans: the names of its outputs."""
    found: dict[str, dict[str, None]] = {}
    for plan in reversed(plans):
        for name, outputs in plan.queries.items():
            found.setdefault(name, {}).update(dict.fromkeys(outputs))
    return {name: tuple(outputs) for name, outputs in found.items()}


__all__ = ["ID_BITS", "MOST_PLANS", "epochs_before", "join", "moved", "number_of", "own"]
