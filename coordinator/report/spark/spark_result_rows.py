"""Each expected result, with the columns that `result_tables/table_columns.py` says."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from coordinator.report.counts import INSTANT_LIMIT, Rank
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.spark.spark_tables import col, lit, small


def named(spark: SparkSession, answers: DataFrame, plan: PlanView) -> DataFrame:
    """answers: of one run (`spark_results.expect`)."""
    outputs = small(spark, "output name:string", [(each.id, each.name) for each in plan.outputs.values()])
    sources = small(
        spark, "source source_name:string", [(id_, plan.streams[s]) for id_, (_, s) in plan.sources.items()]
    )
    words = F.array(*(F.lit(rank.name.lower()) for rank in Rank))
    delivered = col("delivered")
    found = answers.join(outputs, "output").join(sources, "source", "left")
    return found.select(
        col("name").alias("output"),
        F.coalesce("source_name", col("source").cast("string")).alias("source"),
        *(col(name).cast("long").alias(name) for name in ("epoch", "seq", "ordinal")),
        F.element_at(words, col("rank").cast("int") + 1).alias("outcome"),
        F.when(delivered & (col("lower") > lit(-INSTANT_LIMIT)), col("lower")).alias("latency_lo_ns"),
        F.when(delivered & (col("upper") < lit(INSTANT_LIMIT)), col("upper")).alias("latency_hi_ns"),
        col("deadline").alias("deadline_ns"),
    )
