"""The admitted-tuples ledger as Spark columns; ledger.py is the same in plain Python, README.md has the rules in prose.

Frames below are keyed by `run`; LINEAGE names a tuple, BUCKET all that one consumer of one incarnation owes to it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from coordinator.report.completeness import FACT_KINDS, LEDGER_KINDS, Status
from coordinator.report.joined import ID_BITS
from coordinator.report.plan_view import OUTPUT, PEER, RESULT, SIDE, UNIT
from coordinator.report.problems import Fault
from coordinator.report.shape import LOST_LINK, LOST_RESTART, Outcome, Rank
from coordinator.report.spark_tables import Plans, col, lit
from protos import records as rec

LINEAGE = ["source", "epoch", "seq"]
TUPLE = [*LINEAGE, "ordinal"]
BUCKET = ["run", "inc", "consumer", *LINEAGE]
INSTANCE = ["run", "inc", "at_node", "ref", *TUPLE]
LINK = ["run", "from_node", "to_node", "stream", *TUPLE]

Persist = Callable[[DataFrame], DataFrame]


def is_(*kinds: int) -> Column:
    return col("kind").isin(*kinds)


def consumer(kind: int, ref: Column, stream: Column | None = None) -> Column:
    """plan_view.consumer_id."""
    base = lit(kind << 40).bitwiseOR(F.shiftleft(ref.cast("long"), 20))
    return base if stream is None else base.bitwiseOR(stream)


# Columns need a live session, so these are functions and not constants.


def flagged() -> Column:
    return col("flags") >= rec.FLAG


def of_unit() -> Column:
    """LOST at a unit: not on a link, not of all consumers."""
    return ~flagged() & (col("ref") != rec.NO_REF)


def of_result() -> Column:
    """SHED of a result within a unit."""
    return is_(rec.SHED) & (col("ref") != rec.NO_REF) & ((col("w1") == rec.POLICY_SELECTIVITY) | (col("w4") != 0))


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
    ).drop("number")
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


@dataclass(frozen=True)
class Books:
    """The ledger of all runs, settled."""

    obligations: DataFrame  # run n
    outcomes: DataFrame  # run outcome cause n
    problems: DataFrame  # run fault inc ref LINEAGE ordinal times
    misses: DataFrame  # run rank consumer kept TUPLE
    linked: DataFrame  # `links`, with what is known of the receiving node


def keep(
    rows: DataFrame, done: DataFrame, plans: Plans, statuses: DataFrame, nodes: DataFrame, persist: Persist
) -> Books:
    """Settle the ledger. rows: `own`; done: `instances`; statuses, nodes: spark_tables.status_tables."""
    arrived, nowhere = arrivals(rows, plans)
    ended = ends(rows, plans)
    settled = persist(settle(arrived.unionByName(ended.drop("kind", "w1"))).join(statuses, ["run", "inc"]))
    linked = persist(links(rows).join(nodes.withColumnRenamed("node", "to_node"), ["run", "to_node"], "left"))
    opened = settled.where(col("open") > 0)
    problems = [nowhere, odd(rows, plans), open_problems(opened), excess(settled, plans), unsent(linked, nodes)]
    return Books(
        obligations=arrived.groupBy("run").agg(F.count("*").alias("n")),
        outcomes=outcomes(rows, ended, done, plans, opened, linked),
        problems=persist(reduce(DataFrame.unionByName, problems)),
        misses=misses(rows, plans, done, opened, linked),
        linked=linked,
    )


# -- arrivals and ends


def arrivals(rows: DataFrame, plans: Plans) -> tuple[DataFrame, DataFrame]:
    """(BUCKET ordinal fixed free ends parents, one row per obligation; the arrivals that nobody consumes)."""
    lineage = ["run", "inc", "at_node", *LINEAGE]
    admitted = rows.where(is_(rec.ADMITTED)).join(plans.sources, ["run", "ref", "at_node"], "left")
    admitted = admitted.select(*lineage, "stream", lit(0).alias("ordinal"), "kind", "ref")
    received = rows.where(is_(rec.RECEIVED)).select(
        *lineage, col("w3").alias("stream"), col("w4").alias("ordinal"), "kind", "ref"
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
    n = F.expr("shiftright(last, cast(8 * exit as int))").bitwiseAND(lit(255))
    children = F.transform(F.sequence(lit(1), col("n")), lambda i: col("parent") * 256 + i)
    return (
        rows.where(is_(rec.RAN) | (is_(rec.LOST) & of_unit()))
        .join(plans.exits, ["run", "ref"])
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
    """BUCKET ordinal fixed free ends parent, and kind w1, one row per end."""
    final = ~(is_(rec.RAN) & flagged()) & ~is_(rec.ADMITTED, rec.RECEIVED)
    ending = rows.where(final)
    ref = col("ref")
    nobody = (is_(rec.SHED) | (is_(rec.LOST) & ~flagged())) & (ref == rec.NO_REF)
    lost_everywhere = (
        ending.where(nobody)
        .withColumn("stream", col("w3"))
        .join(plans.consumers, ["run", "at_node", "stream"])
        .withColumn("ordinal", col("w2"))
    )
    one = ending.where(~nobody).withColumns(
        {
            "consumer": F.when(is_(rec.ABSORBED), consumer(SIDE, ref, col("w1")))
            .when(is_(rec.OUTPUT), consumer(OUTPUT, ref))
            .when(is_(rec.SENT), consumer(PEER, ref, col("w2")))
            .when(is_(rec.LOST) & flagged(), consumer(PEER, ref, col("w3")))
            .when(of_result(), consumer(RESULT, ref))
            .otherwise(consumer(UNIT, ref)),
            "ordinal": F.when(is_(rec.RAN), F.shiftrightunsigned("last", 32))
            .when(is_(rec.SHED, rec.LOST, rec.ABSORBED), col("w2"))
            .when(is_(rec.MERGED, rec.SENT), col("w3"))
            .otherwise(col("w4")),
        }
    )
    columns = [*BUCKET, "ordinal", "kind", "w1"]
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
    left = F.when(is_(rec.SENT), F.struct(col("w0").alias("at"), "clock"))
    there = F.when(is_(rec.RECEIVED), F.struct(col("w0").alias("at"), "clock"))
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
                "stream": F.when(sent, col("w2")).otherwise(col("w3")),
                "ordinal": F.when(sent, col("w3")).otherwise(col("w4")),
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


# -- what follows from it


def outcomes(
    rows: DataFrame, ended: DataFrame, done: DataFrame, plans: Plans, opened: DataFrame, linked: DataFrame
) -> DataFrame:
    """run outcome cause n, unsummed."""
    units = plans.units.select("run", "ref", "exits")
    filtered = (col("outputs") == 0) & (col("shed") == 0) & (F.coalesce(col("exits"), lit(0)) > 0)
    ran = done.join(units, ["run", "ref"], "left").select(
        "run",
        F.when(filtered, Outcome.FILTERED).otherwise(Outcome.CONSUMED).cast("long").alias("outcome"),
        lit(0).alias("cause"),
        col("finals").alias("n"),
    )
    booked = ended.where(~is_(rec.RAN, rec.SENT)).select(
        "run",
        F.when(is_(rec.OUTPUT), Outcome.DELIVERED)
        .when(is_(rec.ABSORBED), Outcome.ABSORBED)
        .when(is_(rec.MERGED), Outcome.MERGED)
        .when(is_(rec.SHED), Outcome.SHED)
        .otherwise(Outcome.LOST)
        .cast("long")
        .alias("outcome"),
        F.when(is_(rec.SHED, rec.LOST), col("w1")).otherwise(lit(0)).alias("cause"),
        lit(1).alias("n"),
    )
    status = col("status")
    left_open = opened.select(
        "run",
        F.when(status == Status.CRASHED, Outcome.LOST)
        .when(status == Status.UNKNOWN, Outcome.UNDECIDABLE)
        .otherwise(Outcome.OPEN)
        .cast("long")
        .alias("outcome"),
        F.when(status == Status.CRASHED, LOST_RESTART).otherwise(0).cast("long").alias("cause"),
        col("open").alias("n"),
    )
    here = (col("sent") - col("gone")).alias("n")
    arrived = linked.select("run", lit(Outcome.SENT).alias("outcome"), lit(0).alias("cause"), here)
    proven = col("incomplete") == F.lit(False)
    gone = linked.select(
        "run",
        F.when(proven, Outcome.LOST).otherwise(Outcome.UNDECIDABLE).cast("long").alias("outcome"),
        F.when(proven, LOST_LINK).otherwise(0).cast("long").alias("cause"),
        col("gone").alias("n"),
    )
    return reduce(DataFrame.unionByName, [ran, booked, left_open, arrived, gone]).where(col("n") > 0)


def misses(rows: DataFrame, plans: Plans, done: DataFrame, opened: DataFrame, linked: DataFrame) -> DataFrame:
    """run rank consumer kept TUPLE: tuples that came to an early end. kept: bit set of exits that had given outputs."""
    columns = ["run", "rank", "consumer", "kept", *TUPLE]
    none = lit(0).alias("kept")
    early = ends(rows.where((is_(rec.SHED) & ~of_result()) | (is_(rec.LOST) & ~of_unit())), plans)
    dropped = early.withColumns(
        {"rank": F.when(is_(rec.SHED), Rank.SHED).otherwise(Rank.LOST).cast("long"), "kept": none}
    )
    kept = sum(
        (F.when(F.shiftright("outputs", 8 * e).bitwiseAND(lit(255)) > 0, 1 << e).otherwise(0) for e in range(4)), lit(0)
    )
    failed = done.where(col("lost") > 0).withColumns(
        {"rank": lit(Rank.LOST), "consumer": consumer(UNIT, col("ref")), "kept": kept}
    )
    before = plans.before.withColumnRenamed("operator", "w4")
    surplus_results = (
        rows.where(of_result())
        .join(before, ["run", "ref", "w4"], "left")
        .withColumns(
            {
                "rank": lit(Rank.SHED),
                "consumer": consumer(UNIT, col("ref")),
                "ordinal": col("w2"),
                "kept": F.coalesce(
                    F.when(col("w1") == rec.POLICY_SELECTIVITY, col("kept")).otherwise(col("through")), lit(0)
                ),
            }
        )
    )
    crashed = F.when(col("status") == Status.CRASHED, Rank.LOST).otherwise(Rank.UNDECIDABLE).cast("long")
    unended = opened.withColumns({"rank": crashed, "kept": none})
    proven = F.when(col("incomplete") == F.lit(False), Rank.LOST).otherwise(Rank.UNDECIDABLE).cast("long")
    gone = linked.where(col("gone") > 0).withColumns(
        {"rank": proven, "consumer": consumer(PEER, col("to_node"), col("stream")), "kept": none}
    )
    return reduce(
        DataFrame.unionByName, (frame.select(*columns) for frame in (dropped, failed, surplus_results, unended, gone))
    )


# -- contradictions: run fault inc ref LINEAGE ordinal times


def _per_bucket(cells: DataFrame, fault: Fault, times: str) -> DataFrame:
    found = cells.groupBy(*BUCKET).agg(F.min("ordinal").alias("ordinal"), F.sum(times).alias("times"))
    return found.withColumnRenamed("consumer", "ref").withColumn("fault", lit(fault))


def open_problems(opened: DataFrame) -> DataFrame:
    """Obligations without an end, where the trace is whole or should be."""
    strict = opened.where(col("status").isin(Status.CLEAN, Status.DAMAGED))
    return _per_bucket(strict, Fault.OPEN, "open")


def excess(settled: DataFrame, plans: Plans) -> DataFrame:
    """Ends without an arrival; a unit that was running at a crash may have given outputs before its RAN was written."""
    exits, units = plans.exits, plans.units
    running = (
        settled.where((col("open") > 0) & (col("status") == Status.CRASHED))
        .where(F.shiftright("consumer", 40) == UNIT)
        .withColumn("ref", F.shiftright("consumer", 20).bitwiseAND(lit(0xFFFFF)))
        .drop("consumer")
        .join(units, ["run", "ref"])
        .withColumnRenamed("unit_node", "at_node")
    )
    given_out = running.join(exits, ["run", "ref"]).join(plans.consumers, ["run", "at_node", "stream"])
    shed = running.withColumn("consumer", consumer(RESULT, col("ref")))
    half_done = given_out.select(*BUCKET).unionByName(shed.select(*BUCKET)).distinct()
    found = settled.where((col("excess") > 0) & (col("status") != Status.UNKNOWN))
    crashed = found.where(col("status") == Status.CRASHED).join(half_done, BUCKET, "left_anti")
    strict = found.where(col("status") != Status.CRASHED).unionByName(crashed.select(*found.columns))
    return _per_bucket(strict, Fault.NO_ARRIVAL, "excess")


def unsent(linked: DataFrame, nodes: DataFrame) -> DataFrame:
    """RECEIVED more often, within one incarnation, than the peer says SENT."""
    peers = nodes.select("run", col("node").alias("from_node"), col("unknown").alias("peer_unknown"))
    each = linked.where(col("arrived") > 0).select(*LINK, "sent", F.explode("copies").alias("inc"))
    copies = each.groupBy(*LINK, "sent", "inc").agg(F.count("*").alias("n")).where(col("n") > col("sent"))
    found = copies.join(peers, ["run", "from_node"], "left").where(~F.coalesce(col("peer_unknown"), F.lit(False)))
    return found.select(
        "run", lit(Fault.NOT_SENT).alias("fault"), "inc", col("stream").alias("ref"), *TUPLE,
        (col("n") - col("sent")).alias("times"),
    )  # fmt: skip


def odd(rows: DataFrame, plans: Plans) -> DataFrame:
    """Records that the plan contradicts: OUTPUT with another deadline, outputs on an exit that the unit lacks."""
    output = rows.where(is_(rec.OUTPUT)).join(plans.outputs, ["run", "ref"])
    output = output.where((col("w3") != col("deadline")) | (col("w1") > col("w2")))
    output = output.withColumns({"fault": lit(Fault.ODD_OUTPUT), "ordinal": col("w4")})
    unit = rows.where(is_(rec.RAN) | (is_(rec.LOST) & of_unit())).join(plans.units, ["run", "ref"])
    unit = unit.withColumn("word", word()).where(F.expr("shiftright(word, cast(8 * exits as int))") > 0)
    unit = unit.withColumns({"fault": lit(Fault.ODD_EXIT), "ordinal": instance_ordinal()})
    both = [frame.withColumns({"ref": col("ref").cast("long"), "times": lit(1)}) for frame in (output, unit)]
    columns = ["run", "fault", "inc", "ref", *TUPLE, "times"]
    return both[0].select(*columns).unionByName(both[1].select(*columns))
