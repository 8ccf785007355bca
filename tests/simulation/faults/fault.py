"""A fault: its kind, when, for how long, and where."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from tests.simulation.faults.faulty_line import FaultyLine


class Fault(NamedTuple):
    """One fault. way: of those that carry something, for what happens to one; node: for what happens to one of them."""

    kind: str
    at_ns: int
    for_ns: int
    node: str
    way: tuple[str, str]
    size: int


Begin = Callable[[FaultyLine, Fault, Counter[str]], None]
