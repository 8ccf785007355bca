"""What becomes of windows, by itself: marks and tuples in, events out."""

from node_agent.core import plan as plans
from node_agent.core.engine.compiler import compile_plan
from node_agent.core.engine.window_ends import STOPPED, WindowEnds, WindowEvent
from node_agent.core.lineage import Lineage
from node_agent.core.policies import policy
from node_agent.core.punctuation import ABSENCE, Progress, Removal
from node_agent.core.windows.open_windows import Cause
from node_agent.core.windows.results import Collecting, Complete
from node_agent.core.windows.window_operator import WindowOperator
from protos.records import WINDOW_ABANDONED, WINDOW_CAUSES, WINDOW_CLOSED, WINDOW_OPENED, WINDOW_SKIPPED
from tests.node_agent.core.simulated.window_node import WINDOWS, Names, window, windowed

REMOVED = WINDOW_CAUSES.index(Cause.REMOVED.value)
EPOCH = 7


def compiled(plan: plans.Plan) -> WindowOperator:
    collecting = Collecting(Names())
    calls = {each.id: (collecting, False) if each.window else (str, True) for each in plan.operators}
    (found,) = compile_plan(plan, calls, policy("edf")).windows
    assert isinstance(found, WindowOperator)
    return found


def at(number: int, origin_ns: int) -> Lineage:
    return 1, 0, number, 0, origin_ns, origin_ns


class Nowhere:
    """No engine: the test takes what has ended."""

    def end_windows(self, at_ns: int, windowed: WindowOperator) -> None:
        raise AssertionError("nobody reports here")


class Ends:
    """One operator's windows of 10 ns; a heartbeat has begun them at 10."""

    def __init__(self, numbered: dict[int, int] | None = None) -> None:
        self.windowed = compiled(windowed(window()))
        self.ends = WindowEnds(EPOCH, {} if numbered is None else numbered)
        self.ends.load(self.windowed.loaded, Nowhere(), lambda units, source, epoch: iter(()))
        self.windowed.on_punctuation(5, at(1, 5), Progress(1))
        self.begun = self.take(5)

    def take(self, at_ns: int) -> list[WindowEvent]:
        news = self.windowed.news
        return [] if news is None else self.ends.take(at_ns, news)


def test_what_began_before_its_source_was_heard_of_is_skipped() -> None:
    assert Ends().begun == [WindowEvent(0, WINDOW_SKIPPED, 0, 10)]


def test_a_window_that_closes_is_to_be_admitted_under_its_number_and_incarnation() -> None:
    ends = Ends()
    ends.windowed.present(12, at(1, 12), {"x": 1})
    (opened,) = ends.take(12)
    assert (opened.number, opened.state, opened.start, opened.end) == (1, WINDOW_OPENED, 10, 20)
    ends.windowed.on_punctuation(13, at(2, 13), ABSENCE)
    assert not ends.take(13)
    ends.windowed.on_punctuation(25, at(3, 21), Progress(3))
    closed, opened = ends.take(25)
    assert (opened.number, opened.state) == (2, WINDOW_OPENED)
    assert (closed.number, closed.state, closed.tuples, closed.shed) == (1, WINDOW_CLOSED, 1, ())
    assert closed.result is not None
    lineage, complete = closed.result
    assert lineage == (WINDOWS, EPOCH, 1, 0, 20, 20) and isinstance(complete, Complete)
    assert complete.window.state.result() == {"xs": [1]}
    assert ends.windowed.state.counts["closed"] == 1 and not ends.take(26)


def test_a_window_that_lacks_a_tuple_is_admitted_and_shed() -> None:
    ends = Ends()
    ends.windowed.present(12, at(1, 12), {"x": 1})
    ends.windowed.on_punctuation(14, at(2, 14), Removal(2, exact=True))
    _, abandoned = ends.take(14)
    assert (abandoned.state, abandoned.cause, abandoned.tuples) == (WINDOW_ABANDONED, REMOVED, 1)
    assert list(abandoned.shed) == [(WINDOWS, EPOCH, 1, 0, 14, 14)] and abandoned.result is None


def test_numbers_go_on_where_the_source_of_windows_has_been() -> None:
    """After a change of plans, or another lane, no number is given twice."""
    numbered = {WINDOWS: 40}
    ends = Ends(numbered)
    ends.windowed.present(12, at(1, 12), {"x": 1})
    ends.windowed.on_punctuation(25, at(2, 21), Progress(2))
    assert [event.number for event in ends.take(25)] == [40, 40, 41]
    assert numbered == {WINDOWS: 41}


def test_time_alone_ends_what_waits_for_too_long() -> None:
    ends = Ends()
    ends.windowed.present(12, at(1, 12), {"x": 1})
    ends.windowed.present(13, at(4, 13), {"x": 4})
    ends.take(13)
    due_ns = ends.ends.due_ns
    assert due_ns is not None and due_ns > 13
    assert list(ends.ends.expire(due_ns)) == [ends.windowed]
    (abandoned,) = ends.take(due_ns)
    assert abandoned.state == WINDOW_ABANDONED


def test_a_plan_that_is_unloaded_ends_its_open_windows_outside_any_ledger() -> None:
    ends = Ends()
    ends.windowed.present(12, at(1, 12), {"x": 1})
    ends.take(12)
    ((of, event),) = ends.ends.unload(ends.windowed.loaded)
    assert of is ends.windowed and (event.state, event.cause) == (WINDOW_ABANDONED, STOPPED)
    assert event.result is None and not event.shed
    ends.ends.forget(ends.windowed.loaded)
    assert ends.ends.operators == [] and ends.ends.due_ns is None
    ends.windowed.on_punctuation(30, at(9, 30), Progress(9))
    assert not ends.take(30)


def test_an_older_plans_marks_are_news_of_the_newest() -> None:
    old, new = Ends(), compiled(windowed(window(), epoch=2))
    new.inherit(old.windowed)
    old.windowed.present(12, at(1, 12), {"x": 1})
    assert old.windowed.news is new
