"""A join of two streams in a window: all pairs of a window's tuples that agree in the key, as one result."""

from collections.abc import Callable
from typing import Any

from node_agent.core.windows.aggregates import text
from node_agent.core.windows.open_windows import Cause, UnfitError

Kept = list[dict[str, list[Any]]]  # per source: tuples by key, in the order of their numbers


class Join:
    """{"pairs": [{LEFT: tuple, RIGHT: tuple}, ...]}, by key, then by source and number of the left one, then of the
    right one.

    names: of the left and the right input. right: the sources of the right side, all others are of the left one. Both
    sides are kept until the window closes: UnfitError beyond `most` tuples, or beyond `most_pairs` pairs, which are
    counted as the tuples come.
    """

    def __init__(
        self, on: tuple[Callable[[Any], Any], Callable[[Any], Any]], sources: int, right: frozenset[int],
        most: int = 65_536, most_pairs: int = 65_536, names: tuple[str, str] = ("left", "right"),
    ) -> None:  # fmt: skip
        if not right or not right < frozenset(range(sources)):
            raise ValueError(f"sources {sorted(right)} of {sources} are no right side: each side needs one")
        self._on, self._sources, self._right = on, sources, right
        self._most, self._most_pairs, self._names = most, most_pairs, names

    def start(self) -> tuple[list[int], Kept]:
        """How many tuples and pairs there are, and the tuples."""
        return [0, 0], [{} for _ in range(self._sources)]

    def add(self, state: tuple[list[int], Kept], source: int, payload: Any) -> None:
        """Keep it."""
        sizes, kept = state
        right = source in self._right
        key = text(self._on[right](payload))
        pairs = sum(len(kept[each].get(key, ())) for each in range(self._sources) if (each in self._right) != right)
        if sizes[0] >= self._most or sizes[1] + pairs > self._most_pairs:
            raise UnfitError(Cause.MEMORY, f"more than {self._most} tuples or {self._most_pairs} pairs")
        sizes[0] += 1
        sizes[1] += pairs
        kept[source].setdefault(key, []).append(payload)

    def result(self, state: tuple[list[int], Kept]) -> dict[str, Any]:
        """All pairs."""
        kept = state[1]
        left = [source for source in range(self._sources) if source not in self._right]
        pairs, (one, two) = [], self._names
        for key in sorted(set().union(*(kept[source] for source in left))):
            others = [each for source in sorted(self._right) for each in kept[source].get(key, ())]
            for source in left:
                pairs += [{one: mine, two: other} for mine in kept[source].get(key, ()) for other in others]
        return {"pairs": pairs}


__all__ = ["Join"]
