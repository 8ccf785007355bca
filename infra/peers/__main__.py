"""`make peers`: the same workloads on everybody who can be had here; writes runs/peers.json and prints tables.

`python -m infra.peers [--only NAME ...] [--seconds N] [--publish]`; --publish rewrites the table of
docs/explanation/peers.md. Seven minutes, the first time ten more for installing.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sys
from collections.abc import Sequence

from rich.console import Console

from infra.environments.pinned_environment import UnavailableError
from infra.peers import peer_results, runner, table
from infra.peers.environments import CONTESTANTS, ROOT, Contestant
from infra.peers.peer_results import Measured, Row
from infra.peers.workload import LOADS, Workload, chain, classes

RECORD = ROOT / "runs" / "peers.json"
SEED, SECONDS = 1, 8.0
BUSY = 1.0  # load average of one minute


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 for any figures."""
    options = _options(arguments)
    console = Console(width=150)
    if os.getloadavg()[0] > BUSY:
        console.print(
            f"[bold]this machine is busy: load average {os.getloadavg()[0]:.1f}; figures will say little[/bold]"
        )
    workloads = [*(classes(load, options.seconds, SEED) for load in LOADS), chain(options.seconds, SEED)]
    rows: list[Row] = []
    conditions: dict[str, object] = {
        "seed": SEED,
        "seconds": options.seconds,
        "python": platform.python_version(),
        "load_average_before": round(os.getloadavg()[0], 1),
    }
    for contestant in CONTESTANTS:
        if not options.only or contestant.name in options.only:
            rows.append(_row(console, contestant, workloads))
            conditions["load_average_after"] = round(os.getloadavg()[0], 1)
            peer_results.write(rows, conditions, RECORD)  # each as it is known: a run that is broken off loses none
    table.show(rows, console)
    console.print(f"written: {RECORD.relative_to(ROOT)}", highlight=False)
    if options.publish:
        console.print(f"written: {table.publish(rows, conditions).relative_to(ROOT)}", highlight=False)
    return 0


def _row(console: Console, contestant: Contestant, workloads: Sequence[Workload]) -> Row:
    """All its runs; a run that failed is left out."""
    try:
        with console.status(f"{contestant.name}: environment"):
            python = contestant.python()
    except UnavailableError as error:
        console.print(f"{contestant.name}: not installed: {error}", highlight=False)
        return Row(contestant.name, contestant.version, {}, f"not installed: {error}")
    runs: dict[str, Measured] = {}
    reasons = []
    for workload in workloads:
        try:
            with console.status(f"{contestant.name}: {workload.name}"):
                runs[workload.name] = runner.measure(contestant, python, workload)
        except runner.FailedError as error:
            console.print(f"{contestant.name}: {workload.name}: {error}", highlight=False, markup=False)
            reasons.append(f"{workload.name}: {error}")
    return Row(contestant.name, contestant.version, runs, "; ".join(reasons))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.peers", description="other stream processors beside us")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[each.name for each in CONTESTANTS])
    parser.add_argument("--seconds", type=float, default=SECONDS, help="that are counted of a run")
    parser.add_argument("--publish", action="store_true", help="rewrite the table of docs/explanation/peers.md")
    options = parser.parse_args(arguments)
    if not options.seconds > 0:
        parser.error("--seconds: more than 0")
    return options


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what was started as well
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # all that was started has ended on the way here
        sys.exit(130)
