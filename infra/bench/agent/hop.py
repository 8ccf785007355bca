"""A hop into an agent, against a bare blocking socket; both stamp right before their write."""

import os
from statistics import median

from infra.bench.agent.bare_socket import bare_hops_ns, fifo_class
from infra.bench.agent.process import agent, deploy_hop, hops, send_paced
from infra.bench.figures import Figure, percentile

HOPS, ROUNDS = 2000, 5


def hop() -> list[Figure]:
    """From the sender's stamp to the operator's start."""
    previous = os.sched_getscheduler(0)
    real_time = fifo_class()
    bare: list[list[int]] = []
    with agent() as running:
        deploy_hop(running)
        for _ in range(ROUNDS):
            bare.append(bare_hops_ns(HOPS))
            send_paced(running, HOPS)
        taken = hops(running)
        real_time = real_time and running.rt
    os.sched_setscheduler(0, previous, os.sched_param(0))
    rounds = [taken[at : at + HOPS] for at in range(0, len(taken), HOPS)]
    from_stamp = [[each.start_ns - each.sent_ns for each in one] for one in rounds]
    from_call = [[each.start_ns - each.origin_ns for each in one] for one in rounds]
    awake = [[each.start_ns - each.arrived_ns for each in one] for one in rounds]
    kind = "FIFO" if real_time else "ordinary"
    how = f"median of {ROUNDS} alternating rounds of {HOPS} tuples at 1000/s, {kind} class"
    stamp = f"from the stamp in the frame, right before the client's write, to the operator's start; {how}"
    call = f"from the call of Source.send, encoding included, to the operator's start; {how}"
    waken = f"part of hop: from the runtime's wake-up to the operator's start; {how}"
    floor = f"blocking socket: from a stamp right before sendall to the return of recv; {how}"
    ratios = f"{stamp}; against bare_socket"
    return [
        Figure("hop_p50", _over(from_stamp, 0.5) / _over(bare, 0.5), "x bare socket", 1.2, ratios),
        Figure("hop_p99", _over(from_stamp, 0.99) / _over(bare, 0.99), "x bare socket", 1.5, ratios),
        *_microseconds("hop", from_stamp, stamp),
        *_microseconds("hop_from_send", from_call, call),
        *_microseconds("hop_awake", awake, waken),
        *_microseconds("bare_socket", bare, floor),
    ]


def _over(rounds: list[list[int]], share: float) -> float:
    return median(percentile(each, share) for each in rounds)


def _microseconds(name: str, rounds: list[list[int]], how: str) -> list[Figure]:
    return [
        Figure(f"{name}_p{share * 100:.0f}_us", _over(rounds, share) / 1000, "us", None, how) for share in (0.5, 0.99)
    ]
