"""What a status says of outputs, units and sources: as the trace has it, and as the report would judge it."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.control.deployment import Deployment, State
from node_agent.control.service import status_reply
from node_agent.host import ipc
from node_agent.host.clock import now_ns
from node_agent.link.clock_offset import FAR_NS
from node_agent.operators.registry import Registry
from node_agent.runtime import status
from node_agent.runtime.in_process import in_process
from node_agent.runtime.links.delivery_counts import DeliveryCounts
from node_agent.runtime.loop import Runtime
from node_agent.sdk import operator
from node_agent.wire.plan_message import core_plan
from protos.latency import Verdict, verdict
from protos.records import CAUSE_OPERATOR_ERROR, LOST, RAN, SHED, Lost, Output, unpack_records
from tests.node_agent.live import HASH, chain_plan

SECOND = 10**9


@given(st.integers(-(1 << 20), FAR_NS - 1), st.integers(0, FAR_NS))
def test_each_result_has_one_verdict_and_one_bucket(most_ns: int, deadline_ns: int) -> None:
    counts = DeliveryCounts()
    counts.add(most_ns, most_ns - 1, deadline_ns)
    assert (counts.met, counts.late, counts.undecidable) == (
        int(most_ns <= deadline_ns), int(most_ns - 1 > deadline_ns), int(most_ns == deadline_ns + 1)
    )  # fmt: skip
    ((upto_ns, results),) = counts.latencies()
    assert results == 1 and counts.worst_ns == max(0, most_ns)
    assert max(0, most_ns) <= upto_ns < max(4096, 1.25 * most_ns + 4096), "a quarter too long at most"


def test_buckets_ascend() -> None:
    counts = DeliveryCounts()
    for power in range(62):
        counts.add(1 << power, 0, SECOND)
    edges = [upto_ns for upto_ns, _ in counts.latencies()]
    assert edges == sorted(set(edges))


def test_a_latency_without_a_bound_is_only_undecidable() -> None:
    counts = DeliveryCounts()
    counts.add(FAR_NS + 5, 0, SECOND)
    assert (counts.met, counts.late, counts.undecidable, counts.worst_ns, list(counts.latencies())) == (0, 0, 1, 0, [])


@operator("test.picky", inputs={"value": "json"}, output="json")
def picky(value: Any) -> Any:
    """Filters 0, fails at 1."""
    if value == 1:
        raise ValueError(value)
    return value or None


def run(runtime: Runtime, values: list[Any], age_ns: int = 0, width_ns: int = 0) -> None:
    deployed = runtime.plans.committed
    assert deployed is not None
    seqs = runtime.context.seqs
    for value in values:
        seqs[1] = seq = seqs.get(1, 0) + 1
        at_ns = now_ns()
        lineage = (1, 1, seq, 0, at_ns - age_ns - width_ns, at_ns - age_ns)
        deployed.engine_slot.engine.admit(at_ns, deployed.loaded.source_routes[1], lineage, value, 0)
    while runtime.step(wait=False):
        pass


def test_outputs_units_and_sources_are_as_in_the_trace(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    registry = Registry(operators=[picky])
    plan = core_plan(chain_plan(run="test.picky", memory_bytes=1 << 20), 1, 1)
    with in_process(plan, tmp_path, registry) as runtime:
        run(runtime, [0, 1, 2, 3])
        run(runtime, [4, 5, 6], age_ns=2 * SECOND)
        run(runtime, [7, 8], width_ns=SECOND + SECOND // 2)
        (deployed,) = runtime.plans.by_hash.values()
        deployed.engine_slot.engine.admit(now_ns(), deployed.loaded.source_routes[1], (1, 1, 99, 0, 0, 0), 9, 0)
        deployed.engine_slot.engine.shed_queued(now_ns(), deployed.loaded.units[0], 1)
        found = status.rows(now_ns(), runtime.plans, runtime.outbox.delivery_counts)
        runtime.facts.publish()
        trace = list(unpack_records(runtime.facts.ring.take(1 << 24)))
        runtime.plans.count_policed(now_ns())
        counters = dict(runtime.shared.counters)
    kinds = Counter(record.kind for record in trace)
    ((name, deadline_ns, met, late, undecidable, worst_ns, latencies),) = found.outputs
    assert (name, deadline_ns, met, late, undecidable) == ("out", SECOND, 2, 3, 2)
    delivered = [record for record in trace if isinstance(record, Output)]
    assert worst_ns == max(record.at_ns - record.origin_lo_ns for record in delivered)
    assert sum(results for _, results in latencies) == len(delivered) == 7
    ((hash_, unit, operators, sub_deadline_ns, queued, runs, shed, lost, *timed),) = found.units
    assert (hash_, unit, operators, sub_deadline_ns) == (deployed.hash, 1, ("O1",), 10**8)
    assert (queued, runs, shed, lost) == (0, kinds[RAN], kinds[SHED], kinds[LOST]) == (0, 8, 1, 1)
    assert 1 <= timed[0] <= runs + lost and 0 < timed[3] <= timed[2] <= timed[1] <= timed[0] * timed[2]
    assert found.sources == ((deployed.hash, "in", 10, 0, 0, 0, 0),) and found.left_out == 0
    causes = [record.cause for record in trace if isinstance(record, Lost)]
    assert counters["lost.operator_error"] == 1 == causes.count(CAUSE_OPERATOR_ERROR)
    assert "raised" in capfd.readouterr().err


def test_what_a_message_cannot_hold_is_left_out_and_counted(tmp_path: Path) -> None:
    many = 3000
    ids = range(1, many + 1)
    streams = [{"id": i, "name": f"s{i}", "codec": "json", "deadline_ns": SECOND} for i in range(1, many + 2)]
    plan = chain_plan(
        streams=streams,
        operators=[{"id": i, "name": f"O{i}", "run": "pass", "inputs": [i], "output": i + 1} for i in ids],
        units=[
            {"id": i, "operators": [i], "sub_deadline_ns": 10**5 * i, "deadline_ns": SECOND, "exits": [i + 1]}
            for i in ids
        ],
        outputs=[{"id": 1, "name": "out", "stream": many + 1, "deadline_ns": SECOND}],
    )
    with in_process(core_plan(plan, 1, 1), tmp_path) as runtime:
        found = status.rows(now_ns(), runtime.plans, runtime.outbox.delivery_counts)
    assert found.outputs and found.sources and 100 < len(found.units) == many - found.left_out
    message = ipc.Status(1, 7, True, 0, 1, 0, 0, 0, 0, 0, (), {}, found.outputs, found.units, found.sources)
    assert len(ipc.encode(message)) < ipc.MOST_BYTES / 2 + 8192
    assert ipc.decode(ipc.encode(message)) == message


def test_an_agent_tells_the_figures_of_all_its_places() -> None:
    plan = Deployment(HASH, 1, State.COMMITTED, "q", (), (0, 1))
    counts = ((HASH, 1, 2, "q", 0, 0, 0),)
    output = ("out", 5, 3, 2, 1, 9, ((4, 1), (9, 5)))
    unit, source = (HASH, 1, ("O1", "O2"), 100, 1, 2, 3, 4, 5, 6, 7, 8, 9), (HASH, "in", 10, 2, 1, 4, 2)
    one = ipc.Status(1, 71, True, 0, 100, 10, 1, 5, 7, 9, counts, {}, (output,), (unit,), (source,), 64)
    two = ipc.Status(1, 72, False, 50, 100, 20, 2, 6, 8, 4, counts, {}, (), (unit, ("ee" * 32, *unit[1:])), (), 32)
    both = status_reply("a", [one, two], [plan])
    assert (both.rt, both.queue_limit_bytes, status_reply("a", [one], [plan]).rt) == (False, 96, True)
    (told_output,) = both.outputs
    assert (told_output.name, told_output.deadline_ns, told_output.met, told_output.late) == ("out", 5, 3, 2)
    assert [(each.most_ns, each.results) for each in told_output.latencies] == [(4, 1), (9, 5)]
    assert [list(each.operators) for each in both.plans[0].units] == [["O1", "O2"]] * 2, "of plans that it has"
    told_unit = both.plans[0].units[0]
    assert (told_unit.queued, told_unit.worst_ns, told_unit.unfused) == (1, 7, 9)
    told_source = both.plans[0].sources[0]
    assert (told_source.admitted, told_source.shed, told_source.refused, told_source.policed) == (10, 2, 4, 2)


def test_the_longest_of_late_is_forgotten(tmp_path: Path) -> None:
    with in_process(core_plan(chain_plan(), 1, 1), tmp_path) as runtime:
        (unit,) = next(iter(runtime.plans.by_hash.values())).loaded.units
    unit.record_response_time(30, 7 * SECOND)
    unit.record_response_time(20, 11 * SECOND)
    assert [unit.recent_ns(at * SECOND) for at in (11, 14, 15, 19, 20)] == [30, 30, 20, 20, 0]
    unit.record_response_time(10, 28 * SECOND)
    assert (unit.recent_ns(29 * SECOND), unit.recent_ns(90 * SECOND)) == (10, 0)
    assert (unit.timed, unit.timed_ns, unit.worst_ns) == (3, 60, 30)


@given(st.integers(-(1 << 62), 1 << 62), st.integers(0, 1 << 62), st.integers(1, 1 << 40))
def test_a_result_is_counted_as_reports_judge_it(most_ns: int, wide_ns: int, deadline_ns: int) -> None:
    counts = DeliveryCounts()
    counts.add(most_ns, most_ns - wide_ns, deadline_ns)
    found = {Verdict.MET: counts.met, Verdict.LATE: counts.late, Verdict.UNDECIDABLE: counts.undecidable}
    assert [each for each, number in found.items() if number] == [verdict(most_ns, most_ns - wide_ns, deadline_ns)]
