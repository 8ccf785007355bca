"""Refusals share records: the count stays exact, the records few, and nothing is told before it is written."""

from itertools import accumulate

from node_agent.core.facts import MemoryFacts
from node_agent.core.plan import Source
from node_agent.core.shedding.refusals import BURST_RECORDS, RECORD_NS, Refusals, age_refused
from protos.records import (
    REASON_AGE_UNKNOWN,
    REASON_FULL,
    REASON_FUTURE,
    REASON_TOO_OLD,
    REASON_WINDOWS_TOLD,
    REFUSED,
    Refused,
    unpack_records,
)  # fmt: skip
from tests.traces import of

SECOND = 10**9


def written(facts: MemoryFacts) -> list[Refused]:
    return of(Refused, unpack_records(facts.data()))


def test_refusals_of_one_reason_share_a_record_with_all_that_is_known_of_them() -> None:
    facts = MemoryFacts()
    refusals = Refusals(facts, epoch=7)
    for at_ns, age_ns in ((100, 30), (110, 50), (140, 40)):
        refusals.add(at_ns, 1, 3, REASON_TOO_OLD, age_ns, age_ns + 5)
    refusals.add(120, 1, 3, REASON_FULL, 0, 0)
    assert refusals.held
    refusals.settle(150)
    old, full = written(facts)
    assert (old.kind, old.flags, old.ref, old.source, old.epoch, old.seq) == (REFUSED, 1, 3, 3, 7, 0)
    assert (old.at_ns, old.reason, old.tuples, old.age_lo_ns, old.age_hi_ns, old.first_at_ns) == (
        140,
        REASON_TOO_OLD,
        3,
        30,
        55,
        100,
    )
    assert (full.reason, full.tuples, full.seq) == (REASON_FULL, 1, 3), "it follows the three before"
    assert not refusals.held


def test_a_flood_writes_a_thousand_records_a_second_and_counts_every_tuple() -> None:
    facts = MemoryFacts()
    refusals, told = Refusals(facts, 1), 0
    for step in range(100_000):  # ten a millisecond, a second in all, then some
        at_ns = SECOND + step * RECORD_NS // 10
        refusals.add(at_ns, 1, 1, REASON_FULL, 0, 0)
        refusals.settle(at_ns)
        told += not refusals.held
    refusals.write()
    records = written(facts)
    assert len(records) <= 10_000 + BURST_RECORDS + 1
    assert sum(record.tuples for record in records) == 100_000
    assert [record.seq for record in records] == [0, *accumulate(record.tuples for record in records)][:-1]
    assert told <= len(records), "nobody is told of what stands in no record"


def test_what_is_admitted_beside_them_waits_for_no_refusal() -> None:
    refusals = Refusals(MemoryFacts(), 1)
    for number in range(10 * BURST_RECORDS):
        refusals.add(number, 1, 1, REASON_FULL, 0, 0)
        refusals.settle(number)
    assert refusals.held and refusals.due_ns > number
    refusals.pressing = True
    refusals.settle(number)
    assert not refusals.held and not refusals.pressing


def test_an_age_is_refused_for_what_it_may_be_only_where_windows_are_made_of_it() -> None:
    source = Source(1, "radio", 1, max_age_ns=100)
    assert age_refused(source, False, 1000, 1001, 1001, None) == REASON_FUTURE
    assert age_refused(source, False, 1000, 0, 899, None) == REASON_TOO_OLD
    assert age_refused(source, False, 1000, 0, 900, None) == 0
    assert age_refused(source, True, 1000, 899, 950, None) == REASON_TOO_OLD
    assert age_refused(source, True, 1000, -(1 << 62), 950, None) == REASON_AGE_UNKNOWN, "send it again later"
    assert age_refused(source, True, 1000, -(1 << 62), 899, None) == REASON_TOO_OLD
    assert age_refused(source, True, 1000, 900, 950, 901) == REASON_WINDOWS_TOLD
    assert age_refused(source, True, 1000, 901, 950, 901) == 0
    assert age_refused(Source(1, "radio", 1), True, 1000, 0, 0, None) == 0, "any age is allowed"
