"""What the engine writes down, method by method, and that the counts are the records'."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.core.engine.ledger import Ledger
from node_agent.core.facts import HEADED, MemoryFacts, heading
from node_agent.core.lineage import Lineage
from protos import records
from tests.node_agent.core.engine.compiled import diamond

LINEAGE: Lineage = (1, 2, 33, 4, 50, 60)


def test_each_end_is_a_record_and_a_count() -> None:
    loaded, facts = diamond(), MemoryFacts()
    unit, route, ledger = loaded.units[0], loaded.source_routes[1], Ledger(facts)
    ledger.admitted(70, route, LINEAGE, 12, 69)
    ledger.shed(71, unit, LINEAGE, records.POLICY_LATE)
    ledger.shed(71, unit, LINEAGE, records.POLICY_LATE, 5)
    ledger.shed_arrival(72, route, LINEAGE, records.POLICY_RATE)
    ledger.shed_window(73, route, LINEAGE)
    ledger.lost(74, unit, LINEAGE, records.CAUSE_STOPPED, 70, 3, 2)
    ledger.lost_arrival(75, route, LINEAGE, records.CAUSE_QUEUE_FULL)
    ledger.ran_instead(76, unit, 1, LINEAGE)
    ledger.merged(77, unit, LINEAGE, (9, 8, 7, 0, 0, 0), absent=True)
    ledger.ran(unit.flags, unit.id, LINEAGE, 1, 2, 3, 4, 5, 6)
    ledger.delivered(78, route, loaded.plan.outputs[0], LINEAGE)
    found = list(records.unpack_records(facts.data()))
    assert {(each.source, each.epoch, each.seq) for each in found} == {(1, 2, 33)}
    assert [each.name for each in found] == [
        "ADMITTED", "SHED", "SHED", "SHED", "ADMITTED", "SHED", "LOST", "LOST", "DEGRADED", "MERGED", "RAN", "OUTPUT",
    ]  # fmt: skip
    shed = Counter(each.policy for each in found if isinstance(each, records.Shed))
    lost = Counter(each.cause for each in found if isinstance(each, records.Lost))
    assert (shed, lost, ledger.degraded) == (ledger.shed_by, ledger.lost_by, {"O1": 1})
    assert (unit.shed, unit.lost, route.shed, route.lost, route.admitted, facts.admitted) == (2, 1, 1, 1, 1, 2)
    assert facts.latencies_ns == 2 * 78 - 50 - 60


@settings(max_examples=50, deadline=None)
@given(
    st.tuples(*(st.integers(0, 255),) * 2, *(st.integers(0, 65_535),) * 3, st.integers(0, 2**64 - 1)),
    st.tuples(*(st.integers(-(2**63), 2**63 - 1),) * 5, st.integers(0, 2**64 - 1)),
)
def test_a_record_that_begins_with_one_number_has_the_same_bytes(
    of: tuple[int, int, int, int, int, int], words: tuple[int, int, int, int, int, int]
) -> None:
    kind, flags, ref, *lineage = of
    assert HEADED.pack(heading(kind, flags, ref), *lineage, *words) == records.RECORD.pack(*of, *words)
