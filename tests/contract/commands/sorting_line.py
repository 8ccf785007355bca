"""The example that is not about vehicles, through the commands a user types: three nodes, unseen operators, a diamond,
a union, filters and a side input across nodes."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.node_agent.live import cut_power

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "coordinator" / "examples" / "sorting_line"
NODES = ("belt", "vision", "office")


def command(module: str, *words: str | Path, code: int = 0) -> str:
    """Run one of the product's programs; returns its standard output."""
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, words)], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == code, f"{module} {words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


class Line:
    """The sorting line in a directory of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.plan, self.addresses = folder, folder / "plan.json", folder / "addresses.json"
        self.operators = folder / "operators.py"
        self.restarted: list[subprocess.Popen[str]] = []

    def start(self) -> None:
        shutil.copytree(EXAMPLE, self.folder, dirs_exist_ok=True)
        listing = command("node_agent", "operators", "--operators", self.operators, "--json")
        (self.folder / "operators.json").write_text(listing)
        cluster = self.folder / "cluster.yaml"
        # `paper`: a busy machine sends later than declared, and what comes too close together is then policed
        command("coordinator", "plan", self.folder / "query.yaml", cluster, "--model", "paper", "-o", self.plan)
        command(
            "coordinator", "up", cluster, "--any-port", "--operators", self.operators,
            "--state", self.folder / "state", "--addresses", self.addresses, "--detach",
        )  # fmt: skip
        command("coordinator", "deploy", self.plan, "--addresses", self.addresses)

    def node(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.addresses.read_text())["nodes"][name]
        return found

    def feed(self, seconds: float) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, str(self.folder / "feed.py"), str(self.addresses), str(seconds)], cwd=ROOT
        )

    def kill(self, name: str) -> None:
        cut_power(self.node(name)["pid"])

    def restart(self, name: str) -> None:
        """Start the killed agent again by hand, as its machine's owner would."""
        node = self.node(name)
        agent = subprocess.Popen(
            [
                sys.executable, "-m", "node_agent", "run", "--name", name, "--control", node["control"],
                "--data", node["data"], "--state", str(self.folder / "state" / name),
                "--operators", str(self.operators),
            ],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.restarted.append(agent)
        assert agent.stdout is not None
        ready = json.loads(agent.stdout.readline())
        assert ready["name"] == name

    def collect(self) -> Path:
        command(
            "coordinator", "collect", "--addresses", self.addresses, "--plan", self.plan, "-o", self.folder / "runs"
        )
        (run,) = (self.folder / "runs").iterdir()
        return run

    def report(self, run: Path, engine: str) -> dict[str, Any]:
        command("coordinator", "report", run, "--engine", engine)
        report: dict[str, Any] = json.loads((run / "report.json").read_text())
        return report

    def stop(self) -> None:
        if self.addresses.exists():
            command("coordinator", "down", "--addresses", self.addresses)
        for agent in self.restarted:
            agent.terminate()
            agent.wait(20)


@contextmanager
def started(folder: Path) -> Iterator[Line]:
    """Deployed on three agents in that new folder, which are stopped at the end."""
    line = Line(folder)
    try:
        line.start()
        yield line
    finally:
        line.stop()
