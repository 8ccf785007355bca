"""Runs seeds of whole agents: `python -m tests.simulation.agents 17 --only power_cut,cut`, or `--seeds 500`."""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from tests.simulation.agents.agent_campaign import LINE, World, run, shrunk
from tests.simulation.agents.more_faults import EVERY
from tests.simulation.agents.sometimes import ENOUGH, missing
from tests.simulation.faults.campaign import Journal

HOUR_NS = 3600 * 10**9


def main(world: World = LINE, description: str | None = __doc__) -> int:
    """Exit code 1: some seed failed, or something never happened in many seeds. world: what the campaign is about."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("seed", type=int, nargs="?", help="this seed alone")
    parser.add_argument("--only", help=f"these kinds of faults: {', '.join(EVERY)}; or none")
    parser.add_argument("--seeds", type=int, default=100, help="so many seeds")
    parser.add_argument("--first", type=int, default=1, help="beginning with this one")
    parser.add_argument("--journal", type=Path, help="go on where this file ends")
    parser.add_argument("--log", action="store_true", help="what the agents have logged, of one seed")
    given = parser.parse_args()
    if given.seed is None:
        return _campaign(world, range(given.first, given.first + given.seeds), Journal(given.journal))
    kinds = None if given.only is None else [each for each in given.only.split(",") if each != "none"]
    outcome = run(given.seed, kinds, world=world)
    print(outcome.told, dict(outcome.fired), dict(outcome.counts), sep="\n")
    if given.log:
        print(*outcome.lines, sep="\n")
    return bool(outcome.problems)


def _campaign(world: World, seeds: range, journal: Journal) -> int:
    done = {int(str(each["seed"])): each for each in journal.done()}
    fired, failed, began = Counter[str](), sum(bool(each["problems"]) for each in done.values()), time.monotonic()
    simulated_ns = sum(int(str(each["simulated_ns"])) for each in done.values())
    for each in done.values():
        fired.update(each["fired"])  # type: ignore[arg-type]
    wanted = [seed for seed in seeds if seed not in done]
    for count, seed in enumerate(wanted, 1):
        outcome = run(seed, world=world)
        simulated_ns += outcome.simulated_ns
        outcome.fired.update(outcome.counts)
        journal.add(outcome)
        fired.update(outcome.fired)
        if outcome.problems:
            failed += 1
            print(shrunk(outcome).told, flush=True)
        if count % 20 == 0 or count == len(wanted):
            took = (time.monotonic() - began) / count
            hours = simulated_ns / HOUR_NS
            print(f"{count + len(done)} of {len(seeds)} seeds, {failed} failed, {hours:.1f} simulated hours, "
                  f"{took:.2f} s a seed", flush=True)  # fmt: skip
    never = missing(fired, world.street)
    for text in never:
        print(f"never: {text}")
    print("  ".join(f"{kind} {count}" for kind, count in sorted(fired.items())))
    return bool(failed or (never and len(seeds) >= ENOUGH))


if __name__ == "__main__":
    sys.exit(main())
