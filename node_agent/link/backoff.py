"""Backoff of a connection: doubling pauses with a ceiling. Pure: the caller hands in the instant."""


class Backoff:
    """Pauses of `first_ns`, twice that, ... up to `most_ns`.

    No random jitter: a cluster has a handful of nodes, and a seeded simulation must replay exactly.
    """

    def __init__(self, first_ns: int = 10_000_000, most_ns: int = 1_000_000_000) -> None:
        self._first_ns = first_ns
        self._most_ns = most_ns
        self._pause_ns = first_ns
        self.next_ns = 0
        """The instant of the next attempt; 0 before the first."""

    def failed(self, at_ns: int) -> int:
        """An attempt failed or a connection ended: the instant of the next attempt."""
        self.next_ns = at_ns + self._pause_ns
        self._pause_ns = min(2 * self._pause_ns, self._most_ns)
        return self.next_ns

    def succeeded(self) -> None:
        """The peer took something over: the next pause is the shortest again."""
        self._pause_ns = self._first_ns
