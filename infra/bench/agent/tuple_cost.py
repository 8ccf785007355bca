"""CPU time of the runtime per tuple through three operators, TCP in and out, and how many tuples a second it takes.

One agent, a Source that sends 50 at a time as soon as the last ones were taken over, and a Sink: both in this process.
"""

import sys
from statistics import median
from threading import Thread
from time import perf_counter

from infra.bench.agent.process import Agent, agent, deploy
from infra.bench.figures import Figure
from node_agent.sdk import Admitted, Sink, Source

QUERY = """
shimekiri: 1
query: three
sources: {in: {at: a, type: json, arrival: {burst: 1000, period: 5 ms}}}
operators:
  O1: {run: pass, in: in, cost: 1 us}
  O2: {run: pass, in: O1, cost: 1 us}
  O3: {run: pass, in: O2, cost: 1 us}
outputs: {out: {from: O3, at: a, deadline: 10 s}}
"""
TUPLES, AT_ONCE, ROUNDS = 20_000, 50, 5


def tuple_cost(rounds: int = ROUNDS) -> list[Figure]:
    """us of CPU per tuple, and tuples per second."""
    with agent() as running:
        deploy(running, QUERY)
        measured = [_round(running) for _ in range(rounds)]
    how = f"three operators, TCP in and out, median of {rounds} rounds of {TUPLES} tuples, {AT_ONCE} a call"
    return [
        Figure("tuple_cpu", median(cpu for cpu, _ in measured), "us per tuple", 12, f"the runtime's process; {how}"),
        Figure(
            "tuple_rate", median(rate for _, rate in measured), "tuples/s", None, f"clients on the same cores; {how}"
        ),
    ]


def _round(running: Agent) -> tuple[float, float]:
    with Sink(running.data, "out") as sink:
        got = Thread(target=_take, args=(sink,), daemon=True)
        got.start()
        before_ns, began = running.runtime_cpu_ns(), perf_counter()
        with Source(running.data, "in", tls=running.tls) as source:
            for first in range(0, TUPLES, AT_ONCE):
                answers = source.send_many(range(first, first + AT_ONCE))
                assert all(isinstance(each, Admitted) for each in answers), answers
        got.join()
        return (running.runtime_cpu_ns() - before_ns) / TUPLES / 1000, TUPLES / (perf_counter() - began)


def _take(sink: Sink) -> None:
    for count, _ in enumerate(sink, 1):
        if count == TUPLES:
            return


if __name__ == "__main__":
    for figure in tuple_cost():
        sys.stdout.write(f"{figure.name:12} {figure.value:10.1f} {figure.unit}\n")
