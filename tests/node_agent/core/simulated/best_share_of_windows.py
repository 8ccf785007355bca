"""The share of windows that no policy can exceed, which simulated shedders are held against."""

from fractions import Fraction


def best_share(load: Fraction, length: Fraction, hop: Fraction, latency: Fraction) -> Fraction:
    """f*: the best share of windows that any policy can deliver on time under lasting load rho; 1 up to rho = 1.

    f* = (1/rho) k H / (k H + Z - H) with k = 1 + floor((L/(rho - 1) - Z) / H), the most windows in a row whose work
    leaves a backlog of L at most; 0 where not even one does. length >= hop.
    """
    if load <= 1:
        return Fraction(1)
    row = 1 + (latency / (load - 1) - length) // hop
    return row * hop / (row * hop + length - hop) / load if row > 0 else Fraction(0)
