"""A report on a real cluster: Spark's own, two workers, a file system over the network, an executor that dies."""

import json
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

from coordinator.report.verdict import verdict
from tests.coordinator.report.spark.standalone_cluster import StandaloneCluster, standalone
from tests.coordinator.report.spark.test_report_spark import random_run
from tests.coordinator.report.spark.webhdfs_server import serving

ROOT = Path(__file__).parents[4]
LIMIT_S = 300.0
SETTINGS = {  # small, as a machine of two cores has room for six of these processes
    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.memory": "512m",
    "spark.executor.memory": "512m", "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "2", "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.sql.adaptive.enabled": "false",
}  # fmt: skip


def kill_one(cluster: StandaloneCluster, shared: Path, report: "subprocess.Popen[str]") -> psutil.Process:
    """An executor dies as soon as a frame is written."""
    end = time.monotonic() + LIMIT_S
    while not any(shared.rglob(".frames-*/*/rdd-*/part-*")):
        assert report.poll() is None and time.monotonic() < end, report.communicate()
        time.sleep(0.05)
    victim = cluster.executors()[0]
    victim.kill()
    return victim


def test_a_cluster_writes_frames_where_all_of_it_sees_them(tmp_path: Path) -> None:
    shared, logs = tmp_path / "shared", tmp_path / "logs"
    shared.mkdir()
    logs.mkdir()
    with serving(shared) as files, standalone(logs, 1) as cluster:
        command = [sys.executable, "-m", "tests.coordinator.report.spark.cluster_smoke", cluster.url, files.url]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.returncode == 0 and "1000 rows" in done.stdout, done.stdout + done.stderr
    assert sum(pq.read_table(path).num_rows for path in shared.glob("run/tables/results/*.parquet")) == 1000
    assert "CREATE" in files.asked and not list(shared.rglob(".frames-*")), "frames are removed"


@pytest.mark.soak
def test_a_cluster_that_loses_an_executor_gives_the_same_report(tmp_path: Path) -> None:
    run = random_run(3, tmp_path / "run")
    shared, logs = tmp_path / "shared", tmp_path / "logs"
    shared.mkdir()
    logs.mkdir()
    with serving(shared) as files, standalone(logs, 2) as cluster:
        settings = [word for key, value in SETTINGS.items() for word in ("--conf", f"{key}={value}")]
        command = [sys.executable, "-m", "coordinator", "report", str(run.path), "--json", "--master", cluster.url]
        report = subprocess.Popen(
            [*command, "--copy-to", f"{files.url}/shimekiri", *settings],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            victim = kill_one(cluster, shared, report)
            out, said = report.communicate(timeout=LIMIT_S)
        finally:
            report.kill()
            report.wait()
        assert report.returncode in {0, 3}, said
        assert victim.pid not in [each.pid for each in cluster.executors()]
    (found,) = json.loads(out)["reports"]
    expected = json.loads(json.dumps(verdict(run).document()))
    assert found["engine"] == "spark" and {key: found[key] for key in expected} == expected
    assert list(shared.rglob("seal.json")) and not list(shared.rglob(".frames-*")), "frames are removed"
