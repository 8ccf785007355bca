"""What a run tells of a bound that a share of the results is to keep: counted, and how sure that is."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log, log1p
from typing import Literal

from coordinator.guarantee.confidence.quantile_limits import lower_limit, upper_limit
from coordinator.report.report_document import HeldShare

DOUBT = 0.05  # of either limit


def held_share(share: float, results: int, beyond: int) -> HeldShare:
    """Of an output with `results` delivered, `beyond` its bound for certain. The limits of Clopper and Pearson (1934),
    which take results for independent of each other."""
    late = float(1 - Fraction(str(share)))
    most = upper_limit(results, beyond, DOUBT) if results else 1.0
    least = lower_limit(results, beyond, DOUBT) if beyond else 0.0
    says: Literal["kept", "broken", "open"] = "kept" if most <= late else "broken" if least > late else "open"
    return HeldShare(
        share=share,
        results=results,
        beyond=beyond,
        least=least,
        most=most,
        says=says,
        needed=ceil(log(DOUBT) / log1p(-late)),
    )


__all__ = ["held_share"]
