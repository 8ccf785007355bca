"""What a restarted node sends again: the peer takes a tuple once, and a copy that it did not take is no loss."""

from pathlib import Path
from typing import Any

import pytest

from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from protos import records as rec
from tests.coordinator.report.synthetic import MS, Cluster, Op, plan_document, write_trace

LINKED = (rec.RECEIVED, rec.RAN, rec.SENT, rec.OUTPUT)


def judged(cluster: Cluster, path: Path) -> dict[str, Any]:
    return verdict(read_run(cluster.save(path / "run"))).document()


def resent(arrivals: int) -> Cluster:
    """Three nodes in a row, three tuples; the one in the middle restarts, gets them again and sends them again.

    arrivals: how often the last node took each tuple: 1 as a copy is none to it, 0 as the link lost both, or 2 as it
    restarted too.
    """
    ops: list[Op] = [
        {"name": "one", "at": "a", "in": ["s"]},
        {"name": "two", "at": "b", "in": ["one"]},
        {"name": "three", "at": "c", "in": ["two"]},
    ]
    cluster = Cluster(plan_document(["a", "b", "c"], {"s": "a"}, ops, {"out": ("three", "c", 50 * MS)}), 0, 0, 0)
    for _ in range(3):
        cluster.admit(1)
        while cluster.events and (arrivals or cluster.events[0][:3:2] != ("receive", 2)):
            what, *arguments = cluster.events.popleft()
            getattr(cluster, what)(*arguments)
        cluster.events.clear()
    for index in (1, 2) if arrivals > 1 else (1,):
        before = cluster.nodes[index]
        cluster.crash(before)
        again = [r for r in before.records if r[0] in LINKED and r[1] & rec.PLAN_EPOCH_MASK == cluster.flags]
        cluster.nodes[index].records.extend(again)
    cluster.finish()
    return cluster


@pytest.mark.parametrize(("arrivals", "sent", "lost"), [(1, 9, 0), (2, 9, 0), (0, 3, 6)])
def test_what_a_restarted_node_sends_again_is_lost_only_if_no_copy_arrived(
    tmp_path: Path, arrivals: int, sent: int, lost: int
) -> None:
    result = judged(resent(arrivals), tmp_path)
    conservation, output = result["conservation"], result["outputs"]["out"]
    assert conservation["balanced"], conservation["problems"]
    assert (conservation["by_outcome"]["sent"], conservation["by_outcome"]["lost"]) == (sent, lost)
    assert conservation["by_cause"] == ({"lost(link)": lost} if lost else {})
    assert sum(conservation["by_outcome"].values()) == conservation["obligations"]
    assert (output["met"], output["lost"]) == ((3, 0) if arrivals else (0, 3))


def test_filtering_what_was_sent_twice_leaves_the_upper_miss_ratio_alone(tmp_path: Path) -> None:
    cluster = resent(1)
    c = cluster.nodes[2]
    c.records = [r for r in c.records if r[0] != rec.LOAD]
    place = next(at for at, r in enumerate(c.records) if r[0] == rec.OUTPUT)
    ran = rec.RECORD.unpack(c.records[place + 1])
    c.records[place : place + 2] = [rec.RECORD.pack(*ran[:-1], 0)]  # it gave nothing
    result = judged(cluster, tmp_path)
    assert result["conservation"]["balanced"], result["conservation"]["problems"]
    assert result["outputs"]["out"]["met"] == 2
    assert result["outputs"]["out"]["miss_ratio_hi"] == 0


@pytest.mark.parametrize("arrivals", [0, 1, 2])
def test_deleting_any_one_record_of_what_was_sent_twice_unbalances(tmp_path: Path, arrivals: int) -> None:
    cluster = resent(arrivals)
    path = cluster.save(tmp_path / "run")
    for node in cluster.all:
        whole = list(node.records)
        for place in range(len(whole)):
            node.records = whole[:place] + whole[place + 1 :]
            write_trace(path, node)
            assert not verdict(read_run(path)).document()["conservation"]["balanced"], f"{node.name}: number {place}"
        node.records = whole
        write_trace(path, node)
