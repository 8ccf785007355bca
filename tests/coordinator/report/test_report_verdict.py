"""The plain-Python verdict: bounds, ledgers that balance, and ledgers that do not."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator.report.facts.reader import NoRunError, read_run
from coordinator.report.verdict import verdict
from protos import records as rec
from tests.coordinator.report.synthetic import (
    MS,
    Cluster,
    Lineage,
    everything,
    plan_document,
    play,
    random_document,
    write_trace,
)
from tests.coordinator.wording import has
from tests.sampling import examples, sample

LEDGER = {
    rec.ADMITTED, rec.RAN, rec.SENT, rec.RECEIVED, rec.OUTPUT, rec.SHED, rec.LOST, rec.MERGED, rec.ABSORBED,
}  # fmt: skip


def judged(cluster: Cluster, path: Path) -> dict[str, Any]:
    return verdict(read_run(cluster.save(path / "run"))).document()


def single(deadline: int = 10 * MS) -> Cluster:
    """One source, one operator, one output, on one node."""
    document = plan_document(["a"], {"s": "a"}, [{"name": "o", "at": "a", "in": ["s"]}], {"out": ("o", "a", deadline)})
    return Cluster(document, 0, mishaps=0, many=0)


def deliver(cluster: Cluster, seq: int, at: int, lo: int, hi: int, copies: int = 1) -> None:
    node, lineage = cluster.nodes[0], Lineage(1, 1, seq, 0, lo, hi)
    node.write(rec.ADMITTED, cluster.flags, 1, lineage, at, lo, hi)
    node.write(rec.RAN, cluster.flags, 1, lineage, at, at, at + copies - 1, MS, 0, last=copies)
    for copy in range(copies):
        deadline = cluster.plan.outputs[1].deadline_ns
        node.write(rec.OUTPUT, cluster.flags, 1, lineage, at + copy, lo, hi, deadline, 0)


@pytest.mark.parametrize(
    ("lo", "hi", "expected"),
    [
        (0, 0, "met"),
        (0, 5, "met"),
        (-1, -1, "late"),
        (-5, -1, "late"),
        (-1, 0, "undecidable"),
        (-(1 << 63), (1 << 63) - 1, "undecidable"),
        (-(1 << 63), -1, "late"),
    ],
)
def test_met_only_by_the_upper_bound_and_late_only_by_the_lower(
    tmp_path: Path, lo: int, hi: int, expected: str
) -> None:
    cluster = single(deadline=10 * MS)
    deliver(cluster, 1, 10 * MS, lo, hi)
    cluster.finish()
    output = judged(cluster, tmp_path)["outputs"]["out"]
    assert {k: output[k] for k in ("met", "late", "undecidable")} == {
        k: int(k == expected) for k in ("met", "late", "undecidable")
    }


def test_quantiles_are_nearest_rank_of_upper_bounds(tmp_path: Path) -> None:
    cluster = single(deadline=80)
    for seq in range(1, 101):
        deliver(cluster, seq, seq, 0, 1)
    cluster.finish()
    output = judged(cluster, tmp_path)["outputs"]["out"]
    assert output["latency_ns"] == {"p50": 50, "p95": 95, "p99": 99, "max": 100}
    assert (output["met"], output["late"], output["undecidable"]) == (80, 19, 1)
    assert output["miss_ratio"] == 19 / 99
    assert output["miss_ratio_hi"] == 20 / 100


def test_nothing_delivered_gives_null_ratios_and_no_quantiles(tmp_path: Path) -> None:
    cluster = single()
    cluster.finish()
    result = judged(cluster, tmp_path)
    output = result["outputs"]["out"]
    assert [output[k] for k in ("miss_ratio", "miss_ratio_hi", "miss_ratio_paper")] == [None] * 3
    assert output["latency_ns"] == {"p50": None, "p95": None, "p99": None, "max": None}
    assert result["conservation"]["balanced"]


def test_a_second_delivery_that_nothing_brought_makes_the_result_undecidable(tmp_path: Path) -> None:
    cluster = single(deadline=10)
    node, lineage = cluster.nodes[0], Lineage(1, 1, 1, 0, 0, 0)
    deliver(cluster, 1, 11, 0, 0)
    node.write(rec.OUTPUT, cluster.flags, 1, lineage, 11, 0, 0, 10, 0)
    cluster.finish()
    result = judged(cluster, tmp_path)
    out = result["outputs"]["out"]
    assert (out["met"], out["late"], out["undecidable"], out["delivered"]) == (0, 0, 1, 1)
    assert not result["conservation"]["balanced"]


def chain(mean: float | None = None) -> Cluster:
    """Two operators on two nodes; the second may filter."""
    second: dict[str, Any] = {"name": "second", "at": "b", "in": ["first"]}
    if mean is not None:
        second["mean"] = mean
    ops = [{"name": "first", "at": "a", "in": ["s"]}, second]
    document = plan_document(["a", "b"], {"s": "a"}, ops, {"out": ("second", "b", 50 * MS)})
    return Cluster(document, 0, mishaps=0, many=0)


@pytest.mark.parametrize(("mean", "sure"), [(None, True), (1.0, True), (0.5, False)])
def test_a_shed_tuple_is_missed_unless_it_might_have_been_filtered(
    tmp_path: Path, mean: float | None, sure: bool
) -> None:
    cluster = chain(mean)
    lineage = Lineage(1, 1, 1, 0, 0, 0)
    cluster.nodes[0].write(rec.ADMITTED, cluster.flags, 1, lineage, 0, 0, 0)
    cluster.nodes[0].write(rec.SHED, cluster.flags, 1, lineage, 1, rec.POLICY_LATE, 0)
    cluster.finish()
    result = judged(cluster, tmp_path)
    output = result["outputs"]["out"]
    assert (output["shed"], output["shed_unsure"]) == (int(sure), int(not sure))
    assert output["miss_ratio"] == (1.0 if sure else None)
    assert output["miss_ratio_hi"] == 1.0
    assert result["conservation"]["by_cause"] == {"shed(late)": 1}
    assert result["conservation"]["balanced"]


@pytest.mark.parametrize("operator", [1, 2])
def test_a_result_shed_within_a_unit_misses_the_outputs_from_its_operator_on(tmp_path: Path, operator: int) -> None:
    """`first` is delivered, `second` behind it in the same unit too; one result of either is beyond its selectivity."""
    ops: list[dict[str, Any]] = [
        {"name": "first", "at": "a", "in": ["s"]},
        {"name": "second", "at": "a", "in": ["first"], "unit": "first"},
    ]
    outputs = {"near": ("first", "a", 50 * MS), "far": ("second", "a", 50 * MS)}
    cluster = Cluster(plan_document(["a"], {"s": "a"}, ops, outputs), 0, mishaps=0, many=0)
    node, lineage, given = cluster.nodes[0], Lineage(1, 1, 1, 0, 0, 0), operator - 1
    node.write(rec.ADMITTED, cluster.flags, 1, lineage, 0, 0, 0)
    if given:
        node.write(rec.OUTPUT, cluster.flags, 1, lineage, 1, 0, 0, 50 * MS, 0)
    node.write(rec.SHED, cluster.flags, 1, lineage, 2, rec.POLICY_SELECTIVITY, 0, 0, operator)
    node.write(rec.RAN, cluster.flags, 1, lineage, 0, 0, 2, MS, rec.beside_decision(1), last=given)
    cluster.finish()
    result = judged(cluster, tmp_path)
    assert result["conservation"]["by_cause"] == {"shed(selectivity)": 1} and result["conservation"]["balanced"]
    assert result["conservation"]["by_outcome"]["filtered"] == 0, "it gave a result, which was shed"
    found = {name: (each["met"], each["shed"]) for name, each in result["outputs"].items()}
    assert found == {"near": (given, 1 - given), "far": (0, 1)}


def test_filtering_that_was_seen_makes_a_loss_unsure(tmp_path: Path) -> None:
    cluster = chain()
    for _ in range(3):
        cluster.admit(1)
        cluster.drain()
    shed, filtered = Lineage(1, 1, 90, 0, 0, 0), Lineage(1, 1, 91, 0, 0, 0)
    a = cluster.nodes[0]
    for lineage in (shed, filtered):
        a.write(rec.ADMITTED, cluster.flags, 1, lineage, 0, 0, 0)
    a.write(rec.SHED, cluster.flags, 1, shed, 1, rec.POLICY_LATE, 0)
    a.write(rec.RAN, cluster.flags, 1, filtered, 0, 1, 2, 3, 0, last=0)
    cluster.finish()
    output = judged(cluster, tmp_path)["outputs"]["out"]
    assert (output["shed"], output["shed_unsure"], output["delivered"]) == (0, 1, 3)


def test_a_collection_that_was_interrupted_is_no_contradiction(tmp_path: Path) -> None:
    """What came after run.json was written last is judged; it may be more than that counts."""
    cluster = chain()
    cluster.admit(1)
    cluster.drain()
    cluster.finish()
    path = cluster.save(tmp_path / "run")
    run = json.loads((path / "run.json").read_text())
    for trace in run["traces"]:
        trace["records"] -= 1
    (path / "run.json").write_text(json.dumps({**run, "collecting": True}))
    found = verdict(read_run(path)).document()
    assert found["conservation"]["balanced"] and not found["completeness"]["complete"]
    assert str(found["completeness"]).count("interrupted") == 2
    (path / "run.json").write_text(json.dumps(run))
    assert not verdict(read_run(path)).document()["conservation"]["balanced"]


@pytest.mark.parametrize(
    ("trouble", "outcome", "cause"),
    [("none", "lost", "lost(link)"), ("unreachable", "undecidable", None), ("uncounted", "undecidable", None)],
)
def test_a_sent_tuple_is_lost_only_where_the_peers_trace_proves_it(
    tmp_path: Path, trouble: str, outcome: str, cause: str | None
) -> None:
    cluster = chain()
    cluster.admit(1)
    for _ in range(1):
        cluster.run(*cluster.events.popleft()[1:])
    cluster.events.clear()  # on the link
    cluster.finish()
    b = cluster.nodes[1]
    b.reachable, b.count_known = trouble != "unreachable", trouble != "uncounted"
    result = judged(cluster, tmp_path)
    assert result["conservation"]["balanced"]
    assert result["conservation"]["by_outcome"][outcome] == 1
    assert result["outputs"]["out"][outcome] == 1
    assert result["completeness"]["complete"] is (trouble == "none")
    assert list(result["conservation"]["by_cause"]) == ([cause] if cause else [])


def test_open_obligations_of_a_crashed_incarnation_are_lost_and_balance(tmp_path: Path) -> None:
    cluster = chain()
    cluster.admit(1)
    cluster.crash(cluster.nodes[0])
    cluster.drain()
    cluster.finish()
    result = judged(cluster, tmp_path)
    assert result["conservation"]["by_cause"] == {"lost(restart)": 1}
    assert result["outputs"]["out"]["lost"] == 1
    assert result["conservation"]["balanced"]
    assert result["completeness"]["complete"]


@pytest.mark.parametrize(
    ("flags", "records", "why"),
    [
        (0, 8, "8 records dropped: the node had no more room for its trace, in memory or on disk"),
        (rec.FLAG, 8, "8 records were damaged on the node's disk"),
        (
            rec.FLAG,
            0,
            "the node lost power, or its memory was emptied: nobody knows what it did after its last record here",
        ),
    ],
)
def test_a_trace_with_a_gap_is_undecidable_and_still_balances(
    tmp_path: Path, flags: int, records: int, why: str
) -> None:
    cluster = chain()
    for _ in range(4):
        cluster.admit(1)
        cluster.drain()
    b = cluster.nodes[1]
    b.records = [r for r in b.records if r[0] not in (rec.RAN, rec.OUTPUT)]
    b.write(rec.GAP, flags, 0, None, 0, records)
    cluster.finish()
    result = judged(cluster, tmp_path)
    assert result["conservation"]["balanced"]
    assert result["conservation"]["by_outcome"]["undecidable"] == 4
    assert result["outputs"]["out"]["undecidable"] == 4
    assert result["outputs"]["out"]["miss_ratio_hi"] == 1.0
    assert result["completeness"]["incarnations"][1]["why"] == [why]


def test_a_join_with_a_lost_partner_misses_one_result(tmp_path: Path) -> None:
    ops: list[dict[str, Any]] = [
        {"name": "x", "at": "a", "in": ["s"]},
        {"name": "y", "at": "a", "in": ["s"]},
        {"name": "j", "at": "a", "in": ["x", "y"], "join": True},
    ]
    cluster = Cluster(plan_document(["a"], {"s": "a"}, ops, {"out": ("j", "a", MS)}), 0, mishaps=0)
    a, lineage = cluster.nodes[0], Lineage(1, 1, 1, 0, 0, 0)
    a.write(rec.ADMITTED, cluster.flags, 1, lineage, 0, 0, 0)
    a.write(rec.RAN, cluster.flags, 1, lineage, 0, 0, 1, 2, 0, last=1)
    a.write(rec.LOST, cluster.flags, 2, lineage, 1, rec.CAUSE_OPERATOR_ERROR, 0)
    a.write(rec.MERGED, cluster.flags, 3, lineage, 1, 1, 1, 0, 1, last=1)
    cluster.finish()
    result = judged(cluster, tmp_path)
    assert result["conservation"]["balanced"]
    assert result["outputs"]["out"]["lost"] == 1


def recount(cluster: Cluster, path: Path) -> None:
    """Make run.json agree with what is there, as somebody would who hides a deletion."""
    cluster.save(path)


def by_kind(cluster: Cluster) -> set[int]:
    return {record[0] for node in cluster.all for record in node.records}


def full_run(mishaps: float, many: float, policed: float = 0.0) -> Cluster:
    """A run of the plan with everything, in which every kind of record occurs (with mishaps)."""
    return play(everything(), seed=4, tuples=14, mishaps=mishaps, many=many, policed=policed)


@pytest.mark.parametrize(
    ("mishaps", "many", "policed"), sample([(0.25, 0.15, 0.0), (0.0, 0.0, 0.0), (0.0, 0.15, 0.2)], 3)
)
@pytest.mark.parametrize("every", sample([3, 1], 2))
def test_deleting_any_one_record_unbalances(
    every: int, tmp_path: Path, mishaps: float, many: float, policed: float
) -> None:
    """`make test` deletes every third one."""
    cluster = full_run(mishaps, many, policed)
    path = cluster.save(tmp_path / "run")
    assert verdict(read_run(path)).document()["conservation"]["balanced"]
    if mishaps:
        assert by_kind(cluster) >= LEDGER | {rec.GAVE_UP, rec.LOAD, rec.WINDOW, rec.CLOCK, rec.ACKED, rec.PLAN}
    for node in cluster.all:
        whole = list(node.records)
        for place in range(0, len(whole), every):
            node.records = whole[:place] + whole[place + 1 :]
            write_trace(path, node)
            conservation = verdict(read_run(path)).document()["conservation"]
            assert not conservation["balanced"], f"{node.name}: {rec.KINDS[whole[place][0]]} number {place}"
            assert conservation["problems"]
        node.records = whole
        write_trace(path, node)


@pytest.mark.parametrize("every", sample([3, 1], 2))
def test_deleting_a_ledger_record_unbalances_even_if_the_counts_are_made_to_agree(every: int, tmp_path: Path) -> None:
    cluster = full_run(0.0, 0.15, 0.2)
    for node in cluster.all:
        node.records = [r for r in node.records if r[0] != rec.LOAD]
    assert judged(cluster, tmp_path)["conservation"]["balanced"]
    for node in cluster.all:
        whole = list(node.records)
        for place, record in islice(enumerate(whole), 0, None, every):
            if record[0] not in LEDGER or record[1] & rec.PLAN_EPOCH_MASK != cluster.flags:
                continue
            node.records = whole[:place] + whole[place + 1 :]
            conservation = judged(cluster, tmp_path)["conservation"]
            assert not conservation["balanced"], f"{node.name}: {rec.KINDS[record[0]]} number {place}"
            assert conservation["problem_count"] >= 1
        node.records = whole


@settings(max_examples=examples(60, 4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), mishaps=st.sampled_from([0.0, 0.1, 0.3]), policed=st.sampled_from([0.0, 0.2]))
def test_any_run_balances_and_every_obligation_has_one_outcome(
    tmp_path: Path, seed: int, mishaps: float, policed: float
) -> None:
    cluster = play(random_document(seed), seed, tuples=10, mishaps=mishaps, policed=policed)
    result = judged(cluster, tmp_path / str(seed))
    conservation = result["conservation"]
    assert conservation["balanced"], (seed, conservation["problems"])
    assert conservation["accounted"] == conservation["admitted"] == 10
    if not any(node.crashed for node in cluster.all):
        assert sum(conservation["by_outcome"].values()) == conservation["obligations"]


Damage = Callable[[Path], None]


def truncate(segment: Path) -> None:
    segment.write_bytes(segment.read_bytes()[:-13])


def cut_header(segment: Path) -> None:
    segment.write_bytes(b"SHIM")


def foreign(segment: Path) -> None:
    other = rec.pack_header(rec.Header("zz", 7, 5, "c", 0, 0, 0))
    (segment.parent / "9999.trace").write_bytes(other)


def noise(segment: Path) -> None:
    segment.write_bytes(segment.read_bytes()[:-64] + b"\xff" * 64)


def stranger(segment: Path) -> None:
    directory = segment.parent.parent.parent / "nobody" / "00"
    directory.mkdir(parents=True)
    (directory / "0000.trace").write_bytes(b"")


def unsealed(segment: Path) -> None:
    last = max(segment.parent.iterdir())
    last.write_bytes(last.read_bytes()[:-64])


@pytest.mark.parametrize(
    ("damage", "balanced"),
    [(truncate, False), (cut_header, False), (noise, False), (foreign, True), (stranger, True), (unsealed, True)],
)
def test_damage_is_reported_and_never_crashes(tmp_path: Path, damage: Damage, balanced: bool) -> None:
    path = full_run(0.0, 0.0).save(tmp_path / "run")
    damage(path / "trace/raw/a/0000000000000001/0000.trace")
    result = verdict(read_run(path)).document()
    assert result["conservation"]["balanced"] is balanced
    assert not result["completeness"]["complete"]


@pytest.mark.parametrize(
    ("content", "code"),
    [(None, "unreadable"), ("{", "not_json"), ("[]", "not_a_plan"), ('{"hash": 1}', "not_a_plan")],
)
def test_a_directory_without_a_run_is_refused_in_a_sentence(tmp_path: Path, content: str | None, code: str) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text("{}")
        (tmp_path / "plan.json").write_text(content)
    with pytest.raises(NoRunError, check=has((code, str(tmp_path)))):
        read_run(tmp_path)


def test_a_run_of_another_plan_is_refused(tmp_path: Path) -> None:
    path = full_run(0.0, 0.0).save(tmp_path / "run")
    document = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(document | {"plan_hash": "0" * 64}))
    with pytest.raises(NoRunError, check=lambda error: error.mistakes[0].code == "other_plan"):
        read_run(path)


def test_the_blame_split_adds_up_on_a_chain(tmp_path: Path) -> None:
    cluster = chain()
    for _ in range(20):
        cluster.admit(1)
    cluster.drain()
    cluster.finish()
    result = judged(cluster, tmp_path)
    hops = result["blame"]["out"]["hops"]
    assert result["blame"]["out"]["results"] == 20
    assert {hop["kind"] for hop in hops} >= {"age", "queue", "run", "rest"}
    assert sum(hop["share"] for hop in hops) == pytest.approx(1.0)
    assert all(hop["share"] >= 0 for hop in hops)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_records_in_any_order_are_the_same_run_and_their_order_is_said_to_be_lost(tmp_path: Path, number: int) -> None:
    cluster = play(random_document(number), number, tuples=60)
    before = verdict(read_run(cluster.save(tmp_path / "run")))
    for node in cluster.all:
        Random(number).shuffle(node.records)
    after = verdict(read_run(cluster.save(tmp_path / "again" / "run")))
    assert before.conservation.balanced and before.completeness.complete
    assert not after.completeness.complete and "not in the order" in after.lacking[0]
    assert replace(after, completeness=before.completeness, lacking=before.lacking) == before
