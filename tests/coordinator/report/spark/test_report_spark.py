"""The Spark verdict is the plain-Python verdict, for sound, crashed, damaged and tampered traces alike.

Spark's cost is per job, not per trace: one job judges runs of all families, and one of real agents, an example that is
not about vehicles. `make soak` judges many more of the random ones, and lets the command do it.
"""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from coordinator.report.facts.reader import Run, read_run
from coordinator.report.landing.landed_run import drop_raw, land
from coordinator.report.result_tables.result_rows import ResultRows
from coordinator.report.result_tables.table_columns import RESULTS
from coordinator.report.verdict import verdict
from node_agent.virtual.run import simulate, write_run
from node_agent.virtual.scenario import Scenario
from protos import records as rec
from tests import traces
from tests.contract.commands.sorting_line import command, started
from tests.coordinator.report.aged_worlds import asking, world
from tests.coordinator.report.alterations import altered, saved
from tests.coordinator.report.facts import test_report_lacking
from tests.coordinator.report.ledger import test_report_missing_windows
from tests.coordinator.report.ledger.test_report_ages_of_ports import two_ports
from tests.coordinator.report.ledger.test_report_ages_over_plans import over_plans
from tests.coordinator.report.ledger.test_report_ordinals import deepest
from tests.coordinator.report.ledger.test_report_resent import resent
from tests.coordinator.report.synthetic import MS, Cluster, Node, everything, play, random_document, write_trace
from tests.coordinator.report.synthetic_windows import as_earlier, overloaded, play_windows, write_missing
from tests.coordinator.report.test_report_changes import changed
from tests.coordinator.report.witness.test_report_witness import moved_origins, whole
from tests.simulation.fusions.fusion_worlds import Periodic, case
from tests.simulation.windows.window_worlds import planned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

SEEDS = range(4)  # of random runs in `make test`
MOST = 2  # runs of each family in `make test`


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
        fields[field] = dice.choice(
            (0, 1, 2, 3, rec.POLICY_SELECTIVITY, 255, 1 << 40, 3 << rec.Ran.policed_results.shift)
        )
    node.records[place] = rec.RECORD.pack(*fields)


def random_run(seed: int, path: Path) -> Run:
    """A random plan and run; every second one is tampered with after its records were counted."""
    dice = random.Random(seed)
    mishaps, policed = dice.choice((0.0, 0.1, 0.3)), dice.choice((0.0, 0.2))
    if dice.random() < 0.2:
        cluster: Cluster = play_windows(asking(overloaded()), seed, tuples=20, mishaps=mishaps)
        if dice.random() < 0.3:
            return read_run(as_earlier(cluster.save(path)))
    else:
        document = everything() if dice.random() < 0.2 else random_document(seed)
        cluster = play(asking(document), seed, tuples=10, mishaps=mishaps, policed=policed)
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


def empty(root: Path) -> list[Run]:
    """No node has written anything."""
    nothing = Cluster(everything(), 1)
    nothing.all = []
    return [read_run(nothing.save(root / "empty"))]


def one_record_missing(root: Path) -> list[Run]:
    """A run for each record that it could lack."""
    cluster = play(everything(), seed=4, tuples=3, mishaps=0.25, many=0.15, policed=0.2)
    return [read_run(path) for path, _ in write_missing(cluster, root)]


def permuted(root: Path) -> list[Run]:
    """Traces that are whole, their records in any order."""
    runs = []
    for seed in range(1, 4):
        cluster = play(random_document(seed), seed, tuples=60)
        for node in cluster.all:
            random.Random(seed).shuffle(node.records)
        runs.append(read_run(cluster.save(root / f"permuted-{seed}")))
    return runs


def parquet_alone(root: Path) -> list[Run]:
    """Of which the raw segments are gone."""
    runs = []
    for seed in (1, 2):
        run = random_run(seed, root / f"landed-{seed}")
        land(run.path, run.firsts)
        assert drop_raw(run.path, run.firsts)
        runs.append(read_run(run.path))
    return runs


def refusals(root: Path) -> list[Run]:
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
        runs.append(read_run(cluster.save(root / str(seed))))
    return runs


