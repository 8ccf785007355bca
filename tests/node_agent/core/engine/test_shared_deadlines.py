"""Two queries that share an operator, each with its own deadline: ordered by the first deadline, dropped by the last.
Over random graphs no tuple is dropped while it could meet the later one."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.papers.policies import policy
from node_agent.core import plan as plans
from node_agent.core.model import Job
from node_agent.core.plan import Parameters
from node_agent.core.policies.policy_parts import Dropper
from node_agent.core.policies.slack import YOUNG
from tests.node_agent.core.simulated.shared_node import ALWAYS_NS, FIRST, Box, Graph, Play
from tests.sampling import examples

NEAR, FAR, OTHER = 1, 2, 3  # outputs

# Source 1 -> operator 1, shared -> operator 2 -> near (20 ns), operator 3 -> far (100 ns). Source 2 -> operator 4 ->
# other (50 ns), a query of its own. Every operator costs 2 ns.
SHARED = Graph(
    (
        Box((1,), 2, sub_ns=8),
        Box((FIRST + 1,), 2, (20,), sub_ns=12),
        Box((FIRST + 1,), 2, (100,), sub_ns=92),
        Box((2,), 2, (50,), sub_ns=50),
    )
)


def play(name: str, graph: Graph = SHARED) -> Play:
    return Play(graph, policy(name, parameters=Parameters(phi_ns=1)))


@pytest.mark.parametrize("name", ["edf", "edf-e2e", "slack", "qed", "ideal", "taat"])
def test_the_shared_operator_is_as_urgent_as_its_first_query_and_each_goes_on_by_its_own(name: str) -> None:
    """1 and 2 come before 4, whose deadline is between the two, and 3 comes after it: the shared operator ran once, as
    early as the near query needs it, and its result has waited for the far one."""
    found = play(name)
    found.admit(2, 1, 0)
    found.admit(1, 2, 0)
    found.go(0)
    assert found.ran == [(1, 2), (2, 2), (4, 1), (3, 2)]
    assert found.results == [(NEAR, 2, 4), (OTHER, 1, 6), (FAR, 2, 8)]
    assert not found.shed


@pytest.mark.parametrize("name", ["bts", "bts1", "ats1"])
def test_batches_that_are_complete_come_by_the_first_deadline_before_open_ones(name: str) -> None:
    """The basic batches of 1 and 4 are complete at 1; those of 2 and 3 are open when 1 has ended, and 4 is not."""
    found = play(name)
    found.admit(2, 1, 0)
    found.admit(1, 2, 0)
    found.go(1)
    assert found.ran == [(1, 2), (4, 1), (2, 2), (3, 2)]


@pytest.mark.parametrize("name", ["bts1", "ats1", "adaptive", "ideal", "slack"])
def test_what_is_too_late_for_one_query_is_met_for_the_other(name: str) -> None:
    """At 40 the near query's 20 are over: its own operator gives up, the shared one and the far query's run."""
    found = play(name)
    found.admit(1, 1, 40, (0, 0))
    found.go(40)
    assert found.ran == [(1, 1), (3, 1)]
    assert found.shed == [(2, 1)]
    assert found.results == [(FAR, 1, 44)]


@pytest.mark.parametrize("name", ["bts1", "ats1", "adaptive", "ideal", "slack"])
def test_what_is_too_late_for_all_is_dropped_once_before_it_takes_anything(name: str) -> None:
    found = play(name)
    found.admit(1, 1, 99, (0, 0))
    assert not found.go(99).ran
    assert found.shed == [(1, 1)]


@pytest.mark.parametrize("name", ["bts1", "ats1", "ideal"])
def test_overdue_counts_the_unit_at_hand_and_slack_all_that_is_left(name: str) -> None:
    """98 is the last instant at which operator 1 alone could end in time; with operator 3 behind it, 96."""
    for at_ns, ran in ((98, [(1, 1)]), (97, [(1, 1)]), (96, [(1, 1), (3, 1)])):
        found = play(name)
        found.admit(1, 1, at_ns, (0, 0))
        assert found.go(at_ns).ran == ran, at_ns
    for at_ns, ran in ((97, []), (96, [(1, 1), (3, 1)])):
        found = play("slack")
        found.admit(1, 1, at_ns, (0, 0))
        assert found.go(at_ns).ran == ran, at_ns


@pytest.mark.parametrize("name", ["edf", "edf-e2e", "qed", "fifo", "muf", "spt", "rr", "bts", "ats"])
def test_who_drops_nothing_runs_all_of_it(name: str) -> None:
    found = play(name)
    found.admit(1, 1, 500, (0, 0))
    assert sorted(found.go(500).ran) == [(1, 1), (2, 1), (3, 1)] and not found.shed


def test_edf_misses_a_sub_deadline_once_per_instance_however_many_queries_wait() -> None:
    """RAN says the deadline that the instance was ordered by: the least one's."""
    found = play("edf")
    found.admit(1, 1, 0)
    found.go(30)
    assert found.deadlines == [(1, 1, 8), (2, 1, 32 + 12), (3, 1, 32 + 92)]


