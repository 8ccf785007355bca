"""CPU time of a client per tuple, and tuples per second: one by one, a list of rows, columns, tasks of an event loop.

    .venv/bin/python -m infra.bench.agent.client_cost

One agent with one operator that passes tuples on. All ways send the same rows of three numbers, by turns. The rows of
`list` are made from the arrays by a loop in Python, as a program without `send_many` of columns has to make them.
"""

import asyncio
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time_ns
from typing import Any, NamedTuple

import numpy
import pyarrow
from numpy.typing import NDArray

from infra.bench.agent.process import agent, deploy
from infra.bench.figures import Figure
from node_agent.sdk import AsyncSource, Source

QUERY = """
shimekiri: 1
query: one
sources: {in: {at: a, type: json, arrival: {burst: 1000, period: 5 ms}}}
operators: {O1: {run: pass, in: in, cost: 1 us}}
outputs: {out: {from: O1, at: a, deadline: 10 s}}
"""
TUPLES, ROUNDS = 2000, 7
FEW = 400  # of what takes twenty times as long

Columns = dict[str, NDArray[Any]]


class Taken(NamedTuple):
    """us of this process's CPU time per tuple, and tuples per second."""

    cpu_us: float
    rate: float


def client_cost(rounds: int = ROUNDS) -> list[Figure]:
    """Of each way, and what columns save."""
    numbers = numpy.arange(TUPLES)
    columns = {"id": numbers, "kg": numbers * 0.25, "wet": numbers % 2 == 0}
    table = pyarrow.table(columns)
    with agent() as running:
        deploy(running, QUERY)
        with Source(running.data, "in", timeout=60) as source:
            ways: dict[str, tuple[int, Callable[[], object]]] = {
                "one": (FEW, lambda: [source.send(row) for row in _rows(columns, FEW)]),
                "list": (TUPLES, lambda: source.send_many(_rows(columns, TUPLES))),
                "arrays": (TUPLES, lambda: source.send_many(columns)),
                "arrow": (TUPLES, lambda: source.send_many(table)),
                "tasks": (TUPLES, lambda: asyncio.run(_in_tasks(running.data, _rows(columns, TUPLES)))),
            }
            taken = {name: list[Taken]() for name in ways}
            for _ in range(rounds):
                for name, (count, send) in ways.items():
                    taken[name].append(_taken(count, send))
    return _figures(taken, f"JSON objects of three numbers, {TUPLES} a call; median of {rounds} rounds by turns")


def _figures(taken: dict[str, list[Taken]], how: str) -> list[Figure]:
    cpu = {name: median(each.cpu_us for each in found) for name, found in taken.items()}
    found = [
        Figure("client_arrays", cpu["arrays"] / cpu["list"], "x a list of rows", None, f"the client's CPU; {how}"),
        Figure("client_batch", cpu["list"] / cpu["one"], "x one by one", None, f"the client's CPU; {how}"),
    ]
    for name, each in taken.items():
        rate = median(one.rate for one in each)
        found += [
            Figure(f"client_{name}_cpu", cpu[name], "us per tuple", None, f"of the client; {how}"),
            Figure(f"client_{name}_rate", rate, "tuples/s", None, f"client and agent on the same cores; {how}"),
        ]
    return found


def _rows(columns: Columns, count: int) -> list[dict[str, object]]:
    """As a program makes them by itself."""
    ids, weights, wet = (columns[name] for name in ("id", "kg", "wet"))
    return [{"id": int(ids[i]), "kg": float(weights[i]), "wet": bool(wet[i])} for i in range(count)]


async def _in_tasks(address: str, rows: list[dict[str, object]]) -> None:
    """A task per tuple, all at once."""
    async with AsyncSource(address, "in", timeout=60) as source:
        await asyncio.gather(*(source.send(row) for row in rows))


def _taken(count: int, send: Callable[[], object]) -> Taken:
    cpu_ns, began = process_time_ns(), perf_counter()
    send()
    return Taken((process_time_ns() - cpu_ns) / 1000 / count, count / (perf_counter() - began))


if __name__ == "__main__":
    for figure in client_cost():
        sys.stdout.write(f"{figure.name:20} {figure.value:10.2f} {figure.unit}\n")
