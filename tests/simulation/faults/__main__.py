"""Runs seeds: `python -m tests.simulation.faults 17 --only crash,cut`, or `--seeds 5000 --journal FILE`."""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from tests.simulation.faults.campaign import Journal, run, shrunk
from tests.simulation.faults.faults import KINDS
from tests.simulation.faults.happened import ENOUGH, never

HOUR_NS = 3600 * 10**9


def main() -> int:
    """Exit code 1: some seed failed, or something never happened in many seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int, nargs="?", help="this seed alone")
    parser.add_argument("--only", help=f"these kinds of faults: {', '.join(KINDS)}; or none")
    parser.add_argument("--seeds", type=int, default=100, help="so many seeds")
    parser.add_argument("--first", type=int, default=1, help="beginning with this one")
    parser.add_argument("--journal", type=Path, help="go on where this file ends")
    given = parser.parse_args()
    if given.seed is not None:
        kinds = None if given.only is None else [each for each in given.only.split(",") if each != "none"]
        outcome = run(given.seed, kinds)
        print(outcome.told, dict(outcome.fired), dict(outcome.counts), sep="\n")
        return bool(outcome.problems)
    return _campaign(given.first, given.seeds, Journal(given.journal))


def _campaign(first: int, seeds: int, journal: Journal) -> int:
    done = {int(str(each["seed"])): each for each in journal.done()}
    fired: Counter[str] = Counter()
    failed, simulated_ns, began = 0, 0, time.monotonic()
    for each in done.values():
        fired.update(each["fired"])  # type: ignore[arg-type]
        simulated_ns += int(str(each["simulated_ns"]))
        failed += bool(each["problems"])
    wanted = [seed for seed in range(first, first + seeds) if seed not in done]
    for count, seed in enumerate(wanted, 1):
        outcome = run(seed)
        outcome.fired.update(outcome.counts)
        journal.add(outcome)
        fired.update(outcome.fired)
        simulated_ns += outcome.simulated_ns
        if outcome.problems:
            failed += 1
            print(shrunk(outcome).told, flush=True)
        if count % 100 == 0 or count == len(wanted):
            took = (time.monotonic() - began) / count
            hours = simulated_ns / HOUR_NS
            print(f"{seeds - len(wanted) + count} of {seeds} seeds, {failed} failed, {hours:.1f} simulated hours, "
                  f"{took:.2f} s a seed", flush=True)  # fmt: skip
    missed = never(fired)
    for text in missed:
        print(f"never: {text}")
    print("  ".join(f"{kind} {count}" for kind, count in sorted(fired.items())))
    return bool(failed or (missed and seeds >= ENOUGH))


if __name__ == "__main__":
    sys.exit(main())
