"""The deciding tuple's split and the nodes' rows, on traces of the virtual cluster whose times are known by hand."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings

from node_agent.virtual.run import simulate, write_run
from node_agent.virtual.scenario import Scenario
from protos import records as rec
from protos.plan_document import Plan
from protos.records import RECORD_BYTES, Record
from sim_vehicles.encounter.brake import AUTO
from sim_vehicles.encounter.judgement import Braking, Deciding
from sim_vehicles.inputs.stimuli import HeardMessage
from sim_vehicles.story.timeline.deciding_tuple import DecidingTuple
from sim_vehicles.story.timeline.gantt import gantt
from sim_vehicles.story.timeline.lineage_trace import MissingRecordError, shares
from sim_vehicles.story.timeline.run_trace import read_trace
from sim_vehicles.story.timeline.stage_times import StageTimes, explain, explain_lap
from tests import traces
from tests.sentences import Wording
from tests.sim_vehicles.replayed import JUDGED
from tests.simulation.planned_queries import MS, paper, planned
from tests.simulation.random_plans import documents, registry

SAID = Wording("explain", "timeline")

AGES = {"v2v": 100 * MS}
CHAIN = ("O3", "O4", *(f"O{n}" for n in range(7, 22)))


def run_of(plan: Plan, scenario: Scenario, directory: Path) -> Path:
    write_run(simulate(plan, scenario, registry()), directory)
    return directory


def told(seq: int, **more: Any) -> DecidingTuple:
    return DecidingTuple("v2v", 1, seq, 0, **more)


def explained(run: Path, deciding: DecidingTuple, delay_ns: int = 0) -> StageTimes:
    """With a brake that bites that much later."""
    return explain(read_trace(run), deciding, delay_ns=delay_ns)


def spent(run: Path, deciding: DecidingTuple, delay_ns: int = 0) -> list[tuple[str, str | None, str, int]]:
    """(stage, node, operators, ns) of every stage."""
    found = explained(run, deciding, delay_ns).stages
    return [(each.stage, each.node, " ".join(each.operators), each.ns) for each in found]


# -- the paper's plan, 1 ms per tuple and operator. V2V is admitted at 0, so O2 has done tuple k at k ms. Node b begins
# with the centre's tuples (2 ms each): with a link of 0 ms it takes up V2V at 2 ms, and runs 1 ms for each odd tuple
# (filtered) and 17 ms for each even one.


@pytest.mark.parametrize(("seq", "queue_b_ms"), [(2, 1), (20, 145)])
def test_the_papers_proposal_in_steps_of_1_ms(tmp_path: Path, seq: int, queue_b_ms: int) -> None:
    run = run_of(paper(20), Scenario(policy="edf", ages_ns=AGES, latency_ns=0), tmp_path / "run")
    assert spent(run, told(seq), delay_ns=200 * MS) == [
        ("sensing", "a", "", 100 * MS),
        ("queue", "a", "O2", (seq - 1) * MS),
        ("execution", "a", "O2", 1 * MS),
        ("link", "b", "", 0),
        ("queue", "b", " ".join(CHAIN), queue_b_ms * MS),
        *(("execution", "b", name, 1 * MS) for name in CHAIN),
        ("actuation", None, "", 200 * MS),
    ]
    found = explained(run, told(seq), 200 * MS)
    assert found.latency_ns == {2: 120 * MS, 20: 282 * MS}[seq] and found.uncertain_ns == 0
    assert [stage.shared_out for stage in found.stages if stage.stage == "execution"] == [False, *[True] * 17]


def test_a_link_of_2_ms_and_units_of_one_operator_each(tmp_path: Path) -> None:
    """Tuple 1 is at b after 3 ms, just when O6 has ended for the third time; tuple 2 comes when O3 has filtered it."""
    scenario = Scenario(policy="edf", ages_ns=AGES, latency_ns=2 * MS, burst={"v2v": 2, "sensor": 0})
    run = run_of(paper(20, units="operator"), scenario, tmp_path / "run")
    found = explained(run, told(2)).stages
    assert found is not None and not any(stage.shared_out for stage in found)
    by_stage = {kind: sum(each.ns for each in found if each.stage == kind) for kind in ("execution", "link")}
    assert by_stage == {"execution": 18 * MS, "link": 2 * MS}
    assert [list(each.operators) for each in found if each.stage == "execution"] == [["O2"], *([n] for n in CHAIN)]
    # only O2 waits, for tuple 1
    assert [each.ns for each in found if each.stage == "queue"] == [1 * MS, *[0] * 17]


TWO_NODES = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", memory: 64 MiB}
  b: {address: "127.0.0.1:7710", memory: 64 MiB}
links: [{between: [a, b], latency: 1 ms, bandwidth: 100 Mbit/s}]
operators: operators.json
security: insecure-loopback
"""

