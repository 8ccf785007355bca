"""`make ars`: the Autoware Reference System in virtual time and live; writes docs/explanation/reference_system.md.

`python -m infra.reference_system [--quick] [--no-live]`; prints all figures of the virtual runs; --quick prints the
page's tables as well, and writes no page.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from rich.console import Console

from infra.reference_system.kpis import Kpis, kpis
from infra.reference_system.live_runs import Live, live
from infra.reference_system.reference_page import NAMES, Case, Findings, details, sections, write
from infra.reference_system.virtual_runs import phases, planned, runs_of

LOADS = (0.5, 0.7, 0.9, 1.0, 1.1, 1.2)
LIVE = ((0.5, 1), (0.5, 2))  # load, agents; this machine has to have a core for each
PHASES, SECONDS, LIVE_SECONDS, SEED = 20, 3, 10, 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 for any figures."""
    options = _options(arguments)
    console = Console(width=200)
    loads, count = ((0.5, 0.9), 4) if options.quick else (LOADS, PHASES)
    cases = list(_cases(console, loads, count))
    ran = [] if options.no_live else list(_live(console))
    found = Findings(cases, ran, count, SECONDS)
    console.print(details(found), highlight=False, markup=False, soft_wrap=True)
    if options.quick:
        console.print("\n\n".join(sections(found).values()), highlight=False, markup=False, soft_wrap=True)
    else:
        console.print(f"written: {write(found)}", highlight=False)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.reference_system", description="the reference system")
    parser.add_argument("--quick", action="store_true", help="two loads, four phases; no page is written")
    parser.add_argument("--no-live", action="store_true", help="virtual time only")
    return parser.parse_args(arguments)


def _cases(console: Console, loads: Sequence[float], count: int) -> Iterator[Case]:
    for nodes in (1, 2):
        for load in loads:
            with console.status(f"{nodes} nodes, {load:.0%}: planning"):
                made = planned(load, nodes)
            bound = f"{made.bound_ns / 1e6:.1f} ms" if made.bound_ns else "none"
            console.print(
                f"[bold]nodes {nodes}, load {load:.0%}[/bold]: {made.status} in {made.seconds:.1f} s "
                f"({made.cpu_seconds:.1f} s of CPU), bound of the hot path {bound}",
                highlight=False,
            )
            by_policy: dict[str, Kpis] = {}
            for policy, name in NAMES.items():
                with console.status(f"{nodes} nodes, {load:.0%}: {name}"):
                    by_policy[policy] = kpis(runs_of(made, policy, list(phases(count, SEED)), SECONDS))
                _tell(console, name, by_policy[policy])
            yield Case(load, nodes, made, by_policy)


def _live(console: Console) -> Iterator[Live]:
    for load, nodes in LIVE:
        with console.status(f"live, {nodes} agents, {load:.0%}"):
            done = live(load, nodes, LIVE_SECONDS)
        console.print(f"[bold]live, agents {nodes}, load {load:.0%}[/bold], bound {done.bound_ns / 1e6:.1f} ms")
        _tell(console, "edf", done.kpis)
        yield done


def _tell(console: Console, name: str, found: Kpis) -> None:
    """As the reference system prints it."""
    latency, planner = found.latency, found.planner
    console.print(
        f"  {name}: hot path latency: mean={latency.mean:.2f}ms, deviation={latency.std:.2f}ms,"
        f" max={latency.max:.2f}ms;"
        f" hot path drops: {found.hot_drops} of {found.samples}; behaviour planner period: mean={planner.mean:.2f}ms,"
        f" deviation={planner.std:.2f}ms, worst jitter={found.jitter_ms:.2f}ms;"
        f" end to end: max={found.end_to_end.max:.2f}ms, missed {found.missed}",
        highlight=False,
    )


if __name__ == "__main__":
    sys.exit(main())
