"""Empty windows that lie between windows with tuples: gaps within a feed, not its absence before or behind."""


class Gaps:
    """Of the windows of one operator, as they close. Windows whose length the data tells may close out of order: an
    empty one counts as within a feed only if a window with tuples below it has closed before it."""

    __slots__ = ("empty", "fed", "last")

    def __init__(self) -> None:
        self.fed = -1  # the highest number with tuples; -1: none yet
        self.empty = 0  # how many have closed above it
        self.last = -1  # the highest of these

    def closed(self, number: int, tuples: int) -> int:
        """A window closes. Returns how many empty ones are known by it to lie within a feed."""
        if not tuples:
            if 0 <= self.fed < number:
                self.empty, self.last = self.empty + 1, max(self.last, number)
            return 0
        within = self.empty if number > self.last else 0
        self.fed, self.empty = max(self.fed, number), 0
        return within


__all__ = ["Gaps"]
