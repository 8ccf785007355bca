"""Spark's standalone cluster from the pip package, on loopback: a master and its workers, each a process."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyspark

from coordinator.report.spark import java

START_S = 60.0
QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
EXECUTOR = "CoarseGrainedExecutorBackend"


@dataclass
class StandaloneCluster:
    """url: of its master."""

    folder: Path
    url: str = ""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, workers: int) -> None:
        """Returns when all workers are registered."""
        self._run("master", "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self.url = self._told("master", r"Starting Spark master at (\S+)")
        for number in range(workers):
            name = f"worker{number}"
            self._run(
                name, "worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g",
                "--work-dir", str(self.folder / name), self.url,
            )  # fmt: skip
        for number in range(workers):
            self._told(f"worker{number}", r"(Successfully registered) with master")

    def executors(self) -> list[psutil.Process]:
        """The processes that workers have started for a job."""
        found = []
        for worker in self.processes[1:]:
            for each in psutil.Process(worker.pid).children(recursive=True):
                try:
                    if any(EXECUTOR in word for word in each.cmdline()):
                        found.append(each)
                except psutil.NoSuchProcess:
                    continue
        return found

    def _run(self, name: str, kind: str, *words: str) -> None:
        home = Path(pyspark.__file__).parent
        environment = os.environ | {
            "SPARK_HOME": str(home), "JAVA_HOME": str(java.find().home), "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_JAVA_OPTS": QUICK, "SPARK_DAEMON_MEMORY": "256m",
        }  # fmt: skip
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *words]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))

    def _told(self, name: str, pattern: str) -> str:
        path, end = self.folder / f"{name}.log", time.monotonic() + START_S
        while not (found := re.search(pattern, path.read_text(errors="replace"))):
            assert time.monotonic() < end, path.read_text(errors="replace")[-2000:]
            time.sleep(0.05)
        return found[1]

    def stop(self) -> None:
        """All of it."""
        family = [
            each for process in self.processes if process.poll() is None
            for each in (*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid))
        ]  # fmt: skip
        for each in family:
            try:
                each.kill()
            except psutil.NoSuchProcess:
                continue
        for process in self.processes:
            process.wait()


@contextmanager
def standalone(folder: Path, workers: int) -> Iterator[StandaloneCluster]:
    """A cluster, until the end."""
    cluster = StandaloneCluster(folder)
    try:
        cluster.start(workers)
        yield cluster
    finally:
        cluster.stop()
