"""A Spark session for short local jobs: quiet, on loopback, two threads, quick to start; or on a cluster."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[2]"
_QUIET = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = spark: %p %m%n
"""


class SparkUnavailableError(RuntimeError):
    """Spark cannot run here; the text says what to install."""


def require_java() -> None:
    """Raises SparkUnavailableError, with one line, where there is no Java."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and (Path(home) / "bin" / "java").exists()):
        raise SparkUnavailableError(
            "Spark needs Java 17 or later, and no `java` was found: install it "
            "(Debian, Ubuntu: apt-get install openjdk-17-jre-headless), or use --engine python"
        )


@contextmanager
def session(master: str | None = None) -> Iterator["SparkSession"]:
    """A session, stopped at the end. master: Spark's, default two local threads."""
    require_java()
    from pyspark.sql import SparkSession

    local = master is None or master.startswith("local")
    with tempfile.TemporaryDirectory(prefix="shimekiri-spark-") as scratch:
        quiet = Path(scratch) / "log4j2.properties"
        quiet.write_text(_QUIET)
        java = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
        java += f" -Dlog4j2.configurationFile=file:{quiet} -Djava.io.tmpdir={scratch}"
        builder = SparkSession.builder.appName("shimekiri-report").master(master or LOCAL)
        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
            "spark.driver.extraJavaOptions": java,
            "spark.sql.session.timeZone": "UTC",
            # Damaged records may hold any 64 bits: arithmetic on them wraps instead of ending the job.
            "spark.sql.ansi.enabled": "false",
            # Boots are 16 hex digits, some of which look like numbers.
            "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
            "spark.sql.warehouse.dir": f"{scratch}/warehouse",
        }
        if local:
            os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
            settings |= {
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.driver.host": "127.0.0.1",
                "spark.sql.shuffle.partitions": "2",
                "spark.default.parallelism": "2",
                "spark.local.dir": scratch,
                "spark.sql.codegen.wholeStage": "false",
            }
        for key, value in settings.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        try:
            yield spark
        finally:
            spark.stop()
