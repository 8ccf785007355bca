"""A frame that a cluster holds where all of it sees it: `python -m tests.coordinator.report.spark.cluster_smoke MASTER
COPY_TO`. In a process of its own, since Spark has one session in each."""

import sys
from pathlib import Path

from coordinator.report.spark import shared_files
from coordinator.report.spark.spark_choice import SparkChoice
from coordinator.report.spark.spark_session import session
from tests.coordinator.report.spark.test_spark_cluster import SETTINGS


def main(master: str, copy_to: str) -> None:
    """Prints how many rows the frame has, and how many of its files are there."""
    choice = SparkChoice(master, SETTINGS, copy_to)
    with session(choice) as spark, shared_files.on(spark, choice, Path()) as files:
        frame = files.checkpoint(spark.range(1000))
        print(frame.count(), "rows")
        files.write(frame, Path("tables") / "results", "run", print)


if __name__ == "__main__":
    main(*sys.argv[1:])
