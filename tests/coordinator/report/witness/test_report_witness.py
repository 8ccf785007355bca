"""Every fact has two witnesses: a trace in which one record was altered says so, or its verdict is what it was."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from coordinator.cli.commands.report import UnbalancedError, register
from coordinator.report.facts.reader import Run, read_run
from coordinator.report.verdict import verdict
from node_agent.virtual.run import simulate, write_run
from node_agent.virtual.scenario import Scenario
from protos import records as rec
from protos.records import Record
from protos.segments import segment
from tests.coordinator.report.alterations import MS, altered, records, replaced, rewritten
from tests.coordinator.report.synthetic import Cluster, Lineage, everything, plan_document, play
from tests.coordinator.report.test_report_changes import CLUSTER, FIRST
from tests.simulation.random_plans import registry
from tests.simulation.sharing.random_queries_virtual import Two, by_traffic
from tests.traces import Kind

SAMPLE, SWEEP = 60, 2000
COUNTS = ("met", "late", "shed", "lost", "undecidable", "shed_unsure", "lost_unsure")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return whole(tmp_path_factory.mktemp("runs") / "whole")


def whole(directory: Path) -> Run:
    """Virtual, on two nodes: a filter, a join across nodes, a side input, an operator that fails, a link that loses."""
    plan = Two(CLUSTER, FIRST, FIRST.replace("first", "second")).plan("first", choices=by_traffic())
    write_run(simulate(plan, Scenario(bursts=6, seed=3, spread_ns=30 * MS, loss=0.05), registry()), directory)
    return read_run(directory)


def counts(report: dict[str, Any]) -> dict[str, dict[str, int]]:
    return {name: {key: found[key] for key in COUNTS} for name, found in report["outputs"].items()}


def said(report: dict[str, Any]) -> bool:
    return not report["conservation"]["balanced"] or not report["completeness"]["complete"]


def check(run: Run, seed: int, whole: dict[str, Any]) -> None:
    story, other = altered(run, random.Random(seed))
    told = verdict(other).document()
    before, after = counts(whole), counts(told)
    for name, found in after.items():
        assert found["met"] <= before[name]["met"], f"seed {seed}: {name} met more often: {story}"
        assert said(told) or sum(found.values()) >= sum(before[name].values()), f"seed {seed}: nothing told: {story}"


def sweep(run: Run, first: int, number: int) -> None:
    whole = verdict(run).document()
    assert not said(whole), whole["conservation"]["problems"]
    assert all(sum(found[key] for found in whole["outputs"].values()) for key in ("met", "late", "lost"))
    for seed in range(first, first + number):
        check(run, seed, whole)


def test_no_altered_record_is_met_or_removes_a_result_unnoticed(run: Run, seed: int) -> None:
    sweep(run, seed, SAMPLE)


@pytest.mark.soak
def test_no_altered_record_is_met_or_removes_a_result_unnoticed_many_times(run: Run, seed: int) -> None:
    sweep(run, seed, SWEEP)


def at(run: Run, kind: type[Kind], chosen: Callable[[Kind], bool] = lambda _: True) -> tuple[int, int, Kind]:
    """Incarnation, place and content of the first record of that kind."""
    return next(
        (each.number, place, record)
        for each in run.incarnations
        for place, record in enumerate(records(each))
        if isinstance(record, kind) and chosen(record)
    )


def origin_moved(record: Record, by_ns: int) -> Record:
    """A result with another origin."""
    if not isinstance(record, rec.Output):
        return record
    return record.changed(origin_lo_ns=record.origin_lo_ns + by_ns, origin_hi_ns=record.origin_hi_ns + by_ns)


def moved_origins(run: Run, by_ns: int) -> Run:
    """With the origins of all results moved."""
    for each in run.incarnations:
        found = [origin_moved(record, by_ns) for record in records(each)]
        run = rewritten(run, each.number, found)
    return run


@pytest.mark.parametrize("by_ns", [10 * MS, 5000 * MS, 1])
def test_results_with_another_origin_than_their_tuples_are_met_by_nobody(run: Run, by_ns: int) -> None:
    told = verdict(moved_origins(run, by_ns)).document()
    for found in told["outputs"].values():
        assert (found["met"], found["late"]) == (0, 0) and found["undecidable"] == found["delivered"] > 0
    books = told["conservation"]
    assert not books["balanced"]
    first = books["contradictions"][0]
    assert first["node"] in ("a", "b") and first["what"].startswith("OUTPUT has another origin") and first["times"]


def test_a_moved_instant_is_told_and_its_result_is_not_met(run: Run) -> None:
    number, place, record = at(run, rec.Output, lambda r: r.at_ns - r.origin_lo_ns > r.deadline_ns)
    for by_ns in (record.at_ns - record.origin_lo_ns - record.deadline_ns, 1):
        told = verdict(replaced(run, number, place, at_ns=record.at_ns - by_ns)).document()
        assert said(told)
        name = run.plan.outputs[record.ref].name
        assert told["outputs"][name]["met"] <= verdict(run).document()["outputs"][name]["met"]


FIELDS = {
    rec.Admitted: {"at_ns": 10 * MS, "origin_lo_ns": -MS, "origin_hi_ns": -MS},
    rec.Ran: {"start_ns": 50 * MS, "end_ns": -5 * MS},
    rec.Sent: {"at_ns": -5 * MS, "link_seq": 1},
    rec.Received: {"at_ns": 200 * MS, "link_seq": 1, "sent_ns": -200 * MS},
    rec.Output: {"at_ns": -MS, "origin_lo_ns": MS, "origin_hi_ns": MS, "deadline_ns": 1},
    rec.Lost: {"at_ns": -200 * MS},
}


def first_of(kind: type[Record], given: set[tuple[int, int, int]]) -> Callable[[Record], bool]:
    """Of LOST one in a unit or of an arrival, of ADMITTED a tuple that gave a result."""

    def chosen(record: Record) -> bool:
        if isinstance(record, rec.Lost):
            return not record.never_left
        return kind is not rec.Admitted or record[3:6] in given

    return chosen


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in FIELDS.items() for name in names])
def test_a_second_witness_speaks_up(run: Run, kind: type[Record], name: str) -> None:
    given = {r[3:6] for each in run.incarnations for r in records(each) if isinstance(r, rec.Output)}
    number, place, record = at(run, kind, first_of(kind, given))
    altered_run = replaced(run, number, place, **{name: getattr(record, name) + FIELDS[kind][name]})
    assert not verdict(altered_run).document()["conservation"]["balanced"]


def test_lineages_that_repeat_are_told(run: Run) -> None:
    """As after a start counter that was set back: every tuple of an incarnation is named like one before."""
    number, place, record = at(run, rec.Admitted)
    found = records(run.incarnations[number])
    second = next(
        p for p, r in enumerate(found) if isinstance(r, rec.Admitted) and p > place and r.source == record.source
    )
    told = verdict(replaced(run, number, second, seq=record.seq)).document()
    assert any("admitted before" in each["what"] for each in told["conservation"]["contradictions"])


def apart(lo_ns: int, hi_ns: int, deadline_ns: int = 8 * MS, stamped_ns: int = 3 * MS) -> Cluster:
    """Two nodes with clocks of their own: b's is ahead of a's by lo_ns to hi_ns; a result of 10 ms on b, that left a's
    link at stamped_ns."""
    ahead = (lo_ns + hi_ns) // 2
    ops = [{"name": "x", "at": "a", "in": ["s"]}, {"name": "y", "at": "b", "in": ["x"]}]
    cluster = Cluster(plan_document(["a", "b"], {"s": "a"}, ops, {"out": ("y", "b", deadline_ns)}), 0, 0, 0)
    a, b = cluster.all
    a.clock, b.clock = "one", "two"
    for node in (a, b):
        node.records = [each for each in node.records if each[0] == rec.PLAN]
    one, there = Lineage(1, 1, 1, 0, 0, 0), Lineage(1, 1, 1, 0, lo_ns, hi_ns)
    a.write(rec.ADMITTED, 3, 1, one, MS, 0, 0)
    a.write(rec.RAN, 3, 1, one, MS, 2 * MS, 3 * MS, 0, 0, last=1)
    a.write(rec.SENT, 3, 1, one, 3 * MS, 1, 2, 0)
    b.write(rec.CLOCK, 3, 0, None, ahead, lo_ns, hi_ns, hi_ns - lo_ns, 0)
    b.write(rec.RECEIVED, 3, 0, one, ahead + 4 * MS, 1, stamped_ns, 2, 0)
    b.write(rec.RAN, 3, 2, one, ahead + 4 * MS, ahead + 5 * MS, ahead + 10 * MS, 0, 0, last=1)
    b.write(rec.OUTPUT, 3, 1, there, ahead + 10 * MS, lo_ns, hi_ns, deadline_ns, 0)
    cluster.finish()
    return cluster


@pytest.mark.parametrize(("by_ns", "noticed"), [(0, False), (-MS, False), (MS, True), (3 * MS, True), (-3 * MS, True)])
def test_origins_are_compared_through_what_was_known_of_the_clocks(tmp_path: Path, by_ns: int, noticed: bool) -> None:
    """An origin that came over a link is never younger than the clocks allow, and lies where they may be."""
    run = read_run(apart(50 * MS, 51 * MS).save(tmp_path / "run"))
    number, place, record = at(run, rec.Output)
    origin = {"origin_lo_ns": record.origin_lo_ns + by_ns, "origin_hi_ns": record.origin_hi_ns + by_ns}
    told = verdict(replaced(run, number, place, **origin)).document()
    assert told["conservation"]["balanced"] is not noticed, told["conservation"]["problems"]
    assert told["outputs"]["out"]["met"] == 0


def test_an_unknown_clock_gives_no_origin(tmp_path: Path) -> None:
    """Where no record tells of the sender's clock, a result that claims to know its origin contradicts."""
    run = read_run(apart(50 * MS, 51 * MS).save(tmp_path / "run"))
    number, place, _ = at(run, rec.Clock, lambda r: r.offset_lo_ns == 50 * MS)
    without = records(run.incarnations[number])
    del without[place]
    told = verdict(rewritten(run, number, without)).document()
    assert not told["conservation"]["balanced"] and told["outputs"]["out"]["undecidable"] == 1


