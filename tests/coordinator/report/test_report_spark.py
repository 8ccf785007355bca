"""The Spark verdict is the plain-Python verdict, for sound, crashed, damaged and tampered traces alike.

Spark's cost is per job, not per trace: each test judges many runs in one.
"""

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator.report.reader import Run, read_run
from coordinator.report.verdict import verdict
from protos import records as rec
from tests.coordinator.report.synthetic import Cluster, Node, everything, play, random_document, write_trace
from tests.coordinator.report.synthetic_windows import as_earlier, overloaded, play_windows, write_missing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def agree(spark: "SparkSession", runs: list[Run], of: object) -> None:
    """Both engines, all runs; a failure names the run and what made it."""
    from coordinator.report.spark import verdicts

    for run, told in zip(runs, verdicts(spark, runs), strict=True):
        expected = verdict(run)
        for key, value in expected.items():
            assert told[key] == value, f"{run.path.name} of {of}: {key}"
        assert told == expected


def tamper(cluster: Cluster, dice: random.Random) -> None:
    """One way for a trace to go wrong."""
    node = dice.choice(cluster.all)
    match dice.randrange(8):
        case 0 if node.records:
            del node.records[dice.randrange(len(node.records))]
        case 1:
            node.reachable = False
        case 2:
            node.count_known = False
        case 3:
            node.write(rec.GAP, dice.choice((0, rec.FLAG)), 0, None, 0, dice.choice((0, 3)))
        case 4 if node.records:
            node.records.append(dice.choice(node.records))
        case 5 if node.records:
            flip(node, dice)
        case 6:
            node.ended = False
        case _ if node.records:
            node.records = node.records[: len(node.records) // 2]


def flip(node: Node, dice: random.Random) -> None:
    """Turn some field of some record into something else."""
    place = dice.randrange(len(node.records))
    fields = list(rec.RECORD.unpack(node.records[place]))
    field = dice.randrange(len(fields))
    fields[field] = [dice.randrange(20), dice.choice((0, 3, 131, 255)), 1, 1, 1, 7][min(field, 5)]
    if field > 5:
        fields[field] = dice.choice((0, 1, 2, 3, rec.POLICY_SELECTIVITY, 255, 1 << 40, 3 << rec.SURPLUS_SHIFT))
    node.records[place] = rec.RECORD.pack(*fields)


def random_run(seed: int, path: Path) -> Run:
    """A random plan and run; every second one is tampered with after its records were counted."""
    dice = random.Random(seed)
    mishaps, policed = dice.choice((0.0, 0.1, 0.3)), dice.choice((0.0, 0.2))
    if dice.random() < 0.2:
        cluster: Cluster = play_windows(overloaded(), seed, tuples=20, mishaps=mishaps)
        if dice.random() < 0.3:
            return read_run(as_earlier(cluster.save(path)))
    else:
        document = everything() if dice.random() < 0.2 else random_document(seed)
        cluster = play(document, seed, tuples=10, mishaps=mishaps, policed=policed)
    cluster.save(path)
    if dice.random() < 0.6:
        for _ in range(dice.randrange(1, 3)):
            before = [len(node.records) for node in cluster.all]
            tamper(cluster, dice)
            if [len(node.records) for node in cluster.all] == before:
                cluster.save(path)
            else:
                for node in cluster.all:
                    write_trace(path, node)
    return read_run(path)


@settings(max_examples=1, deadline=None, suppress_health_check=list(HealthCheck))
@given(seeds=st.lists(st.integers(0, 2**32), min_size=40, max_size=40, unique=True))
def test_both_engines_agree_on_any_run(
    spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory, seeds: list[int]
) -> None:
    root = tmp_path_factory.mktemp("runs")
    nothing = Cluster(everything(), 1)
    nothing.all = []
    empty = read_run(nothing.save(root / "empty"))
    agree(spark, [empty, *(random_run(seed, root / str(seed)) for seed in seeds)], seeds)


def test_both_engines_agree_where_any_one_record_is_missing(spark: "SparkSession", tmp_path: Path) -> None:
    """And `balanced` is false for each of them."""
    from coordinator.report.spark import verdicts

    cluster = play(everything(), seed=4, tuples=3, mishaps=0.25, many=0.15, policed=0.2)
    runs = [read_run(path) for path, _ in write_missing(cluster, tmp_path)]
    for start in range(0, len(runs), 60):
        batch = runs[start : start + 60]
        for run, told in zip(batch, verdicts(spark, batch), strict=True):
            assert not told["conservation"]["balanced"], run.path.name
            assert told == verdict(run), run.path.name


def test_both_engines_agree_on_refusals_whatever_their_records_hold(spark: "SparkSession", tmp_path: Path) -> None:
    """Of sources, windows and sources that are none; with words that damage made."""
    runs = []
    for seed in range(6):
        dice, document = random.Random(seed), overloaded() if seed % 2 else everything()
        cluster: Cluster = play_windows(document, seed, tuples=12) if seed % 2 else play(document, seed, policed=0.3)
        for node in cluster.all:
            for _ in range(12):
                extreme = [dice.choice((0, 1, -1, 5, 1 << 62, -(1 << 63), (1 << 63) - 1)) for _ in range(4)]
                number, ref = dice.choice((0, 1, 7, (1 << 63) - 1)), dice.randrange(1, 7)
                words = (extreme[0], dice.randrange(12), *extreme[1:])
                last = dice.choice((0, 5, (1 << 64) - 1))
                node.records.append(rec.RECORD.pack(rec.REFUSED, cluster.flags, ref, ref, 1, number, *words, last))
        runs.append(read_run(cluster.save(tmp_path / str(seed))))
    agree(spark, runs, range(6))
