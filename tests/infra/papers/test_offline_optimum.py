"""The offline optimum: by hand, against all choices of windows, and above every shedder."""

from collections.abc import Sequence
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from infra.papers.shedding import queue_node
from infra.papers.shedding.offline_optimum import Constraints, Optimum, Workload, optimum
from infra.papers.shedding.window_node import Setting, workload
from node_agent.core.windows.allocator import Grid
from tests.sampling import examples

TUMBLING = Grid(10, 10)


def of(at_ns: Sequence[int], cost_ns: int, latency_ns: int, most: int | None = None, windows: int = 2) -> Optimum:
    """Tumbling windows of 10."""
    offered = Workload(at_ns, [cost_ns] * len(at_ns))
    return optimum(offered, Constraints(TUMBLING, latency_ns, most), range(windows))


def test_all_windows_where_there_is_time() -> None:
    assert of([0, 5, 10, 15], 5, 0) == Optimum(2, True)


def test_one_of_two_where_both_take_too_long() -> None:
    """Each takes 15: done at 15 and 30, or the second alone at 25."""
    assert of([0, 1, 2, 10, 11, 12], 5, 5) == Optimum(1, True)
    assert of([0, 1, 2, 10, 11, 12], 5, 10) == Optimum(2, True)


def test_no_window_that_has_no_room() -> None:
    """0 runs, 1 and 2 wait."""
    assert of([0, 1, 2], 5, 50, most=2, windows=1) == Optimum(1, True)
    assert of([0, 1, 2], 5, 50, most=1, windows=1) == Optimum(0, True)


def test_what_waits_of_a_window_takes_room_from_the_next() -> None:
    assert of([0, 8, 9, 10, 11], 10, 100, most=4).windows == 2
    assert of([0, 8, 9, 10, 11], 10, 100, most=2).windows == 1


def test_a_window_without_tuples_is_given() -> None:
    assert of([10, 10, 10], 20, 5, windows=3) == Optimum(2, True)


def test_the_overlap_is_admitted_once() -> None:
    """[0, 10) and [5, 15): 12 of work, of which 4 lie in both."""
    offered = Workload([0, 5, 14], [4, 4, 4])
    assert optimum(offered, Constraints(Grid(10, 5), 3, 0), range(2)).windows == 2, "none ever waits"
    assert optimum(offered, Constraints(Grid(10, 5), 2, 0), range(2)).windows == 1, "the last one is done at 18"


def by_all_choices(offered: Workload, constraints: Constraints, windows: range) -> int:
    """The largest set of windows that a server, told by the instants alone, gives."""
    for count in range(len(windows), 0, -1):
        if any(_gives(offered, constraints, chosen) for chosen in combinations(windows, count)):
            return count
    return 0


def _gives(offered: Workload, constraints: Constraints, chosen: Sequence[int]) -> bool:
    grid, free_ns = constraints.grid, 0
    done_ns, starts_ns = dict[int, int](), list[int]()
    for at_ns, cost_ns in zip(offered.at_ns, offered.cost_ns, strict=True):
        needing = [window for window in chosen if grid.begin(window) <= at_ns < grid.end(window)]
        if not needing:
            continue
        waiting = sum(start_ns > at_ns for start_ns in starts_ns)
        if constraints.most is not None and free_ns > at_ns and waiting >= constraints.most:
            return False
        starts_ns.append(max(free_ns, at_ns))
        free_ns = starts_ns[-1] + cost_ns
        done_ns |= dict.fromkeys(needing, free_ns)
    return all(done_ns.get(window, 0) <= grid.end(window) + constraints.latency_ns for window in chosen)


@st.composite
def runs(draw: st.DrawFn) -> tuple[Workload, Constraints, range]:
    """Up to eight windows, with gaps, overlaps, bursts and costs of all kinds."""
    grid, count = Grid(draw(st.integers(2, 12)), draw(st.integers(1, 8))), draw(st.integers(1, 8))
    at_ns = sorted(draw(st.lists(st.integers(0, grid.end(count - 1)), max_size=40)))
    cost_ns = draw(st.lists(st.integers(1, 4), min_size=len(at_ns), max_size=len(at_ns)))
    most = draw(st.sampled_from([None, 1, 2, 3, 5, 8]))
    return Workload(at_ns, cost_ns), Constraints(grid, draw(st.integers(0, 12)), most), range(count)


@settings(max_examples=examples(4000, 20), deadline=None)
@given(runs())
def test_no_choice_of_windows_gives_more_or_it_less(run: tuple[Workload, Constraints, range]) -> None:
    assert optimum(*run) == Optimum(by_all_choices(*run), True)


@settings(max_examples=examples(2000, 20), deadline=None)
@given(runs())
def test_with_few_labels_it_is_a_bound(run: tuple[Workload, Constraints, range]) -> None:
    exact, bound = optimum(*run), optimum(*run, labels=1)
    assert bound.windows >= exact.windows
    assert bound.windows == exact.windows or not bound.exact


@settings(max_examples=examples(60, 6), deadline=None)
@given(
    st.sampled_from([0.8, 1.3, 2.0, 3.0]), st.sampled_from([(5, 4), (4, 4), (6, 2)]), st.sampled_from([5, 40, 100_000]),
    st.booleans(), st.sampled_from([0.0, 1.0]), st.integers(0, 1000),
    st.sampled_from(["window-aware", "window-aware", "random", "drop-tail"]),
)  # fmt: skip
def test_no_shedder_gives_more_waits_longer_or_forgets_a_tuple(
    load: float, window: tuple[int, int], most: int, bursts: bool, cv: float, seed: int, shedder: str
) -> None:
    """`front` holds more than it may between its periods, so it is not here."""
    phases = ((5, 2 * load), (10, load / 2)) if bursts else ()
    setting = Setting(
        load, (window,), phases, seconds=30, warm_s=0, seed=seed, cost_ns=50_000_000, cost_cv=cv, most=most
    )
    offered = workload(setting)
    (grid,) = setting.grids
    best = optimum(offered, setting.constraints(grid), setting.counted(grid))
    served = queue_node.run(setting, offered, shedder)
    assert served.given <= best.windows
    assert served.peak <= most
    assert served.ran + served.shed == len(offered.at_ns)
