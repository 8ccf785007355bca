"""`make spark-plan`: prints how Spark carries a report out, as `explain` has it."""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession

from coordinator.report.facts.reader import read_run
from coordinator.report.spark.shared_files import SharedFiles
from coordinator.report.spark.spark import verdicts_with
from coordinator.report.spark.spark_session import session
from infra.bench.report.pairs_query import template
from infra.bench.report.tiled_run import tiled

RECORDS, NODES = 100_000, 2
FRAMES = (
    "the records of the judged plans, moved to where their tuple lies", "task instances",
    "completeness and filters (collected)", "cells of the ledger that do not balance", "links", "contradictions",
    "an answer for each expected result", "ranks of latencies", "where each result's time went",
    "all that the report is made of (collected)",
)  # fmt: skip
HEAD = f"""\
# How Spark carries a report out

The physical plan of each frame that a report computes, as `explain` prints it, for a run of {RECORDS:,} records of
{NODES} nodes on two local threads. A frame that is used again is held, and those after it begin at its rows (`Scan
ExistingRDD`). Records cross the network once, in the first one (`Exchange`); what is grouped or joined by the tuple
stays where it lies. The other exchanges move partial sums, ranks and windows' spans. Plans, names and statuses are
broadcast.
"""


class _Explained(SharedFiles):
    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark, None, None)
        self.plans: list[str] = []

    def checkpoint(self, frame: DataFrame) -> DataFrame:
        """Its plan first."""
        self.plans.append(_plan(frame))
        return super().checkpoint(frame)

    def collect(self, frame: DataFrame) -> list[Row]:
        """Its plan first."""
        self.plans.append(_plan(frame))
        return super().collect(frame)


def _plan(frame: DataFrame) -> str:
    """The tree, without the lists of columns behind it."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        frame.explain(mode="formatted")
    return told.getvalue().split("\n\n")[0].removeprefix("== Physical Plan ==\n")


def main() -> int:
    """Prints a section for each frame."""
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch) / "run"
        records = tiled(template(NODES, Path(scratch)), run, RECORDS)
        with session(records=records) as spark:
            files = _Explained(spark)
            verdicts_with(spark, [read_run(run)], files)
            files.close()
    parts = [f"## {name.capitalize()}\n\n```\n{plan}\n```\n" for name, plan in zip(FRAMES, files.plans, strict=True)]
    sys.stdout.write("\n".join([HEAD, *parts]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
