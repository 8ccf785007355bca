"""A first placement, and its descent by single moves and exchanges. No solver.

Two starts, the better is taken: along the streams, each item where most of its neighbours are and all sub-deadlines
stay at d'; and in the order of d', where an item never delays one that is placed already, so that demand spreads.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count

from coordinator.solve.heuristics.board import Board, Score

NEAREST = 4
Stop = Callable[[], bool]  # asked between moves; true: stop with what there is


def start(board: Board, stop: Stop) -> Score:
    """Loads the better of both starts into the board."""
    best: tuple[Score, dict[int, int]] | None = None
    for along in (True, False):
        _place_all(board, along)
        found = board.score()
        if best is None or found.better(best[0]):
            best = found, dict(enumerate(board.place))
        if stop() or (along and found.over == 0 and found.nlr == 0):
            break
    assert best is not None  # the first start always places everything
    board.load_placement(best[1])
    return best[0]


def _place_all(board: Board, along: bool) -> None:
    for index in range(len(board.place)):
        board.move(index, -1)
    fixed = [index for index, nodes in enumerate(board.nodes) if len(nodes) == 1]
    for index in fixed:
        board.move(index, board.nodes[index][0])
    free = [index for index, nodes in enumerate(board.nodes) if len(nodes) > 1]
    for index in free if along else sorted(free, key=board.rank.__getitem__):
        board.move(index, _choose(board, index))


def _choose(board: Board, index: int) -> int:
    """The node with most of the item's streams among those that it fits on; else the one where it is least late."""
    pull = board.attraction(index)
    for node in sorted(pull, key=lambda one: (-pull[one], one)):
        if node in board.cost[index] and node in board.nodes[index] and board.fits(index, node):
            return node
    fitting = [node for node in board.nodes[index] if board.fits(index, node)]
    if fitting:
        return min(fitting, key=lambda node: (board.used[node] / board.cap[node], node))
    return min(board.nodes[index], key=lambda node: (_late(board, index, node), -pull.get(node, 0.0), node))


def _late(board: Board, index: int, node: int) -> float:
    """By how much an item and those after it would exceed their d' on a node, each relative to its cost."""
    order, cost = board.problem.order, board.cost[index][node]
    busy, late, passed = 0, 0.0, False
    for rank in board.here[node]:
        other = order[rank]
        if rank > board.rank[index] and not passed:
            passed = True
        busy = board.least[other]
        if passed:
            late += max(0, busy + cost - max(busy, board.due[other])) / board.problem.items[other].weight_ns
    first = [board.least[order[rank]] for rank in board.here[node] if rank < board.rank[index]]
    own = (first[-1] if first else 0) + cost
    room = board.used[node] + board.load[index][node] - board.cap[node]
    return late + max(0, own - board.due[index]) / board.problem.items[index].weight_ns + max(0.0, room) * 1e3


def from_guide(
    board: Board, guide: Mapping[int, tuple[str, int]], groups: Sequence[int], kinds: Sequence[int]
) -> Score:
    """Places everything as a solution of the bound's model says, where that fits. What it puts on a kind of node goes,
    part by part, to the node of that kind that takes most of it."""
    for index in range(len(board.place)):
        board.move(index, board.nodes[index][0] if len(board.nodes[index]) == 1 else -1)
    together: dict[tuple[int, int], list[int]] = {}
    for index, (what, number) in guide.items():
        if board.place[index] < 0 and what == "node":
            board.move(index, number if board.fits(index, number) else _choose(board, index))
        elif board.place[index] < 0:
            together.setdefault((groups[index], number), []).append(index)
    for (_, kind), group in sorted(together.items(), key=lambda pair: -len(pair[1])):
        items = group
        while items:
            taken = _fill(board, items, [node for node, one in enumerate(kinds) if one == kind])
            for index in taken:
                if board.place[index] < 0:
                    board.move(index, _choose(board, index))
            items = [index for index in items if board.place[index] < 0]
    for index in range(len(board.place)):
        if board.place[index] < 0:
            board.move(index, _choose(board, index))
    return board.score()


def _fill(board: Board, items: Sequence[int], nodes: Sequence[int]) -> list[int]:
    """Puts items on the node that takes most of them; at least one is to be placed afterwards, by any means."""
    most: tuple[int, int] = (0, -1)
    for node in sorted(nodes, key=lambda one: board.used[one]):
        taken = [index for index in items if node in board.nodes[index] and _try(board, index, node)]
        for index in taken:
            board.move(index, -1)
        if len(taken) > most[0]:
            most = len(taken), node
        if len(taken) == len(items):
            break
    if most[1] < 0:
        return list(items[:1])
    return [index for index in items if most[1] in board.nodes[index] and _try(board, index, most[1])]


