"""Expected results and the latency breakdown as Spark columns; `ledger.results` and
`ledger.latency_breakdown` are the same in plain Python."""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812

from coordinator.report.counts import DURATION_LIMIT, INSTANT_LIMIT, QUANTILES, Hop, Rank
from coordinator.report.facts.merged_plans import ID_BITS
from coordinator.report.spark.spark_records import LINEAGE, TUPLE, instance_ordinal, is_, value
from coordinator.report.spark.spark_tables import Plans, col, lit
from protos import records as rec
from protos.records import Admitted, Output, Ran

RESULT = ["run", "output", *TUPLE]
IN_MEMORY = "shuffle_hash"  # a partition of that side is held in memory, so that neither side is sorted
FINE = 20  # latencies that share all but so many bits are ranked together, each such share of an output by itself


def instant(value: Column) -> Column:
    """A recorded instant, clamped so that differences fit."""
    return F.greatest(lit(-INSTANT_LIMIT), F.least(lit(INSTANT_LIMIT), value))


def duration(until: Column, since: Column) -> Column:
    """A span in ns, clamped to 0..DURATION_LIMIT."""
    return F.greatest(lit(0), F.least(lit(DURATION_LIMIT), instant(until) - instant(since)))


def expect(
    rows: DataFrame, misses: DataFrame, reach: DataFrame, plans: Plans, problems: DataFrame, slow: DataFrame
) -> DataFrame:
    """RESULT rank upper lower: one answer per expected result. reach: spark_tables.reach_rows."""
    outputs = plans.outputs.withColumnRenamed("out_node", "at_node")
    doubted = problems.select("run", *LINEAGE, F.lit(True).alias("doubted")).distinct()
    unsure = col("doubted").isNotNull()
    at = instant(value(Output.at_ns))
    upper, lower = at - instant(value(Output.origin_lo_ns)), at - instant(value(Output.origin_hi_ns))
    delivered = (
        rows.where(is_(rec.OUTPUT))
        .join(outputs, ["run", "ref", "at_node"])
        .join(doubted.hint(IN_MEMORY), ["run", *LINEAGE], "left")
        .join(slow, ["run", *LINEAGE], "left")
        .select(
            "run", col("ref").cast("long").alias("output"), *LINEAGE, value(Output.ordinal).alias("ordinal"),
            lit(Rank.DELIVERED).alias("rank"),
            F.when(unsure | col("slow").isNotNull(), lit(INSTANT_LIMIT)).otherwise(upper).alias("upper"),
            F.when(unsure, lit(-INSTANT_LIMIT)).otherwise(lower).alias("lower"),
        )
    )  # fmt: skip
    farther = lit(Rank.LOST_UNSURE - Rank.LOST)  # the same distance for SHED and POLICED
    rank = F.when(col("sure") | (col("rank") == Rank.UNDECIDABLE), col("rank")).otherwise(col("rank") + farther)
    missing = misses.join(reach, ["run", "consumer", "kept"]).select(
        "run", "output", *TUPLE, rank.alias("rank"), lit(0).alias("upper"), lit(0).alias("lower")
    )
    came = col("rank") == Rank.DELIVERED
    best = (
        delivered.unionByName(missing)
        .groupBy(*RESULT)
        .agg(
            F.min("rank").alias("rank"),
            F.coalesce(F.min(F.when(came, col("upper"))), lit(0)).alias("upper"),
            F.coalesce(F.min(F.when(came, col("lower"))), lit(0)).alias("lower"),
        )
    )
    deadlines = plans.outputs.select("run", col("ref").alias("output"), "deadline")
    bounded = F.when(col("upper") <= col("deadline"), Rank.MET).when(col("lower") > col("deadline"), Rank.LATE)
    final = F.when(col("rank") != Rank.DELIVERED, col("rank")).otherwise(bounded.otherwise(Rank.UNDECIDABLE))
    return best.join(deadlines, ["run", "output"]).withColumns(
        {"delivered": col("rank") == Rank.DELIVERED, "rank": final.cast("long")}
    )


