"""Mutual TLS against plain sockets: the hop into an agent, the runtime's CPU time per tuple, and a handshake.

Two agents at once, one of each kind, fed in turns, so that a machine that is busy now and then is so for both.
"""

import os
import sys
from pathlib import Path
from statistics import median
from time import perf_counter_ns

from infra.bench.agent.bare_socket import fifo_class
from infra.bench.agent.process import Agent, agent, deploy_hop, hops, send_paced
from infra.bench.figures import Figure, percentile
from node_agent.tls import identity
from node_agent.tls.names import certificate_name
from node_agent.tls.session import Session

HOPS, ROUNDS = 1000, 7
HANDSHAKES = 500
SHARES = (0.5, 0.99)


def _taken(running: Agent, rounds: list[int]) -> list[Figure]:
    """Of one agent, when it has been fed. rounds: CPU time of its runtime in each."""
    kind = "plain" if running.tls is None else "tls"
    how = f"median of {ROUNDS} alternating rounds of {HOPS} tuples at 1000/s, one by one, in two agents side by side"
    found = hops(running)
    parts = [found[at : at + HOPS] for at in range(0, len(found), HOPS)]
    figures = []
    for share in SHARES:
        for name, begin in (("hop", "sent_ns"), ("hop_from_send", "origin_ns")):
            us = median(percentile([each.start_ns - getattr(each, begin) for each in part], share) for part in parts)
            figures.append(Figure(f"{name}_{kind}_p{share * 100:g}_us", us / 1000, "us", None, how))
    return [*figures, Figure(f"cpu_{kind}_us", median(rounds) / HOPS / 1000, "us per tuple", None, f"runtime; {how}")]


def handshakes(certs: Path, count: int = HANDSHAKES) -> list[Figure]:
    """CPU of one end, in memory: what the scheduling thread is kept by, in the longest step and in both."""
    a, peer = certs / "a", certs / "coordinator"
    contexts = identity.server_context(a), identity.client_context(peer, named=True)
    rows = []
    for _ in range(count):
        near = Session(contexts[0], a, server_side=True)
        far = Session(contexts[1], peer, server_side=False, name=certificate_name("a"))
        spent, data = [], b""
        for end in (far, near, far, near):
            began_ns = perf_counter_ns()
            data = end.handshake(data)
            spent.append(perf_counter_ns() - began_ns)
        rows.append(spent)
    first, answered, proved, checked = (median(row[step] for row in rows) / 1000 for step in range(4))
    how = f"median of {count}, in memory, TLS 1.3, ECDSA P-256, both certificates verified"
    return [
        Figure("handshake_accepting_us", answered + checked, "us", None, f"two steps; {how}"),
        Figure("handshake_dialling_us", first + proved, "us", None, f"two steps; {how}"),
        Figure("handshake_step_us", max(answered, proved, checked), "us", None, f"the longest step; {how}"),
    ]


def tls(rounds: int = ROUNDS) -> list[Figure]:
    """All figures."""
    previous = os.sched_getscheduler(0)
    fifo_class()
    try:
        with agent() as plain, agent(tls=True) as secure:
            spent: dict[str, list[int]] = {plain.data: [], secure.data: []}
            for running in (plain, secure):
                deploy_hop(running)
            for _ in range(rounds):
                for running in (plain, secure):
                    before_ns = running.runtime_cpu_ns()
                    send_paced(running, HOPS)
                    spent[running.data].append(running.runtime_cpu_ns() - before_ns)
            assert secure.tls is not None
            shaken = handshakes(secure.tls.parent)
            return [*_taken(plain, spent[plain.data]), *_taken(secure, spent[secure.data]), *shaken]
    finally:
        os.sched_setscheduler(0, previous, os.sched_param(0))


if __name__ == "__main__":
    for each in tls():
        sys.stdout.write(f"{each.name:28} {each.value:8.1f} {each.unit}\n")