MIDDLE = """
shimekiri: 1
query: middle
sources:
  p: {at: a, type: json, arrival: {burst: 1, period: 1 s}}
operators:
  O1: {run: pass, in: p, cost: 2 ms}
  O2: {run: pass, in: O1, cost: 3 ms}
outputs:
  out1: {from: O1, at: a, deadline: 100 ms}
  out2: {from: O2, at: a, deadline: 100 ms}
"""

DIAMOND = """
shimekiri: 1
query: diamond
sources:
  p: {at: a, type: json, arrival: {burst: 1, period: 1 s}}
operators:
  O1: {run: pass, in: p, cost: 1 ms}
  O2: {run: pass, in: O1, cost: 7 ms}
  O3: {run: pass, in: O1, cost: 2 ms}
  O4: {run: join, in: [O2, O3], cost: 1 ms}
outputs:
  out: {from: O4, at: b, deadline: 100 ms}
"""


def json_told(output: str, ordinal: int = 0) -> DecidingTuple:
    return DecidingTuple(1, 1, 1, ordinal, output)


def test_an_output_from_the_middle_of_a_unit_counts_up_to_its_operator(tmp_path: Path) -> None:
    document = planned(MIDDLE, TWO_NODES)
    assert len(document.tasks["a"]) == 1
    run = run_of(document, Scenario(), tmp_path / "run")
    first, last = spent(run, json_told("out1")), spent(run, json_told("out2"))
    assert [each[2:] for each in first if each[0] == "execution"] == [("O1", 2 * MS)]
    assert [each[2:] for each in last if each[0] == "execution"] == [("O1", 2 * MS), ("O2", 3 * MS)]


def test_at_a_join_the_branch_that_came_last_is_followed(tmp_path: Path) -> None:
    """O2 at a takes 7 ms; O3 at b has long been there: it is not in the path."""
    document = planned(DIAMOND, TWO_NODES, {"O1": "a", "O2": "a", "O3": "b", "O4": "b"})
    run = run_of(document, Scenario(latency_ns=1 * MS), tmp_path / "run")
    assert [each for each in spent(run, json_told("out")) if each[3]] == [
        ("execution", "a", "O1", 1 * MS),
        ("execution", "a", "O2", 7 * MS),
        ("link", "b", "", 1 * MS),
        ("execution", "b", "O4", 1 * MS),
    ]


def test_a_batch_that_is_held_back_is_handover(tmp_path: Path) -> None:
    scenario = Scenario(policy="edf", batch="barrier", ages_ns=AGES, latency_ns=0, burst={"v2v": 4})
    run = run_of(paper(20, units="operator"), scenario, tmp_path / "run")
    found = spent(run, told(2))
    assert ("handover", "a", "O2", 2 * MS) in found  # done at 2 ms, the burst of four at 4 ms
    assert sum(each[3] for each in found) == explained(run, told(2)).latency_ns


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
@given(documents())
def test_the_stages_of_every_result_of_any_plan_add_up(tmp_path_factory: Any, document: Plan) -> None:
    run = run_of(document, Scenario(trials=2), tmp_path_factory.mktemp("any") / "run")
    trace = read_trace(run)
    for node in trace.incarnations:
        for result in traces.of(rec.Output, node.records()):
            source, epoch, seq, ordinal = result.source, result.epoch, result.seq, result.ordinal
            name = trace.plan.outputs[result.output][0]
            deciding = DecidingTuple(source, epoch, seq, ordinal, name)
            note(str(deciding))
            try:
                found = explain(trace, deciding)
            except MissingRecordError as error:
                # an instance of several operators that raises after an earlier one's output left: a LOST record
                assert error.mistake.code == "failed_instance"
                assert any(traces.of(rec.Lost, one.records()) for one in trace.incarnations)
                continue
            assert sum(stage.ns for stage in found.stages) == found.latency_ns
            assert all(stage.ns >= 0 for stage in found.stages)


