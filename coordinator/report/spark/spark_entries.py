"""The entries of the ledger as Spark frames: arrivals and ends, how they pair, and what links moved."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from coordinator.report.facts.plan_view import OUTPUT, PEER, RESULT, SIDE, UNIT
from coordinator.report.facts.problems import Fault
from coordinator.report.spark.spark_records import (
    BUCKET,
    COLUMN_OF,
    LINEAGE,
    LINK,
    consumer,
    flagged,
    instance_ordinal,
    is_,
    named,
    of_result,
    of_unit,
    surplus,
    value,
)
from coordinator.report.spark.spark_tables import BY_SOURCE, BY_STREAM, BY_UNIT, Plans, col, lit
from protos import records as rec
from protos.records import Lost, Shed


def arrivals(rows: DataFrame, plans: Plans) -> DataFrame:
    """BUCKET at first n fixed free ended: what comes to each consumer, n of it: one arrival of that ordinal, or results
    that a RAN, or a LOST that failed half way, counts: one keeps the ordinal, several are children of it. ended: the
    end of an arrival that none of the consumers got. consumer is null where nobody consumes."""
    in_unit = is_(rec.RAN) | (is_(rec.LOST) & of_unit())
    found = rows.where(is_(rec.ADMITTED, rec.RECEIVED) | in_unit | nobody()).withColumns(
        {
            "by": F.when(is_(rec.ADMITTED), BY_SOURCE).when(in_unit, BY_UNIT).otherwise(BY_STREAM).cast("long"),
            "key": F.when(is_(rec.ADMITTED) | in_unit, col("ref")).otherwise(named("stream")),
        }
    )
    n = F.when(
        col("by") == BY_UNIT, F.expr(f"shiftright({COLUMN_OF['outputs']}, cast(8 * exit as int))").bitwiseAND(lit(255))
    )
    return found.join(plans.takers, ["run", "by", "key", "at_node"], "left").select(
        *BUCKET,
        "kind",
        "key",
        F.coalesce(named("ordinal"), lit(0)).alias("first"),
        n.otherwise(lit(1)).alias("n"),
        is_(rec.ADMITTED, rec.RECEIVED).cast("long").alias("fixed"),
        (col("by") == BY_UNIT).cast("long").alias("free"),
        nobody().cast("long").alias("ended"),
    )


def nobody() -> Column:
    """SHED and LOST of what none of its consumers got."""
    return (is_(rec.SHED) | (is_(rec.LOST) & ~flagged())) & (col("ref") == rec.NO_REF)


def nowhere(arrived: DataFrame) -> DataFrame:
    """run fault inc ref TUPLE times: arrivals that nobody consumes."""
    fault = F.when(is_(rec.ADMITTED), Fault.ADMITTED_NOWHERE).otherwise(Fault.RECEIVED_NOWHERE).cast("long")
    return arrived.where(col("consumer").isNull() & (col("fixed") > 0)).select(
        "run", fault.alias("fault"), "inc", col("key").alias("ref"), *LINEAGE, col("first").alias("ordinal"),
        lit(1).alias("times"),
    )  # fmt: skip


def obligations(arrived: DataFrame, rows: DataFrame) -> DataFrame:
    """run n: how many ends are owed."""
    counted = arrived.where(col("consumer").isNotNull() & (col("ended") == 0)).select("run", "n")
    return counted.unionByName(shed_within(rows).select("run", "n")).groupBy("run").agg(F.sum("n").alias("n"))


def entries(arrived: DataFrame, rows: DataFrame) -> DataFrame:
    """BUCKET ordinal fixed free ends parent: what is owed, and what has ended."""
    children = F.transform(F.sequence(lit(1), col("n")), lambda i: col("first") * 256 + i)
    came = (
        arrived.where(col("consumer").isNotNull() & (col("n") > 0))
        .withColumn("ordinal", F.explode(F.when(col("n") == 1, F.array("first")).otherwise(children)))
        .select(
            *BUCKET, "ordinal", "fixed", "free", col("ended").alias("ends"),
            F.when(col("free") > 0, col("first")).alias("parent"),
        )
    )  # fmt: skip
    zero = lit(0)
    shed = shed_within(rows).select(
        *BUCKET, "ordinal", zero.alias("fixed"), col("n").alias("free"), zero.alias("ends"),
        col("ordinal").alias("parent"),
    )  # fmt: skip
    over = one_end(rows).select(
        *BUCKET, "ordinal", zero.alias("fixed"), zero.alias("free"), lit(1).alias("ends"),
        F.lit(None).cast("long").alias("parent"),
    )  # fmt: skip
    return came.unionByName(shed).unionByName(over)


def shed_within(rows: DataFrame) -> DataFrame:
    """BUCKET ordinal n: results that a RAN or LOST says were shed; their ordinal is the instance's or descends from
    it."""
    ran = rows.where(is_(rec.RAN) | (is_(rec.LOST) & of_unit()))
    return ran.withColumns(
        {"n": surplus(), "ordinal": instance_ordinal(), "consumer": consumer(RESULT, col("ref"))}
    ).where(col("n") > 0)


def one_end(rows: DataFrame) -> DataFrame:
    """BUCKET ordinal kind why: ends for one consumer, one row each."""
    final = ~(is_(rec.RAN) & flagged()) & ~is_(rec.ADMITTED, rec.RECEIVED) & ~nobody()
    ref = col("ref")
    stream = named("stream")
    return _why(rows.where(final)).withColumn(
        "consumer",
        F.when(is_(rec.ABSORBED), consumer(SIDE, ref, stream))
        .when(is_(rec.OUTPUT), consumer(OUTPUT, ref))
        .when(is_(rec.SENT) | (is_(rec.LOST) & flagged()), consumer(PEER, ref, stream))
        .when(of_result(), consumer(RESULT, ref))
        .otherwise(consumer(UNIT, ref)),
    )


def _why(ending: DataFrame) -> DataFrame:
    why = F.when(is_(rec.SHED), value(Shed.policy)).when(is_(rec.LOST), value(Lost.cause)).otherwise(lit(0))
    return ending.withColumns({"ordinal": named("ordinal"), "why": why})


def ends(rows: DataFrame, plans: Plans) -> DataFrame:
    """BUCKET ordinal kind why, one row per end."""
    columns = [*BUCKET, "ordinal", "kind", "why"]
    everywhere = _why(rows.where(nobody())).withColumn("stream", named("stream"))
    everywhere = everywhere.join(plans.consumers, ["run", "at_node", "stream"])
    return one_end(rows).select(*columns).unionByName(everywhere.select(*columns))


# -- settling


def settle(books: DataFrame) -> DataFrame:
    """BUCKET ordinal open excess, where either is not 0: arrivals paired with ends, same ordinal first.

    An arrival of ordinal n that a RAN counts came from the instance of n, or from that of (n - 1) div 256: no others
    have such a result. So sums and bits tell all, and cells that balance are done with.
    """
    fixed, free, end = col("fixed"), col("free"), col("ends")
    left = F.greatest(end - fixed, lit(0))
    cells = (
        books.groupBy(*BUCKET, "ordinal")
        .agg(
            F.sum("fixed").alias("fixed"),
            F.sum("free").alias("free"),
            F.sum("ends").alias("ends"),
            F.max(col("parent") == col("ordinal")).alias("kept"),
            F.max(col("parent") != col("ordinal")).alias("born"),
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
    parents = F.array(F.when(col("kept"), col("ordinal")), F.when(col("born"), F.shiftright(col("ordinal") - 1, 8)))
    spare = F.when(col("open_free") > 0, F.array_compact(parents)).otherwise(F.array().cast("array<bigint>"))
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
