"""A first placement, and its descent by single moves and exchanges. No solver.

Two starts, the better is taken: along the streams, each item where most of its neighbours are and all sub-deadlines
stay at d'; and in the order of d', where an item never delays one that is placed already, so that demand spreads.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count

from coordinator.solve.heuristics.search_state import Score, SearchState

NEAREST = 4
Stop = Callable[[], bool]  # asked between moves; true: stop with what there is


def start(state: SearchState, stop: Stop) -> Score:
    """Loads the better of both starts into the state."""
    best: tuple[Score, dict[int, int]] | None = None
    for along in (True, False):
        _place_all(state, along)
        found = state.score()
        if best is None or found.better(best[0]):
            best = found, dict(enumerate(state.place))
        if stop() or (along and found.over == 0 and found.nlr == 0):
            break
    assert best is not None  # the first start always places everything
    state.load_placement(best[1])
    return best[0]


def _place_all(state: SearchState, along: bool) -> None:
    for index in range(len(state.place)):
        state.move(index, -1)
    fixed = [index for index, nodes in enumerate(state.nodes) if len(nodes) == 1]
    for index in fixed:
        state.move(index, state.nodes[index][0])
    free = [index for index, nodes in enumerate(state.nodes) if len(nodes) > 1]
    for index in free if along else sorted(free, key=state.rank.__getitem__):
        state.move(index, _choose(state, index))


def _choose(state: SearchState, index: int) -> int:
    """The node with most of the item's streams among those that it fits on; else the one where it is least late."""
    pull = state.attraction(index)
    for node in sorted(pull, key=lambda one: (-pull[one], one)):
        if node in state.cost[index] and node in state.nodes[index] and state.fits(index, node):
            return node
    fitting = [node for node in state.nodes[index] if state.fits(index, node)]
    if fitting:
        return min(fitting, key=lambda node: (state.used[node] / state.cap[node], node))
    return min(state.nodes[index], key=lambda node: (_late(state, index, node), -pull.get(node, 0.0), node))


def _late(state: SearchState, index: int, node: int) -> float:
    """By how much an item and those after it would exceed their d' on a node, each relative to its cost."""
    order, cost = state.problem.order, state.cost[index][node]
    busy, late, passed = 0, 0.0, False
    for rank in state.here[node]:
        other = order[rank]
        if rank > state.rank[index] and not passed:
            passed = True
        busy = state.least[other]
        if passed:
            late += max(0, busy + cost - max(busy, state.due[other])) / state.problem.items[other].weight_ns
    first = [state.least[order[rank]] for rank in state.here[node] if rank < state.rank[index]]
    own = (first[-1] if first else 0) + cost
    room = state.used[node] + state.load[index][node] - state.cap[node]
    return late + max(0, own - state.due[index]) / state.problem.items[index].weight_ns + max(0.0, room) * 1e3


def from_guide(
    state: SearchState, guide: Mapping[int, tuple[str, int]], groups: Sequence[int], kinds: Sequence[int]
) -> Score:
    """Places everything as a solution of the bound's model says, where that fits. What it puts on a kind of node goes,
    part by part, to the node of that kind that takes most of it."""
    for index in range(len(state.place)):
        state.move(index, state.nodes[index][0] if len(state.nodes[index]) == 1 else -1)
    together: dict[tuple[int, int], list[int]] = {}
    for index, (what, number) in guide.items():
        if state.place[index] < 0 and what == "node":
            state.move(index, number if state.fits(index, number) else _choose(state, index))
        elif state.place[index] < 0:
            together.setdefault((groups[index], number), []).append(index)
    for (_, kind), group in sorted(together.items(), key=lambda pair: -len(pair[1])):
        items = group
        while items:
            taken = _fill(state, items, [node for node, one in enumerate(kinds) if one == kind])
            for index in taken:
                if state.place[index] < 0:
                    state.move(index, _choose(state, index))
            items = [index for index in items if state.place[index] < 0]
    for index in range(len(state.place)):
        if state.place[index] < 0:
            state.move(index, _choose(state, index))
    return state.score()


def _fill(state: SearchState, items: Sequence[int], nodes: Sequence[int]) -> list[int]:
    """Puts items on the node that takes most of them; at least one is to be placed afterwards, by any means."""
    most: tuple[int, int] = (0, -1)
    for node in sorted(nodes, key=lambda one: state.used[one]):
        taken = [index for index in items if node in state.nodes[index] and _try(state, index, node)]
        for index in taken:
            state.move(index, -1)
        if len(taken) > most[0]:
            most = len(taken), node
        if len(taken) == len(items):
            break
    if most[1] < 0:
        return list(items[:1])
    return [index for index in items if most[1] in state.nodes[index] and _try(state, index, most[1])]


