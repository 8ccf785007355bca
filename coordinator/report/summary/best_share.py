"""f*: of the windows of an overloaded stream, the share that no policy can exceed, exact and on time ([S]).

Let windows be `length` long and begin every `hop`, let a second of stream be `load` seconds of work, and let a result
be of use for `latency` after its window's end. A result needs all the work of its window. Windows
that overlap or touch form a row: k of them cover k * hop + length - hop of stream, whose work leaves a backlog of
load - 1 times that when the last one ends, of which `latency` can be made up for. So a row has at most

    k = 1 + floor((latency / (load - 1) - length) / hop)

windows. Its work takes load * (k * hop + length - hop), in which a window begins every `hop`:

    f* = (1 / load) * k * hop / (k * hop + length - hop)

k = 0: no window can be had. Up to a load of 1 all can.

Windows that follow one another without overlap (hop = length) are had whole or not at all: the next one begins where
one begins in the stream, and until then the node may have nothing to do. With B the backlog as a window begins, it is
had if B <= latency - (load - 1) * length, and leaves B + (load - 1) * length as the next begins. A schedule that
takes each that can be had has the most of them; f* is their share from one instant without backlog to the next. At a
load of 1.6 and a latency of 1 length that is 1 of 2, where the formula above says 62.5 %.

f* is a share in the long run. Of a finite run more can be had: it begins without backlog and may end with one.
"""

import math
from fractions import Fraction

from coordinator.report.facts.windows_view import BY_TIME, WindowView

MOST_WINDOWS = 10_000  # that are followed from one instant without backlog to the next


def best_share(load: Fraction, length_ns: int, hop_ns: int, latency_ns: int) -> Fraction:
    """f* of windows of length >= hop > 0 (ns) under a lasting load. Raises ValueError where a length makes no sense."""
    if not 0 < hop_ns <= length_ns:
        raise ValueError(
            f"windows of {length_ns} ns every {hop_ns} ns: the bound holds where none of the stream is left out"
        )
    if load <= 1:
        return Fraction(1)
    in_a_row = 1 + (Fraction(latency_ns) / (load - 1) - length_ns) // hop_ns
    if in_a_row <= 0:
        return Fraction(0)
    covered = in_a_row * hop_ns + length_ns - hop_ns
    return Fraction(in_a_row * hop_ns, covered) / load


def long_run_share(load: Fraction, length_ns: int, hop_ns: int, latency_ns: int) -> Fraction:
    """As `best_share`, of windows that are had whole or not at all."""
    most = best_share(load, length_ns, hop_ns, latency_ns)
    if hop_ns < length_ns or load <= 1 or not most:
        return most
    work, room = load * length_ns, latency_ns - (load - 1) * length_ns
    had, begins, backlog = 0, 0, Fraction(0)
    while had < MOST_WINDOWS:
        had += 1
        later = max(1, math.ceil((backlog + work - room) / length_ns))  # windows until one can be had again
        begins += later
        backlog += work - later * length_ns
        if backlog <= 0:
            return Fraction(had, begins)
    return most  # it is never without backlog, or so rarely that it does not matter


def window_bound(view: WindowView, load: Fraction | None, useful_ns: int) -> tuple[Fraction | None, str | None]:
    """f* of an operator's windows where results are of use for `useful_ns` from what their deadlines count from; or
    None and why there is none."""
    if view.kind != BY_TIME:
        return None, f"windows by {view.kind} have no fixed length in time"
    if not 0 < view.hop_ns <= view.length_ns:
        return None, "the hop is longer than the window: some of the stream is in none"
    if load is None:
        return None, "no load was measured"
    if not useful_ns:
        return None, "a result is of use for ever"
    # The oldest tuple is taken to come as its window begins.
    latency_ns = useful_ns - view.length_ns if view.first else useful_ns
    return long_run_share(load, view.length_ns, view.hop_ns, latency_ns), None
