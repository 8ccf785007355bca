"""Capacity rows: a node's cap, a host's memory, a link's bandwidth. Linear extensions, not printed.

(6) holds for one burst, a cap for one after another. Where a link could be full, streams are routed (`Problem.meshed`
is false), so that they may go round it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinator.model.capacity import Room, Store
from coordinator.model.problem import Problem
from coordinator.model.routes import Hops
from coordinator.solve.milp.programme import Model
from coordinator.spec.cluster import Node

TOLERANCE = 1e-9


def rows(model: Model, elastic: bool) -> None:
    """Adds them, and the placements that are ruled out one by one; `elastic`: a row may be exceeded, by its `lack`,
    relative to what there is."""
    problem, programme = model.problem, model.programme
    every: tuple[Room, ...] = (*problem.nodes, *problem.stores, *problem.pipes)
    for room in every:
        terms, most = _row(model, room)
        if terms:
            lack = programme.add_variable(lb=0) if elastic else 0.0
            model.lack += [(room, lack)] if elastic else []
            programme.add_linear_constraint(model.total([term * (1 / most) for term in terms]) <= 1 + TOLERANCE + lack)
    for conflict in problem.conflicts:
        terms = [model.z[index, node] for index, nodes in conflict for node in nodes if (index, node) in model.z]
        programme.add_linear_constraint(model.total(terms) <= len(conflict) - 1)


def _row(model: Model, room: Room) -> tuple[list[Any], float]:
    """What is used, and what there is."""
    problem = model.problem
    if isinstance(room, Node):
        held = [(index, item.load[room.index]) for index, item in enumerate(problem.items) if room.index in item.nodes]
        return [float(load) * model.z[index, room.index] for index, load in held], float(room.cap)
    if isinstance(room, Store):
        kept = [(index, node) for index, item in enumerate(problem.items) for node in room.nodes if node in item.nodes]
        terms = [float(problem.items[index].memory_bytes) * model.z[index, node] for index, node in kept]
        return terms, float(room.memory_bytes)
    bits = {stream.name: float(stream.bits_per_s) for stream in problem.streams}
    hops = [(name, one) for (name, start, end), one in model.hop.items() if (start, end) in room.hops]
    return [bits[name] * one for name, one in hops], float(room.bits_per_s)


def exceeded(problem: Problem, place: Mapping[int, int], hops: Hops) -> list[str]:
    """Which memories and links a settled placement asks too much of, in words; exact."""
    found = []
    for store in problem.stores:
        used = sum(item.memory_bytes for index, item in enumerate(problem.items) if place[index] in store.nodes)
        if used > store.memory_bytes:
            found.append(f"node {store.host}: {used} bytes of state, its memory is {store.memory_bytes}")
    bits = {stream.name: stream.bits_per_s for stream in problem.streams}
    for pipe in problem.pipes:
        sent = sum(bits[name] * len(pipe.hops.intersection(pairs)) for name, pairs in hops.items())
        if sent > pipe.bits_per_s:
            found.append(f"link {pipe.start} to {pipe.end}: {float(sent):.4g} bit/s on {pipe.bits_per_s}")
    return found
