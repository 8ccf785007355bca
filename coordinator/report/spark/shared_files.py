"""Files that all of Spark's processes see: the landed records, and frames that a report needs several times.

One process has both: its memory and disk hold such frames. On a cluster an executor may end at any time, and all that
it holds ends with it. There such frames are written to the file system that the cluster shares.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession

from coordinator.errors import CoordinatorError, Mistake
from coordinator.report.landing import seal
from coordinator.report.landing.landed_run import Landed
from coordinator.report.spark.spark_choice import SparkChoice

Progress = Callable[[str], None]


class CopyError(CoordinatorError):
    """The file system that a cluster shares cannot be used."""


class SharedFiles:
    """scratch: a folder for frames, of the file system that a cluster shares. None: all is one process."""

    def __init__(self, spark: SparkSession, copy_to: str | None, scratch: str | None) -> None:
        assert spark.sparkContext._jvm is not None
        self._jvm: Any = spark.sparkContext._jvm
        self._session = self._jvm.org.apache.spark.sql.classic.SparkSession.active()
        self._copy_to, self._scratch, self._held = copy_to, scratch, list[DataFrame]()
        if scratch is not None:
            spark.sparkContext.setCheckpointDir(scratch)

    def checkpoint(self, frame: DataFrame) -> DataFrame:
        """Its rows, computed once. Its plan ends there, so a frame that is built on it has a short plan."""
        if self._scratch is None:
            self._held.append(frame.localCheckpoint(eager=False, storageLevel=StorageLevel.MEMORY_AND_DISK))
            return self._held[-1]
        held = frame.persist(StorageLevel.MEMORY_AND_DISK)  # else its rows are computed a second time to be written
        try:
            return held.checkpoint(eager=True)
        finally:
            held.unpersist()

    def collect(self, frame: DataFrame) -> list[Row]:
        """The few rows of an aggregate."""
        return frame.collect()

    def paths(self, landed: Landed, run: str, progress: Progress) -> list[str]:
        """The Parquet files of a run, as Spark reads them. Raises CopyError."""
        local = landed.paths()
        if self._copy_to is None:
            return local
        folder = f"{self._copy_to.rstrip('/')}/{run}/trace/parquet"
        try:
            return self._copied(landed, local, folder, progress)
        except Py4JJavaError as error:
            raise CopyError(_mistake(self._copy_to, error)) from error

    def _copied(self, landed: Landed, local: list[str], folder: str, progress: Progress) -> list[str]:
        """The seal goes last: where it is as here, all is there. A copy of other records goes first."""
        sealed, there = landed.folder / seal.NAME, f"{folder}/{seal.NAME}"
        made = [f"{folder}/{Path(path).relative_to(landed.folder)}" for path in local]
        if self._read(there) != sealed.read_bytes():
            self._files(folder).delete(self._path(folder), True)
            for number, (path, to) in enumerate(zip(local, made, strict=True)):
                progress(f"copying to {folder}: file {number + 1} of {len(local)}")
                self._put(path, to)
            self._put(str(sealed), there)
        return made

    def _put(self, path: str, to: str) -> None:
        here = self._path(f"file://{Path(path).resolve()}")  # not as a URI: it would say %3D for =
        self._files(to).copyFromLocalFile(False, True, here, self._path(to))

    def _read(self, url: str) -> bytes | None:
        files, path = self._files(url), self._path(url)
        if not files.exists(path):
            return None
        stream = files.open(path)
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, frame: DataFrame, folder: Path, run: str, progress: Progress) -> None:
        """As Parquet, into the folder; on a cluster into one of the file system that it shares, which is said."""
        to = f"file://{folder.resolve()}"
        if self._copy_to is not None:
            to = f"{self._copy_to.rstrip('/')}/{run}/tables/{folder.name}"
            progress(f"results: {to}")
        frame.write.mode("overwrite").parquet(to)

    def close(self) -> None:
        """Removes the frames."""
        for frame in self._held:
            frame.unpersist()
        if self._scratch is not None:
            self._files(self._scratch).delete(self._path(self._scratch), True)

    def _path(self, url: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(url)

    def _files(self, url: str) -> Any:
        return self._path(url).getFileSystem(self._session.sessionState().newHadoopConf())


@contextmanager
def on(spark: SparkSession, choice: SparkChoice, run: Path) -> Iterator[SharedFiles]:
    """For one report. Where a cluster is not told of a folder (`copy_to`), it sees that of the run. Raises CopyError;
    what fails in a job is raised as it is."""
    scratch = None
    if not choice.local:
        shared = choice.copy_to or f"file://{run.resolve()}/trace"
        scratch = f"{shared.rstrip('/')}/.frames-{secrets.token_hex(4)}"
    try:
        files = SharedFiles(spark, choice.copy_to, scratch)
    except Py4JJavaError as error:
        raise CopyError(_mistake(choice.copy_to or str(run), error)) from error
    try:
        yield files
    except Exception:
        with suppress(Exception):  # what failed first is what is to be said
            files.close()
        raise
    files.close()  # after Ctrl-C or SIGTERM nothing more can be asked of the JVM, which then ends


def _mistake(copy_to: str, error: Py4JJavaError) -> Mistake:
    cause = error.java_exception
    text = f"{copy_to} cannot be used: {cause.getClass().getSimpleName()}: {cause.getMessage()!s:.200}"
    return Mistake("no_shared_files", text, "check the address, and that Spark has what its scheme needs", copy_to)
