"""Plan handover: what a new plan inherits when it is committed in place of an old one on the same node.

An operator that is the same in both (its name, what it runs and with which parameters, its input and side streams by
name and codec) keeps its instance: the new plan's step gets the old one's call, and both plans call one instance until
the old one has drained. So does the newest value of its side inputs. What waits in a join stays with the old plan,
whose tuples wait for each other. `fresh`, in the plan of the higher epoch, keeps an operator apart.

Windows that are open go on under the new plan where kind, length, hop, lateness, keys, size function and sources are
the same as well: both plans report to them, and what closes is released under the newest.

What policing has let pass and what was measured of a unit goes on whether or not an instance does: neither is state of
an operator.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from node_agent.core import plan as plans
from node_agent.core.incremental import Incremental, finish
from node_agent.core.model import CompiledPlan, Step, Unit
from node_agent.core.shedding import install, source_admission

Pairs = Sequence[tuple[Step, Step]]  # of the new plan, of the old one


def inherited(new: plans.Plan, old: plans.Plan) -> dict[int, int]:
    """Operators of the new plan that keep the instance of the old one, by id: which one it is there."""
    return finish(comparing(new, old))


def comparing(new: plans.Plan, old: plans.Plan) -> Incremental[dict[int, int]]:
    """`inherited`, an operator at a time."""
    found = {}
    before = {operator.name: operator for operator in old.operators}
    streams = []
    for plan in (new, old):
        streams.append({stream.id: (stream.name, stream.codec) for stream in plan.streams})
        yield
    for operator in new.operators:
        yield
        other = before.get(operator.name)
        if other is None or (operator if new.epoch >= old.epoch else other).fresh:
            continue
        same = (
            (operator.run, operator.with_json, operator.join) == (other.run, other.with_json, other.join)
            and operator.called == other.called
            and _windows(operator) == _windows(other)
            and _named(operator.inputs, streams[0]) == _named(other.inputs, streams[1])
            and _sides(operator, streams[0]) == _sides(other, streams[1])
        )
        if same:
            found[operator.id] = other.id
    return found


def inherit_state(new: CompiledPlan, old: CompiledPlan, pairs: Pairs | None = None) -> None:
    """At the commit of the new plan, before anything runs under it. pairs: where it was found out before (`paired`)
    which operators keep their instance; a step that is not among them keeps the call that it has."""
    source_admission.inherit_admission(new, old)
    install.inherit_shedders(new, old)
    for step, before in paired(new, old, inherited(new.plan, old.plan)) if pairs is None else pairs:
        step.inherit(before)
        if step.collects is not None and before.collects is not None:
            step.collects.inherit(before.collects)
        for side, other in zip(step.sides, before.sides, strict=True):
            side.value, side.origin_ns = other.value, other.origin_ns
            other.successor = (
                side  # a value that is still on its way under the old plan is news for the new one as well
            )
    _police(new, old)
    _measured(new, old)


def paired(new: CompiledPlan, old: CompiledPlan, same: Mapping[int, int]) -> Pairs:
    """The steps of operators that are the same; same: as from `inherited`."""
    mine, before = ({step.operator_id: step for step in each.steps} for each in (new, old))
    return [(mine[operator], before[other]) for operator, other in same.items()]


def _police(new: CompiledPlan, old: CompiledPlan) -> None:
    """Results of an operator of the same name count from plan to plan, where both limit them alike."""
    known = {police.name: police for step in old.steps if (police := step.police) is not None}
    if known:
        for step in new.steps:
            if step.police is not None and step.police.name in known:
                step.police.inherit(known[step.police.name])


def _measured(new: CompiledPlan, old: CompiledPlan) -> None:
    """Units of the same operators: their meters and their deadline rules go on."""
    if not any(unit.meter is not None or unit.rule is not None for unit in new.units):
        return
    before = {_names(unit): unit for unit in old.units}
    for unit in new.units:
        other = before.get(_names(unit))
        if other is None:
            continue
        if unit.meter is not None and other.meter is not None:
            unit.meter.inherit(other.meter)
        same = (unit.spec.service, unit.sub_deadline_ns) == (other.spec.service, other.sub_deadline_ns)
        if unit.rule is not None and other.rule is not None and same:
            unit.rule = other.rule  # one memory: deadlines do not decrease from plan to plan either


def _named(streams: Iterable[int], names: dict[int, tuple[str, str]]) -> list[tuple[str, str]]:
    return [names[stream] for stream in streams]


def _sides(operator: plans.Operator, names: dict[int, tuple[str, str]]) -> list[tuple[str, tuple[str, str]]]:
    return [(port, names[stream]) for port, stream in operator.sides]


def _windows(operator: plans.Operator) -> plans.Window | None:
    """What has to be the same for its windows to go on. Its sources have to be, since their numbers go on: known by
    their names and nodes, or where the plan does not say them by their ids."""
    window = operator.window
    if window is None:
        return None
    named = bool(window.names) and all(window.names)
    feeds = tuple((0 if named else source, number) for source, number in window.feeds)
    return replace(window, source=0, useful_ns=0, wait_ns=0, feeds=feeds)


def _names(unit: Unit) -> tuple[tuple[str, str, str], ...]:
    known = unit.loaded.plan.operator_by_id
    chain = [known[step.operator_id] for step in unit.chain]
    return tuple((operator.name, operator.run, operator.with_json) for operator in chain)
