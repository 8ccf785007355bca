"""Hunts planted bugs: `python -m tests.simulation.planted [NAME ...] --seeds 300`."""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.simulation.planted.hunt import hunt
from tests.simulation.planted.planting import CAMPAIGNS, copy
from tests.simulation.planted.table import BUGS

MEMORY = Path("/dev/shm")


def main() -> int:
    """Exit code 1: a bug was not found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(BUGS)}; all of them")
    parser.add_argument("--seeds", type=int, default=300, help="at most so many of each campaign")
    parser.add_argument("--first", type=int, default=1, help="beginning with this one")
    parser.add_argument("--only", choices=CAMPAIGNS, help="this campaign alone")
    parser.add_argument("--kinds", default="", help="only seeds with a fault of one of these kinds, as hang,cut")
    given = parser.parse_args()
    kinds = [each for each in given.kinds.split(",") if each]
    campaigns = (given.only,) if given.only else CAMPAIGNS
    missed = []
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name:
        clean, folder = Path(name) / "clean", Path(name) / "planted"
        copy(clean)
        copy(folder)
        for bug in [BUGS[each] for each in given.names] or list(BUGS.values()):
            found = hunt(clean, folder, bug, campaigns, range(given.first, given.first + given.seeds), kinds)
            print(found.told, flush=True)
            if found.by is None:
                missed.append(bug.name)
    if missed:
        print(f"{len(missed)} not found: {', '.join(missed)}")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
