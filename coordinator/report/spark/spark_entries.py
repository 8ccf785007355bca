"""The entries of the ledger as Spark frames: arrivals and ends, how they pair, and what links moved."""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from coordinator.report.facts.plan_view import OUTPUT, PEER, RESULT, SIDE, UNIT
from coordinator.report.facts.problems import Fault
from coordinator.report.spark.spark_records import (
    BUCKET,
    LINEAGE,
    LINK,
    TUPLE,
    consumer,
    flagged,
    instance_ordinal,
    is_,
    named,
    of_result,
    of_unit,
    surplus,
    value,
    word,
)
from coordinator.report.spark.spark_tables import Plans, col, lit
from protos import records as rec
from protos.records import Absorbed, Lost, Received, Sent, Shed


def arrivals(rows: DataFrame, plans: Plans) -> tuple[DataFrame, DataFrame]:
    """(BUCKET ordinal fixed free ends parents, one row per obligation; the arrivals that nobody consumes)."""
    lineage = ["run", "inc", "at_node", *LINEAGE]
    admitted = rows.where(is_(rec.ADMITTED)).join(plans.sources, ["run", "ref", "at_node"], "left")
    admitted = admitted.select(*lineage, "stream", lit(0).alias("ordinal"), "kind", "ref")
    received = rows.where(is_(rec.RECEIVED)).select(
        *lineage, value(Received.stream).alias("stream"), value(Received.ordinal).alias("ordinal"), "kind", "ref"
    )
    recorded = admitted.unionByName(received).join(plans.consumers, ["run", "at_node", "stream"], "left")
    lost = col("consumer").isNull()
    nowhere = recorded.where(lost).select(
        "run",
        F.when(is_(rec.ADMITTED), Fault.ADMITTED_NOWHERE).otherwise(Fault.RECEIVED_NOWHERE).cast("long").alias("fault"),
        "inc",
        F.when(is_(rec.ADMITTED), col("ref")).otherwise(col("stream")).cast("long").alias("ref"),
        *TUPLE,
        lit(1).alias("times"),
    )
    fixed = recorded.where(~lost).withColumn("parent", F.lit(None).cast("long"))
    counted = given(rows, plans).join(plans.consumers, ["run", "at_node", "stream"])
    owed = [fixed, counted, shed_within(rows)]
    both = reduce(DataFrame.unionByName, (frame.select(*BUCKET, "ordinal", "parent") for frame in owed))
    free = col("parent").isNotNull().cast("long")
    return both.withColumns({"fixed": 1 - free, "free": free, "ends": lit(0)}), nowhere


def given(rows: DataFrame, plans: Plans) -> DataFrame:
    """One row per output of a RAN, or of a LOST that failed half way.

    The record counts outputs, it does not name them: one keeps the ordinal, several are children of it.
    """
    n = F.expr("shiftright(word, cast(8 * exit as int))").bitwiseAND(lit(255))
    children = F.transform(F.sequence(lit(1), col("n")), lambda i: col("parent") * 256 + i)
    return (
        rows.where(is_(rec.RAN) | (is_(rec.LOST) & of_unit()))
        .join(plans.exits, ["run", "ref"])
        .withColumn("word", word())
        .withColumns({"n": n, "parent": instance_ordinal()})
        .where(col("n") > 0)
        .withColumn("ordinal", F.explode(F.when(col("n") == 1, F.array("parent")).otherwise(children)))
        .select("run", "inc", "at_node", *TUPLE, "stream", "parent")
    )


def shed_within(rows: DataFrame) -> DataFrame:
    """One row per result that a RAN or LOST says was shed; its ordinal is the instance's or descends from it."""
    ran = rows.where(is_(rec.RAN) | (is_(rec.LOST) & of_unit()))
    named = ran.withColumns(
        {"n": surplus(), "ordinal": instance_ordinal(), "consumer": consumer(RESULT, col("ref"))}
    ).where(col("n") > 0)
    return named.withColumns({"parent": col("ordinal"), "n": F.explode(F.sequence(lit(1), col("n")))})


