"""What the ledger reads in records, as Spark columns: keys, words, and the records of the plans that are judged.

Frames are keyed by `run`; LINEAGE names a tuple, BUCKET all that one consumer of one incarnation owes to it.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator.report.completeness import FACT_KINDS, LEDGER_KINDS
from coordinator.report.joined import ID_BITS
from coordinator.report.spark_tables import Plans, col, lit
from protos import records as rec

LINEAGE = ["source", "epoch", "seq"]
TUPLE = [*LINEAGE, "ordinal"]
BUCKET = ["run", "inc", "consumer", *LINEAGE]
INSTANCE = ["run", "inc", "at_node", "ref", *TUPLE]
LINK = ["run", "from_node", "to_node", "stream", *TUPLE]


def is_(*kinds: int) -> Column:
    return col("kind").isin(*kinds)


def consumer(kind: int, ref: Column, stream: Column | None = None) -> Column:
    """plan_view.consumer_id."""
    base = lit(kind << 48).bitwiseOR(F.shiftleft(ref.cast("long"), 24))
    return base if stream is None else base.bitwiseOR(stream)


# Columns need a live session, so these are functions and not constants.


def flagged() -> Column:
    return col("flags") >= rec.FLAG


def of_unit() -> Column:
    """LOST at a unit: not on a link, not of all consumers."""
    return ~flagged() & (col("ref") != rec.NO_REF)


def of_result() -> Column:
    """SHED of a result within a unit."""
    return is_(rec.SHED) & (col("ref") != rec.NO_REF) & (col("w1").isin(*rec.OWN_RESULT) | (col("w4") != 0))


def word() -> Column:
    """Outputs per exit, in RAN and LOST."""
    return col("last").bitwiseAND(lit(0xFFFFFFFF))


def instance_ordinal() -> Column:
    """The ordinal of the tuple that a RAN or LOST ended."""
    return F.when(is_(rec.RAN), F.shiftrightunsigned("last", 32)).otherwise(col("w2"))


def surplus() -> Column:
    """Results that policing shed, in RAN and in LOST of a unit."""
    word = F.when(is_(rec.RAN), F.shiftright("w4", rec.SURPLUS_SHIFT)).otherwise(col("w3"))
    return word.bitwiseAND(lit(rec.SURPLUS_MOST))


def own(traces: DataFrame, plans: Plans) -> DataFrame:
    """The records of each run's plans that are judged (the ledgers' and FACT_KINDS), with the ids of the joined view
    (`joined.py`): their plan epoch is named by a PLAN record with the hash of one of them."""
    epoch = col("flags").bitwiseAND(rec.PLAN_EPOCH_MASK).cast("long")
    named = (
        traces.where(is_(rec.PLAN))
        .join(plans.hashes.withColumnRenamed("hash", "last"), ["run", "last"])
        .select("run", "inc", col("w1").bitwiseAND(lit(rec.PLAN_EPOCH_MASK)).alias("plan_epoch"), "number")
        .groupBy("run", "inc", "plan_epoch")
        .agg(F.min("number").alias("number"))
    )
    judged = traces.where(is_(*LEDGER_KINDS, *FACT_KINDS)).withColumn("plan_epoch", epoch)
    return moved(judged.join(F.broadcast(named), ["run", "inc", "plan_epoch"]).drop("plan_epoch"), plans)


def moved(rows: DataFrame, plans: Plans) -> DataFrame:
    """As `joined.moved`: ids of earlier plans carry the plan's number above their own bits. rows: with a `number`."""
    shift = F.shiftleft("number", ID_BITS)
    everywhere = is_(rec.SHED, rec.LOST) & (col("ref") == rec.NO_REF)
    to_peer = is_(rec.LOST) & flagged()
    has_ref = ~is_(rec.SENT, rec.RECEIVED) & ~everywhere & ~to_peer
    stream_in_w3 = is_(rec.RECEIVED, rec.SHED) | (is_(rec.LOST) & (everywhere | to_peer))

    def where(has: Column, name: str) -> Column:
        return F.when(has, col(name).cast("long").bitwiseXOR(shift)).otherwise(col(name).cast("long"))

    found = rows.withColumns(
        {
            "source": col("source").cast("long").bitwiseXOR(shift),
            "ref": where(has_ref, "ref"),
            "w1": where(is_(rec.ABSORBED, rec.DEGRADED), "w1"),
            "w2": where(is_(rec.SENT), "w2"),
            "w3": where(stream_in_w3, "w3"),
            "w4": where(is_(rec.SHED) & (col("w4") != 0), "w4"),
        }
    )
    to_node = is_(rec.SENT, rec.RECEIVED) | to_peer
    found = found.join(plans.peers, ["run", "number", "ref"], "left").drop("number")
    found = found.withColumn("ref", F.when(to_node, F.coalesce("joined", "ref")).otherwise(col("ref"))).drop("joined")
    known_as = F.when(is_(rec.OUTPUT), F.coalesce(col("known_as"), col("ref"))).otherwise(col("ref"))
    return found.join(plans.same, ["run", "ref"], "left").withColumn("ref", known_as).drop("known_as")


def instances(rows: DataFrame) -> DataFrame:
    """INSTANCE outputs finals lost: what all RAN and LOST records of a task instance say together."""
    ran = is_(rec.RAN) | (is_(rec.LOST) & of_unit())
    final = is_(rec.RAN) & ~flagged()
    return (
        rows.where(ran)
        .withColumn("ordinal", instance_ordinal())
        .groupBy(*INSTANCE)
        .agg(
            F.bit_or(word()).alias("outputs"),
            F.count_if(final).alias("finals"),
            F.count_if(is_(rec.LOST)).alias("lost"),
            F.sum(surplus()).alias("shed"),
        )
    )
