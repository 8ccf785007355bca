"""Small placement problems with loads and deadlines, and nothing that would stand in the way."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from coordinator.model.problem import Item, Problem, Stream, Terminal
from coordinator.spec.cluster import Node

MS = 1_000_000


def node(number: int) -> Node:
    """With a cap of 90 %."""
    return Node(f"n{number}", number, "", Fraction(1), 1, 0, Fraction(9, 10), None, 0, -1)


def random_problem(draw: Random, nodes: int = 2, load: int = 60) -> Problem:
    """Chains of one to three items, some of which begin with an item that all share; the loads are up to `load` %."""
    every: tuple[Node, ...] = tuple(node(number) for number in range(nodes))
    items: list[Item] = []

    def item(before: tuple[int, ...]) -> int:
        allowed = tuple(range(nodes)) if draw.random() < 0.7 else (draw.randrange(nodes),)
        part = Fraction(draw.randint(1, load), 100)
        items.append(
            Item((f"o{len(items)}",), allowed, dict.fromkeys(allowed, 1), 1, dict.fromkeys(allowed, part), (1,), before)
        )
        return len(items) - 1

    first = item(())
    terminals, streams = [], []
    for number in range(draw.randint(2, 4)):
        chain = [first] if draw.random() < 0.5 else [item(())]
        for _ in range(draw.randint(0, 2)):
            chain.append(item((chain[-1],)))
        terminals.append(Terminal(f"out{number}", chain[-1], draw.choice([10, 20, 30]) * MS, tuple(sorted(chain)), 1))
    for index in range(len(items)):
        readers = tuple(other for other, one in enumerate(items) if index in one.before)
        streams.append(Stream(f"o{index}", Fraction(1), index, None, readers, (), frozenset()))
    pairs = frozenset((a, b) for a in range(nodes) for b in range(nodes) if a != b)
    return Problem(every, tuple(items), tuple(terminals), tuple(streams), pairs, tuple(range(len(items))), {})