def test_a_result_that_spans_a_suspension_is_not_met(run: Run) -> None:
    """The clock stood still: only what is late by it is late for certain."""
    number, _, record = at(run, rec.Output, lambda r: r.at_ns - r.origin_lo_ns <= r.deadline_ns)
    since_ns, until_ns = record.origin_lo_ns + 1, record.at_ns - 1
    slept = rec.Clock.make(suspended=1, peer=rec.NO_REF, at_ns=until_ns, since_ns=since_ns, slept_ns=3600 * 1000 * MS)
    told, whole = verdict(rewritten(run, number, [*records(run.incarnations[number]), slept])), verdict(run)
    assert told.conservation.balanced
    name = run.plan.outputs[record.ref].name
    found, before = told.outputs[name], whole.outputs[name]
    assert found.met < before.met and found.late == before.late
    assert found.undecidable == before.met - found.met


@pytest.mark.parametrize(("stamped_ns", "met"), [(3 * MS, 1), (8 * MS, 0)])
def test_a_tuple_that_a_link_held_through_a_suspension_is_not_met(tmp_path: Path, stamped_ns: int, met: int) -> None:
    """It was on the machine until the batch was stamped that brought it, however early it was SENT."""
    run = read_run(apart(50 * MS, 51 * MS, 20 * MS, stamped_ns).save(tmp_path / "run"))
    assert verdict(run).document()["outputs"]["out"]["met"] == 1
    number, _, _ = at(run, rec.Sent)
    slept = rec.Clock.make(suspended=1, peer=rec.NO_REF, at_ns=7 * MS, since_ns=5 * MS, slept_ns=3600 * 1000 * MS)
    told = verdict(rewritten(run, number, [*records(run.incarnations[number]), slept])).document()["outputs"]["out"]
    assert (told["met"], told["undecidable"]) == (met, 1 - met)