def sent_again(root: Path) -> list[Run]:
    """By a restarted node, whose peer took each tuple never, once or twice."""
    runs = []
    for arrivals in (0, 1, 2):
        cluster = resent(arrivals)
        runs.append(read_run(cluster.save(root / f"{arrivals}")))
        cluster.nodes[2].count_known = False
        runs.append(read_run(cluster.save(root / f"{arrivals}-uncounted")))
    return runs


def windows_that_never_came(root: Path) -> list[Run]:
    """Of a node that is away for a while or for ever, has another clock, or lacks records."""
    cases = ("the node is away and comes back", "the node stays away", "another clock", "records are missing")
    made = [test_report_missing_windows.CASES[case][0]() for case in cases]
    return [read_run(each.save(root / str(number))) for number, each in enumerate(made)]


def lacking(root: Path) -> list[Run]:
    """Nodes or plans that ran and have no records."""
    runs = [read_run(made().save(root / name)) for name, made in test_report_lacking.CASES.items()]
    foreign = test_report_missing_windows.away().save(root / "foreign")
    test_report_lacking.strip(foreign)
    return [*runs, read_run(foreign)]


def changed_plans(root: Path) -> list[Run]:
    """Whole traces, lossy ones, and ones of which records were taken, doubled or spoilt."""
    runs = [changed(root / f"run{seed}", seed, loss=0.1 * (seed % 2)) for seed in range(4)]
    for seed, run in enumerate(runs[2:]):
        spoil(run, random.Random(seed))
    return [read_run(run.path) for run in runs]


def fused(root: Path) -> list[Run]:
    """Inputs that are fused, over links that lose some; two of the runs are spoilt."""
    for seed in (4, 11, 0, 9):
        query, cluster = case(seed)
        plan = planned(query, cluster, sound=False)
        assert plan is not None
        write_run(simulate(plan, Scenario(seed=seed, loss=0.1), world=Periodic(plan, seed)), root / f"run{seed}")
    runs = [read_run(root / f"run{seed}") for seed in (4, 11, 0, 9)]
    for seed, run in enumerate(runs[2:]):
        spoil(run, random.Random(seed))
    return [read_run(run.path) for run in runs]


def spoil(run: Run, dice: random.Random) -> None:
    """Take, double or change a few records of one node."""
    directory = dice.choice(sorted(run.path.glob("trace/raw/*/*")))
    header, found = traces.read(directory)
    for _ in range(4):
        place = dice.randrange(len(found))
        fields = list(rec.RECORD.unpack(found[place]))
        match dice.randrange(3):
            case 0:
                del found[place]
            case 1:
                found.insert(place, found[place])
            case _:
                fields[dice.randrange(1, 6)] = dice.choice((0, 1, 2, 130))
                fields[dice.randrange(6, 11)] = dice.choice((0, 1, -1, 1 << 40, (1 << 63) - 1))
                found[place] = rec.RECORD.pack(*fields)
    traces.write(directory, header, found)


def ages_of_data(root: Path) -> list[Run]:
    """Side inputs, fusions and windows, on one clock and on two; one of the runs is spoilt."""
    runs = []
    for seed, nodes in enumerate((["a"], ["a", "b"], ["a", "b"])):
        world(seed, nodes, root / str(seed))
        runs.append(read_run(root / str(seed)))
    spoil(runs[-1], random.Random(1))
    return [read_run(run.path) for run in runs]


def side_values(root: Path) -> list[Run]:
    """Under two plans, and at two ports."""
    made = [over_plans(), two_ports(10, 0), two_ports(10, 15)]
    return [read_run(each.save(root / str(number))) for number, each in enumerate(made)]


def alterations(root: Path) -> list[Run]:
    """Records that were changed, checksums and all."""
    run = whole(root / "whole")
    made = [moved_origins(run, 10 * MS), *(altered(run, random.Random(seed))[1] for seed in (1, 4))]
    return [saved(each, root / str(number)) for number, each in enumerate(made)]


