"""Records as the ledger reads them, as Spark columns: keys, words, and the records of the plans that are judged.

Frames are keyed by `run`; LINEAGE names a tuple, BUCKET all that one consumer of one incarnation owes to it.
"""

from collections.abc import Iterator
from itertools import count

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator.report.facts.completeness import FACT_KINDS, LEDGER_KINDS
from coordinator.report.facts.merged_plans import ID_BITS
from coordinator.report.landing.record_fields import FIELDS
from coordinator.report.spark.spark_tables import READ, Plans, col, lit
from protos import records as rec
from protos.record_layout import Field
from protos.records import Plan, Shed

LINEAGE = ["source", "epoch", "seq"]
ALONE = ("at_ns", "ordinal", "stream")  # fields that are asked for of records of any kind
READ_OF = (
    *ALONE, "release_ns", "start_ns", "end_ns", "outputs", "policed_results", "origin_lo_ns", "origin_hi_ns",
    "deadline_ns", "policy", "operator", "cause", "state", "tuples", "start", "end", "last_number", "reason",
    "refused_before", "first_at_ns", "age_lo_ns", "age_hi_ns", "plan_epoch", "parent_source", "parent_epoch",
    "parent_seq", "partner_absent",
)  # fmt: skip
TUPLE = [*LINEAGE, "ordinal"]
BUCKET = ["run", "inc", "consumer", *LINEAGE]
INSTANCE = ["run", "inc", "at_node", "ref", *TUPLE]
LINK = ["run", "from_node", "to_node", "stream", *TUPLE]


def is_(*kinds: int) -> Column:
    """True for records of one of these kinds."""
    return col("kind").isin(*kinds)


def unjudged(field: Field) -> Column:
    """A field of any kind, before records are narrowed to those that are judged (`own`)."""
    return col(READ + field.name)


def value(field: Field) -> Column:
    """A field of judged records that are all of its kind; of others it may be anything, but for ALONE."""
    return named(field.name)


def named(name: str) -> Column:
    """The field of that name, of judged records of any kind that has it."""
    return col(name if name in LINEAGE else COLUMN_OF[name])


def _kinds(name: str) -> frozenset[int]:
    """Of which judged kinds a field is read by that name."""
    if name == Plan.plan_epoch.name:
        return frozenset({rec.REFUSED})
    judged = (*LEDGER_KINDS, *FACT_KINDS)
    return frozenset(judged) if name in ALONE else frozenset(kind for kind in judged if name in FIELDS[kind])


def _columns() -> Iterator[tuple[str, str]]:
    """Field and column. Fields that no kind has both of share a column: rows are a third as wide."""
    taken: dict[str, set[int]] = {}
    for name in READ_OF:
        kinds = _kinds(name)
        column = next(each for each in (f"word{n}" for n in count()) if not taken.get(each, set()) & kinds)
        taken.setdefault(column, set()).update(kinds)
        yield name, column


COLUMN_OF = dict(_columns())


def _narrow() -> Iterator[Column]:
    """The columns that the fields of judged records share."""
    for column in dict.fromkeys(COLUMN_OF.values()):
        fields = [name for name, where in COLUMN_OF.items() if where == column]
        words = (
            F.when(is_(rec.REFUSED), col(READ + name)) if name == Plan.plan_epoch.name else col(READ + name)
            for name in fields
        )
        yield F.coalesce(*words).cast("long").alias(column)


def consumer(kind: int, ref: Column, stream: Column | None = None) -> Column:
    """plan_view.consumer_id."""
    base = lit(kind << 48).bitwiseOR(F.shiftleft(ref.cast("long"), 24))
    return base if stream is None else base.bitwiseOR(stream)


# Columns need a live session, so these are functions and not constants.


def flagged() -> Column:
    """True for records with the flag of their kind."""
    return col("flagged")


def of_unit() -> Column:
    """LOST at a unit: not on a link, not of all consumers."""
    return ~flagged() & (col("ref") != rec.NO_REF)


def of_result() -> Column:
    """SHED of a result within a unit."""
    return (
        is_(rec.SHED)
        & (col("ref") != rec.NO_REF)
        & (value(Shed.policy).isin(*rec.OWN_RESULT) | (value(Shed.operator) != 0))
    )


def word() -> Column:
    """Outputs per exit, in RAN and LOST."""
    return named("outputs")


def instance_ordinal() -> Column:
    """The ordinal of the tuple that a RAN or LOST ended."""
    return named("ordinal")


def surplus() -> Column:
    """Results that policing shed, in RAN and in LOST of a unit."""
    return named("policed_results")


def own(traces: DataFrame, plans: Plans, placed: bool = False) -> DataFrame:
    """The records of each run's plans that are judged (the ledgers' and FACT_KINDS), with the ids of the joined view
    (`merged_plans.py`): their plan epoch is named by a PLAN record with the hash of one of them. placed: with their
    place in the trace, and `under`, their plan epoch modulo 128."""
    low = unjudged(Plan.plan_epoch).bitwiseAND(lit(rec.PLAN_EPOCH_MASK)).alias("plan_epoch")
    epochs = (
        traces.where(is_(rec.PLAN))
        .withColumn("hash", unjudged(Plan.stamp))
        .join(plans.hashes, ["run", "hash"])
        .select("run", "inc", low, "number")
        .groupBy("run", "inc", "plan_epoch")
        .agg(F.min("number").alias("number"))
    )
    judged = traces.where(is_(*LEDGER_KINDS, *FACT_KINDS)).select(
        "run", "inc", "at_node", "clock", "kind", "flagged", "ref", *LINEAGE,
        unjudged(Plan.plan_epoch).alias("plan_epoch"), *_narrow(), *(["place"] if placed else ()),
    )  # fmt: skip
    found = judged.join(F.broadcast(epochs), ["run", "inc", "plan_epoch"])
    found = found.withColumnRenamed("plan_epoch", "under") if placed else found.drop("plan_epoch")
    return moved(found, plans) if plans.moved else found.drop("number")


def moved(rows: DataFrame, plans: Plans) -> DataFrame:
    """As `merged_plans.moved`: ids of earlier plans carry the plan's number above their own bits."""
    shift = F.shiftleft("number", ID_BITS)
    everywhere = is_(rec.SHED, rec.LOST) & (col("ref") == rec.NO_REF)
    to_peer = is_(rec.LOST) & flagged()
    has_ref = ~is_(rec.SENT, rec.RECEIVED) & ~everywhere & ~to_peer
    named_operator = is_(rec.DEGRADED) | (is_(rec.SHED) & (value(Shed.operator) != 0))

    def where(has: Column, name: str) -> Column:
        return F.when(has, col(name).bitwiseXOR(shift)).otherwise(col(name))

    found = rows.withColumns(
        {
            "source": col("source").bitwiseXOR(shift),
            "ref": where(has_ref, "ref"),
            COLUMN_OF["stream"]: named("stream").bitwiseXOR(shift),
        }
    )
    found = found.withColumn(COLUMN_OF["operator"], where(named_operator, COLUMN_OF["operator"]))
    found = found.withColumn(COLUMN_OF["parent_source"], where(is_(rec.MERGED), COLUMN_OF["parent_source"]))
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
