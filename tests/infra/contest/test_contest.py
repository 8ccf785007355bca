"""The contest's ways: what each plan is, what its limit lets in, and what its intervals are."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest

from infra.contest.__main__ import Turn, results
from infra.contest.contest_query import CHAIN, Traffic
from infra.contest.encounter_journal import ENCOUNTERS, EncounterJournal, Ended, read_encounters
from infra.contest.live_encounter import as_slow
from infra.contest.live_twins import Twins, sums
from infra.contest.outcomes import paired, summed, wilson
from infra.contest.planned_ways import OURS, SQPR, WAYS, PlannedWay, planned
from node_agent.core.shedding.memory_limit import JOB_BYTES, size_estimate
from protos.vehicle_pb2 import Cpm
from sim_vehicles.contest.contest_results import PUBLISHED, read_results
from sim_vehicles.contest.encounter_run import Outcome, PlayedEncounter
from sim_vehicles.contest.encounter_scene import encounters
from sim_vehicles.encounter.brake import AUTO
from sim_vehicles.operators.installed import operators_of_vehicles

SOME = Traffic(200.0, dict.fromkeys(CHAIN, 0.9) | {"O3": 0.5}, JOB_BYTES + size_estimate(Cpm(station=1)))
LIMITED, ONE_NODE = (
    next(way for way in WAYS if way.name == name) for name in ("ours, not guaranteed", "EDF on one node")
)
REGISTRY = operators_of_vehicles()


@cache
def plan(name: str, load: float) -> PlannedWay:
    """Of a way, for traffic that is made up."""
    return planned(next(way for way in WAYS if way.name == name), SOME, load)


@pytest.mark.soak
def test_every_output_of_the_guaranteed_way_has_a_bound_within_its_deadline() -> None:
    for load in (0.5, 1.2):
        made = plan(OURS.name, load)
        assert all(claim.guaranteed for claim in made.plan.guarantee.values())
        assert made.cost_scale == 1 and made.per_span is not None


def test_the_limit_by_value_lets_in_what_the_nodes_can_do() -> None:
    for load in (0.5, 1.2):
        per_span = plan(LIMITED.name, load).per_span
        assert per_span is not None
        assert (per_span >= SOME.v2v_per_s / 10) == (load < 0.8)


def test_all_ways_meet_the_same_load() -> None:
    """An operator costs the same as it runs, under each plan."""
    costs = {
        name: round(made.cost_scale * made.plan.graph.operators["O2"].cost_ns / 1e3)
        for name in (LIMITED.name, SQPR.name, ONE_NODE.name)
        for made in (plan(name, 1.2),)
    }
    assert max(costs.values()) - min(costs.values()) <= 3, costs


def test_a_plan_for_slow_nodes_is_the_same_but_for_what_a_tuple_takes() -> None:
    made = plan(SQPR.name, 1.2).plan
    slow = as_slow(made, 900_000)
    assert slow.intact and slow.placement == made.placement
    assert {(each.emulate_cost_ns, each.cpu) for each in slow.cluster.nodes.values()} == {(900_000, 0), (900_000, 1)}
    assert {(each.emulate_cost_ns, each.cpu) for each in slow.nodes.values()} == {(900_000, 0), (900_000, 1)}
    assert not made.nodes["a"].emulate_cost_ns, "the plan itself is as it was"


def test_twins_agree_where_both_crash_or_neither() -> None:
    ended = [(None, None), (10.0, 30.0), (10.0, None)]
    found = [Twins(n, 1.0, "ours", *each, 14.0, None if n else 13.99) for n, each in enumerate(ended)]
    assert [each.agree for each in found] == [True, True, False]
    assert sums(found) == ["ours: 2 of 3 agree, live warnings 10.0 ms later (median; 10.0 to 10.0)"]


def test_of_each_load_a_fifth_is_run_every_way_and_the_rest_but_two() -> None:
    few = [sum(Turn(place, one).has(way) for way in WAYS) for place, one in zip(range(40), encounters(5), strict=False)]
    assert few == ([len(WAYS)] * 4 + [len(WAYS) - 2] * 16) * 2


def test_full_queues_of_drop_tail_hold_what_both_nodes_work_on_within_the_deadline() -> None:
    """0.3 s of what comes at a load of 1: 60 tuples."""
    memory_bytes = plan("SQPR + FIFO, drop-tail", 1.0).plan.nodes["a"].memory_bytes
    assert 59 <= memory_bytes / SOME.queued_bytes <= 61


def test_edf_on_one_node_has_all_operators_there() -> None:
    made = plan(ONE_NODE.name, 0.5)
    assert set(made.plan.placement.values()) == {"a"}


def test_an_encounter_alone_ends_well_under_each_way_and_badly_where_nobody_warns() -> None:
    """Nobody else speaks, so no way has a load to bear; the warning comes as fast as operators cost."""
    one = next(each for each in encounters(5) if each.first_sight_s > 3.5 and each.loss < 0.1)
    played = PlayedEncounter(one, None, AUTO)
    limit = played.at_once(REGISTRY)
    assert not limit.crashed and limit.commanded_s is not None
    for name in (OURS.name, SQPR.name):
        made = plan(name, 0.5)
        ended = played.under(made.plan, REGISTRY, made.cost_scale)
        assert not ended.crashed and not ended.failures
        assert ended.commanded_s is not None and 0 < ended.commanded_s - limit.commanded_s < 1.0


def test_the_same_encounter_under_the_same_plan_ends_the_same() -> None:
    one, made = next(encounters(6)), plan(SQPR.name, 0.5)
    ends = [PlayedEncounter(one, None, AUTO).under(made.plan, REGISTRY, made.cost_scale) for _ in range(2)]
    assert ends[0] == ends[1]


@pytest.mark.parametrize(("hits", "n"), [(0, 20), (1, 20), (9, 125), (125, 125), (60, 125)])
def test_the_interval_of_a_share_is_wilsons(hits: int, n: int) -> None:
    """Its ends are the shares of which what was found is 1.96 standard deviations away."""
    found = wilson(hits, n)
    for end in (found.low, found.high):
        away = abs(hits / n - end)
        assert away == pytest.approx(1.959964 * (end * (1 - end) / n) ** 0.5, abs=1e-6)
    assert found.low <= hits / n <= found.high


def test_intervals_hold_what_they_are_of_about_as_often_as_they_say(seed: int) -> None:
    chance = random.Random(seed)
    held = 0
    for _ in range(300):
        found = wilson(sum(chance.random() < 0.2 for _ in range(125)), 125)
        held += found.low <= 0.2 <= found.high
    assert held >= 300 * 0.88


def test_sums_know_no_crash_and_all_crashes() -> None:
    none, every = summed([None] * 10), summed([20.0, 30.0, 40.0])
    assert (none.crashes, none.impact_kmh, none.speed_kmh.value) == (0, None, 0)
    assert every.impact_kmh is not None and (every.share.value, every.impact_kmh.value) == (1, 30)
    assert none.share.apart_from(every.share)


def test_an_outcome_says_how_fast_in_kmh() -> None:
    assert Outcome(None, 10.0).impact_kmh == 36


def test_pairs_count_who_crashed_alone_and_how_likely_that_is() -> None:
    first, second = [None, 1.0, None, 2.0, None, None], [3.0, 1.0, 4.0, None, 5.0, None]
    found = paired(first, second)
    assert (found.both, found.only_first, found.only_second) == (1, 1, 3)
    assert found.by_chance == pytest.approx(2 * (1 + 4) / 16)
    assert paired([None] * 3, [None] * 3).by_chance == 1


def test_a_journal_that_was_broken_off_has_what_was_whole_and_goes_on(tmp_path: Path) -> None:
    one, other = (Ended(n, 0.5, {"ours": None, "theirs": 30.5}, {"ours": 1.0, "theirs": None}) for n in (1, 2))
    journal = EncounterJournal(tmp_path)
    assert list(journal.read()) == []
    journal.add(one)
    (path,) = tmp_path.iterdir()
    with path.open("a") as file:
        file.write('{"number": 3, "lo')
    assert list(EncounterJournal(tmp_path).read()) == [one]
    journal.add(other)
    assert list(EncounterJournal(tmp_path).read()) == [one, other]


def test_what_is_published_are_the_sums_of_the_published_encounters() -> None:
    published = read_results(PUBLISHED)
    again = results(list(read_encounters(ENCOUNTERS)))
    assert again.rows == published.rows and again.encounters == published.encounters
