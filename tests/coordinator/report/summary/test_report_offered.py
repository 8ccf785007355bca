"""The ledger of what was offered, and the share that was missed of it: an interval that refusals widen."""

import json
from pathlib import Path
from typing import Any

import pytest

from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from protos import records as rec
from tests.coordinator.report.synthetic import MS, Cluster, Lineage, Op, hashed, plan_document, write_trace
from tests.coordinator.report.synthetic_windows import Z, with_windows


def judged(cluster: Cluster, path: Path) -> dict[str, Any]:
    return verdict(read_run(cluster.save(path / "run"))).document()


def chain(mean: float | None = None, at_most: list[list[int]] | None = None) -> Cluster:
    """s -> o -> out, on one node."""
    op: Op = {"name": "o", "at": "a", "in": ["s"]} | ({} if mean is None else {"mean": mean})
    document = plan_document(["a"], {"s": "a"}, [op], {"out": ("o", "a", 10**6 * MS)})
    if at_most:
        document["graph"]["operators"]["o"]["selectivity"]["at_most"] = at_most
    return Cluster(document, 0, mishaps=0, many=0)


def police(cluster: Cluster, source: int, count: int) -> None:
    """So many are admitted and shed, beyond what the source declared."""
    index, stream = cluster.plan.sources[source]
    node = cluster.nodes[index]
    for _ in range(count):
        seq = cluster.seqs[source] = cluster.seqs.get(source, 0) + 1
        lineage = Lineage(source, node.boot, seq, 0, node.now, node.now)
        node.write(rec.ADMITTED, cluster.flags, source, lineage, node.now, node.now, node.now)
        node.write(rec.SHED, cluster.flags, rec.NO_REF, lineage, node.now, rec.POLICY_ARRIVALS, 0, stream)


def admit(cluster: Cluster, source: int, count: int) -> None:
    for _ in range(count):
        cluster.admit(source)
    cluster.drain()


def test_half_of_the_tuples_refused_at_the_door_is_not_a_run_without_a_miss(tmp_path: Path) -> None:
    cluster = chain()
    admit(cluster, 1, 96)
    cluster.refuse(1, 100, age=60 * MS)
    cluster.refuse(1, 4, rec.REASON_FULL)
    cluster.finish()
    report = judged(cluster, tmp_path)
    out = report["outputs"]["out"]
    assert report["offered"] == {
        "s": {"offered": 200, "admitted": 96, "refused": {"too_old": 100, "full": 4}, "policed": 0}
    }
    assert (out["met"], out["miss_ratio"], out["miss_ratio_hi"], out["miss_ratio_paper"]) == (96, 0.0, 0.0, 0.0)
    assert out["missed_of_offered"] == [0.0, 104 / 200]
    assert out["between"]["refused"] == 104 and sum(out["between"].values()) == 104
    assert report["conservation"]["balanced"] and report["completeness"]["complete"]


@pytest.mark.parametrize("mean", [None, 0.5], ids=["sure", "before a filter"])
def test_policed_tuples_lie_between_and_are_no_miss_of_the_run(mean: float | None, tmp_path: Path) -> None:
    cluster = chain(mean)
    admit(cluster, 1, 50)
    police(cluster, 1, 249)
    cluster.finish()
    report = judged(cluster, tmp_path)
    out = report["outputs"]["out"]
    assert report["offered"]["s"] == {"offered": 299, "admitted": 299, "refused": {}, "policed": 249}
    assert out["shed"] + out["shed_unsure"] == 249 and out["between"]["policed"] == 249
    assert out["missed_of_offered"] == [0.0, 249 / (249 + out["met"])]
    assert out["miss_ratio_hi"] == 249 / (249 + out["met"]), "as before"


def test_what_came_when_the_plan_was_told_to_end_is_listed_and_not_judged(tmp_path: Path) -> None:
    cluster = chain()
    admit(cluster, 1, 10)
    cluster.refuse(1, 5, rec.REASON_STOPPED)
    cluster.finish()
    report = judged(cluster, tmp_path)
    assert report["offered"]["s"]["refused"] == {"stopped": 5} and report["offered"]["s"]["offered"] == 15
    assert report["outputs"]["out"]["missed_of_offered"] == [0.0, 0.0]


def test_a_refused_tuple_counts_as_the_most_results_that_it_could_have_had(tmp_path: Path) -> None:
    cluster = chain(2.0, [[1, 3], [10, 20]])
    cluster.refuse(1, 4)
    police(cluster, 1, 2)
    cluster.finish()
    out = judged(cluster, tmp_path)["outputs"]["out"]
    assert out["between"]["refused"] == 12 and out["between"]["policed"] == 6
    assert out["missed_of_offered"] == [0.0, 1.0]


def branched() -> Cluster:
    """Source s to a join of two branches, a union with t, beside a side input."""
    ops: list[Op] = [
        {"name": "left", "at": "a", "in": ["s"], "side": ["map"]},
        {"name": "right", "at": "b", "in": ["s"]},
        {"name": "both", "at": "b", "in": ["left", "right"], "join": True},
        {"name": "any", "at": "b", "in": ["left", "right", "t"]},
    ]
    outputs = {"joined": ("both", "b", 10**6 * MS), "merged": ("any", "a", 10**6 * MS)}
    document = plan_document(["a", "b"], {"s": "a", "t": "b", "map": "a"}, ops, outputs)
    return Cluster(document, 0, mishaps=0, many=0)


def test_results_are_counted_along_triggering_paths(tmp_path: Path) -> None:
    cluster = branched()
    for source, count in ((1, 10), (2, 100), (3, 1000)):
        cluster.refuse(source, count)
    cluster.finish()
    found = judged(cluster, tmp_path)["outputs"]
    assert found["joined"]["between"]["refused"] == 10, "a join gives one; a side input, and what it lacks, none"
    assert found["merged"]["between"]["refused"] == 2 * 10 + 100, "a union gives one of each branch"