def _try(state: SearchState, index: int, node: int) -> bool:
    if not state.fits(index, node):
        return False
    state.move(index, node)
    return True


def candidates(state: SearchState, index: int, dice: random.Random, spread: int) -> list[int]:
    """Nodes worth trying for an item: those of its neighbours, the idlest, and a few by chance."""
    allowed = state.nodes[index]
    if len(allowed) <= spread:
        return list(allowed)
    pull = state.attraction(index)
    near = [node for node in sorted(pull, key=lambda one: (-pull[one], one)) if node in state.cost[index]][:NEAREST]
    idle = sorted(
        dice.sample(allowed, min(len(allowed), 3 * spread)), key=lambda node: (_late(state, index, node), node)
    )
    found = dict.fromkeys([*near, state.place[index], *idle])
    return list(found)[: max(spread, len(near) + 1)]


def descend(state: SearchState, dice: random.Random, stop: Stop, spread: int = 8) -> Score:
    """Single moves, and exchanges with what stands in the way, until a round brings nothing."""
    free = [index for index, nodes in enumerate(state.nodes) if len(nodes) > 1]
    best = state.score()
    for _ in count():
        improved = False
        dice.shuffle(free)
        for index in free:
            if stop():
                return best
            after = _improve(state, index, best, candidates(state, index, dice, spread), dice)
            improved, best = improved or after is not best, after
        if not improved:
            return best
    raise AssertionError("unreachable")


def late(state: SearchState, dice: random.Random, size: int) -> list[int]:
    """Free items to place anew for NLR's sake: some of an output that has any, and what stands before them."""
    outputs = [number for number, nlr in enumerate(state.output_nlr) if nlr > 0 or state.output_over[number] > 0]
    if not outputs:
        return []
    order, weights = state.problem.order, [state.output_nlr[one] + 10 * state.output_over[one] for one in outputs]
    items = state.outputs[dice.choices(outputs, weights)[0]].items
    behind = [index for index in items if state.least[index] > state.due[index]] or items
    found = dict.fromkeys(dice.sample(behind, min(len(behind), max(1, size // 3))))
    for index in list(found):
        ahead = [order[rank] for rank in state.here[state.place[index]] if rank < state.rank[index]]
        found.update(dict.fromkeys(dice.sample(ahead, min(len(ahead), 2))))
    other = state.here[dice.randrange(len(state.here))]
    found.update(dict.fromkeys(order[rank] for rank in dice.sample(other, min(len(other), 2))))
    return [index for index in found if len(state.nodes[index]) > 1][:size]


def recreate(state: SearchState, items: Sequence[int], dice: random.Random, spread: int = 8) -> bool:
    """Takes items off and puts them back one by one, each where the whole is then best; undone where that is no
    gain."""
    before, score = {index: state.place[index] for index in items}, state.score()
    for index in items:
        state.move(index, -1)
    order = sorted(items, key=state.rank.__getitem__)
    if dice.random() < 0.5:
        dice.shuffle(order)
    for index in order:
        best: tuple[Score, int] | None = None
        for node in dict.fromkeys([*candidates(state, index, dice, spread), before[index]]):
            if node < 0:
                continue
            state.move(index, node)
            found = state.score()
            if best is None or found.better(best[0]):
                best = found, node
        assert best is not None  # where it came from is always tried
        state.move(index, best[1])
    if state.score().better(score):
        return True
    for index, node in before.items():
        state.move(index, node)
    return False


def _improve(state: SearchState, index: int, best: Score, nodes: Iterable[int], dice: random.Random) -> Score:
    """The best node for an item; where the move alone does not help, with an item of that node in exchange."""
    home = state.place[index]
    chosen, exchange = home, -1
    for node in nodes:
        if node == home:
            continue
        state.move(index, node)
        found = state.score()
        if found.better(best):
            best, chosen, exchange = found, node, -1
        else:
            for other in _partners(state, index, node, home, dice):
                state.move(other, home)
                found = state.score()
                if found.better(best):
                    best, chosen, exchange = found, node, other
                state.move(other, node)
        state.move(index, home)
    if chosen != home:
        state.move(index, chosen)
        if exchange >= 0:
            state.move(exchange, home)
    return best


def _partners(state: SearchState, index: int, node: int, home: int, dice: random.Random) -> Sequence[int]:
    """Up to two items of a node that could go where the other comes from."""
    order = state.problem.order
    found = [order[rank] for rank in state.here[node] if order[rank] != index and home in state.nodes[order[rank]]]
    return found if len(found) <= 2 else dice.sample(found, 2)
