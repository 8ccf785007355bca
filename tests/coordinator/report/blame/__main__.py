"""Scores blame on constructed runs: `python -m tests.coordinator.report.blame --seed 7 --set outsider`, minutes."""

import argparse
import sys

from tests.coordinator.report.blame.score import OUTSIDERS, WORLDS, drawn, drawn_outsiders, score, table

GOAL = 0.9


def main() -> int:
    """Exit code 1: fewer than nine in ten are named right, or somebody is accused who has nothing to do with it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="what causes and intensities are drawn from")
    parser.add_argument("--set", default="author", choices=("author", "outsider"), help="whose runs")
    parser.add_argument("--virtual", action="store_true", help="without real agents")
    parser.add_argument("--only", help="this cause alone")
    given = parser.parse_args()
    draw, worlds = (drawn, WORLDS) if given.set == "author" else (drawn_outsiders, OUTSIDERS)
    runs = [each for each in draw(given.seed, not given.virtual) if given.only in (None, each[0])]
    scored = []
    for number, (cause, seed) in enumerate(runs, 1):
        one = score(cause, seed, worlds)
        scored.append(one)
        print(f"{number} of {len(runs)}: {cause} {seed}: {one.named}", file=sys.stderr, flush=True)
    print("\n".join(table(scored)))
    right, wrong = sum(each.right for each in scored), sum(bool(each.wrong) for each in scored)
    print(f"\n{right} of {len(scored)} named right, {wrong} with a wrong accusation, seed {given.seed}")
    return int(right < GOAL * len(scored) or wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
