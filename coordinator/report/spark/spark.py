"""The verdict as Spark columns: the same dict as verdict.py's for every trace, for several runs in one job.

It reads what was landed (`landing`), and lands what was not. No row passes through Python: ledgers, results and latency
breakdowns are joins, windows and aggregates keyed by `run`; Python turns the few rows of the aggregates into `Counts`.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

from coordinator.report.counts import (
    PROBLEMS_SHOWN,
    Above,
    AggregatedCount,
    Came,
    Counts,
    Hop,
    Rank,
    Seen,
    Span,
    StageTime,
)
from coordinator.report.facts.completeness import ADMITTED_UNDER, LEDGER_KINDS, Scan, Trace, judge_all
from coordinator.report.facts.merged_plans import MOST_PLANS
from coordinator.report.facts.problems import FIRST_OF_WITNESSES, Problem
from coordinator.report.facts.reader import Run
from coordinator.report.ledger.witnesses import lacking_sources
from coordinator.report.report_document import Report
from coordinator.report.spark import shared_files, spark_counts, spark_records, spark_result_rows
from coordinator.report.spark import spark_ledger as ledger
from coordinator.report.spark import spark_results as results
from coordinator.report.spark.shared_files import SharedFiles
from coordinator.report.spark.spark_behind import look_behind
from coordinator.report.spark.spark_choice import HERE, SparkChoice
from coordinator.report.spark.spark_records import LINEAGE, TUPLE, flagged, is_, unjudged
from coordinator.report.spark.spark_tables import (  # fmt: skip
    Plans,
    col,
    lit,
    plans,
    reach_rows,
    signed,
    small,
    status_tables,
    traces,
    witnessed,
)
from coordinator.report.summary.assembly import assemble
from protos import records as rec
from protos.records import Gap, Load, Plan

Progress = Callable[[str], None]
WIDTH = 9  # integers per row that an aggregate brings back


def verdicts(
    spark: SparkSession, runs: Sequence[Run], choice: SparkChoice = HERE, progress: Progress = lambda _: None,
    results_to: Sequence[Path] = (),
) -> list[Report]:  # fmt: skip
    """One verdict per run, in order; as `verdict.verdict` gives it. results_to: a folder per run for a
    table of its results."""
    with shared_files.on(spark, choice, runs[0].path) as files:
        return verdicts_with(spark, runs, files, progress, results_to)


def verdicts_with(
    spark: SparkSession, runs: Sequence[Run], files: SharedFiles, progress: Progress = lambda _: None,
    results_to: Sequence[Path] = (),
) -> list[Report]:  # fmt: skip
    """As `verdicts`; files: what holds frames and records."""
    persist = files.checkpoint
    progress("traces to parquet")
    tables = plans(spark, runs)
    every = traces(spark, runs, files, progress)
    asked = any(run.plan.freshness for run in runs)
    mine = persist(spark_records.own(every, tables, asked).repartition(*LINEAGE))  # all that follows is by tuple
    rows = mine.where(is_(*LEDGER_KINDS))
    done = persist(spark_records.instances(rows))
    progress("completeness")
    judged, seen = scan(every, done, tables, runs, files)
    progress("ledgers")
    counts = [Counts(traces=each, filtering=frozenset(seen[n])) for n, each in enumerate(judged)]
    reach = [row for number, run in enumerate(runs) for row in reach_rows(number, run.plan, seen[number])]
    statuses, nodes = status_tables(spark, runs, judged)
    second, slow = witnessed(spark, runs, judged)
    books = ledger.keep(rows, done, tables, statuses, nodes, second, persist)
    reached = small(spark, "run consumer kept output sure:bool", reach)
    answers = persist(results.expect(rows, books.misses, reached, tables, books.problems, slow))
    ranks = persist(results.ranked(answers.where("delivered")))
    parts = persist(results.stage_times(rows, answers, ranks, books.linked, tables))
    told = gather(rows, books, answers, ranks, parts, tables) + overload(mine, answers, tables)
    doubtful = [
        (number, source, source in run.plan.windows)
        for number, run in enumerate(runs)
        for source in sorted(lacking_sources(run, judged[number]))
    ]
    if doubtful:
        told += witnesses(rows, answers, small(spark, "run source window:bool", doubtful), tables)
    for row in files.collect(reduce(DataFrame.unionByName, told)):
        note(counts[row.run], row.what, [row[f"v{i}"] for i in range(WIDTH)])
    for each in counts:
        each.problems.sort()
    if asked:
        progress("ages of data")
        look_behind(spark, runs, mine, answers, files, counts)
    for number, (run, folder) in enumerate(zip(runs, results_to, strict=False)):
        found = spark_result_rows.named(spark, answers.where(col("run") == lit(number)), run.plan)
        files.write(found, folder, run.name, progress)
    return [assemble(run, each) for run, each in zip(runs, counts, strict=True)]


# -- first pass: completeness, and which exits were seen filtering


def scan(
    every: DataFrame, done: DataFrame, tables: Plans, runs: Sequence[Run], files: SharedFiles
) -> tuple[list[list[Trace]], dict[int, set[tuple[int, int]]]]:
    """Judge every incarnation, and find the exits that filtered."""
    records_before, dropped = unjudged(Load.records_before), unjudged(Gap.dropped)
    misplaced = is_(rec.LOAD) & (records_before != col("place"))
    found = every.groupBy("run", "inc").agg(
        F.count("*").alias("n"),
        F.count_if(is_(rec.GAP)).alias("gaps"),
        F.coalesce(F.sum(F.when(is_(rec.GAP) & ~flagged(), dropped)), lit(0)).alias("dropped"),
        F.coalesce(F.sum(F.when(is_(rec.GAP) & flagged(), dropped)), lit(0)).alias("lost"),
        F.count_if(is_(rec.GAP) & flagged() & (dropped == 0)).alias("cut"),
        F.min(F.when(misplaced, F.struct("place", records_before.alias("told")))).alias("misplaced"),
    )
    named = (
        every.where(is_(rec.PLAN))
        .select(
            "run",
            "inc",
            unjudged(Plan.state).cast("long").alias("state"),
            unjudged(Plan.plan_epoch).alias("epoch"),
            unjudged(Plan.stamp).alias("stamp"),
        )
        .distinct()
    )
    epochs = (
        every.where(is_(*LEDGER_KINDS)).groupBy("run", "inc", unjudged(Plan.plan_epoch).alias("plan_epoch")).count()
    )
    given = F.expr("shiftright(outputs, cast(8 * exit as int))").bitwiseAND(lit(255))
    zero = (
        done.where((col("finals") > 0) & (col("lost") == 0) & (col("shed") == 0))
        .join(tables.exits, ["run", "ref"])
        .where(given == 0)
        .select("run", col("ref").cast("long").alias("ref"), "exit")
        .distinct()
    )
    told = reduce(
        DataFrame.unionByName,
        [
            wide(found, "found", ["inc", "n", "gaps", "dropped", "lost", "cut", "misplaced.place", "misplaced.told"]),
            wide(named, "plan", ["inc", "state", "epoch", "stamp"]),
            wide(epochs, "epoch", ["inc", "plan_epoch", "count"]),
            wide(zero, "zero", ["ref", "exit"]),
        ],
    )
    by_run: dict[int, list[Row]] = defaultdict(list)
    for row in files.collect(told):
        by_run[row.run].append(row)
    judged = [judge_all(run, scans(run, by_run[number])) for number, run in enumerate(runs)]
    seen = {number: {(r.v0, r.v1) for r in by_run[number] if r.what == "zero"} for number in range(len(runs))}
    return judged, seen


def scans(run: Run, rows: list[Row]) -> list[Scan]:
    """One Scan per incarnation from the first pass's aggregates."""
    found = [Scan() for _ in run.incarnations]
    named: dict[int, dict[int, int]] = defaultdict(dict)
    mine: dict[int, dict[int, int]] = defaultdict(dict)
    others: dict[int, Counter[int]] = defaultdict(Counter)
    numbers = {signed(hash_): number for hash_, number in run.plan.numbers.items()}
    for row in (row for row in rows if row.what == "found"):
        each = found[row.v0]
        each.found, each.gaps, each.dropped, each.lost, each.cut = row.v1, row.v2, row.v3, row.v4, row.v5
        if row.v6 is not None:
            each.misplaced = (row.v6 - run.incarnations[row.v0].declared.first, row.v7 % (1 << 64))
    for row in (row for row in rows if row.what == "plan"):
        epoch = row.v2 & rec.PLAN_EPOCH_MASK
        stamp = row.v3 % (1 << 64)
        named[row.v0][epoch] = min(stamp, named[row.v0].get(epoch, stamp))
        found[row.v0].crashed |= row.v1 == rec.STATE_CRASHED
        if row.v3 in numbers:
            if row.v1 in ADMITTED_UNDER:
                found[row.v0].ran.add(numbers[row.v3])
            if row.v1 == rec.STATE_DRAINING:
                found[row.v0].drained.add(numbers[row.v3])
            mine[row.v0][epoch] = min(numbers[row.v3], mine[row.v0].get(epoch, MOST_PLANS))
    for row in (row for row in rows if row.what == "epoch"):
        if row.v1 not in mine[row.v0]:
            if row.v1 in named[row.v0]:
                found[row.v0].foreign += row.v2
                others[row.v0][named[row.v0][row.v1]] += row.v2
            else:
                found[row.v0].unnamed += row.v2
    for incarnation, each in zip(run.incarnations, found, strict=True):
        each.unusable = incarnation.places - each.found
        each.epochs, each.others = mine[incarnation.number], others[incarnation.number]
    return found


