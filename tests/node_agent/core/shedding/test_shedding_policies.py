"""Shedders at doors, through the engine: who is shed, that no window is given that lacks a tuple, the share of them."""

import gc
import weakref
from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.core import plan as plans
from node_agent.core.engine.compiler import compile_plan
from node_agent.core.engine.handover import inherit_state
from node_agent.core.policies import policy as named
from node_agent.core.shedding.shedding_policies import draw
from node_agent.wire.overload_message import check as check_plan
from protos.records import (
    LOST,
    POLICY_DROP_TAIL,
    POLICY_FRONT,
    POLICY_RANDOM,
    POLICY_WINDOW,
    POLICY_WINDOW_AWARE,
    SHED_POLICIES,
    Shed,
)
from tests.node_agent.core.simulated.shedding_node import (
    ADDS,
    EPOCH,
    FILTER,
    FROM_NS,
    MS,
    POLICIES,
    SECOND,
    Node,
    Offer,
    Setting,
    check,
    plan_of,
    share,
)
from tests.sampling import examples
from tests.sentences import Wording
from tests.traces import of

SAID = Wording("deploy", "sheddings")

WINDOW = plans.Window("time", SECOND, SECOND, 0, ((1, 0),), useful_ns=SECOND, wait_ns=SECOND)


@pytest.mark.parametrize("load", [1.1, 1.3, 1.6])
def test_window_aware_gives_nearly_what_any_policy_can(load: float) -> None:
    """Z = 5, H = 4, L = 5 s; every result is exact (`share` checks it)."""
    part, best, _ = share(load, "window-aware", 120, 1)
    assert part >= best - 0.05


@pytest.mark.parametrize(("load", "most", "least"), [(2.0, 3000, 0.13), (1.3, 300, 0.45)])
def test_window_aware_holds_beyond_its_design(load: float, most: int, least: float) -> None:
    """A load of which a window takes all there is, and a queue that holds less than one. The optimum of the runs (see
    `infra.bench.shedding.window_shedding`) is 0.21 and 0.52."""
    part, _, _ = share(load, "window-aware", 100, 1, most=most)
    assert part >= least


def test_below_a_load_of_one_nothing_is_shed() -> None:
    for policy in POLICIES:
        part, _, run = share(0.8, policy, 30, 1, 20 * MS)
        assert part == 1 and run.loaded.shedders[0].shed == 0
        assert abs(run.loaded.shedding_counts()["windows.W0.load_ppm"] - 800_000) < 150_000


def seqs(node: Node, policy: int, unit: int = ADDS) -> list[int]:
    """Numbers that were shed at that unit, in the order of their facts."""
    return [each.seq for each in of(Shed, node.run.records) if (each.policy, each.unit) == (policy, unit)]


def burst(count: int, at_ns: int = FROM_NS + MS) -> list[Offer]:
    """So many at once, nearly."""
    return [Offer(at_ns + i) for i in range(count)]


def test_drop_tail_holds_as_many_as_it_may() -> None:
    node = Node(setting := Setting((WINDOW,), "drop-tail", 10 * MS, most=5))
    check(setting, node.play(burst(10)))
    assert seqs(node, POLICY_DROP_TAIL) == [6, 7, 8, 9], "the first runs at once, five wait"


def test_front_takes_the_oldest_in_one_run() -> None:
    node = Node(setting := Setting((WINDOW,), "front", 100 * MS, most=10, target_ns=60 * SECOND))
    check(setting, node.play(burst(40) + burst(1, FROM_NS + 600 * MS)))
    gone = seqs(node, POLICY_FRONT)
    assert gone == list(range(gone[0], gone[0] + len(gone))) and gone[0] == 5, "four have run, the fifth runs"
    assert len(gone) == 40 - 5 - 10, "what is above the queue's limit, at the heartbeat after the first period"