def windows(**window: Any) -> Cluster:
    """Windows of source s (id 1), admitted by a source of their own (id 3); t is not in them."""
    ops: list[Op] = [{"name": "w.add", "at": "a", "in": ["s"]}, {"name": "w", "at": "a", "in": ["w.add"]}]
    document = plan_document(["a"], {"s": "a", "t": "a"}, ops, {"out": ("w", "a", 10**6 * MS)})
    return Cluster(with_windows(document, {"w": {"feeds": [{"source": 1}]} | window}), 0, mishaps=0, many=0)


def close(cluster: Cluster, count: int) -> None:
    """So many windows come in time."""
    for _ in range(count):
        cluster.admit(3)
    cluster.drain()


def test_windows_are_expected_by_calendar_and_refused_tuples_belong_into_some(tmp_path: Path) -> None:
    """Five refused within a moment: of 50 ms every 40 ms they are in three windows at most."""
    cluster = windows()
    cluster.nodes[0].now = 1000 * MS
    close(cluster, 20)
    cluster.refuse(2, 7)
    before = judged(cluster, tmp_path)["outputs"]["out"]
    assert before["missed_of_offered"] == [0.0, 0.0] and sum(before["between"].values()) == 0
    cluster.refuse(1, 5, since=MS)
    out = judged(cluster, tmp_path)["outputs"]["out"]
    touched = (MS + Z) // (40 * MS) + 1
    assert out["between"] == before["between"] | {"windows_without_refused": touched}
    assert out["missed_of_offered"] == [0.0, touched / 20], "no window more is expected"
    cluster.refuse(1, 1, age=10**9 * MS)
    assert judged(cluster, tmp_path)["outputs"]["out"]["between"]["windows_without_refused"] <= 20
    cluster.refuse(1, 10**6, age=0, since=500 * MS)
    assert judged(cluster, tmp_path)["outputs"]["out"]["missed_of_offered"] == [0.0, pytest.approx(16 / 20, abs=0.2)]


def test_a_query_is_the_sum_of_its_outputs(tmp_path: Path) -> None:
    cluster = branched()
    document = cluster.document | {"queries": {"q": {"outputs": ["joined", "merged"]}}}
    cluster.document = hashed(document) | {"hash": cluster.plan.hash}
    cluster.refuse(1, 3)
    cluster.finish()
    report = judged(cluster, tmp_path)
    assert report["queries"]["q"]["between"]["refused"] == 3 + 6
    assert report["queries"]["q"]["missed_of_offered"] == [0.0, 1.0]


def test_nothing_offered_is_no_share(tmp_path: Path) -> None:
    cluster = chain()
    cluster.finish()
    assert judged(cluster, tmp_path)["outputs"]["out"]["missed_of_offered"] is None


def test_refusals_that_are_missing_or_of_no_source_are_contradictions(tmp_path: Path) -> None:
    cluster = chain()
    for count in (1, 5, 2):
        cluster.refuse(1, count)
    cluster.finish()
    whole = list(cluster.nodes[0].records)
    assert judged(cluster, tmp_path)["conservation"]["balanced"]
    places = [place for place, record in enumerate(whole) if record[0] == rec.REFUSED]
    for place in places[:-1]:  # of the last one its count is a witness
        cluster.nodes[0].records = [r for i, r in enumerate(whole) if i != place and r[0] != rec.LOAD]
        told = judged(cluster, tmp_path)["conservation"]
        assert not told["balanced"] and "REFUSED records of source s" in told["problems"][0]
    cluster.nodes[0].records = whole
    path = cluster.save(tmp_path / "run")
    cluster.nodes[0].records = [r for i, r in enumerate(whole) if i != places[-1]]
    write_trace(path, cluster.nodes[0])
    assert not verdict(read_run(path)).document()["conservation"]["balanced"]
    cluster.nodes[0].records = whole
    cluster.nodes[0].write(rec.REFUSED, cluster.flags, 9, Lineage(9, 1, 0, 0, 0, 0), 0, rec.REASON_FULL, 1)
    told = judged(cluster, tmp_path)["conservation"]
    assert "which clients do not feed here" in told["problems"][0]


def test_the_report_is_json_without_surprises(tmp_path: Path) -> None:
    """Values that damage may make of a REFUSED record."""
    cluster = chain()
    for words in ((-5, 1 << 62, -(1 << 63)), ((1 << 63) - 1, 0, 1 << 62), (0, -(1 << 63), (1 << 63) - 1)):
        lineage = Lineage(1, 1, (1 << 63) - 1, 0, 0, 0)
        cluster.nodes[0].write(rec.REFUSED, cluster.flags, 1, lineage, words[0], 999, *words, last=(1 << 64) - 1)
    cluster.finish()
    json.dumps(judged(cluster, tmp_path), allow_nan=False)


def test_refusals_are_counted_anew_when_a_plan_comes_back(tmp_path: Path) -> None:
    """The same plan is committed again as another one, under another epoch: each counts from 0."""
    cluster = chain()
    cluster.refuse(1, 4)
    (node,) = cluster.all
    node.write(rec.PLAN, 0, rec.STATE_COMMITTED, None, node.now, 140, last=cluster.plan.hash_u64)
    cluster.flags, cluster.refused = 140 & rec.PLAN_EPOCH_MASK, {}
    cluster.refuse(1, 7)
    cluster.finish()
    report = judged(cluster, tmp_path)
    assert report["offered"]["s"]["refused"] == {"too_old": 11}
    assert report["conservation"]["balanced"], report["conservation"]["problems"]
