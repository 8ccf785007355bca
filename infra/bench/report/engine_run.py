"""One engine's report on one run, in a process of its own: `python -m infra.bench.report.engine_run ENGINE RUN`."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

Timed = dict[str, float]


def by_python(run: Path) -> Timed:
    """The readable reference."""
    from coordinator.report.facts.reader import read_run
    from coordinator.report.verdict import verdict

    verdict(read_run(run))
    return {}


def by_spark(run: Path) -> Timed:
    """With what it took until Spark answered at all."""
    from coordinator.report.facts.reader import read_run
    from coordinator.report.spark.spark_session import session

    began, read = time.perf_counter(), read_run(run)
    records = sum(each.declared.records or 0 for each in read.incarnations)
    reading = time.perf_counter() - began
    with session(records=records) as spark:
        spark.range(1).count()
        cold = time.perf_counter() - began - reading
        from coordinator.report.spark.spark import verdicts

        verdicts(spark, [read])
    return {"cold_start_s": cold}


def by_whole_report(run: Path) -> Timed:
    """All that `coordinator report --engine spark` does: causes, tables and page as well. HEAP: of Spark, as 1700m."""
    from coordinator.report.command import publish
    from coordinator.report.facts.reader import read_run
    from coordinator.report.spark.spark_choice import SparkChoice

    heap = os.environ.get("HEAP")
    settings = {} if heap is None else {"spark.driver.memory": heap}
    publish([read_run(run)], "spark", SparkChoice(settings=settings), lambda text: print(text, file=sys.stderr))
    return {}


def by_duckdb(run: Path) -> Timed:
    """The recount from raw records."""
    from infra.bench.report.duckdb_recount import recount

    asdict(recount(run))
    return {}


ENGINES: dict[str, Callable[[Path], Timed]] = {
    "spark": by_spark, "python": by_python, "duckdb": by_duckdb, "report": by_whole_report,
}  # fmt: skip


def main() -> int:
    """Prints what the engine timed itself, as JSON."""
    engine, run = sys.argv[1:]
    print(json.dumps(ENGINES[engine](Path(run))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