# -- the age on admission


def test_the_age_is_split_by_what_the_scene_says_and_the_reaction_is_the_laps(tmp_path: Path) -> None:
    run = run_of(paper(20), Scenario(ages_ns=AGES, latency_ns=0), tmp_path / "run")
    message = HeardMessage(at_s=10.08, sent_s=10.05, station="E", object="X", measured_s=10.0)
    others = [replace(message, station="D"), replace(message, at_s=10.2), replace(message, measured_s=9.9)]
    lap = replace(
        JUDGED,
        brake=Braking(AUTO, 10.12, 10.32, None),
        deciding=Deciding(1, 1, 2, 0, "E", "X", 10.0, 10.12, (120 * MS, 120 * MS)),
    )
    found = explain_lap(read_trace(run), lap, [*others, message]).stages
    assert [(each.stage, each.ns / MS) for each in found[:3]] == [
        ("sensing", 50),
        ("channel", 30),
        ("sending", 20),
    ]
    assert (found[-1].stage, found[-1].ns) == ("actuation", 200 * MS)
    assert sum(each.ns for each in found) == 120 * MS + 200 * MS


def test_a_message_older_than_the_tuple_on_admission_is_not_believed(tmp_path: Path) -> None:
    run = run_of(paper(20), Scenario(ages_ns=AGES, latency_ns=0), tmp_path / "run")
    deciding = told(2, measured_s=10.0, at_s=10.2)
    found = explained(run, deciding).stages
    assert (found[0].stage, found[0].ns) == ("sensing", 100 * MS)


# -- two clocks


def rewritten(run: Path, node: str, change: Callable[[list[Record]], list[Record]], clock: str | None = None) -> None:
    """The node's segment with other records, and in another clock domain."""
    (directory,) = (run / "trace" / "raw" / node).iterdir()
    header, found = traces.read(directory)
    if clock is not None:
        header = header._replace(clock=clock)
    body = change(list(rec.unpack_records(b"".join(found))))
    traces.write(directory, header, [record.packed() for record in body])


AHEAD_NS = 7_000_000_123
INSTANTS = {  # of all others: at_ns
    rec.RAN: ("release_ns", "start_ns", "end_ns", "due_ns"),
    rec.OUTPUT: ("at_ns", "origin_lo_ns", "origin_hi_ns"),
}


def on_another_clock(half_ns: int, clocks: bool = True) -> Callable[[list[Record]], list[Record]]:
    def change(found: list[Record]) -> list[Record]:
        shifted = []
        for each in found:
            instants = INSTANTS.get(each.kind, ("at_ns",))
            record = each.changed(**{name: getattr(each, name) + AHEAD_NS for name in instants})
            if isinstance(record, rec.Output):
                lo_ns, hi_ns = record.origin_lo_ns - half_ns, record.origin_hi_ns + half_ns
                record = record.changed(origin_lo_ns=lo_ns, origin_hi_ns=hi_ns)
            shifted.append(record)
        first = shifted[0]
        clock = rec.Clock.make(
            flags=first.flags, at_ns=first.at_ns, offset_lo_ns=AHEAD_NS - 900, offset_hi_ns=AHEAD_NS + 1_100,
            rtt_ns=2_000,
        )  # fmt: skip
        return [first, clock, *shifted[1:]] if clocks else shifted

    return change


def test_between_clocks_the_link_is_what_the_offset_says_and_the_sum_stays_exact(tmp_path: Path) -> None:
    run = run_of(paper(20), Scenario(ages_ns=AGES, latency_ns=2 * MS), tmp_path / "run")
    before = spent(run, told(20))
    rewritten(run, "b", on_another_clock(1_000), clock="elsewhere")
    found = explained(run, told(20))
    assert found.uncertain_ns == 1_000
    assert [(s.stage, s.node, " ".join(s.operators), s.ns) for s in found.stages] == before
    shown = gantt(read_trace(run), told(20))
    assert shown.delivered_ns == found.latency_ns and not shown.unplaced
    o2 = next(row for row in shown.rows if row.is_deciding and row.node == "a")
    assert (o2.start_ns, o2.end_ns) == (119 * MS + 100, 120 * MS + 100)  # the middle of the offset is 100 ns off