def ends(rows: DataFrame, plans: Plans) -> DataFrame:
    """BUCKET ordinal fixed free ends parent, kind and why, one row per end."""
    final = ~(is_(rec.RAN) & flagged()) & ~is_(rec.ADMITTED, rec.RECEIVED)
    ending = rows.where(final).withColumns(
        {
            "ordinal": named("ordinal"),
            "why": F.when(is_(rec.SHED), value(Shed.policy)).when(is_(rec.LOST), value(Lost.cause)).otherwise(lit(0)),
        }
    )
    ref = col("ref")
    nobody = (is_(rec.SHED) | (is_(rec.LOST) & ~flagged())) & (ref == rec.NO_REF)
    lost_everywhere = (
        ending.where(nobody).withColumn("stream", named("stream")).join(plans.consumers, ["run", "at_node", "stream"])
    )
    one = ending.where(~nobody).withColumn(
        "consumer",
        F.when(is_(rec.ABSORBED), consumer(SIDE, ref, value(Absorbed.stream)))
        .when(is_(rec.OUTPUT), consumer(OUTPUT, ref))
        .when(is_(rec.SENT), consumer(PEER, ref, value(Sent.stream)))
        .when(is_(rec.LOST) & flagged(), consumer(PEER, ref, value(Lost.stream)))
        .when(of_result(), consumer(RESULT, ref))
        .otherwise(consumer(UNIT, ref)),
    )
    columns = [*BUCKET, "ordinal", "kind", "why"]
    booked = one.select(*columns).unionByName(lost_everywhere.select(*columns))
    none = F.lit(None).cast("long")
    return booked.withColumns({"fixed": lit(0), "free": lit(0), "ends": lit(1), "parent": none})


# -- settling


def settle(books: DataFrame) -> DataFrame:
    """BUCKET ordinal open excess, where either is not 0: arrivals paired with ends, same ordinal first."""
    fixed, free, end = col("fixed"), col("free"), col("ends")
    left = F.greatest(end - fixed, lit(0))
    cells = (
        books.groupBy(*BUCKET, "ordinal")
        .agg(
            F.sum("fixed").alias("fixed"),
            F.sum("free").alias("free"),
            F.sum("ends").alias("ends"),
            F.collect_set("parent").alias("parents"),
        )
        .where(fixed + free != end)
        .withColumns(
            {
                "open_fixed": F.greatest(fixed - end, lit(0)),
                "open_free": F.greatest(free - left, lit(0)),
                "stray": F.greatest(left - free, lit(0)),
            }
        )
    )
    bucket = Window.partitionBy(*BUCKET)
    upto = bucket.orderBy("ordinal").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    spare = F.when(col("open_free") > 0, col("parents")).otherwise(F.array().cast("array<bigint>"))
    line = F.array(*(F.shiftright("ordinal", bits) for bits in (0, 8, 16, 24)), lit(0).cast("long"))
    related = F.when(F.arrays_overlap(line, "spares"), col("stray")).otherwise(lit(0))
    renamed = F.least(F.sum("related").over(bucket), F.sum("open_free").over(bucket))

    def taken(held: str) -> Column:
        before = F.sum(held).over(upto) - col(held)
        return F.least(F.greatest(col("renamed") - before, lit(0)), col(held))

    return (
        cells.withColumn("spares", F.flatten(F.collect_list(spare).over(bucket)))
        .withColumn("related", related)
        .withColumn("renamed", renamed)
        .withColumns(
            {
                "open": col("open_fixed") + col("open_free") - taken("open_free"),
                "excess": col("stray") - taken("related"),
            }
        )
        .where((col("open") > 0) | (col("excess") > 0))
        .select(*BUCKET, "ordinal", "open", "excess")
    )


def links(rows: DataFrame) -> DataFrame:
    """LINK sent gone arrived copies departed landed: what was sent over a link, and what the peer has of it.

    gone: SENT beyond what arrived, of each incarnation alone, since one may send again what the one before it sent.
    """
    here = F.when(is_(rec.RECEIVED), col("inc"))
    at = value(rec.Record.at_ns).alias("at")
    left = F.when(is_(rec.SENT), F.struct(at, "clock"))
    there = F.when(is_(rec.RECEIVED), F.struct(at, "clock"))
    sent = is_(rec.SENT)

    def beyond(inc: Column) -> Column:
        n = F.size(F.filter("senders", lambda each: each == inc)).cast("long")
        return F.greatest(n - col("arrived"), lit(0))

    gone = F.aggregate(F.transform(F.array_distinct("senders"), beyond), lit(0), lambda total, n: total + n)
    return (
        rows.where(is_(rec.SENT, rec.RECEIVED))
        .withColumns(
            {
                "from_node": F.when(sent, col("at_node")).otherwise(col("ref").cast("long")),
                "to_node": F.when(sent, col("ref").cast("long")).otherwise(col("at_node")),
                "stream": named("stream"),
                "ordinal": named("ordinal"),
            }
        )
        .groupBy(*LINK)
        .agg(
            F.count_if(sent).alias("sent"),
            F.collect_list(F.when(sent, col("inc"))).alias("senders"),
            F.count(here).alias("arrived"),
            F.collect_list(here).alias("copies"),
            F.min(left).alias("departed"),
            F.collect_list(there).alias("landed"),
        )
        .withColumn("gone", gone)
        .drop("senders")
    )