def ranked(delivered: DataFrame) -> DataFrame:
    """run output n bounded at upper: of n latencies, of which so many are bounds, the ones at the ranks that some
    k/QUANTILES asks for (nearest rank), and p99 of those that are bounds."""
    share = F.shiftright("upper", FINE).alias("share")
    counts = (
        delivered.groupBy("run", "output", share)
        .agg(F.count("*").alias("held"), F.count_if(col("upper") < INSTANT_LIMIT).alias("bounds"))
        .withColumns(
            {
                "before": F.sum("held").over(_by_share()) - col("held"),
                "n": F.sum("held").over(Window.partitionBy("run", "output")),
                "bounded": F.sum("bounds").over(Window.partitionBy("run", "output")),
            }
        )
        .drop("held", "bounds")
    )
    place = F.row_number().over(Window.partitionBy("run", "output", "share").orderBy("upper"))
    placed = (
        delivered.select("run", "output", share, "upper")
        .withColumn("place", place)
        .join(F.broadcast(counts), ["run", "output", "share"])
        .withColumn("at", col("place").cast("long") + col("before"))
    )
    asked = F.floor(F.expr(f"at * {QUANTILES} div n")) > F.floor(F.expr(f"(at - 1) * {QUANTILES} div n"))
    return placed.where(asked | (col("at") == _tail_rank())).select("run", "output", "n", "bounded", "at", "upper")


def _by_share() -> WindowSpec:
    ordered = Window.partitionBy("run", "output").orderBy("share")
    return ordered.rowsBetween(Window.unboundedPreceding, Window.currentRow)


def _tail_rank() -> Column:
    return F.expr("(99 * bounded + 99) div 100")  # nearest rank of p99


def above(delivered: DataFrame, plans: Plans) -> DataFrame:
    """run output n most: results that took longer than their own plan's bound for certain, and by how much at most."""
    held = delivered.withColumn("plan", F.shiftright(col("source").cast("long"), ID_BITS))
    over = held.join(plans.bounds, ["run", "output", "plan"]).where(col("lower") > col("bound"))
    most = F.max(col("lower") - col("bound")).alias("most")
    return over.groupBy("run", "output").agg(F.count("*").alias("n"), most)


def stage_times(rows: DataFrame, results: DataFrame, ranks: DataFrame, linked: DataFrame, plans: Plans) -> DataFrame:
    """RESULT whole tail hop ref ns: where each delivered result's time went, and one row with hop null per result.
    ranks: `ranked`."""
    tail = ranks.where(col("at") == _tail_rank()).select("run", "output", col("upper").alias("threshold"))
    mine = (
        results.where(col("delivered") & (col("upper") < INSTANT_LIMIT))
        .join(F.broadcast(tail), ["run", "output"])
        .withColumn("tail", (col("upper") >= col("threshold")).cast("long"))
        .withColumn("whole", F.greatest(lit(0), F.least(lit(DURATION_LIMIT), col("upper"))))
        .select(*RESULT, "whole", "tail")
    )
    shifted = (F.shiftright("ordinal", bits) for bits in (0, 8, 16, 24))
    line = F.array_distinct(F.array(*shifted, lit(0).cast("long")))  # every ordinal stems from 0
    descent = mine.withColumn("line", F.explode(line))
    columns = [*RESULT, "whole", "tail", "hop", "ref", "ns"]
    frames = [
        mine.join(ages(rows).hint(IN_MEMORY), ["run", *LINEAGE]).withColumns({"hop": lit(Hop.AGE), "ref": lit(0)}),
        descent.join(units(rows, plans).hint(IN_MEMORY), ["run", "output", *LINEAGE, "line"]),
        descent.join(hops(linked, plans).hint(IN_MEMORY), ["run", "output", *LINEAGE, "line"]),
        mine.withColumns({"hop": F.lit(None).cast("long"), "ref": lit(0), "ns": lit(0)}),
    ]
    return reduce(DataFrame.unionByName, (frame.select(*columns) for frame in frames))


