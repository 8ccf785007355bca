"""Runs seeds of the street: `python -m tests.simulation.agents.street 17 --only power_cut,cut`, or `--seeds 500`."""

import argparse
import sys
import time
from collections import Counter

from tests.simulation.agents.agent_campaign import shrunk
from tests.simulation.agents.more_faults import EVERY
from tests.simulation.agents.sometimes import missing
from tests.simulation.agents.street.street_campaign import run


def main() -> int:
    """Exit code 1: some seed failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int, nargs="?", help="this seed alone")
    parser.add_argument("--only", help=f"these kinds of faults: {', '.join(EVERY)}; or none")
    parser.add_argument("--seeds", type=int, default=100, help="so many seeds")
    parser.add_argument("--first", type=int, default=1, help="beginning with this one")
    given = parser.parse_args()
    kinds = None if given.only is None else [each for each in given.only.split(",") if each != "none"]
    seeds = [given.seed] if given.seed is not None else range(given.first, given.first + given.seeds)
    fired, failed, began = Counter[str](), 0, time.process_time()
    for seed in seeds:
        outcome = run(seed, kinds)
        fired.update(outcome.fired + outcome.counts)
        if outcome.problems:
            failed += 1
            print((shrunk(outcome) if given.seed is None else outcome).told, flush=True)
    took = (time.process_time() - began) / len(seeds)
    print(f"{len(seeds)} seeds, {failed} failed, {took:.2f} s of CPU time a seed")
    for text in missing(fired, street=True):
        print(f"never: {text}")
    print("  ".join(f"{kind} {count}" for kind, count in sorted(fired.items())))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
