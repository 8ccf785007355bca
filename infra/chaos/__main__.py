"""`make chaos`: real faults at three agents in network namespaces, as root; every tuple is counted again after each.

    python -m infra.chaos --minutes 10 --seed 7

A power cut takes a host's processes, its net and what is in its memory at once; its disk keeps what the agent has
written, synced or not. Logs, what the client saw, the collected traces and chaos.json stay in runs/chaos-*/. Exit code
3: a tuple has no outcome, or something does not work again. Ctrl-C ends it and removes all that was made.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from rich.console import Console
from rich.table import Table

from coordinator import signals
from infra.chaos import campaign as campaigns
from infra.chaos import host_cluster
from infra.chaos.campaign import Campaign
from infra.chaos.faults import KINDS, drawn

FAILED, REFUSED, INTERRUPTED = 3, 2, 130


def table(done: Campaign) -> Table:
    """A row per kind: how often, and the times, median and worst."""
    found = Table(box=None, pad_edge=False)
    for heading in ("fault", "at", "unknown after [s]", "admits after [s]", "results after [s]", "problems"):
        found.add_column(heading)
    for kind in KINDS:
        rounds = [one for one in done.rounds if one.fault.kind == kind]
        if rounds:
            found.add_row(
                kind, campaigns.hosts_of(done, kind), _times(one.unknown_s for one in rounds),
                _times(one.admission_s for one in rounds), _times(one.recovery_s for one in rounds),
                str(sum(len(one.problems) for one in rounds)),
            )  # fmt: skip
    return found


def _times(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{statistics.median(known):.2f}, at worst {max(known):.2f}" if known else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, tell, judge."""
    options = argparse.ArgumentParser(
        prog="python -m infra.chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--minutes", type=float, default=10.0, help="after that no further fault begins (default 10)")
    options.add_argument("--seed", type=int, default=None, help="of the faults that are drawn (default: any)")
    options.add_argument("--out", type=Path, default=host_cluster.ROOT / "runs", help="where the folder is made")
    given = options.parse_args(arguments)
    say = Console()
    if why := host_cluster.why_not():
        say.print(f"no chaos here: {why}", highlight=False)
        return REFUSED
    seed = Random().randrange(1 << 16) if given.seed is None else given.seed
    folder = given.out.resolve() / f"chaos-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    folder.mkdir(parents=True)
    say.print(f"seed {seed}; logs and traces: {folder}", highlight=False)
    signals.watch()  # SIGTERM and a closed terminal remove all as Ctrl-C does
    until_s = time.monotonic() + 60 * given.minutes
    try:
        done = campaigns.go(
            folder, drawn(Random(seed)), until_s, lambda line: say.print(line, highlight=False, soft_wrap=True)
        )
    except KeyboardInterrupt:
        say.print("interrupted; all is removed but the folder", highlight=False)
        return INTERRUPTED
    except host_cluster.ChaosError as error:
        say.print(f"it does not go on: {error}", highlight=False)
        return FAILED
    say.print(table(done))
    counts = ", ".join(f"{count} {outcome}" for outcome, count in done.total.outcomes.most_common())
    say.print(f"tuples: {counts}; {done.total.met} met, {done.total.late} late", highlight=False)
    answers = ", ".join(f"{count} {answer}" for answer, count in done.total.answers.most_common())
    say.print(f"as the client knows it: {answers}; results given again: {done.total.repeated}", highlight=False)
    for problem in done.problems:
        say.print(f"PROBLEM: {problem}", highlight=False)
    return FAILED if done.problems else 0


if __name__ == "__main__":
    sys.exit(main())
