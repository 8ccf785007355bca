"""Punctuation: goes on streams beside tuples, to joins and windows that wait for them. It overtakes queued tuples."""

from node_agent.core.lineage import Lineage


class Absence:
    """Absence punctuation: this branch of a join was filtered, shed or lost."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ABSENCE"


ABSENCE = Absence()


class Removal:
    """Removal punctuation on a counted stream: numbers `first` to the lineage's were shed or lost, with origins in the
    lineage's interval. exact: one of them has the greatest origin. A join by lineage takes it as an absence."""

    __slots__ = ("exact", "first")

    def __init__(self, first: int, exact: bool = False) -> None:
        self.first, self.exact = first, exact

    def __repr__(self) -> str:
        return f"Removal(first={self.first}, exact={self.exact})"


class Progress:
    """Progress punctuation (a watermark) on a counted stream: numbers below the lineage's were admitted, and later ones
    are not older than the lower bound of the lineage's origin. first: the lowest number that was admitted under this
    plan; the lineage's, where there is none."""

    __slots__ = ("first",)

    def __init__(self, first: int) -> None:
        self.first = first

    def __repr__(self) -> str:
        return f"Progress(first={self.first})"


PUNCTUATION = (Absence, Removal, Progress)
Punctuation = Absence | Removal | Progress


def removal_of(lineage: Lineage) -> Removal:
    """The punctuation of a tuple that was shed or lost."""
    return Removal(lineage[2], lineage[4] == lineage[5])


class DelayedRemoval:
    """A run of a source's arrivals that were shed on admission, and whose removal is not forwarded yet."""

    __slots__ = ("epoch", "exact", "first", "greatest_ns", "last", "least_ns", "source")

    def __init__(self, lineage: Lineage) -> None:
        self.source, self.epoch, self.first, _, self.least_ns, self.greatest_ns = lineage
        self.last, self.exact = self.first, self.least_ns == self.greatest_ns

    def add(self, lineage: Lineage) -> bool:
        """Add a tuple. Returns False if it is not the next one of the run."""
        source, epoch, number, _, least_ns, greatest_ns = lineage
        if number != self.last + 1 or (source, epoch) != (self.source, self.epoch):
            return False
        self.last, self.exact = number, self.exact and least_ns == greatest_ns
        self.least_ns, self.greatest_ns = min(self.least_ns, least_ns), max(self.greatest_ns, greatest_ns)
        return True

    @property
    def lineage(self) -> Lineage:
        """Of its punctuation."""
        return self.source, self.epoch, self.last, 0, self.least_ns, self.greatest_ns


__all__ = ["ABSENCE", "PUNCTUATION", "Absence", "DelayedRemoval", "Progress", "Punctuation", "Removal", "removal_of"]
