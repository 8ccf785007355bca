"""Large neighbourhoods: some items are placed anew, optimally, while all others stay.

Sub-deadlines are held (at d', or at what the present placement gives), so the demand rows need no big M: any answer
keeps NLR, and only traffic is minimised.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from coordinator.model.limits import Limits
from coordinator.model.problem import Stream
from coordinator.solve.heuristics.search_state import SearchState
from coordinator.solve.milp import milp
from coordinator.solve.milp.milp import MS
from coordinator.solve.milp.programme import Model

SECONDS = 0.5  # of one; more small neighbourhoods found more than fewer large ones
IDLE_NODES = 2


def ball(state: SearchState, dice: random.Random, size: int) -> list[int]:
    """Free items near a random one in the graph; pinned ones are no way through."""
    free = [index for index, nodes in enumerate(state.nodes) if len(nodes) > 1]
    first = dice.choice(free)
    found: dict[int, None] = {first: None}
    frontier = [first]
    while frontier and len(found) < size:
        near = [one for one in _linked(state, frontier.pop(0)) if one not in found and len(state.nodes[one]) > 1]
        dice.shuffle(near)
        for one in near[: size - len(found)]:
            found[one] = None
            frontier.append(one)
    return list(found)


def crowd(state: SearchState, around: Sequence[int], dice: random.Random, size: int) -> list[int]:
    """Free items on the nodes that the streams of some items touch: what has to give way for them."""
    nodes = sorted(_touched(state, around))
    order, inside = state.problem.order, set(around)
    here = [order[rank] for node in nodes for rank in state.here[node]]
    others = [one for one in here if one not in inside and len(state.nodes[one]) > 1]
    return others if len(others) <= size else dice.sample(others, size)


def _linked(state: SearchState, index: int) -> list[int]:
    found: dict[int, None] = {}
    for number in state.streams[index]:
        stream = state.problem.streams[number]
        found.update(dict.fromkeys([*stream.readers, *([stream.item] if stream.item is not None else [])]))
    return list(found)


def _touched(state: SearchState, items: Sequence[int]) -> set[int]:
    """Nodes where the items are, or what their streams come from or go to."""
    nodes = {state.place[index] for index in items}
    for index in items:
        nodes.update(node for node in state.attraction(index))
    return nodes


def improve(
    state: SearchState, items: Sequence[int], due_ns: Sequence[int], dice: random.Random, limits: Limits
) -> bool:
    """Replaces the places of some items by the best for all of them together, where that is better. `due_ns`: the
    sub-deadline that each item of the problem keeps."""
    nodes = _touched(state, items)
    idle = dice.sample(range(len(state.here)), min(len(state.here), 4 * IDLE_NODES))
    nodes.update(sorted(idle, key=lambda node: (state.used[node] / state.cap[node], node))[:IDLE_NODES])
    before, score = {index: state.place[index] for index in items}, state.score()
    found = _solve(state, items, sorted(nodes), due_ns, limits)
    if not found or found == before:
        return False
    for index, node in found.items():
        state.move(index, node)
    if state.score().better(score):
        return True
    for index, node in before.items():
        state.move(index, node)
    return False


def _solve(
    state: SearchState, items: Sequence[int], nodes: Sequence[int], due_ns: Sequence[int], limits: Limits
) -> dict[int, int] | None:
    model = Model(state.problem, False)
    for index in items:
        for node in {*nodes, state.place[index]} & set(state.nodes[index]):
            if state.cost[index][node] <= due_ns[index]:
                model.z[index, node] = model.programme.add_integer_variable(lb=0, ub=1)
        terms = [model.z[index, node] for node in nodes if (index, node) in model.z]
        model.programme.add_linear_constraint(model.total(terms) == 1)
    for node in nodes:
        _rows(model, state, set(items), node, due_ns)
    numbers = sorted({number for index in items for number in state.streams[index]})
    terms = [term for number in numbers for term in _copies(model, state, set(items), number)]
    answer = milp.solve(model, model.total(terms), limits, time.monotonic() + min(SECONDS, limits.seconds))
    return answer.solution.place if answer.solution else None


def _rows(model: Model, state: SearchState, moved: set[int], node: int, due_ns: Sequence[int]) -> None:
    """Demand and utilisation of a node beside what stays there."""
    here = [index for index in moved if (index, node) in model.z]
    if not here:
        return
    stays = [state.problem.order[rank] for rank in state.here[node] if state.problem.order[rank] not in moved]
    used = sum(state.load[index][node] for index in stays)
    terms = [state.load[index][node] * model.z[index, node] for index in here]
    model.programme.add_linear_constraint(model.total(terms) <= state.cap[node] * (1 + 1e-9) - used)
    ordered = sorted((due_ns[index], index) for index in [*stays, *here])
    fixed_ns, most_ns, demand = 0, 0, []
    for position, (limit_ns, index) in enumerate(ordered):
        if (index, node) in model.z:
            demand.append(state.cost[index][node] / MS * model.z[index, node])
            most_ns += state.cost[index][node]
        else:
            fixed_ns += state.cost[index][node]
        last = position + 1 == len(ordered) or ordered[position + 1][0] > limit_ns
        if last and demand and fixed_ns + most_ns > limit_ns:
            model.programme.add_linear_constraint(model.total(list(demand)) <= (limit_ns - fixed_ns) / MS)


def _copies(model: Model, state: SearchState, moved: set[int], number: int) -> list[object]:
    """t >= z[consumer] - z[producer], with what stays as constants."""
    stream, terms = state.problem.streams[number], []
    tuples, nodes = state.tuples[number], range(len(state.here))
    for node in nodes:
        wants = [model.z[one, node] for one in stream.readers if one in moved and (one, node) in model.z]
        if node in stream.sinks or any(state.place[one] == node for one in stream.readers if one not in moved):
            wants.append(1.0)
        here = _origin(model, state, moved, stream, node)
        if not wants or (isinstance(here, float) and here == 1.0):
            continue
        copy = model.programme.add_variable(lb=0, ub=1)
        for want in wants:
            model.programme.add_linear_constraint(copy >= want - here)
        terms.append(tuples * copy)
    return terms


def _origin(model: Model, state: SearchState, moved: set[int], stream: Stream, node: int) -> object:
    if stream.item is None or stream.item not in moved:
        start = stream.node if stream.item is None else state.place[stream.item]
        return 1.0 if start == node else 0.0
    return model.z.get((stream.item, node), 0.0)
