"""Counts the results that were delivered here, output by output: an indication during a run.

The verdict of each is that of the report, and so are the instants. What never became a result is not here; the report
alone knows it.
"""

from collections.abc import Iterator

from node_agent.link.clock_offset import FAR_NS

GRAIN = 12  # bits: latencies below 4096 ns are told as one
MOST_BUCKETS = 256  # for anything that two instants of 64 bits can be apart


class DeliveryCounts:
    """Of one output.

    worst_ns: the greatest upper bound of a latency. buckets: results by it, four buckets for each doubling. Where the
    sender's clock is not known yet there is no bound, and the result is in `undecidable` alone.
    """

    __slots__ = ("buckets", "late", "met", "undecidable", "worst_ns")

    def __init__(self) -> None:
        self.met = self.late = self.undecidable = self.worst_ns = 0
        self.buckets = [0] * MOST_BUCKETS

    def add(self, most_ns: int, least_ns: int, deadline_ns: int) -> None:
        """A result with a latency of least_ns to most_ns."""
        if most_ns <= deadline_ns:  # as protos/latency.py has it
            self.met += 1
        elif least_ns > deadline_ns:
            self.late += 1
        else:
            self.undecidable += 1
            if most_ns >= FAR_NS:
                return
        if most_ns > self.worst_ns:  # noqa: PLR1730 - a call costs more
            self.worst_ns = most_ns
        grains = (most_ns >> GRAIN) + 4 if most_ns > 0 else 4
        octave = grains.bit_length() - 3
        self.buckets[(octave << 2) + (grains >> octave)] += 1

    def latencies(self) -> Iterator[tuple[int, int]]:
        """(ns, results): so many took at most so long, and longer than those before them."""
        for index, results in enumerate(self.buckets):
            if results:
                octave = (index >> 2) - 1
                most = (index - 4 * octave + 1 << octave) - 4
                yield (most << GRAIN) - 1, results
