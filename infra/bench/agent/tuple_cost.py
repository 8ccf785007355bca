"""CPU time of the runtime per tuple through three operators, TCP in and out, and how many tuples a second it takes.

One agent, or two with the third operator on the other one. A Source that sends 50 at a time as soon as the last ones
were taken over, and a Sink: both in this process.
"""

import sys
from statistics import median
from threading import Thread
from time import perf_counter, sleep

from infra.bench.agent.process import Agent, agent, collected, deploy
from infra.bench.figures import Figure
from node_agent.sdk import Admitted, Sink, Source

QUERY = """
shimekiri: 1
query: three
sources: {in: {at: a, type: json, arrival: {burst: 1000, period: 5 ms}}}
operators:
  O1: {run: pass, in: in, cost: 1 us, nodes: [a]}
  O2: {run: pass, in: O1, cost: 1 us, nodes: [a]}
  O3: {run: pass, in: O2, cost: 1 us, nodes: [LAST]}
outputs: {out: {from: O3, at: LAST, deadline: 10 s}}
"""
TUPLES, AT_ONCE, ROUNDS = 20_000, 50, 5
TAKEN_S = 2  # until control has taken over what the runtime wrote last


def tuple_cost(rounds: int = ROUNDS) -> list[Figure]:
    """us of CPU per tuple, and tuples per second."""
    with agent() as first:
        deploy(first, QUERY.replace("LAST", "a"))
        before_ns = first.control_cpu_ns(), first.runtime_cpu_ns()
        alone = [send_round(first) for _ in range(rounds)]
        sleep(TAKEN_S)
        control_ns, runtime_ns = first.control_cpu_ns() - before_ns[0], first.runtime_cpu_ns() - before_ns[1]
        trace_bytes = sum(each.stat().st_size for each in collected(first)) / (rounds * TUPLES)
    with agent() as first, agent(name="b") as last:
        deploy(first, QUERY.replace("LAST", "b"), last)
        both = [send_round(first, last) for _ in range(rounds)]
    how = f"three operators, TCP in and out, median of {rounds} rounds of {TUPLES} tuples, {AT_ONCE} a call"
    return [
        *_figures("", alone, 12, f"the runtime's process; {how}"),
        Figure(
            "trace_cpu", control_ns / runtime_ns, "of the runtime's CPU", 0.1, f"control's CPU for its records; {how}"
        ),
        Figure(
            "trace_bytes",
            trace_bytes,
            "bytes per tuple",
            None,
            f"packed, of three records of 64; at 1000 tuples/s {trace_bytes * 86_400_000 / 1e9:.1f} GB a day; {how}",
        ),
        *_figures("pair_", both, 17, f"both runtimes, the third operator on the other one; {how}"),
    ]


def _figures(name: str, measured: list[tuple[float, float]], goal: float, how: str) -> list[Figure]:
    cpu, rate = (median(each) for each in zip(*measured, strict=True))
    return [
        Figure(f"{name}tuple_cpu", cpu, "us per tuple", goal, how),
        Figure(f"{name}tuple_rate", rate, "tuples/s", None, f"clients on the same cores; {how}"),
    ]


def send_round(first: Agent, *others: Agent) -> tuple[float, float]:
    """us of CPU per tuple and tuples per second of one round, in which all tuples come out again."""
    agents = (first, *others)
    with Sink(agents[-1].data, "out") as sink:
        got = Thread(target=_take, args=(sink,), daemon=True)
        got.start()
        before_ns, began = sum(each.runtime_cpu_ns() for each in agents), perf_counter()
        with Source(first.data, "in", tls=first.tls) as source:
            for begin in range(0, TUPLES, AT_ONCE):
                answers = source.send_many(range(begin, begin + AT_ONCE))
                assert all(isinstance(each, Admitted) for each in answers), answers
        got.join()
        cpu_ns = sum(each.runtime_cpu_ns() for each in agents) - before_ns
        return cpu_ns / TUPLES / 1000, TUPLES / (perf_counter() - began)


def _take(sink: Sink) -> None:
    for count, _ in enumerate(sink, 1):
        if count == TUPLES:
            return


if __name__ == "__main__":
    for figure in tuple_cost():
        sys.stdout.write(f"{figure.name:12} {figure.value:10.1f} {figure.unit}\n")
