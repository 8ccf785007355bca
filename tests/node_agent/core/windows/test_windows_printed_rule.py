"""[S]'s rule as printed against the completed one: a range that crosses a window's end makes the printed one wrong.

Printed: the first survivor of a shed range carries the mark, and the aggregate abandons what is open *when it comes*,
after closing what has ended. A window that ended inside the range is closed as if it had lost nothing.
"""

from collections import Counter
from random import Random

from node_agent.core.windows.aggregates import Count, Together
from node_agent.core.windows.allocator import Grid
from node_agent.core.windows.intake import Limits
from node_agent.core.windows.open_windows import Closed
from node_agent.core.windows.shedding_control import RemovedRanges
from node_agent.core.windows.window_kinds import time_windows

GRID = Grid(5000, 4000)


class Printed:
    """Windows by [S]'s algorithm with the mark only."""

    def __init__(self) -> None:
        self.open: Counter[int] = Counter()
        self.abandoned: set[int] = set()
        self.closed: dict[int, int] = {}

    def tuple_(self, origin: int, marked: bool) -> None:
        """One that survived; marked: d = -1."""
        for window in [each for each in self.open if GRID.end(each) <= origin]:
            self.closed[window] = self.open.pop(window)
        for window in GRID.of(origin):
            if marked:
                self.abandoned.add(window)
                self.open.pop(window, None)
            elif window not in self.abandoned:
                self.open[window] += 1


def shed_in_runs(seed: int) -> tuple[dict[int, int], dict[int, int], Counter[int]]:
    """(printed, completed, exact): tuples per closed window, of a stream where short runs are shed now and then."""
    random = Random(seed)
    printed, marks = Printed(), RemovedRanges(0)
    it = time_windows(GRID, Together({"n": (Count, None)}), Limits(0, 10_000))
    it.begin(0, 0, 0)
    exact: Counter[int] = Counter()
    origin = left = 0
    for number in range(10_000):
        origin += random.randint(1, 400)
        exact.update(GRID.of(origin))
        if not left and random.random() < 0.002:
            left = random.randint(1, 5)
        if left:
            left -= 1
            marks.shed(number, origin)
            continue
        ranges = marks.take()
        for each in ranges:
            it.lost(0, origin, 0, (each.first, each.last), (each.least_ns, each.greatest_ns), True)
        printed.tuple_(origin, bool(ranges))
        it.present(0, origin, 0, number, origin, None)
    completed = {each.window.number: each.window.count for each in it.take() if isinstance(each, Closed)}
    return printed.closed, completed, exact


def test_the_printed_rule_is_wrong_where_a_range_crosses_an_end() -> None:
    wrong = emitted = delivered = 0
    for seed in range(4):
        printed, completed, exact = shed_in_runs(seed)
        emitted += len(printed)
        delivered += len(completed)
        wrong += sum(count != exact[window] for window, count in printed.items())
        assert all(count == exact[window] for window, count in completed.items())
    print(f"printed: {wrong} of {emitted} windows are wrong; completed: 0 of {delivered}")
    assert 0 < wrong < 0.05 * emitted
    assert delivered >= emitted - wrong - 8
