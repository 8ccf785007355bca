"""A join of two streams in a window: all pairs of a window's tuples that agree in the key, as one result."""

from node_agent.core.windows.accumulator import Accumulator, Reader
from node_agent.core.windows.aggregates import text
from node_agent.core.windows.open_windows import Cause, UnfitError


class Join:
    """{"pairs": [{LEFT: tuple, RIGHT: tuple}, ...]}, by key, then by source and number of the left one, then of the
    right one.

    names: of the left and the right input. right: the sources of the right side, all others are of the left one. Both
    sides are kept until the window closes: UnfitError beyond `most` tuples, or beyond `most_pairs` pairs, which are
    counted as the tuples come.
    """

    def __init__(
        self, on: tuple[Reader, Reader], sources: int, right: frozenset[int],
        most: int = 65_536, most_pairs: int = 65_536, names: tuple[str, str] = ("left", "right"),
    ) -> None:  # fmt: skip
        if not right or not right < frozenset(range(sources)):
            raise ValueError(f"sources {sorted(right)} of {sources} are no right side: each side needs one")
        self.on, self.sources, self.right = on, sources, right
        self.most, self.most_pairs, self.names = most, most_pairs, names

    def start(self) -> Accumulator:
        """No tuples on either side."""
        return _Sides(self)


class _Sides:
    """Per source: tuples by key, in the order of their numbers."""

    __slots__ = ("_join", "_kept", "_pairs", "_tuples")

    def __init__(self, join: Join) -> None:
        self._join, self._tuples, self._pairs = join, 0, 0
        self._kept: list[dict[str, list[object]]] = [{} for _ in range(join.sources)]

    def add(self, source: int, payload: object) -> None:
        """Keep it."""
        join, kept = self._join, self._kept
        right = source in join.right
        key = text(join.on[right](payload))
        pairs = sum(len(kept[each].get(key, ())) for each in range(join.sources) if (each in join.right) != right)
        if self._tuples >= join.most or self._pairs + pairs > join.most_pairs:
            raise UnfitError(Cause.MEMORY, f"more than {join.most} tuples or {join.most_pairs} pairs")
        self._tuples += 1
        self._pairs += pairs
        kept[source].setdefault(key, []).append(payload)

    def result(self) -> dict[str, object]:
        """All pairs."""
        join, kept = self._join, self._kept
        left = [source for source in range(join.sources) if source not in join.right]
        pairs: list[dict[str, object]] = []
        one, two = join.names
        for key in sorted(set().union(*(kept[source] for source in left))):
            others = [each for source in sorted(join.right) for each in kept[source].get(key, ())]
            for source in left:
                pairs += [{one: mine, two: other} for mine in kept[source].get(key, ()) for other in others]
        return {"pairs": pairs}


__all__ = ["Join"]
