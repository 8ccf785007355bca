"""A Spark session for short local jobs: quiet, on loopback, two threads, quick to start; or on a cluster."""

import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from coordinator.errors import Mistake
from coordinator.leftovers import scratch_folder
from coordinator.report import report_extra
from coordinator.report.spark.java import Java, SparkUnavailableError, find
from coordinator.report.spark.spark_choice import HERE, SparkChoice, defaults

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[2]"
KILLED_S = 10.0
MOST_SAID = 200  # letters of an error
SMALL = 30_000  # records; below it compiling generated code costs more than it saves (measured: equal at 50 000)
LARGE = 5_000_000  # records; at a million the JVM's second compiler takes more time than it saves (126 s for 102)
OF_A_TASK = 500_000  # records of a partition, about
RECORD_BYTES_HELD = 500  # of the heap, for each record of one partition in each thread, and for what is kept of all
LEAST_HEAP, MOST_HEAP = 1 << 30, 0.5  # bytes; share of what is free
_SILENT = logging.NullHandler()  # the same one each time: added twice it is there once
_QUIET = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = spark: %p %m%n
"""


@contextmanager
def session(choice: SparkChoice = HERE, records: int = 0) -> Iterator["SparkSession"]:
    """A session, stopped at the end; one that is already there is used and left alone.

    records: how many will be read. Raises SparkUnavailableError, also where a package of the extra is missing.
    """
    for package in ("pyspark", "pyarrow"):
        if not report_extra.has(package):
            raise SparkUnavailableError(report_extra.missing(package, "Spark", ", or use --engine python"))
    java = find()
    from pyspark.sql import SparkSession

    there = SparkSession.getActiveSession()
    if there is not None:
        yield there
        return
    with scratch_folder(Path(tempfile.gettempdir()), "shimekiri-report-") as scratch:
        others = set(psutil.Process().children())
        try:
            spark = _start(scratch, java, choice, records)
            yield spark
            gateway = spark.sparkContext._gateway
            spark.stop()
            if gateway is not None:
                gateway.shutdown()  # so that nobody asks it to let go of what Python still holds
            _end(others)  # what follows in this process wants its memory
        except Exception as error:
            why = _why(error)  # while there is somebody to ask
            _end(others)
            if not why:
                raise
            text = f"Spark failed: {why}"
            mend = "--engine python gives the same verdict without it"
            raise SparkUnavailableError(Mistake("spark_failed", text, mend, "Spark")) from error
        except BaseException:  # Ctrl-C, or SIGTERM: asking the JVM would take as long as what it is at
            before = signal.signal(signal.SIGINT, signal.SIG_IGN) if _on_main_thread() else None
            _end(others)
            if before is not None:
                signal.signal(signal.SIGINT, before)
            raise


def _why(error: Exception) -> str:
    """What Spark says of a job that failed; empty where the error is not of Spark."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    gone = "its process has ended, perhaps as memory ran out"
    match error:
        case Py4JJavaError():
            try:
                return _deepest(error.java_exception)
            except (Py4JError, OSError):
                return gone
        case Py4JError() | ConnectionError():
            return gone
        case PySparkException():
            return _line(str(error))
    return ""


def _deepest(thrown: Any) -> str:
    while thrown.getCause() is not None:
        thrown = thrown.getCause()
    return _line(f"{thrown.getClass().getSimpleName()}: {thrown.getMessage()}")


def _line(text: str) -> str:
    return " ".join(text.split())[:MOST_SAID]


def _on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _end(others: set[psutil.Process]) -> None:
    """The JVM that was started, whether or not Spark got to know it, is killed."""
    from pyspark import SparkContext

    started = [
        each for child in set(psutil.Process().children()) - others for each in (child, *child.children(recursive=True))
    ]
    for each in started:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    psutil.wait_procs(started, timeout=KILLED_S)
    for name in ("py4j.clientserver", "py4j.java_gateway"):  # their connections close as late as the interpreter ends
        logging.getLogger(name).disabled = True
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None  # of the JVM that is gone


