"""The admitted-tuples ledger as Spark columns; ledger.py is the same in plain Python.

docs/explanation/report.md has the rules.

spark_records.py has the keys of the frames and what records say, spark_entries.py what is owed and what has ended.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator.report.counts import LOST_LINK, LOST_RESTART, POLICED, Outcome, Rank
from coordinator.report.facts.completeness import Status
from coordinator.report.facts.plan_view import PEER, RESULT, UNIT
from coordinator.report.facts.problems import Fault
from coordinator.report.spark.spark_entries import arrivals, ends, entries, links, nowhere, obligations, settle
from coordinator.report.spark.spark_records import (
    BUCKET,
    LINK,
    TUPLE,
    consumer,
    instance_ordinal,
    is_,
    of_result,
    of_unit,
    value,
    word,
)
from coordinator.report.spark.spark_tables import Plans, col, lit
from protos import records as rec
from protos.records import Output, Shed

Persist = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class BalanceSheet:
    """The ledger of all runs, settled."""

    obligations: DataFrame  # run n
    outcomes: DataFrame  # run outcome cause n
    problems: DataFrame  # run fault inc ref LINEAGE ordinal times
    misses: DataFrame  # run rank consumer kept TUPLE
    linked: DataFrame  # `links`, with what is known of the receiving node


def keep(
    rows: DataFrame, done: DataFrame, plans: Plans, statuses: DataFrame, nodes: DataFrame, second: DataFrame,
    persist: Persist,
) -> BalanceSheet:  # fmt: skip
    """Settle the ledger. rows: `own`; done: `instances`; statuses, nodes: spark_tables.status_tables; second:
    spark_tables.witnessed."""
    arrived = arrivals(rows, plans)
    settled = persist(settle(entries(arrived, rows)).join(statuses, ["run", "inc"]))
    linked = persist(links(rows).join(nodes.withColumnRenamed("node", "to_node"), ["run", "to_node"], "left"))
    opened = settled.where(col("open") > 0)
    problems = [
        nowhere(arrived), odd(rows, plans), open_problems(opened), excess(settled, plans), unsent(linked, nodes),
        second,
    ]  # fmt: skip
    return BalanceSheet(
        obligations=obligations(arrived, rows),
        outcomes=outcomes(ends(rows, plans), done, plans, opened, linked),
        problems=persist(reduce(DataFrame.unionByName, problems)),
        misses=misses(rows, plans, done, opened, linked),
        linked=linked,
    )


# -- what follows from it


def outcomes(ended: DataFrame, done: DataFrame, plans: Plans, opened: DataFrame, linked: DataFrame) -> DataFrame:
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
        col("why").alias("cause"),
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
    unfused = value(Shed.policy).isin(*rec.UNFUSED)
    early = ends(rows.where((is_(rec.SHED) & ~of_result() & ~unfused) | (is_(rec.LOST) & ~of_unit())), plans)

    def shed(policy: Column) -> Column:
        return F.when(policy.isin(*POLICED), Rank.POLICED).otherwise(Rank.SHED)

    dropped = early.withColumns(
        {"rank": F.when(is_(rec.SHED), shed(col("why"))).otherwise(Rank.LOST).cast("long"), "kept": none}
    )
    kept = sum(
        (F.when(F.shiftright("outputs", 8 * e).bitwiseAND(lit(255)) > 0, 1 << e).otherwise(0) for e in range(4)), lit(0)
    )
    failed = done.where(col("lost") > 0).withColumns(
        {"rank": lit(Rank.LOST), "consumer": consumer(UNIT, col("ref")), "kept": kept}
    )
    surplus_results = (
        rows.where(of_result())
        .withColumn("operator", value(Shed.operator))
        .join(plans.before, ["run", "ref", "operator"], "left")
        .withColumns(
            {
                "rank": shed(value(Shed.policy)).cast("long"),
                "consumer": consumer(UNIT, col("ref")),
                "ordinal": value(Shed.ordinal),
                "kept": F.coalesce(
                    F.when(value(Shed.policy).isin(*rec.OWN_RESULT), col("kept")).otherwise(col("through")), lit(0)
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
        .where(F.shiftright("consumer", 48) == UNIT)
        .withColumn("ref", F.shiftright("consumer", 24).bitwiseAND(lit(0xFFFFFF)))
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
    backwards = value(Output.origin_lo_ns) > value(Output.origin_hi_ns)
    output = output.where((value(Output.deadline_ns) != col("deadline")) | backwards)
    output = output.withColumns({"fault": lit(Fault.ODD_OUTPUT), "ordinal": value(Output.ordinal)})
    unit = rows.where(is_(rec.RAN) | (is_(rec.LOST) & of_unit())).join(plans.units, ["run", "ref"])
    unit = unit.withColumn("word", word()).where(F.expr("shiftright(word, cast(8 * exits as int))") > 0)
    unit = unit.withColumns({"fault": lit(Fault.ODD_EXIT), "ordinal": instance_ordinal()})
    both = [frame.withColumns({"ref": col("ref").cast("long"), "times": lit(1)}) for frame in (output, unit)]
    columns = ["run", "fault", "inc", "ref", *TUPLE, "times"]
    return both[0].select(*columns).unionByName(both[1].select(*columns))
