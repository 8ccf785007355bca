"""What the figures of overload are made from, as Spark columns; tally.py is the same in plain Python."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator.report.missing_windows import ADMITTED, BEGUN, TOLD
from coordinator.report.shape import DURATION_LIMIT, Rank
from coordinator.report.spark_records import LINEAGE, flagged, is_, of_result, of_unit
from coordinator.report.spark_results import duration, instant
from coordinator.report.spark_tables import Plans, col, lit
from protos import records as rec


def tallies(mine: DataFrame) -> DataFrame:
    """run inc kind ref word cause n spent first last. mine: `spark_ledger.own`, facts among them."""
    counted = is_(rec.ADMITTED, rec.RAN, rec.SHED, rec.DEGRADED, rec.WINDOW) | (is_(rec.LOST) & of_unit())
    skipped = F.greatest(lit(0), F.least(lit(DURATION_LIMIT), instant(col("last")) - instant(col("seq")) + lit(1)))
    windows = F.when(col("w1") == rec.WINDOW_SKIPPED, skipped).otherwise(lit(1))
    spent = F.when(is_(rec.RAN), duration(col("w2"), col("w1"))).when(is_(rec.WINDOW), windows).otherwise(lit(0))
    return (
        mine.where(counted)
        .select(
            "run",
            "inc",
            col("kind").cast("long").alias("kind"),
            F.when(is_(rec.ADMITTED), col("source")).otherwise(col("ref")).alias("ref"),
            F.when(is_(rec.SHED, rec.DEGRADED, rec.WINDOW), col("w1")).otherwise(lit(0)).alias("word"),
            F.when(is_(rec.WINDOW), col("w4"))
            .when(is_(rec.LOST), col("w1"))
            .when(of_result(), lit(1))
            .otherwise(lit(0))
            .alias("cause"),
            F.when(is_(rec.RAN) & flagged(), lit(0)).otherwise(lit(1)).alias("ended"),
            spent.alias("spent"),
            instant(col("w0")).alias("at"),
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
    count = F.greatest(lit(0), F.least(limit, col("w2")))
    return (
        mine.where(is_(rec.REFUSED))
        .select(
            "run",
            "inc",
            col("kind").cast("long").alias("kind"),
            col("source").alias("ref"),
            col("w1").alias("word"),
            col("epoch").cast("long").alias("cause"),
            count.alias("count"),
            (F.least(limit, col("seq")) + count).alias("upto"),
            instant(instant(col("last")) - instant(col("w4"))).alias("low"),
            instant(instant(col("w0")) - instant(col("w3"))).alias("high"),
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
    tuples = mine.where(is_(rec.SHED)).select("run", *LINEAGE, col("w1").alias("policy")).distinct()
    return tuples.groupBy("run", "source", "policy").agg(F.count("*").alias("n"))


def spans(mine: DataFrame) -> DataFrame:
    """run inc source about first last low high: `spans.spans`."""
    begun = (col("w1") == rec.WINDOW_SKIPPED) & (col("w4") == 0)
    about = F.when(is_(rec.ADMITTED), ADMITTED).when(begun, BEGUN).otherwise(TOLD).cast("long")
    windows = is_(rec.WINDOW)
    rows = mine.where(is_(rec.ADMITTED, rec.WINDOW)).select(
        "run",
        "inc",
        "source",
        about.alias("about"),
        instant(col("w0")).alias("at"),
        instant(F.when(windows, col("w2")).otherwise(col("w1"))).alias("low"),
        instant(F.when(windows, col("w3")).otherwise(col("w1"))).alias("high"),
    )
    return rows.groupBy("run", "inc", "source", "about").agg(
        F.min("at").alias("first"), F.max("at").alias("last"), F.min("low").alias("low"), F.max("high").alias("high")
    )


def window_answers(answers: DataFrame, plans: Plans) -> DataFrame:
    """run output source answered on_time: windows of which something is known there; of which all was in time."""
    of_windows = answers.join(plans.windows, ["run", "source"])
    each = of_windows.groupBy("run", "output", *LINEAGE).agg(F.min("rank").alias("least"), F.max("rank").alias("most"))
    met = (col("least") == Rank.MET) & (col("most") == Rank.MET)
    return each.groupBy("run", "output", "source").agg(F.count("*").alias("answered"), F.count_if(met).alias("on_time"))