def test_without_a_clock_record_the_split_says_so(tmp_path: Path) -> None:
    run = run_of(paper(20), Scenario(ages_ns=AGES), tmp_path / "run")
    rewritten(run, "b", on_another_clock(0, clocks=False), clock="elsewhere")
    with SAID.refuses("no_clock_record", kind=MissingRecordError):
        explained(run, told(2))
    assert gantt(read_trace(run), told(2)).unplaced == ("a",)


# -- what is missing


@pytest.mark.parametrize(
    ("node", "kind", "expected"),
    [
        ("a", rec.ADMITTED, "no_admitted_record a"),
        ("a", rec.RAN, "no_ran_record a"),
        ("a", rec.SENT, "no_sent_record a"),
        ("b", rec.RECEIVED, "no_received_record b"),
        ("b", rec.RAN, "no_ran_record b"),
        ("b", rec.OUTPUT, "no_output_record"),
    ],
)
def test_a_record_that_is_missing_is_named(tmp_path: Path, node: str, kind: int, expected: str) -> None:
    run = run_of(paper(20), Scenario(ages_ns=AGES), tmp_path / "run")
    rewritten(run, node, lambda found: [r for r in found if (r.kind, r.source, r.seq) != (kind, 1, 2)])
    with SAID.refuses(expected, kind=MissingRecordError):
        explained(run, told(2))


def test_damage_is_left_out_and_a_run_without_a_plan_is_refused(tmp_path: Path) -> None:
    run = run_of(paper(20), Scenario(ages_ns=AGES), tmp_path / "run")
    (path,) = (run / "trace" / "raw" / "a").glob("*/*.trace")
    path.write_bytes(path.read_bytes() + bytes(17))  # torn in a record
    path.with_name("0001.trace").write_bytes(b"no trace")
    assert explained(run, told(2)).stages
    assert ["0001.trace" in each for each in read_trace(run).damage] == [False, True]
    with SAID.refuses("no_lineage", kind=MissingRecordError):
        explained(run, DecidingTuple("nobody", 1, 1))
    (run / "plan.json").write_text("{")
    with SAID.refuses("plan.json:1 not_json"):
        read_trace(run)


# -- the rows


def test_the_rows_are_the_burst_of_the_deciding_tuple(tmp_path: Path) -> None:
    scenario = Scenario(policy="edf", ages_ns=AGES, latency_ns=0, bursts=3, phase_ns={"centre": 5 * MS})
    run = run_of(paper(20), scenario, tmp_path / "run")
    shown = gantt(read_trace(run), told(42))  # the second tuple of the third burst
    assert (shown.admitted_ns, shown.nodes, shown.left_out) == (100 * MS, ("a", "b"), 0)
    mine = [row for row in shown.rows if row.is_deciding]
    assert [(row.node, row.unit, row.start_ns, row.end_ns) for row in mine] == [
        ("a", "O2", 101 * MS, 102 * MS),
        ("b", "O3–O21", 102 * MS, 119 * MS),
    ]
    assert mine[0].lineage == ("v2v", 1, 42, 0) and mine[1].operators == CHAIN
    assert shown.delivered_ns == 119 * MS
    assert all(row.end_ns > 90 * MS and row.start_ns < 121 * MS for row in shown.rows)
    few = gantt(read_trace(run), told(42), most=3)
    assert len(few.rows) == 3 and few.left_out == len(shown.rows) - 3 and sum(r.is_deciding for r in few.rows) == 2


def test_shares_add_up() -> None:
    assert shares(10, [1, 1, 1]) == [4, 3, 3]
    assert shares(7, [0, 0]) == [4, 3]
    assert shares(1_000, [3, 1]) == [750, 250]
    assert RECORD_BYTES == 64