# -- second pass: everything else comes back in one collect


def wide(frame: DataFrame, what: str, columns: Sequence[str]) -> DataFrame:
    """run what v0..v8: the columns as integers, so that many aggregates come back in one job."""
    values = [col(name).cast("long") for name in columns]
    values += [F.lit(None).cast("long")] * (WIDTH - len(columns))
    return frame.select("run", F.lit(what).alias("what"), *(v.alias(f"v{i}") for i, v in enumerate(values)))


def gather(
    rows: DataFrame, books: ledger.BalanceSheet, answers: DataFrame, ranks: DataFrame, parts: DataFrame, tables: Plans
) -> list[DataFrame]:
    """The second pass's aggregates of ledgers and results, as `wide` rows."""
    admitted = rows.where(is_(rec.ADMITTED))
    bad = books.problems.select("run", *LINEAGE).distinct()
    accounted = admitted.join(bad, ["run", *LINEAGE], "left_anti")
    order = Window.partitionBy("run").orderBy("fault", "inc", "ref", *TUPLE, "times")
    first = books.problems.withColumn("place", F.row_number().over(order)).where(col("place") <= PROBLEMS_SHOWN)
    record = F.when(col("fault") >= FIRST_OF_WITNESSES, col("ref")).otherwise(lit(0))
    grouped = books.problems.groupBy("run", "fault", "inc", record.alias("record"))
    outcomes = books.outcomes.groupBy("run", "outcome", "cause").agg(F.sum("n").alias("n"))
    above = results.above(answers.where("delivered"), tables)
    return [
        wide(admitted.groupBy("run").count(), "admitted", ["count"]),
        wide(accounted.groupBy("run").count(), "accounted", ["count"]),
        wide(books.obligations, "obligations", ["n"]),
        wide(outcomes, "outcome", ["outcome", "cause", "n"]),
        wide(grouped.count(), "problems", ["fault", "inc", "record", "count"]),
        wide(first, "problem", ["fault", "inc", "ref", *TUPLE, "times"]),
        wide(answers.groupBy("run", "output", "rank").count(), "result", ["output", "rank", "count"]),
        wide(ranks, "quantile", ["output", "n", "at", "upper"]),
        wide(above, "above", ["output", "n", "most"]),
        wide(results.breakdown_sums(parts), "blame", ["output", "hop", "ref", "total", "in_tail", "n", "n_tail"]),
    ]


