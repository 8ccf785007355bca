"""f*: of the windows of an overloaded stream, the share that no policy can exceed, exact and on time ([S]).

Let windows be `length` long and begin every `hop`, let a second of stream be `load` seconds of work, and let a result
be of use for `latency` after its window's end. Whoever wants a result has to do all the work of its window. Windows
that overlap or touch form a row: k of them cover k * hop + length - hop of stream, whose work leaves a backlog of
load - 1 times that when the last one ends, of which `latency` can be made up for. So a row has at most

    k = 1 + floor((latency / (load - 1) - length) / hop)

windows. Its work takes load * (k * hop + length - hop), in which a window begins every `hop`:

    f* = (1 / load) * k * hop / (k * hop + length - hop)

k = 0: no window can be had. Up to a load of 1 all can.
"""

from fractions import Fraction

from coordinator.report.windows_view import BY_TIME, WindowView


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
    return best_share(load, view.length_ns, view.hop_ns, latency_ns), None
