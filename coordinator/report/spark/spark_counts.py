"""Aggregated counts behind the figures of overload, as Spark columns. aggregated_counts.py is plain Python."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator.report.counts import ADMITTED, BEGUN, DURATION_LIMIT, TOLD, Rank
from coordinator.report.spark.spark_records import LINEAGE, flagged, is_, named, of_result, of_unit, value
from coordinator.report.spark.spark_results import duration, instant
from coordinator.report.spark.spark_tables import Plans, col, lit
from protos import records as rec
from protos.records import Admitted, Degraded, Lost, Output, Ran, Record, Refused, Shed, Window


def tallies(mine: DataFrame) -> DataFrame:
    """run inc kind ref word cause n spent first last. mine: `spark_ledger.own`, facts among them."""
    counted = is_(rec.ADMITTED, rec.RAN, rec.SHED, rec.DEGRADED, rec.WINDOW) | (is_(rec.LOST) & of_unit())
    skipped = F.greatest(
        lit(0), F.least(lit(DURATION_LIMIT), instant(value(Window.last_number)) - instant(col("seq")) + lit(1))
    )
    windows = F.when(value(Window.state) == rec.WINDOW_SKIPPED, skipped).otherwise(lit(1))
    ran = duration(value(Ran.end_ns), value(Ran.start_ns))
    spent = F.when(is_(rec.RAN), ran).when(is_(rec.WINDOW), windows).otherwise(lit(0))
    return (
        mine.where(counted)
        .select(
            "run",
            "inc",
            col("kind").cast("long").alias("kind"),
            F.when(is_(rec.ADMITTED), col("source")).otherwise(col("ref")).alias("ref"),
            F.when(is_(rec.SHED), value(Shed.policy))
            .when(is_(rec.DEGRADED), value(Degraded.operator))
            .when(is_(rec.WINDOW), value(Window.state))
            .otherwise(lit(0))
            .alias("word"),
            F.when(is_(rec.WINDOW), value(Window.cause))
            .when(is_(rec.LOST), value(Lost.cause))
            .when(of_result(), lit(1))
            .otherwise(lit(0))
            .alias("cause"),
            F.when(is_(rec.RAN) & flagged(), lit(0)).otherwise(lit(1)).alias("ended"),
            spent.alias("spent"),
            instant(value(Record.at_ns)).alias("at"),
        )
        .groupBy("run", "inc", "kind", "ref", "word", "cause")
        .agg(
            F.sum("ended").alias("n"),
            F.sum("spent").alias("spent"),
            F.min("at").alias("first"),
            F.max("at").alias("last"),
        )
    )


def refused(mine: DataFrame) -> DataFrame:
    """As `tallies`, of REFUSED: n tuples; how many are counted up to the last; the interval of their origins."""
    limit = lit(DURATION_LIMIT)
    count = F.greatest(lit(0), F.least(limit, value(Refused.tuples)))
    return (
        mine.where(is_(rec.REFUSED))
        .select(
            "run",
            "inc",
            col("kind").cast("long").alias("kind"),
            col("source").alias("ref"),
            value(Refused.reason).alias("word"),
            named("plan_epoch").alias("cause"),
            count.alias("count"),
            (F.least(limit, value(Refused.refused_before)) + count).alias("upto"),
            instant(instant(value(Refused.first_at_ns)) - instant(value(Refused.age_hi_ns))).alias("low"),
            instant(instant(value(Refused.at_ns)) - instant(value(Refused.age_lo_ns))).alias("high"),
        )
        .groupBy("run", "inc", "kind", "ref", "word", "cause")
        .agg(
            F.sum("count").alias("n"),
            F.max("upto").alias("spent"),
            F.min("low").alias("first"),
            F.max("high").alias("last"),
        )
    )


def shed_tuples(mine: DataFrame) -> DataFrame:
    """run source policy n: tuples of which something was shed."""
    tuples = mine.where(is_(rec.SHED)).select("run", *LINEAGE, value(Shed.policy).alias("policy")).distinct()
    return tuples.groupBy("run", "source", "policy").agg(F.count("*").alias("n"))


def intervals(mine: DataFrame) -> DataFrame:
    """run inc source about first last low high: `interval_set.intervals`."""
    begun = (value(Window.state) == rec.WINDOW_SKIPPED) & (value(Window.cause) == 0)
    origin = value(Admitted.origin_lo_ns)
    about = F.when(is_(rec.ADMITTED), ADMITTED).when(begun, BEGUN).otherwise(TOLD).cast("long")
    windows = is_(rec.WINDOW)
    rows = mine.where(is_(rec.ADMITTED, rec.WINDOW)).select(
        "run",
        "inc",
        "source",
        about.alias("about"),
        instant(value(Record.at_ns)).alias("at"),
        instant(F.when(windows, value(Window.start)).otherwise(origin)).alias("low"),
        instant(F.when(windows, value(Window.end)).otherwise(origin)).alias("high"),
    )
    return rows.groupBy("run", "inc", "source", "about").agg(
        F.min("at").alias("first"), F.max("at").alias("last"), F.min("low").alias("low"), F.max("high").alias("high")
    )


def seen(rows: DataFrame, answers: DataFrame, doubtful: DataFrame, plans: Plans) -> tuple[DataFrame, ...]:
    """run source epoch first last; run output source epoch n; run inc source first last: as `seen.see`. doubtful: run
    source window:bool."""
    mine = rows.join(doubtful, ["run", "source"])
    number = F.when(col("window"), lit(0)).otherwise(col("epoch").cast("long")).alias("epoch")
    numbers = mine.groupBy("run", "source", number).agg(F.min("seq").alias("first"), F.max("seq").alias("last"))
    outputs = plans.outputs.select("run", col("ref").cast("long").alias("output"))
    admitted = mine.where(is_(rec.ADMITTED)).select("run", "source", number, "seq").join(outputs, ["run"])
    told = answers.join(doubtful, ["run", "source"]).select("run", "source", number, "seq", "output")
    known = (
        admitted.unionByName(told).distinct().groupBy("run", "output", "source", "epoch").agg(F.count("*").alias("n"))
    )
    origin = instant(value(Output.origin_lo_ns))
    came = mine.where(is_(rec.OUTPUT) & col("window")).groupBy("run", "inc", "source")
    return numbers, known, came.agg(F.min(origin).alias("first"), F.max(origin).alias("last"))


def idle_windows(mine: DataFrame) -> DataFrame:
    """run source epoch seq: as `idle.idle_windows`."""
    closed = mine.where(is_(rec.WINDOW) & (value(Window.state) == rec.WINDOW_CLOSED))
    with_tuples = closed.where(value(Window.tuples) != 0).groupBy("run", "inc", "source")
    fed = with_tuples.agg(F.min("seq").alias("fed_first"), F.max("seq").alias("fed_last"))
    empty = closed.where(value(Window.tuples) == 0).join(fed, ["run", "inc", "source"], "left")
    outside = col("fed_first").isNull() | (col("seq") < col("fed_first")) | (col("seq") > col("fed_last"))
    return empty.where(outside).select("run", *LINEAGE).distinct()


def idle_met(answers: DataFrame, idle: DataFrame) -> DataFrame:
    """run output count: results of idle windows that were met."""
    met = answers.where(col("rank") == Rank.MET).join(idle, ["run", *LINEAGE], "left_semi")
    return met.groupBy("run", "output").count()


def window_answers(answers: DataFrame, idle: DataFrame, plans: Plans) -> DataFrame:
    """run output source answered on_time: windows of which something is known there; of which all was in time. idle:
    windows that are left out."""
    of_windows = answers.join(plans.windows, ["run", "source"]).join(idle, ["run", *LINEAGE], "left_anti")
    each = of_windows.groupBy("run", "output", *LINEAGE).agg(F.min("rank").alias("least"), F.max("rank").alias("most"))
    met = (col("least") == Rank.MET) & (col("most") == Rank.MET)
    return each.groupBy("run", "output", "source").agg(F.count("*").alias("answered"), F.count_if(met).alias("on_time"))
