"""Each expected result, as the table of results has it."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from coordinator.report.counts import INSTANT_LIMIT, Rank
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.result_tables.columns import RESULTS
from coordinator.report.spark.spark_tables import col, lit, small


def named(spark: SparkSession, answers: DataFrame, plan: PlanView) -> DataFrame:
    """The columns of RESULTS. answers: of one run (`spark_results.expect`)."""
    outputs = small(spark, "output name:string", [(each.id, each.name) for each in plan.outputs.values()])
    sources = small(
        spark, "source source_name:string", [(id_, plan.streams[s]) for id_, (_, s) in plan.sources.items()]
    )
    words = F.array(*(F.lit(rank.name.lower()) for rank in Rank))
    delivered = col("delivered")
    found = answers.join(outputs, "output").join(sources, "source", "left")
    columns = {
        "output": col("name"),
        "source": F.coalesce("source_name", col("source").cast("string")),
        "outcome": F.element_at(words, col("rank").cast("int") + 1),
        "latency_lo_ns": F.when(delivered & (col("lower") > lit(-INSTANT_LIMIT)), col("lower")),
        "latency_hi_ns": F.when(delivered & (col("upper") < lit(INSTANT_LIMIT)), col("upper")),
        "deadline_ns": col("deadline"),
    }
    others = {name: col(name).cast("long") for name in ("epoch", "seq", "ordinal")}
    return found.select(*((columns | others)[each.name].alias(each.name) for each in RESULTS.columns))
