"""How long a trial goes on for windows, and how seldom its timers run where that is very long."""

from node_agent.core import plan as core
from node_agent.virtual.cluster.window_tail import MOST_BEATS, seldom_ns, tail_ns, thinned

MS = 1_000_000
WINDOW = core.Window("time", 400 * MS, 100 * MS, 2, ((1, 0),), 30 * MS, useful_ns=200 * MS, wait_ns=50 * MS)
PLAN = core.Plan(
    "q", "a", 0, 1, 1, "fifo", 1,
    streams=(core.Stream(1, "s", "json", deadline_ns=7 * MS),),
    sources=(core.Source(1, "s", 1, 5 * MS, beat_ns=10 * MS), core.Source(2, "t", 2)),
    operators=(
        core.Operator(1, "W.add", "aggregate", (1,), 2, MS, window=WINDOW),
        core.Operator(2, "J", "join", (1, 3), 4, MS, join=True),
    ),
    peers=(core.Peer(1, "b", 3 * MS),),
)  # fmt: skip


def test_the_tail_is_the_longest_that_windows_may_have_to_do_with_a_tuple() -> None:
    joins = 1000 + 2 * 7
    assert tail_ns([PLAN], None, 0) == (400 + 100 + 30 + 200 + 50 + joins + 2 * 10 + 5 + 3) * MS
    assert tail_ns([PLAN], 0, 9 * MS) == (400 + 100 + 30 + 200 + 50 + joins + 2 * 10 + 9) * MS


def test_a_very_long_tail_has_no_more_heartbeats_than_that() -> None:
    day_ns = 86_400_000 * MS
    assert day_ns // thinned(PLAN, seldom_ns(day_ns)).sources[0].beat_ns <= MOST_BEATS


def test_an_ordinary_tail_changes_no_heartbeat_and_none_is_made() -> None:
    assert thinned(PLAN, seldom_ns(2000 * MS)) == PLAN
    assert [source.beat_ns for source in thinned(PLAN, 50 * MS).sources] == [50 * MS, 0]