def overload(mine: DataFrame, answers: DataFrame, tables: Plans) -> list[DataFrame]:
    """The second pass's aggregates of what was shed and of windows, as `wide` rows."""
    key = ["inc", "kind", "ref", "word", "cause"]
    found = [
        wide(spark_counts.tallies(mine), "tally", [*key, "n", "spent", "first", "last"]),
        wide(spark_counts.refused(mine), "tally", [*key, "n", "spent", "first", "last"]),
        wide(spark_counts.shed_tuples(mine), "shed", ["source", "policy", "n"]),
        wide(spark_counts.intervals(mine), "span", ["inc", "source", "about", "first", "last", "low", "high"]),
    ]
    idle = spark_counts.idle_windows(mine)
    found.append(wide(idle.groupBy("run", "source").count(), "idle", ["source", "count"]))
    found.append(wide(spark_counts.idle_met(answers, idle), "idle_met", ["output", "count"]))
    windows = spark_counts.window_answers(answers, idle, tables)
    return [*found, wide(windows, "windows", ["output", "source", "answered", "on_time"])]


def witnesses(rows: DataFrame, answers: DataFrame, doubtful: DataFrame, tables: Plans) -> list[DataFrame]:
    """The second pass's aggregates of what is told of sources whose node lacks records, as `wide` rows."""
    numbers, known, came = spark_counts.seen(rows, answers, doubtful, tables)
    return [
        wide(numbers, "seen", ["source", "epoch", "first", "last"]),
        wide(known, "known", ["output", "source", "epoch", "n"]),
        wide(came, "came", ["inc", "source", "first", "last"]),
    ]


