"""`make bench-report`: reports by number of records, nodes and engine; writes runs/bench-report.json.

RECORDS and NODES, numbers with spaces between, choose other sizes; ENGINES some of spark, python, duckdb and report:
the whole command on Spark, whose heap is HEAP.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from infra.bench import figures
from infra.bench.figures import Figure
from infra.bench.report.pairs_query import TOP, template
from infra.bench.report.tiled_run import tiled

OUT = TOP / "runs" / "bench-report.json"
SAMPLE_S = 0.25
MOST_FOR_PYTHON = (
    2_000_000  # records: it keeps each as an object, and ten million of them want more memory than there is
)
SPARK_OF_DUCKDB = 3.0  # the goal, from ten million records on
LARGE = 10_000_000


@dataclass
class Usage:
    """Of one process and all that it started. cold_s: of Spark, until it answered at all."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_mb: float = 0.0
    cold_s: float | None = None


def measure(engine: str, run: Path) -> Usage:
    """One report, watched from outside."""
    began, found = time.perf_counter(), Usage()
    cpu: dict[int, float] = {}
    command = [sys.executable, "-m", "infra.bench.report.engine_run", engine, str(run)]
    with subprocess.Popen(command, cwd=TOP, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            found.peak_mb = max(found.peak_mb, _look(process.pid, cpu))
            time.sleep(SAMPLE_S)
        assert process.stdout is not None
        told = json.loads(process.stdout.read() or "{}")
    if process.returncode:
        raise SystemExit(f"{engine} failed on {run}")
    found.wall_s, found.cpu_s = time.perf_counter() - began, sum(cpu.values())
    found.cold_s = told.get("cold_start_s")
    return found


def _look(pid: int, cpu: dict[int, float]) -> float:
    """MB that the process and those below it hold now; their CPU time goes into `cpu`."""
    held = 0
    try:
        top = psutil.Process(pid)
        tree = [top, *top.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0.0
    for each in tree:
        try:
            with each.oneshot():
                times = each.cpu_times()
                cpu[each.pid] = max(cpu.get(each.pid, 0.0), times.user + times.system)
                held += each.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return held / 1e6


def _numbers(name: str, otherwise: str) -> list[int]:
    return [int(each) for each in os.environ.get(name, otherwise).split()]


def _measured(key: str, how: str, found: dict[str, Usage], records: int) -> list[Figure]:
    made = []
    for engine, each in found.items():
        name = f"{engine}_{key}"
        made += [
            Figure(f"{name}_s", each.wall_s, "s", None, how),
            Figure(f"{name}_cpu_s", each.cpu_s, "s", None, f"user and system time; {how}"),
            Figure(f"{name}_mb", each.peak_mb, "MB", None, f"greatest resident memory, sampled; {how}"),
        ]
        if each.cold_s is not None:
            made.append(Figure(f"{name}_cold_s", each.cold_s, "s", None, f"until Spark answered at all; {how}"))
    if "spark" in found and "duckdb" in found:
        goal = SPARK_OF_DUCKDB if records >= LARGE else None
        made.append(Figure(f"spark_{key}", found["spark"].wall_s / found["duckdb"].wall_s, "x DuckDB", goal, how))
    return made


def main() -> int:
    """Measures everything. The exit code is 0 for any figures."""
    console, made = Console(), list[Figure]()
    table = Table("records", "nodes", "engine", "wall s", "CPU s", "MB", "cold s", box=None, header_style="bold")
    engines = os.environ.get("ENGINES", "spark python duckdb").split()
    for nodes in _numbers("NODES", "2 20"):
        with tempfile.TemporaryDirectory(prefix="shimekiri-bench-") as scratch:
            short = template(nodes, Path(scratch))
            for wanted in _numbers("RECORDS", "1000000 10000000"):
                run = Path(scratch) / "run"
                records = tiled(short, run, wanted)
                found: dict[str, Usage] = {}
                for engine in engines:
                    if engine == "python" and records > MOST_FOR_PYTHON:
                        continue
                    with console.status(f"{records:,} records of {nodes} nodes: {engine}"):
                        each = found[engine] = measure(engine, run)
                    cold = "" if each.cold_s is None else f"{each.cold_s:.1f}"
                    columns = (f"{each.wall_s:.1f}", f"{each.cpu_s:.1f}", f"{each.peak_mb:.0f}", cold)
                    table.add_row(f"{records:,}", str(nodes), engine, *columns)
                how = f"{records} records of {nodes} nodes, with all that the engine starts, {os.cpu_count()} cores"
                made += _measured(f"{wanted // 1000}k_{nodes}", how, found, records)
    console.print(table)
    figures.write(made, OUT)
    console.print(f"written to {OUT.relative_to(TOP)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
