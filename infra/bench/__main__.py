"""`make bench`: every figure as a ratio to its floor in the same run; printed, and written to runs/bench.json."""

import os
import sys
from pathlib import Path
from statistics import median
from subprocess import SubprocessError

from rich.console import Console
from rich.table import Table

from infra.bench import change, figures
from infra.bench.agent.client_cost import client_cost
from infra.bench.agent.commands import commands
from infra.bench.agent.cores import core_hop
from infra.bench.agent.hop import hop
from infra.bench.agent.process import agent, deploy_hop, send_paced
from infra.bench.agent.tuple_cost import tuple_cost
from infra.bench.compiled import compiled_path
from infra.bench.engine import policies
from infra.bench.engine.flatness import flatness
from infra.bench.engine.per_instance import per_instance
from infra.bench.figures import Figure
from infra.bench.shedding import shed_cost
from infra.bench.vehicles import collision_warning, false_warnings, recordings

STARTS = 5
OUT = Path(__file__).resolve().parents[2] / "runs" / "bench.json"


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
    """Measures everything. The exit code is 0 for any figures, 1 where some are missing: the others are written."""
    console = Console()
    made: list[Figure] = []
    failed = 0
    measures = (
        ("per task instance", per_instance), ("policies, a minute", policies.policies),
        ("cost with more of everything", flatness), ("hop", hop), ("hop between cores", core_hop),
        ("the same, compiled, six minutes", compiled_path.compiled), ("tuples over TCP", tuple_cost),
        ("batches of a client", client_cost),
        ("footprint", footprint),
        ("commands, a minute", commands),
        ("change of plans", change.change),
        ("operators", collision_warning.costs), ("shedding", shed_cost.shed_cost),
        ("crashes by speed and latency", collision_warning.crashes),
        ("false warnings", false_warnings.false_warnings), ("recordings", recordings.recordings),
    )  # fmt: skip
    for title, measure in measures:
        with console.status(f"measuring: {title}"):
            try:
                made += measure()
            except (RuntimeError, SubprocessError, OSError, AssertionError) as error:
                console.print(f"{title}: not measured: {error}", style="red")
                failed += 1
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
    if not os.environ.get(false_warnings.TRAFFIC):
        console.print(f"false warnings: left out; name a directory with recorded traffic, {false_warnings.TRAFFIC}=DIR")
    console.print(f"written to {OUT.relative_to(OUT.parents[1])}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
