"""Seeds of tests that are parametrised with them: the same in every run, others with `--seed N` or `--seed random`.

The seed of a failing test is in its name. `MOVED` is how far they are moved, for the processes of pytest-xdist alike.
"""

import os
from collections.abc import Iterable

MOVED = "SHIMEKIRI_TEST_SEEDS_MOVED"


def seeds(numbers: Iterable[int]) -> list[int]:
    """These by default."""
    moved = int(os.environ.get(MOVED, "0"))
    return [number + moved for number in numbers]