def ages(rows: DataFrame) -> DataFrame:
    """run LINEAGE ns: age at admission (upper bound)."""
    age = F.min(duration(value(Admitted.at_ns), value(Admitted.origin_lo_ns))).alias("ns")
    return rows.where(is_(rec.ADMITTED)).groupBy("run", *LINEAGE).agg(age)


def units(rows: DataFrame, plans: Plans) -> DataFrame:
    """run output LINEAGE line hop ref ns: queued and running, per unit that leads to the output."""
    release, start, end = (value(each) for each in (Ran.release_ns, Ran.start_ns, Ran.end_ns))
    busy = (
        rows.where(is_(rec.RAN))
        .groupBy("run", "ref", *LINEAGE, instance_ordinal().alias("line"))
        .agg(
            duration(F.max(end), F.min(release)).alias("there"),
            F.least(lit(DURATION_LIMIT), F.sum(duration(end, start))).alias("run_ns"),
        )
    )
    leads = plans.lead_units.withColumnRenamed("unit", "ref")
    waited = F.greatest(lit(0), col("there") - col("run_ns"))
    kinds = F.array(
        F.struct(lit(Hop.QUEUE).alias("hop"), waited.alias("ns")),
        F.struct(lit(Hop.RUN).alias("hop"), col("run_ns").alias("ns")),
    )
    found = busy.join(leads, ["run", "ref"]).withColumn("kinds", F.explode(kinds))
    return found.select(
        "run", "output", *LINEAGE, "line", "kinds.hop", col("ref").cast("long").alias("ref"), "kinds.ns"
    )


def hops(linked: DataFrame, plans: Plans) -> DataFrame:
    """run output LINEAGE line hop ref ns: time on links whose two ends share a clock domain."""
    clock = col("departed.clock")
    same = F.filter("landed", lambda end: (end.clock == clock) & (clock != 0))
    took = F.transform(same, lambda end: duration(end.at, col("departed.at")))
    found = linked.where(col("sent") > 0).withColumn("ns", F.array_min(took)).where(col("ns").isNotNull())
    leads = plans.lead_streams.withColumnRenamed("at_node", "to_node")
    return found.join(leads, ["run", "to_node", "stream"]).select(
        "run",
        "output",
        *LINEAGE,
        col("ordinal").alias("line"),
        lit(Hop.LINK).alias("hop"),
        col("to_node").alias("ref"),
        "ns",
    )


def breakdown_sums(parts: DataFrame) -> DataFrame:
    """run output hop ref total tail n: sums of `stage_times`; hop null is the latency itself with n results."""

    def sums(ns: Column, tail: Column) -> list[Column]:
        return [
            F.sum(ns).alias("total"),
            F.sum(ns * tail).alias("in_tail"),
            F.count("*").alias("n"),
            F.sum(tail).alias("n_tail"),
        ]

    per_stage = (
        parts.where(col("hop").isNotNull()).groupBy("run", "output", "hop", "ref").agg(*sums(col("ns"), col("tail")))
    )
    whole = parts.groupBy(*RESULT, "whole", "tail").agg(F.sum("ns").alias("ns"))
    latency = whole.groupBy("run", "output").agg(*sums(col("whole"), col("tail")))
    left = F.greatest(lit(0), col("whole") - col("ns"))
    rest = whole.groupBy("run", "output").agg(*sums(left, col("tail")))
    none = {"hop": F.lit(None).cast("long"), "ref": lit(0)}
    return per_stage.unionByName(latency.withColumns(none)).unionByName(
        rest.withColumns({"hop": lit(Hop.REST), "ref": lit(0)})
    )
