"""`make bench`: every figure as a ratio to its floor in the same run; printed, and written to runs/bench.json."""

import os
import sys
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from infra.bench import change, collision_warning, compiled_path, figures, policies, recordings, shed_cost
from infra.bench.agent.bare_socket import bare_hops_ns, fifo_class
from infra.bench.agent.process import agent, deploy_hop, hops, send_paced
from infra.bench.agent.tuple_cost import tuple_cost
from infra.bench.cores import core_hop
from infra.bench.engine.per_instance import per_instance
from infra.bench.figures import Figure, percentile

HOPS, ROUNDS = 2000, 5
STARTS = 5
OUT = Path(__file__).resolve().parents[2] / "runs" / "bench.json"


def hop() -> list[Figure]:
    """Sender's stamp to operator start, against a bare blocking socket; both stamp right before their write."""
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
        Figure("hop_p50", _over(from_stamp, 0.5) / _over(bare, 0.5), "x bare socket", 1.5, ratios),
        Figure("hop_p99", _over(from_stamp, 0.99) / _over(bare, 0.99), "x bare socket", 2.0, ratios),
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


def footprint() -> list[Figure]:
    """Memory and time until ready of one agent."""
    ready, cpu, pss = [], [], []
    for _ in range(STARTS):
        with agent() as running:
            cpu.append(running.cpu_s() * 1000)
            deploy_hop(running)
            send_paced(running, 200)
            ready.append(running.ready_s * 1000)
            pss.append(running.pss_bytes() / 1e6)
    return [
        Figure("agent_pss", median(pss), "MB", 45, f"all processes, a plan deployed and 200 tuples run; of {STARTS}"),
        Figure("agent_ready", median(ready), "ms", 250, f"from exec to the ready line; median of {STARTS} starts"),
        Figure("agent_start_cpu", median(cpu), "ms", None, f"CPU time of all processes until then; of {STARTS}"),
    ]


def main() -> int:
    """Measures everything. The exit code is 0 for any figures."""
    console = Console()
    made: list[Figure] = []
    measures = (
        ("per task instance", per_instance), ("policies, a minute", policies.policies),
        ("the same, compiled, three minutes", compiled_path.compiled), ("hop", hop),
        ("hop between cores", core_hop), ("tuples over TCP", tuple_cost), ("footprint", footprint),
        ("change of plans", change.change),
        ("operators", collision_warning.costs), ("shedding", shed_cost.shed_cost),
        ("crashes by speed and latency", collision_warning.crashes),
        ("false warnings", collision_warning.false_warnings), ("recordings", recordings.recordings),
    )  # fmt: skip
    for title, measure in measures:
        with console.status(f"measuring: {title}"):
            made += measure()
    table = Table("figure", "value", "unit", "goal", "", box=None, header_style="bold")
    for each in made:
        if policies.NAMED in each.name:
            continue
        goal = "" if each.goal is None else f"<= {each.goal:g}"
        verdict = "" if each.goal is None else "ok" if each.ok else "missed"
        table.add_row(each.name, f"{each.value:.3g}", each.unit, goal, verdict)
    console.print(table)
    console.print(policies.table(made))
    console.print(policies.table(made, compiled_path.NAMED))
    figures.write(made, OUT)
    if not os.environ.get(collision_warning.TRAFFIC):
        console.print(
            f"false warnings: left out; name a directory with recorded traffic, {collision_warning.TRAFFIC}=DIR"
        )
    console.print(f"written to {OUT.relative_to(OUT.parents[1])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