def note(counts: Counts, what: str, values: Sequence[int | None]) -> None:
    """Take one row of `gather` into the counts of its run."""
    v = [0 if value is None else value for value in values]
    match what:
        case "admitted":
            counts.admitted = v[0]
        case "accounted":
            counts.accounted = v[0]
        case "obligations":
            counts.obligations = v[0]
        case "outcome":
            counts.outcomes[v[0], v[1]] = v[2]
        case "problems":
            counts.contradictions[v[0], v[1], v[2]] = v[3]
            counts.problem_count += v[3]
        case "problem":
            counts.problems.append(Problem(*v[:8]))
        case "result":
            counts.results[v[0], Rank(v[1])] = v[2]
        case "quantile":
            counts.delivered[v[0]] = v[1]
            counts.ranks.setdefault(v[0], {})[v[2]] = v[3]
        case "above":
            counts.above[v[0]] = Above(v[1], v[2])
        case "blame" if values[1] is None:
            counts.latency[v[0]] = StageTime(v[3], v[4])
            counts.broken_down[v[0]] = (v[5], v[6])
        case "blame":
            counts.stage_times[v[0], Hop(v[1]), v[2]] = StageTime(v[3], v[4])
        case _:
            note_overload(counts, what, v)


def note_overload(counts: Counts, what: str, v: Sequence[int]) -> None:
    """Take one row of `overload` and `witnesses`."""
    match what:
        case "tally":
            counts.aggregated[v[0], v[1], v[2], v[3], v[4]] = AggregatedCount(*v[5:9])
        case "shed":
            counts.shed_tuples[v[0], v[1]] = v[2]
        case "span":
            counts.intervals[v[0], v[1], v[2]] = Span(*v[3:7])
        case "idle":
            counts.idle[v[0]] = v[1]
        case "idle_met":
            counts.idle_met[v[0]] = v[1]
        case "seen":
            counts.seen[v[0], v[1]] = Seen(v[2], v[3])
        case "known":
            counts.known[v[0], v[1], v[2]] = v[3]
        case "came":
            counts.came[v[0], v[1]] = Came(v[2], v[3])
        case "windows":
            counts.window_answers[v[0], v[1]] = (v[2], v[3])
