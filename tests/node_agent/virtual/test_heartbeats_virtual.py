"""Heartbeats in virtual time: how often, what they say, and that a run ends."""

from typing import Any

import pytest

from node_agent.core import plan as core
from node_agent.core.engine.engine import Engine
from node_agent.core.facts import MemoryFacts
from node_agent.core.model import CompiledPlan
from node_agent.core.policies import policy
from node_agent.core.punctuation import ABSENCE, Progress, Removal
from node_agent.virtual.cluster.heartbeat_schedule import Heartbeats, tail_ns
from node_agent.virtual.cluster.link import Cable, Ends, Link
from node_agent.virtual.event_queue import ADMITTED, ARRIVED, BEAT, DISPATCHED, EXPIRED, Events
from protos import records

MS = 1_000_000
Said = tuple[int, str, int, int]  # instant, source, upto, first


class Told:
    """A node that notes heartbeats."""

    def __init__(self) -> None:
        self.said: list[Said] = []
        self.under: list[CompiledPlan] = []
        self.looked: list[int] = []

    def beat(self, at_ns: int, loaded: CompiledPlan, source: core.Source, upto: int, first: int) -> None:
        self.under.append(loaded)
        self.said.append((at_ns, source.name, upto, first))

    def look(self, at_ns: int) -> None:
        self.looked.append(at_ns)


class Nothing:
    def send(self, *given: Any) -> None:
        raise AssertionError

    def deliver(self, *given: Any) -> None:
        raise AssertionError


def loaded(epoch: int = 1, beat_ns: int = 10 * MS) -> CompiledPlan:
    """A plan with a source that beats, and one that does not."""
    plan = core.Plan(
        "q", "a", 0, 1, epoch, "fifo", 1,
        streams=(core.Stream(1, "s", "json"), core.Stream(2, "t", "json")),
        sources=(core.Source(1, "s", 1, 5 * MS, beat_ns=beat_ns), core.Source(2, "t", 2)),
    )  # fmt: skip
    return Engine(policy("fifo"), MemoryFacts(), Nothing()).load(plan, {})


def test_a_source_beats_at_the_commit_and_every_beat_until_nothing_can_be_in_a_window() -> None:
    events, node, numbers = Events(1000 * MS), Told(), {"s": 0}
    beats = Heartbeats(events, {"a": node}, lambda name: numbers[name], 25 * MS)
    beats.committed(1000 * MS, "a", loaded())
    beats.extend(1012 * MS)

    def admit(at_ns: int, _: Any) -> None:
        numbers["s"] += 1

    events.at(1012 * MS, ADMITTED, admit)
    events.run()
    assert node.said == [
        (1000 * MS, "s", 1, 1), (1010 * MS, "s", 1, 1), (1020 * MS, "s", 2, 1), (1030 * MS, "s", 2, 1),
        (1040 * MS, "s", 2, 1),
    ]  # fmt: skip
    assert beats.until_ns == 1037 * MS


def test_they_go_on_when_something_is_admitted_later_and_windows_are_looked_at_again() -> None:
    events, node, numbers = Events(), Told(), {"s": 0}
    beats = Heartbeats(events, {"a": node}, lambda name: numbers[name], 15 * MS)
    beats.committed(0, "a", loaded())
    beats.extend(0)
    events.at(100 * MS, ADMITTED, lambda at_ns, _: beats.extend(at_ns))
    events.run()
    assert [at_ns // MS for at_ns, *_ in node.said] == [0, 10, 20, 110, 120]
    assert node.looked == [0, 100 * MS]


def test_another_plan_hears_from_its_first_number_on_and_the_old_one_for_the_last_time() -> None:
    events, node, numbers = Events(), Told(), {"s": 0}
    beats = Heartbeats(events, {"a": node}, lambda name: numbers[name], 15 * MS)
    first, second = loaded(1), loaded(2)
    beats.committed(0, "a", first)
    beats.extend(0)

    def change(at_ns: int, _: Any) -> None:
        numbers["s"] = 7
        beats.committed(at_ns, "a", second)

    events.at(15 * MS, ADMITTED, change)
    events.run()
    said = [(at_ns // MS, upto, low) for at_ns, _, upto, low in node.said]
    assert said == [(0, 1, 1), (10, 1, 1), (15, 8, 1), (15, 8, 8), (25, 8, 8)]
    assert node.under == [first, first, first, second, second]


def test_a_very_long_window_does_not_make_a_run_endless() -> None:
    events, node = Events(), Told()
    beats = Heartbeats(events, {"a": node}, lambda name: 0, 10**18)
    beats.committed(0, "a", loaded())
    beats.extend(0)
    events.run()
    assert 100_000 <= len(node.said) <= 100_003


def test_the_tail_is_the_longest_that_windows_may_have_to_do_with_a_tuple() -> None:
    window = core.Window("time", 400 * MS, 100 * MS, 2, ((1, 0),), 30 * MS, useful_ns=200 * MS, wait_ns=50 * MS)
    plan = core.Plan(
        "q", "a", 0, 1, 1, "fifo", 1,
        streams=(core.Stream(1, "s", "json", deadline_ns=7 * MS),),
        sources=(core.Source(1, "s", 1, 5 * MS, beat_ns=10 * MS),),
        operators=(
            core.Operator(1, "W.add", "aggregate", (1,), 2, MS, window=window),
            core.Operator(2, "J", "join", (1, 3), 4, MS, join=True),
        ),
        peers=(core.Peer(1, "b", 3 * MS),),
    )  # fmt: skip
    joins = 1000 + 2 * 7
    assert tail_ns([plan], None, 0) == (400 + 100 + 30 + 200 + 50 + joins + 2 * 10 + 5 + 3) * MS
    assert tail_ns([plan], 0, 9 * MS) == (400 + 100 + 30 + 200 + 50 + joins + 2 * 10 + 9) * MS


def test_of_one_instant_admissions_come_before_heartbeats_and_what_is_overdue_before_a_choice() -> None:
    assert ADMITTED < BEAT < ARRIVED < EXPIRED < DISPATCHED


@pytest.mark.parametrize("mark", [ABSENCE, Removal(3), Progress(1)])
def test_marks_cross_a_link_without_facts_and_without_taking_time_to_send(mark: Any) -> None:
    events, came = Events(), []
    ends = Ends(0, 1, MemoryFacts(), MemoryFacts())
    link = Link(
        events, ends, Cable(2 * MS, 1000, loss=0.99),
        lambda at_ns, epoch, stream, lineage, payload: came.append((at_ns, payload)),
    )  # fmt: skip
    link.send(0, loaded(), 1, (1, 1, 3, 0, 0, 0), mark)
    events.run()
    assert came == [(2 * MS, mark)]
    assert list(records.unpack_records(ends.sender_facts.data())) == []  # type: ignore[attr-defined]
    assert list(records.unpack_records(ends.receiver_facts.data())) == []  # type: ignore[attr-defined]