FAMILIES: dict[str, Callable[[Path], Sequence[Run]]] = {
    "empty": empty,
    "refusals": refusals,
    "sent again": sent_again,
    "windows that never came": windows_that_never_came,
    "lacking": lacking,
    "changed plans": changed_plans,
    "fused inputs": fused,
    "deepest ordinals": lambda root: [deepest(root)],
    "altered": alterations,
    "ages of data": ages_of_data,
    "values of side inputs": side_values,
    "one record missing": one_record_missing,
    "permuted": permuted,
    "Parquet alone": parquet_alone,
}


def agree(spark: "SparkSession", runs: Sequence[tuple[str, Run]], tables: int = 0) -> None:
    """Both engines, all runs; a failure names the run and what made it. tables: of so many, each result as well."""
    from coordinator.report.spark.spark import verdicts

    folders = [run.path / RESULTS.name for _, run in runs[:tables]]
    for (name, run), told in zip(runs, verdicts(spark, [run for _, run in runs], results_to=folders), strict=True):
        kept = ResultRows(run.plan)
        expected = verdict(run, kept.add)
        for key, value in expected.document().items():
            assert told.document()[key] == value, f"{name}: {key}"
        assert told == expected, name
        if (folder := run.path / RESULTS.name) in folders:
            found = pq.read_table(folder)
            assert found.schema.names == RESULTS.schema.names
            assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, kept.table().to_pylist())), name


def of_all_families(root: Path, most: int | None = None) -> list[tuple[str, Run]]:
    """Runs with their names, at most so many of each family, from all over it."""
    runs = []
    for name, family in FAMILIES.items():
        folder = root / name
        folder.mkdir()
        made = family(folder)
        every = 1 if most is None else -(-len(made) // most)
        runs += [(f"{name} {number}", run) for number, run in enumerate(made) if number % every == 0]
    return runs


@pytest.fixture
def sorted_trays(tmp_path: Path) -> Path:
    """A run of the sorting line, three real agents, that was looked at in plain Python."""
    with started(tmp_path / "line") as line:
        assert line.feed(3).wait(60) == 0
        run = line.collect()
    report = line.report(run, "python")
    conservation, outputs = report["conservation"], report["outputs"]
    assert conservation["balanced"], conservation
    assert conservation["admitted"] == conservation["accounted"]
    delivered = {name: each["met"] + each["late"] for name, each in outputs.items()}
    # Of 60 trays some are empty and some have no readable label; every other one gets a lane, and every lane is logged.
    assert 20 <= delivered["gate"] < 60
    assert delivered["history"] == delivered["gate"] + 3
    assert all(each["lost"] == each["shed"] == each["undecidable"] == 0 for each in outputs.values())
    return run


def test_both_engines_agree(sorted_trays: Path, spark: "SparkSession", tmp_path: Path) -> None:
    runs = [(f"random run of seed {seed}", random_run(seed, tmp_path / f"seed-{seed}")) for seed in SEEDS]
    agree(spark, [("trays", read_run(sorted_trays)), *runs, *of_all_families(tmp_path, MOST)], tables=3)


@pytest.mark.soak  # a JVM more
def test_the_command_reports_by_spark(sorted_trays: Path) -> None:
    path = sorted_trays / "report.json"
    report = json.loads(path.read_text())
    command("coordinator", "report", sorted_trays, "--engine", "spark")
    by_spark = json.loads(path.read_text())
    assert (report["engine"], by_spark["engine"]) == ("python", "spark")
    assert {**by_spark, "engine": "python"} == report


def test_no_record_is_missed_unnoticed(tmp_path: Path) -> None:
    assert not any(verdict(run).document()["conservation"]["balanced"] for run in one_record_missing(tmp_path))


@pytest.mark.soak
def test_both_engines_agree_on_all_families(spark: "SparkSession", tmp_path: Path) -> None:
    runs = of_all_families(tmp_path)
    for start in range(0, len(runs), 40):
        agree(spark, runs[start : start + 40])


@pytest.mark.soak
def test_both_engines_agree_on_many_random_runs(spark: "SparkSession", tmp_path: Path, seed: int) -> None:
    for at in range(seed, seed + 400, 40):
        agree(spark, [(f"random run of seed {at + n}", random_run(at + n, tmp_path / f"{at + n}")) for n in range(40)])