def _try(board: Board, index: int, node: int) -> bool:
    if not board.fits(index, node):
        return False
    board.move(index, node)
    return True


def candidates(board: Board, index: int, dice: random.Random, spread: int) -> list[int]:
    """Nodes worth trying for an item: those of its neighbours, the idlest, and a few by chance."""
    allowed = board.nodes[index]
    if len(allowed) <= spread:
        return list(allowed)
    pull = board.attraction(index)
    near = [node for node in sorted(pull, key=lambda one: (-pull[one], one)) if node in board.cost[index]][:NEAREST]
    idle = sorted(
        dice.sample(allowed, min(len(allowed), 3 * spread)), key=lambda node: (_late(board, index, node), node)
    )
    found = dict.fromkeys([*near, board.place[index], *idle])
    return list(found)[: max(spread, len(near) + 1)]


def descend(board: Board, dice: random.Random, stop: Stop, spread: int = 8) -> Score:
    """Single moves, and exchanges with what stands in the way, until a round brings nothing."""
    free = [index for index, nodes in enumerate(board.nodes) if len(nodes) > 1]
    best = board.score()
    for _ in count():
        improved = False
        dice.shuffle(free)
        for index in free:
            if stop():
                return best
            after = _improve(board, index, best, candidates(board, index, dice, spread), dice)
            improved, best = improved or after is not best, after
        if not improved:
            return best
    raise AssertionError("unreachable")


def late(board: Board, dice: random.Random, size: int) -> list[int]:
    """Free items to place anew for NLR's sake: some of an output that has any, and what stands before them."""
    outputs = [number for number, nlr in enumerate(board.output_nlr) if nlr > 0 or board.output_over[number] > 0]
    if not outputs:
        return []
    order, weights = board.problem.order, [board.output_nlr[one] + 10 * board.output_over[one] for one in outputs]
    items = board.outputs[dice.choices(outputs, weights)[0]].items
    behind = [index for index in items if board.least[index] > board.due[index]] or items
    found = dict.fromkeys(dice.sample(behind, min(len(behind), max(1, size // 3))))
    for index in list(found):
        ahead = [order[rank] for rank in board.here[board.place[index]] if rank < board.rank[index]]
        found.update(dict.fromkeys(dice.sample(ahead, min(len(ahead), 2))))
    other = board.here[dice.randrange(len(board.here))]
    found.update(dict.fromkeys(order[rank] for rank in dice.sample(other, min(len(other), 2))))
    return [index for index in found if len(board.nodes[index]) > 1][:size]


def recreate(board: Board, items: Sequence[int], dice: random.Random, spread: int = 8) -> bool:
    """Takes items off and puts them back one by one, each where the whole is then best; undone where that is no
    gain."""
    before, score = {index: board.place[index] for index in items}, board.score()
    for index in items:
        board.move(index, -1)
    order = sorted(items, key=board.rank.__getitem__)
    if dice.random() < 0.5:
        dice.shuffle(order)
    for index in order:
        best: tuple[Score, int] | None = None
        for node in dict.fromkeys([*candidates(board, index, dice, spread), before[index]]):
            if node < 0:
                continue
            board.move(index, node)
            found = board.score()
            if best is None or found.better(best[0]):
                best = found, node
        assert best is not None  # where it came from is always tried
        board.move(index, best[1])
    if board.score().better(score):
        return True
    for index, node in before.items():
        board.move(index, node)
    return False


def _improve(board: Board, index: int, best: Score, nodes: Iterable[int], dice: random.Random) -> Score:
    """The best node for an item; where the move alone does not help, with an item of that node in exchange."""
    home = board.place[index]
    chosen, exchange = home, -1
    for node in nodes:
        if node == home:
            continue
        board.move(index, node)
        found = board.score()
        if found.better(best):
            best, chosen, exchange = found, node, -1
        else:
            for other in _partners(board, index, node, home, dice):
                board.move(other, home)
                found = board.score()
                if found.better(best):
                    best, chosen, exchange = found, node, other
                board.move(other, node)
        board.move(index, home)
    if chosen != home:
        board.move(index, chosen)
        if exchange >= 0:
            board.move(exchange, home)
    return best


def _partners(board: Board, index: int, node: int, home: int, dice: random.Random) -> Sequence[int]:
    """Up to two items of a node that could go where the other comes from."""
    order = board.problem.order
    found = [order[rank] for rank in board.here[node] if order[rank] != index and home in board.nodes[order[rank]]]
    return found if len(found) <= 2 else dice.sample(found, 2)