def _start(scratch: Path, java: Java, choice: SparkChoice, records: int) -> "SparkSession":
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    settings = _settings(scratch, choice, records)
    if shutil.which("java") != str(java.program):
        os.environ["JAVA_HOME"] = str(java.home)
    conf = SparkConf().setAppName("shimekiri-report").setMaster(choice.master or LOCAL).setAll(list(settings.items()))
    said = scratch / "stderr"
    logging.getLogger().addHandler(_SILENT)  # py4j logs a connection that Ctrl-C cut as an error, with its traceback
    try:
        with _stderr_into(said):  # the JVM keeps it: it greets and warns on every start
            with _own_ctrl_c():
                SparkContext(conf=conf)
            builder: Any = SparkSession.builder
            spark: SparkSession = builder.config(conf=conf).getOrCreate()
            return spark
    except Exception as error:
        last = said.read_text(errors="replace").strip().splitlines()[-3:]
        text = f"Spark does not start: {error!s:.200} {' / '.join(last)}".strip()
        raise SparkUnavailableError(
            Mistake("spark_does_not_start", text, "--engine python gives the same verdict without it", "Spark")
        ) from error


@contextmanager
def _own_ctrl_c() -> Iterator[None]:
    """Ctrl-C stays ours: Spark's handler asks the JVM to cancel its jobs, over a connection that is in use."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if _on_main_thread():
            signal.signal(signal.SIGINT, before)


def _settings(scratch: Path, choice: SparkChoice, records: int) -> dict[str, str]:
    """Ours, but for what the user's files and options say, and what the verdict needs."""
    wished = defaults() | dict(choice.settings)
    tuned = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    tuned["spark.sql.broadcastTimeout"] = "86400"  # s: a slow or busy machine is no failure
    if choice.local:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        tuned |= _tuned_here(records)
    log4j = scratch / "log4j2.properties"
    log4j.write_text(_QUIET)
    java = "-XX:+UseParallelGC" if records >= LARGE else "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:NewSize=256m"
    java = wished.pop("spark.driver.extraJavaOptions", java)
    needed = {
        "spark.driver.extraJavaOptions": f"{java} -Dlog4j2.configurationFile=file:{log4j} -Djava.io.tmpdir={scratch}",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        # Damaged records may hold any 64 bits: arithmetic on them wraps instead of ending the job.
        "spark.sql.ansi.enabled": "false",
        # Boots are 16 hex digits, some of which look like numbers.
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        # What lies together by tuple is joined by tuple and more where it lies.
        "spark.sql.requireAllClusterKeysForCoPartition": "false",
    }
    if choice.local:
        needed |= {"spark.local.dir": wished.get("spark.local.dir", str(scratch))}
    return tuned | wished | needed


def _tuned_here(records: int) -> dict[str, str]:
    """For one process with two threads."""
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(max(2, -(-records // OF_A_TASK))),
        "spark.default.parallelism": "2",
        # Adaptive plans do not see how what is kept is partitioned, and would move it again for each grouping.
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.memory": f"{_heap(records) >> 20}m",
    }
    if records < SMALL:  # a task costs more than what there is to do in it
        settings |= {"spark.sql.shuffle.partitions": "1", "spark.default.parallelism": "1"}
        settings |= {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    return settings


def _heap(records: int) -> int:
    """Bytes of the heap of a local session; what has no room in it goes to the disk."""
    most = max(LEAST_HEAP, MOST_HEAP * psutil.virtual_memory().available)
    return int(min(LEAST_HEAP + records * RECORD_BYTES_HELD, most))


@contextmanager
def _stderr_into(path: Path) -> Iterator[None]:
    sys.stderr.flush()
    saved = os.dup(2)
    with path.open("wb") as sink:
        os.dup2(sink.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