@pytest.mark.parametrize("name", ["bts1", "ats1", "ideal", "adaptive"])
def test_the_miss_ratio_counts_a_shared_instance_once_by_the_deadline_it_was_ordered_by(name: str) -> None:
    """Unit 1 ends after its sub-deadline, and unit 2 is shed: two of three missed."""
    found = play(name)
    found.admit(1, 1, 0)
    found.go(25)
    assert found.ran == [(1, 1), (3, 1)]
    assert (found.engine.ready.meter.missed, found.engine.ready.meter.ended) == (2, 3)


def test_edf_e2e_orders_bursts_of_two_ages_by_the_first_deadline_of_each() -> None:
    """The older tuple is older for every query: its near unit, then the younger one's, far ones by origin."""
    found = play("edf-e2e")
    found.admit(1, 1, 10, (10, 10))
    found.admit(1, 2, 10, (4, 4))
    assert found.go(10).ran == [(1, 2), (2, 2), (1, 1), (2, 1), (3, 2), (3, 1)]


def test_qed_gives_the_shared_branch_the_least_of_its_queries_deadlines_tuple_by_tuple() -> None:
    """[Q] 4.2. One query is promised a delay of 30, the other one tuple in every 4 after 10: of a burst of eight the
    second promise is due first for five tuples, 14, 18, ... 30, the first for the rest."""
    rate = (plans.Service(30), plans.Service(10, 4))
    graph = Graph((replace(SHARED.boxes[0], service=rate), *SHARED.boxes[1:]))
    found = play("qed", graph)
    for seq in range(1, 9):
        found.admit(1, seq, 0)
    found.go(0)
    shared = [due_ns for unit, _, due_ns in found.deadlines if unit == 1]
    assert shared == [14, 18, 22, 26, 30, 30, 30, 30]


def test_bts1_drops_a_basic_batch_by_its_heads_last_deadline() -> None:
    """Printed S(Q), dl - now = 100 - 95 for the head: two of three can end by then, the oldest is shed for both."""
    found = Play(SHARED, policy("bts1", parameters=Parameters(phi_ns=50)))
    for seq in (1, 2, 3):
        found.admit(1, seq, 95, (0, 0))
    found.go(95)
    assert found.shed[0] == (1, 1)
    assert [each for each in found.ran if each[0] == 1] == [(1, 2), (1, 3)]


def test_what_is_read_as_a_side_input_is_not_overdue() -> None:
    """Operator 1 leads to no output, only beside operator 2; operator 3 leads to an output and beside operator 2."""
    graph = Graph((Box((1,), 2), Box((2,), 2, (20,), sides=(FIRST + 1, FIRST + 3)), Box((1,), 2, (20,))))
    for name in ("bts1", "ats1", "adaptive", "ideal", "slack"):
        found = play(name, graph)
        found.admit(1, 1, 500, (0, 0))
        found.admit(2, 2, 500, (0, 0))
        assert sorted(found.go(500).ran) == [(1, 1), (3, 1)], name
        assert found.shed == [(2, 2)], name