def test_the_command_says_first_that_the_trace_contradicts_itself(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "run"
    for each in moved_origins(run, 10 * MS).incarnations:
        folder = other / "trace" / "raw" / run.plan.nodes[each.node] / each.boot_hex
        folder.mkdir(parents=True)
        header = next((run.path / "trace/raw" / folder.parent.name / folder.name).glob("*.trace")).read_bytes()
        data = segment(header[: rec.HEADER_BYTES], b"".join(each.chunks), rec.STATE_ENDED)
        (folder / "0000.trace").write_bytes(data)
    for name in ("plan.json", "run.json"):
        (other / name).write_bytes((run.path / name).read_bytes())
    app = typer.Typer()
    register(app)
    result = CliRunner().invoke(app, [str(other), "--engine", "python"])
    assert isinstance(result.exception, UnbalancedError) and result.exception.exit_code == 3, result.output
    lines = [line for line in result.output.splitlines() if "ledgers and verdict" not in line]
    told = next(at for at, line in enumerate(lines) if "the trace contradicts itself" in line)
    table = next(at for at, line in enumerate(lines) if "outputs: ms" in line)
    assert told < table and "OUTPUT has another origin than the tuple was ADMITTED with" in lines[told + 1]
    document = json.loads((other / "report.json").read_text())
    assert all(found["met"] == 0 for found in document["outputs"].values())
    assert "contradicts itself" in (other / "report.html").read_text()


def test_a_tuple_of_which_all_records_are_taken_leaves_a_gap_in_its_sources_numbers(tmp_path: Path) -> None:
    cluster = play(everything(), seed=2, tuples=6)
    for node in cluster.all:  # as one does who renumbers them
        node.records = [each for each in node.records if each[0] != rec.LOAD]
    assert verdict(read_run(cluster.save(tmp_path / "whole"))).document()["conservation"]["balanced"]
    written = [rec.unpack_record(each) for node in cluster.all for each in node.records]
    source, epoch, seq = next((r.source, r.epoch, r.seq) for r in written if isinstance(r, rec.Admitted) and r.seq == 2)
    for node in cluster.all:
        node.records = [each for each in node.records if rec.RECORD.unpack(each)[3:6] != (source, epoch, seq)]
    books = verdict(read_run(cluster.save(tmp_path / "taken"))).document()["conservation"]
    assert not books["balanced"]
    assert books["problems"][0].endswith("ADMITTED does not follow the tuple that its source admitted before it")


def test_what_was_drained_before_an_operator_hung_is_in_order(tmp_path: Path) -> None:
    """The hang cell names the end of the instance before as the start of one that hangs: what was drained in between
    has a later instant and stands before both."""
    ops = [{"name": "x", "at": "a", "in": ["s"]}]
    cluster = Cluster(plan_document(["a"], {"s": "a"}, ops, {"out": ("x", "a", 50 * MS)}), 0, 0, 0)
    (a,) = cluster.all
    a.records = [each for each in a.records if each[0] == rec.PLAN]
    first, second = Lineage(1, 1, 1, 0, 0, 0), Lineage(1, 1, 2, 0, 3 * MS, 3 * MS)
    a.write(rec.ADMITTED, 3, 1, first, MS, 0, 0)
    a.write(rec.OUTPUT, 3, 1, first, 3 * MS, 0, 0, 50 * MS, 0)
    a.write(rec.ADMITTED, 3, 1, second, 4 * MS, 3 * MS, 3 * MS)
    a.write(rec.RAN, 3, 1, first, MS, 2 * MS, 3 * MS, 0, 0, last=1)
    a.write(rec.LOST, 3, 1, second, 1100 * MS, rec.CAUSE_OPERATOR_HUNG, 0, 0, 3 * MS)
    cluster.finish()
    books = verdict(read_run(cluster.save(tmp_path / "run"))).document()["conservation"]
    assert books["balanced"], books["problems"]


def test_load_counts_tuples_that_no_other_record_knows_of(tmp_path: Path) -> None:
    """The last refusals of a source, and all records of its last tuple, are taken: their numbers leave no gap."""
    cluster = play(everything(), seed=2, tuples=6)
    node = cluster.nodes[0]
    for seq in (3, 7):
        cluster.refuse(1, seq)
    for each in cluster.all:
        records = [rec.unpack_record(one) for one in each.records]
        admitted = sum(isinstance(r, rec.Admitted) for r in records)
        refused = sum(r.tuples for r in records if isinstance(r, rec.Refused))
        each.records = [one for one in each.records if one[0] != rec.LOAD]
        outputs = (2 * r.at_ns - r.origin_lo_ns - r.origin_hi_ns for r in records if isinstance(r, rec.Output))
        load = rec.Load.make(
            has_sums=1, ref=rec.NO_REF, refused=refused, admitted=admitted, latencies_ns=sum(outputs) & rec.SUM_MASK,
            at_ns=each.now, records_before=len(each.records),
        )  # fmt: skip
        each.records.append(load.packed())
    assert verdict(read_run(cluster.save(tmp_path / "whole"))).document()["conservation"]["balanced"]
    whole = list(node.records)
    refusals = [place for place, one in enumerate(whole) if one[0] == rec.REFUSED]
    tuples = [rec.RECORD.unpack(one)[3:6] for one in whole if one[0] == rec.ADMITTED]
    for name, taken in {
        "refusal": {refusals[-1]},
        "tuple": {place for place, one in enumerate(whole) if rec.RECORD.unpack(one)[3:6] == tuples[-1]},
    }.items():
        node.records = [one for place, one in enumerate(whole) if place not in taken]
        last = rec.unpack_record(node.records[-1])
        node.records[-1] = last.changed(records_before=len(node.records) - 1).packed()
        books = verdict(read_run(cluster.save(tmp_path / name))).document()["conservation"]
        assert any("counts other tuples admitted or refused" in each for each in books["problems"]), books["problems"]


@pytest.mark.parametrize("byte", [0, 8])
def test_a_segment_without_its_head_contradicts_no_origin(tmp_path: Path, byte: int) -> None:
    path = whole(tmp_path / "run").path
    for segment_path in sorted(path.glob("trace/raw/b/*/*.trace")):
        data = bytearray(segment_path.read_bytes())
        data[byte] ^= 0xFF
        segment_path.write_bytes(data)
    told = verdict(read_run(path)).document()
    assert said(told) and told["completeness"]["damage"]
    assert not [each for each in told["conservation"]["contradictions"] if "another origin" in each["what"]]
