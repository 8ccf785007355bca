"""Random numbers by counter: a draw is a function of what it is for, not of how many came before.

The same tuple at the same operator draws the same number under every policy, placement and order of events, so
two policies are compared on the same costs (common random numbers), and no draw depends on a hash seed.
The mixing function is the finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
OOPSLA 2014).
"""

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(z: int) -> int:
    """64 bits in, 64 well-mixed bits out, one to one."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def key(*parts: int) -> int:
    """64 bits that stand for this sequence of integers."""
    found = GOLDEN
    for part in parts:
        found = mix((found + mix((part + GOLDEN) & MASK)) & MASK)
    return found


def uniform(bits: int) -> float:
    """64 random bits as a number strictly between 0 and 1."""
    return ((bits >> 11) + 0.5) * 2.0**-53


class Draws:
    """One draw after the other, where they do depend on each other: the weather of a simulated network."""

    __slots__ = ("_count", "_key")

    def __init__(self, seed: int) -> None:
        self._key, self._count = key(seed), 0

    def bits(self) -> int:
        """64 random bits."""
        self._count += 1
        return mix((self._key + self._count * GOLDEN) & MASK)

    def below(self, limit: int) -> int:
        """From 0 to limit - 1."""
        return self.bits() * limit >> 64

    def share(self) -> float:
        """Between 0 and 1."""
        return uniform(self.bits())
