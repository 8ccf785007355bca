"""What passes conforms for any arrivals; what conforms passes; nothing is shed that would still have conformed.

The reference here knows nothing of how policing works: it looks at all stretches of what has passed.
"""

from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.core.plan import Operator, Pace, Source
from node_agent.core.shedding.policing import ArrivalPolice, SelectivityPolice, arrival_police, selectivity_police

gaps = st.lists(st.one_of(st.just(0), st.integers(0, 8), st.integers(0, 60)), min_size=1, max_size=60)
paces = st.builds(
    Pace,
    tuples=st.integers(1, 4),
    interval=st.integers(1, 60),
    slack=st.integers(0, 80),
    parts=st.integers(1, 3),
    most=st.sampled_from([0, 0, 1, 2, 5]),
)
spans = st.lists(st.tuples(st.integers(2, 7), st.integers(0, 80)), max_size=4)
declarations = st.tuples(st.lists(paces, max_size=2), spans).filter(any)


def source(paces: list[Pace], spans: list[tuple[int, int]]) -> Source:
    return Source(1, "s", 1, 0, tuple(paces), tuple(spans))


def least_ns(declared: Source, tuples: int) -> float:
    """The least that so many tuples in a row may span; of what is declared for other counts, nothing."""
    found = [0.0]
    found += [span_ns for n, span_ns in declared.spans if n == tuples]
    for pace in declared.paces:
        k, rest = divmod(tuples - 1, pace.tuples)
        if k and not rest and (not pace.most or k <= pace.most):
            found.append((k * pace.interval - pace.slack) / pace.parts)
    return max(found)


def conforms(declared: Source, instants: list[int]) -> bool:
    """Every stretch of them, closed at both ends."""
    return all(
        instants[j] - instants[i] >= least_ns(declared, j - i + 1)
        for i in range(len(instants))
        for j in range(i + 1, len(instants))
    )


def latest_conforms(declared: Source, instants: list[int]) -> bool:
    """As `conforms`, of stretches that end with the last one."""
    return all(instants[-1] - instants[i] >= least_ns(declared, len(instants) - i) for i in range(len(instants) - 1))


@settings(deadline=None)
@given(declarations, gaps)
def test_what_passes_conforms_and_nothing_else_is_shed(
    declared: tuple[list[Pace], list[tuple[int, int]]], gaps: list[int]
) -> None:
    asked = source(*declared)
    police, passed, shed = ArrivalPolice(asked), list[int](), 0
    endless = all(pace.most == 0 for pace in asked.paces)
    for at_ns in accumulate(gaps):
        conforming = latest_conforms(asked, [*passed, at_ns])
        if police.passes(at_ns):
            assert conforming
            passed.append(at_ns)
        else:
            shed += 1
            # With `most` older tuples may count as well, never younger ones less.
            assert not conforming or not endless
    assert police.shed == shed and conforms(asked, passed)


@settings(deadline=None)
@given(declarations, gaps)
def test_a_source_that_keeps_its_promise_is_never_shed(
    declared: tuple[list[Pace], list[tuple[int, int]]], gaps: list[int]
) -> None:
    """Of every stretch, so of older ones as well than a pace with `most` names."""
    asked = source(*declared)
    forever = source([Pace(p.tuples, p.interval, p.slack, p.parts) for p in declared[0]], declared[1])
    police, sent = ArrivalPolice(asked), list[int]()
    for gap in gaps:
        at_ns = (sent[-1] if sent else 0) + gap
        while not latest_conforms(forever, [*sent, at_ns]):
            at_ns += 1
        sent.append(at_ns)
        assert police.passes(at_ns)
    assert police.shed == 0


def test_jitter_does_not_add_up_over_bursts() -> None:
    """Two tuples every 100, up to 40 early: the first pair of 3 and 1 would allow 60 each time."""
    police = ArrivalPolice(source([Pace(2, 100, 40)], []))
    assert [police.passes(at_ns) for at_ns in (0, 0, 60, 60, 120, 120, 160, 160)] == [
        *[True] * 4,
        *[False] * 2,
        True,
        True,
    ]


def test_a_clock_that_runs_a_little_fast_is_not_held_to_account_for_its_whole_past() -> None:
    """A tenth of a percent fast: beyond `slack` after 500 periods, within it in any 20."""
    fast = range(0, 999 * 3000, 999)
    remembering, forgetting = (ArrivalPolice(source([Pace(1, 1000, 500, 1, most)], [])) for most in (0, 20))
    assert sum(not remembering.passes(at_ns) for at_ns in fast) > 0
    assert all(forgetting.passes(at_ns) for at_ns in fast)


def test_what_an_old_plan_let_pass_counts_in_the_new_one() -> None:
    old = ArrivalPolice(source([Pace(2, 100, 0), Pace(1, 5, 0)], [(3, 90)]))
    assert old.passes(0) and old.passes(10)
    for declared in (source([Pace(2, 100, 20)], []), source([], [(3, 80), (2, 1)])):
        new = ArrivalPolice(declared)
        new.inherit(old)
        assert [new.passes(at_ns) for at_ns in (79, 80)] == [False, True]
    other = ArrivalPolice(source([Pace(7, 100, 0)], []))
    other.inherit(old)
    assert all(other.passes(10) for _ in range(7)) and not other.passes(10)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 5)), min_size=1, max_size=3),
    st.lists(st.integers(0, 4), max_size=60),
)
def test_of_any_inputs_in_a_row_no_more_results_than_declared(pairs: list[tuple[int, int]], made: list[int]) -> None:
    police, passed = SelectivityPolice(Operator(1, "o", "x", (1,), 2, 1, at_most=tuple(pairs))), list[int]()

    def room(more: int) -> bool:
        tried = [*passed, more]
        return all(sum(tried[max(0, len(tried) - k) :]) <= m for k, m in pairs)

    for results in made:
        most = max((n for n in range(results + 1) if room(n)), default=0)
        passed.append(police.passes(results))
        assert passed[-1] == most
    for k, m in pairs:
        assert all(sum(passed[i : i + k]) <= m for i in range(len(passed)))
    assert police.shed == sum(made) - sum(passed)


@pytest.mark.parametrize(
    ("pairs", "every"), [(((1, 1),), False), (((1, 3),), False), (((1, 0),), True), (((1, 1), (4, 2)), True)]
)
def test_an_operator_that_only_may_not_multiply_need_not_say_each_single_result(
    pairs: tuple[tuple[int, int], ...], every: bool
) -> None:
    police = selectivity_police(Operator(1, "o", "x", (1,), 2, 1, at_most=pairs))
    assert police is not None and police.every is every


def test_where_nothing_is_declared_nothing_is_policed() -> None:
    assert arrival_police(Source(1, "s", 1)) is None
    assert selectivity_police(Operator(1, "o", "x", (1,), 2, 1)) is None
