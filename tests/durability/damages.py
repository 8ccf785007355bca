"""What can happen to a file: every bit, every length, and that it is gone; or a sample of it."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

SEED = 20261


class Damage(NamedTuple):
    """In words, and the content after it; None: the file is gone."""

    what: str
    content: bytes | None


def damages(path: Path, sample: int | None, seed: int = SEED) -> Iterator[Damage]:
    """All that one bit flip, a truncation or the deletion make of a file; sample: so many flips, a third of it cuts."""
    data, dice = path.read_bytes(), random.Random(f"{seed} {path.name}")
    bits: Sequence[int] = range(8 * len(data))
    lengths: Sequence[int] = range(len(data))
    if sample is not None:
        bits = dice.sample(bits, min(sample, len(bits)))
        lengths = dice.sample(lengths, min(sample // 3, len(data)))
    for bit in bits:
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        yield Damage(f"seed {seed}: bit {bit} of {path.name} flipped", bytes(flipped))
    for length in lengths:
        yield Damage(f"seed {seed}: {path.name} cut to {length} bytes", data[:length])
    yield Damage(f"{path.name} deleted", None)


def apply(path: Path, damage: Damage) -> None:
    """Do it."""
    if damage.content is None:
        path.unlink()
    else:
        path.write_bytes(damage.content)