def test_a_join_waits_for_the_last_of_its_outputs() -> None:
    graph = Graph((Box((1,), 1), Box((1,), 1), Box((FIRST + 1, FIRST + 2), 1, (20,), join=True),
                   Box((FIRST + 3,), 1, (100,))))  # fmt: skip
    (join,) = play("edf", graph).loaded.joins
    assert join.wait_ns == 2 * 100 + 1_000_000_000


# -- random graphs


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Up to six operators on two sources: maps, joins, unions, side inputs; several outputs of one result."""
    boxes: list[Box] = []
    count = draw(st.integers(1, 6))
    for number in range(1, count + 1):
        streams = [1, 2, *(FIRST + each for each in range(1, number))]
        inputs = draw(st.lists(st.sampled_from(streams), min_size=1, max_size=2, unique=True))
        beside = [each for each in streams[2:] if each not in inputs]
        sides = draw(st.lists(st.sampled_from(beside), max_size=1)) if beside and draw(st.integers(0, 3)) == 0 else []
        outputs = draw(st.lists(st.integers(1, 60), max_size=2))
        boxes.append(
            Box(tuple(inputs), draw(st.integers(1, 6)), tuple(outputs), draw(st.integers(1, 30)),
                len(inputs) > 1 and draw(st.booleans()), tuple(sides))
        )  # fmt: skip
    found = Graph(tuple(boxes))
    for number in range(1, count + 1):  # what nobody takes is delivered
        if not (found.takers(number) or found.read_beside(number) or boxes[number - 1].outputs):
            boxes[number - 1] = replace(boxes[number - 1], outputs=(draw(st.integers(1, 60)),))
    return Graph(tuple(boxes))


arrivals = st.lists(
    st.tuples(st.integers(1, 2), st.integers(0, 60), st.integers(0, 40), st.integers(0, 5)), min_size=1, max_size=14
)


def watched(name: str, judge: Callable[[Job, int, list[Job], bool], None]) -> Any:
    """The policy; `judge` is told of all that its dropper is asked: job, instant, its batch, whether it is shed."""
    found = policy(name, parameters=Parameters(phi_ns=5))
    dropper, sifter = found.dropper, found.sifter

    class Watched(Dropper):
        def judge(self, job: Job, at_ns: int, ahead: int) -> int:
            assert dropper is not None and not ahead
            gone = dropper.judge(job, at_ns, ahead)
            judge(job, at_ns, [job], gone > 0)
            return gone

    def sift(batch: list[Job], at_ns: int) -> int:
        assert sifter is not None
        first = sifter(batch, at_ns)
        for i, job in enumerate(batch):
            judge(job, at_ns, batch[i:], i < first)
        return first

    return replace(found, dropper=Watched() if dropper else None, sifter=sift if sifter else None)


def all_fit(head: Job, at_ns: int) -> bool:
    """Whether that tuple and all that waits can be met by what the policy knows, in a unit as they came, else the
    earliest deadline first."""
    jobs: list[tuple[int, int]] = []  # due, work
    for unit in head.unit.loaded.units:
        meter, due_ns = unit.meter, ALWAYS_NS
        assert meter is not None
        if not meter.ends:  # leads to nothing
            continue
        for job in reversed([*([head] if unit is head.unit else []), *unit.queue]):
            due_ns = min(due_ns, job.lineage[5] + meter.due_ns)
            jobs.append((due_ns, meter.work_ns))
    ends_ns = at_ns
    for due_ns, work_ns in sorted(jobs):
        ends_ns += work_ns
        if ends_ns > due_ns:
            return False
    return True


@settings(max_examples=examples(300, 10), deadline=None, print_blob=True)
@given(graph=graphs(), given_=arrivals, seed=st.integers(0, 1 << 32))
def test_what_slack_gives_up_leaves_less_than_fits_also_where_costs_vary_and_tuples_are_filtered(
    graph: Graph, given_: list[tuple[int, int, int, int]], seed: int
) -> None:
    """Tuples end sooner or later than was counted, and some lead to nothing."""

    def judge(job: Job, at_ns: int, batch: list[Job], gone: bool) -> None:
        meter = job.unit.meter
        assert meter is not None and meter.ends
        if gone and at_ns <= job.lineage[5] + meter.slack_ns:
            assert not all_fit(job, at_ns)

    def takes_ns(unit: int, seq: int) -> int:
        return Random(f"{seed} {unit} {seq}").choice((0, 1, 1, 2)) * graph.boxes[unit - 1].cost_ns

    def passes(unit: int, seq: int) -> bool:
        return Random(f"{seq} {unit} {seed}").random() < 0.7

    found = Play(graph, watched("slack", judge), passes=passes, takes_ns=takes_ns)
    found.go(0, [(at_ns, source, seq, (at_ns - age_ns - unsure_ns, at_ns - age_ns))
                 for seq, (source, at_ns, age_ns, unsure_ns) in enumerate(sorted(given_, key=lambda each: each[1]), 1)
                 if source in found.loaded.source_routes])  # fmt: skip
    assert not found.loaded.ready


@pytest.mark.parametrize("name", ["bts1", "ats1", "adaptive", "ideal", "slack"])
@settings(max_examples=examples(60, 4), deadline=None)
@given(graph=graphs(), given_=arrivals)
def test_nothing_is_dropped_that_could_meet_the_later_deadline_by_the_policys_own_estimate(
    name: str, graph: Graph, given_: list[tuple[int, int, int, int]]
) -> None:
    """Costs are what they were declared and decisions are free, so every policy's estimate is known from the graph:
    the end of the instance against the last deadline reached (in `bts1` and `ats1` that of the batch's head); in
    `slack` and `adaptive` the way to the output with most room, but for what is one too many of what waits."""

    def judge(job: Job, at_ns: int, batch: list[Job], gone: bool) -> None:
        unit, latest_ns = job.unit.id, job.lineage[5]
        cost_ns = graph.boxes[unit - 1].cost_ns
        assert unit not in endless or not gone
        if name in ("slack", "adaptive"):
            hopeless = at_ns > latest_ns + graph.room_ns(unit)
            assert gone or not hopeless
            if gone and not hopeless:
                assert (at_ns - latest_ns) * YOUNG >= job.unit.deadline_ns and not all_fit(job, at_ns)
        elif name == "ideal":
            assert gone == (at_ns + cost_ns > latest_ns + graph.worth_ns(unit))
        elif gone:
            due_ns = heads.get(id(job), job).lineage[5] + graph.worth_ns(unit)
            assert at_ns + len(batch) * cost_ns > due_ns

    heads: dict[int, Job] = {}
    endless = {i for i in range(1, len(graph.boxes) + 1) if graph.worth_ns(i) == ALWAYS_NS}
    chosen = watched(name, judge)
    if name in ("bts1", "ats1"):  # the whole batch has the deadline of its head
        inner = chosen.sifter

        def sift(batch: list[Job], at_ns: int) -> int:
            heads.update((id(job), batch[0]) for job in batch)
            first: int = inner(batch, at_ns)
            return first

        chosen = replace(chosen, sifter=sift)
    found = Play(graph, chosen)
    ordered = sorted(enumerate(given_, 1), key=lambda each: each[1][1])
    found.go(0, [(at_ns, source, seq, (at_ns - age_ns - unsure_ns, at_ns - age_ns))
                 for seq, (source, at_ns, age_ns, unsure_ns) in ordered
                 if source in found.loaded.source_routes])  # fmt: skip
    assert not found.loaded.ready
