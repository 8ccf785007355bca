"""What became of tuples: of one, and of a burst of them by columns."""

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload


class Admitted(NamedTuple):
    """The tuple was admitted; (source, epoch, seq) identifies it in every trace."""

    seq: int
    epoch: int


class Refused(NamedTuple):
    """The tuple was not admitted, and why: too old, too large, not of the source's type, no plan, not sent in time."""

    why: str


Outcome = Admitted | Refused


class Outcomes(Sequence[Outcome]):
    """What became of each tuple of a burst, in the burst's order; it equals a list of the same outcomes.

    The columns below have a row per tuple and speak the buffer protocol: `numpy.asarray(outcomes.seq)` copies nothing.
    A policed tuple is an admitted one: the node notes in its trace that it came too soon.
    """

    __slots__ = ("_each",)

    def __init__(self, each: Sequence[Outcome]) -> None:
        self._each = each

    @property
    def admitted(self) -> "memoryview[bool]":
        """Of each tuple whether it was admitted."""
        return memoryview(bytearray(each.__class__ is Admitted for each in self._each)).cast("?")

    @property
    def seq(self) -> "array[int]":
        """Sequence numbers, int64; 0 where a tuple was refused."""
        return array("q", [each.seq if isinstance(each, Admitted) else 0 for each in self._each])

    @property
    def epoch(self) -> "array[int]":
        """Lineage epochs, int64; 0 where a tuple was refused."""
        return array("q", [each.epoch if isinstance(each, Admitted) else 0 for each in self._each])

    @property
    def why(self) -> list[str]:
        """Why a tuple was refused; empty where it was admitted."""
        return [each.why if isinstance(each, Refused) else "" for each in self._each]

    def __len__(self) -> int:
        return len(self._each)

    @overload
    def __getitem__(self, index: int) -> Outcome: ...

    @overload
    def __getitem__(self, index: slice) -> "Outcomes": ...

    def __getitem__(self, index: int | slice) -> "Outcome | Outcomes":
        return Outcomes(self._each[index]) if isinstance(index, slice) else self._each[index]

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self._each)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Outcomes | list | tuple):
            return list(self._each) == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __repr__(self) -> str:
        return f"Outcomes({list(self._each)!r})"