def test_random_is_the_same_for_the_same_journal() -> None:
    offers = [Offer(FROM_NS + i * 5 * MS) for i in range(600)]
    runs = []
    for _ in range(2):
        node = Node(setting := Setting((WINDOW,), "random", 10 * MS, target_ns=SECOND // 10))
        check(setting, node.play(offers))
        runs.append(node.run.facts.data())
    assert runs[0] == runs[1] and len(seqs(node, POLICY_RANDOM)) > 100


def test_draws_are_spread_evenly() -> None:
    counts = Counter(draw(1, 2, seq) * 10 // 1_000_000 for seq in range(20_000))
    assert sorted(counts) == list(range(10)) and max(counts.values()) < 2200 and min(counts.values()) > 1800
    assert len({draw(source, epoch, 7) for source in range(10) for epoch in range(10)}) == 100


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("order", ["edf", "edf-e2e", "slack", "pqed", "bts", "edf-op"])
def test_under_every_kind_of_queue(policy: str, order: str) -> None:
    """Heaps, ranks, units that are stayed with, batches that are not ripe, instances that yield."""
    batch = 4 if order == "edf" else 1
    window = replace(WINDOW, hop=SECOND // 2)
    node = Node(setting := Setting((window,), policy, 10 * MS, 0, 2 * MS, most=30, order=order, batch=batch))
    random, at_ns, offers = Random(5), FROM_NS, list[Offer]()
    for _ in range(500):
        at_ns += random.randint(0, 16 * MS)
        offers.append(Offer(at_ns, passes=random.random() < 0.9))
    check(setting, node.play(offers))
    shed = seqs(node, SHED_POLICIES.index(policy), FILTER) + seqs(node, SHED_POLICIES.index(policy))
    assert shed and len(shed) < 400


def test_units_beside_each_other_get_the_same_tuples() -> None:
    """Two queries with different windows over one stream; a tuple costs both."""
    second = replace(WINDOW, length=2 * SECOND, hop=SECOND // 2)
    offers = [Offer(FROM_NS + i * 7 * MS) for i in range(1500)]
    for policy in POLICIES:
        node = Node(setting := Setting((WINDOW, second), policy, 5 * MS, most=200, target_ns=SECOND // 4))
        run = node.play(offers)
        check(setting, run)
        number = SHED_POLICIES.index(policy)
        first, other = seqs(node, number, ADDS), seqs(node, number, ADDS + 1)
        if policy != "front":  # which takes what is still queued in both
            assert first == other and first
        assert set(first) | set(other) and run.loaded.shedders[0].offered == len(offers)
        assert abs(run.loaded.shedders[0].backlog.load_ppm - 1_000_000 * 10 // 7) < 100_000


def test_ranges_wait_for_the_next_survivor_or_a_heartbeat() -> None:
    """A run that was shed is one mark, and windows hear of it at the next heartbeat at the latest."""
    node = Node(Setting((WINDOW,), "drop-tail", 10 * MS, most=5))
    told: list[tuple[int, int, int]] = []
    windowed = node.run.loaded.windows[0]
    lost = windowed.state.intake.lost

    def spy(source: int, at_ns: int, epoch: int, numbers: tuple[int, int], *rest: object) -> None:
        told.append((at_ns - FROM_NS, *numbers))
        lost(source, at_ns, epoch, numbers, *rest)  # type: ignore[arg-type]

    windowed.state.intake.lost = spy  # type: ignore[assignment]
    node.play([*burst(10), Offer(FROM_NS + 12 * MS), *burst(8, FROM_NS + 13 * MS)])
    assert told[0] == (12 * MS, 6, 9) and told[1] == (node.setting.beat_ns, 11, 18)


def test_the_gap_and_the_cost_are_measured() -> None:
    """Declared 1 ms, really 10 ms: `window-aware` sees the overload all the same."""
    setting = Setting((WINDOW,), "window-aware", 10 * MS, declared_ns=MS)
    node = Node(setting)
    backlog = node.run.loaded.shedders[0].backlog
    assert backlog.load.cost_ns == MS
    check(setting, node.play([Offer(FROM_NS + i * 5 * MS) for i in range(2000)]))
    assert backlog.load.cost_ns == 10 * MS and backlog.load.gap_ns == 5 * MS and backlog.load_ppm == 2_000_000
    assert seqs(node, POLICY_WINDOW_AWARE)


window = st.builds(
    plans.Window,
    kind=st.sampled_from(["time", "time", "count"]),
    length=st.integers(1, 20),
    hop=st.integers(1, 12),
    source=st.just(0),
    feeds=st.just(((1, 0),)),
    lateness_ns=st.sampled_from([0, 0, 20, 100]),
    first=st.booleans(),
    useful_ns=st.sampled_from([0, 200, 1000]),
    wait_ns=st.sampled_from([100, 1000]),
)


@settings(max_examples=examples(60, 4), deadline=None)
@given(
    st.lists(window, min_size=1, max_size=3), st.sampled_from(POLICIES), st.integers(0, 2**32), st.booleans(),
    st.sampled_from(["edf", "edf-e2e", "bts1"]),
)  # fmt: skip
def test_whatever_is_shed_no_result_lacks_a_tuple(
    windows: list[plans.Window], policy: str, seed: int, filtered: bool, order: str
) -> None:
    """Random windows, sources, bursts, origins out of order: what is given is exact, and every tuple ends once."""
    random = Random(seed)
    count = random.choice((1, 1, 2))
    made = []
    for each in windows:
        by_time = each.kind == "time"
        feeds = tuple((i + 1, 0) for i in range(count)) if by_time and random.random() < 0.7 else ((1, 0),)
        unit_ns = 50 * MS if by_time else 1
        useful_ns, wait_ns, late_ns = each.useful_ns * MS, each.wait_ns * MS, each.lateness_ns * MS
        made.append(
            replace(
                each, length=each.length * unit_ns, hop=each.hop * unit_ns, feeds=feeds, useful_ns=useful_ns,
                wait_ns=wait_ns, lateness_ns=late_ns if by_time else 0,
            )
        )  # fmt: skip
    age_ns = random.choice((0, 30, 100)) * MS
    setting = Setting(
        tuple(made), policy, random.choice((5, 10, 20)) * MS, MS, random.choice((1, 5)) * MS if filtered else 0,
        count, random.choice((5, 50, 3000)), 50 * MS, 100 * MS, 20 * MS, age_ns, order,
    )  # fmt: skip
    at_ns, offers = FROM_NS, list[Offer]()
    for _ in range(200):
        at_ns += random.choice((0, 1, 5, 10, 20)) * MS + random.randint(0, 999)
        offers.append(Offer(at_ns, random.randint(0, age_ns), random.randint(1, count), random.random() < 0.8))
    node = Node(setting)
    check(setting, node.play(offers))
    assert set(node.engine.ledger.shed_by) <= {SHED_POLICIES.index(policy), POLICY_WINDOW, 1}


def test_a_new_plan_goes_on_with_what_is_known_and_waits() -> None:
    """What was measured, what was decided, and the ranges that wait at the doors."""
    for policy in POLICIES:
        setting = Setting((WINDOW,), policy, 10 * MS, most=20, target_ns=SECOND // 10, beat_ns=10 * SECOND)
        node = Node(setting)
        run = node.play([Offer(FROM_NS + i * 5 * MS) for i in range(1000)])
        before = run.loaded.shedders[0]
        pending = set(before.entries[0].pending)
        plan = plan_of(replace(setting, declared_ns=MS))
        calls = {each.operator_id: (each.call, each.plain) for each in run.loaded.steps}
        new = compile_plan(replace(plan, epoch=2), calls, node.engine.policy)
        assert new.shedders[0].backlog.load.cost_ns == MS
        inherit_state(new, run.loaded)
        after = new.shedders[0]
        assert after.backlog.load.cost_ns == 10 * MS and after.backlog.load.gap_ns == 5 * MS
        assert after.counts() == before.counts() and after.due_ns == before.due_ns
        assert after.entries[0].pending == pending and not before.entries[0].pending
        lineage = (1, EPOCH, 1000, 0, FROM_NS + 5 * SECOND, FROM_NS + 5 * SECOND)
        now = (FROM_NS + 5 * SECOND, lineage, before.backlog.load)
        assert before.rule.keeps(*now) == after.rule.keeps(*now)


def test_a_door_has_one_shedder() -> None:
    plan = plan_of(Setting((WINDOW,), "front", filter_ns=MS))
    twice = replace(plan, sheddings=(*plan.sheddings, replace(plan.sheddings[0], policy="random", units=(ADDS,))))
    check_plan(plan)
    with SAID.refuses("two_sheddings q"):
        check_plan(twice)
    calls = {each.operator_id: (each.call, each.plain) for each in Node(Setting((WINDOW,), None)).run.loaded.steps}
    with SAID.refuses(f"two_sheddings unit {ADDS}", kind=ValueError):
        compile_plan(twice, {FILTER: (id, True), **calls}, named("edf"))


@pytest.mark.parametrize("policy", POLICIES)
def test_an_unloaded_plan_is_freed_without_the_garbage_collector(policy: str) -> None:
    node = Node(Setting((WINDOW,), policy, 10 * MS, filter_ns=MS, most=5))
    node.play(burst(20))
    loaded, windowed = node.run.loaded, node.run.loaded.windows[0]
    seen = [weakref.ref(each) for each in (loaded.shedders[0], windowed.state.store.aggregate)]
    node.engine.unload(loaded, node.now_ns)
    gc.disable()
    try:
        loaded.release_resources()
        del node, loaded, windowed
        assert [each() for each in seen] == [None, None]
    finally:
        gc.enable()


def test_before_a_join_by_lineage_each_number_is_told_at_once() -> None:
    """Both branches of a join are guarded on one stream: a tuple goes on to both or to none, and no join waits."""
    setting = Setting((WINDOW,), "drop-tail", 10 * MS, most=5)
    plan = plan_of(setting)
    join = replace(plan.operators[0], inputs=(12, 13), join=True, window=None, name="J", id=14, output=14, run="join")
    add = replace(plan.operators[0], inputs=(14,))
    branches = [plans.Operator(number, f"B{number}", "keep", (1,), number, 10 * MS) for number in (12, 13)]
    sub_ns = 10 * SECOND
    plan = replace(
        plan,
        streams=(*plan.streams, *(plans.Stream(i, f"B{i}", "json", marked=True, counted=True) for i in (12, 13, 14))),
        operators=(*branches, join, add, *plan.operators[1:]),
        units=(
            *(plans.Unit(number, (number,), sub_ns, sub_ns, (number,)) for number in (12, 13, 14)), *plan.units,
        ),
        sheddings=(replace(plan.sheddings[0], units=(12, 13), path=(12, 13, 14, ADDS)),),
    )  # fmt: skip
    node = Node(setting, plan=plan)
    node.costs |= {12: 10 * MS, 13: 10 * MS, 14: MS}
    run = node.play(burst(20))
    assert seqs(node, POLICY_DROP_TAIL, 12) == seqs(node, POLICY_DROP_TAIL, 13) != []
    assert run.loaded.waiting == 0 and not run.loaded.shedders[0].entries[0].pending
    assert [each for each in run.records if each.kind == LOST] == []
    assert {each.window for each in run.given} == {1001, 1002}, "the first one lacks what was shed"
