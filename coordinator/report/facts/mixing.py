"""Several numbers as one of 64 bits: two that differ are the same number once in some 10^19 pairs."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint64]
_ODD = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def mixed(*parts: Ints | Codes | int) -> Codes:
    """One number for several."""
    found = np.zeros(1, np.uint64)
    for part in parts:
        found = (found ^ np.asarray(part).astype(np.uint64)) + np.uint64(_ODD[0])
        found = (found ^ (found >> np.uint64(30))) * np.uint64(_ODD[1])
        found = (found ^ (found >> np.uint64(27))) * np.uint64(_ODD[2])
        found ^= found >> np.uint64(31)
    return found


__all__ = ["Codes", "mixed"]
