"""The way to two nodes of one's own, walked in a lab: certificates, agents, addresses, plan, tuples, report.

Four machines: two nodes, the desk with the coordinator, which also feeds, and a stranger. Every command is one that a
user types; the stranger tries without an identity, with one of another cluster, and with a client's.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from coordinator.lab.namespaces import PLAIN, Lab, Line
from coordinator.report.report_document import Report, by_end
from protos.json_shape import Json

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "coordinator" / "examples" / "two_nodes"
FILES = ("query.yaml", "cluster.yaml", "operators.py", "feed.jsonl")
NODES, DESK, STRANGER = ("pi1", "pi2"), "desk", "stranger"
WAIT_S = 60.0  # for agents to start, and for answers
QUIET_S = 20.0  # without a result: something is wrong
LINES, RATE = 20, 8  # of the feed; a second, slower than any example declares, so that nothing is beyond its burst
Tell = Callable[[str], None]


class WalkError(Exception):
    """A step did not go as it should; the text has the command and what it said."""


@dataclass
class Walked:
    """What came of it. results: the listener's lines; refused: what the stranger read, by what was tried."""

    report: Report
    results: list[Json]
    refused: dict[str, str]


def walk(example: Path, line: Line = PLAIN, tell: Tell = lambda _: None) -> int:
    """The walk in a directory of its own, which is gone afterwards; 0. Raises WalkError, LabError."""
    with tempfile.TemporaryDirectory(prefix="shimekiri-walk-") as folder:
        walked = steps(example, Path(folder), line, tell)
    for name, output in walked.report.outputs.items():
        tell(f"{name}: " + ", ".join(f"{n} {end}" for end, n in by_end(output).items()))
    for tried, said in walked.refused.items():
        tell(f"refused, {tried}: {said}")
    return 0


def steps(example: Path, folder: Path, line: Line = PLAIN, tell: Tell = lambda _: None) -> Walked:
    """The walk with its files in `folder`, one directory per machine. Raises WalkError, LabError."""
    desk = folder / DESK
    desk.mkdir()
    for name in FILES:
        shutil.copy(example / name, desk / name)
    feed = (desk / "feed.jsonl").read_text().splitlines()[:LINES]
    (desk / "feed.jsonl").write_text("\n".join(feed) + "\n")
    source, output = _ends(desk)
    with Lab([*NODES, DESK, STRANGER], line) as lab, ExitStack() as open_files:
        at = _At(lab, folder, tell, open_files)
        at.run(DESK, "coordinator", "certs", "cluster.yaml")
        for node in NODES:
            _deliver(desk, folder / node, node)
            at.start(
                node, "node-agent", "run", "--name", node, "--tls", "shimekiri-tls", "--clock-domain", node,
                "--control", "0.0.0.0:7700", "--data", "0.0.0.0:7701", "--operators", "operators.py",
            )  # fmt: skip
        listed = at.run(DESK, "node-agent", "operators", "--operators", "operators.py", "--json")
        (desk / "operators.json").write_text(listed)
        at.run(DESK, "coordinator", "addresses", "cluster.yaml", "--wait", WAIT_S)
        at.run(DESK, "coordinator", "plan", "query.yaml", "cluster.yaml")
        at.run(DESK, "coordinator", "deploy", "plan.json")
        with at.listening(output, NODES[1], len(feed)) as results:
            at.run(
                DESK, "node-agent", "feed", source, "feed.jsonl", "--to", NODES[0], "--addresses", "addresses.json",
                "--tls", "certs/client", "--rate", RATE, "--steady", "--patience", WAIT_S,
            )  # fmt: skip
            heard = results()
        at.run(DESK, "coordinator", "status", "--plan", "plan.json")
        refused = _strange(at, desk, folder / STRANGER, source, output)
        run = at.run(DESK, "coordinator", "collect", "--plan", "plan.json", "-o", "runs").strip()
        at.run(DESK, "coordinator", "report", run, "--engine", "python")
        report = Report.from_document(json.loads((desk / run / "report.json").read_text()))
    return Walked(report, heard, refused)


def _ends(desk: Path) -> tuple[str, str]:
    """The query's first source and output."""
    from coordinator.spec import query_reader

    asked = query_reader.load(desk / "query.yaml")
    return asked.sources[0].name, asked.outputs[0].name


def _deliver(desk: Path, home: Path, node: str) -> None:
    """As scp does: the node's identity and the operators, and nothing else."""
    home.mkdir()
    shutil.copytree(desk / "certs" / node, home / "shimekiri-tls")
    shutil.copy(desk / "operators.py", home / "operators.py")


def _strange(at: _At, desk: Path, home: Path, source: str, output: str) -> dict[str, str]:
    """What someone reads who is in the network and has no identity of this cluster, or that of a client."""
    from coordinator.fleet.identity import certificate_folder, certificates

    home.mkdir()
    shutil.copy(desk / "feed.jsonl", home / "feed.jsonl")
    certificate_folder.make(home / "certs", NODES, renew=False, new_ca=False, now=certificates.now())
    shutil.copytree(desk / "certs" / "client", home / "leaked")
    values = json.loads((desk / "addresses.json").read_text())
    (home / "addresses.json").write_text(json.dumps({**values, "tls": "leaked"}))
    feed, to = ("node-agent", "feed", source, "feed.jsonl"), ("--to", "pi1.local:7701")
    return {
        "feed without an identity": at.refused(*feed, *to),
        "listen without an identity": at.refused("node-agent", "listen", output, "--from", "pi2.local:7701"),
        "feed with another cluster's identity": at.refused(*feed, *to, "--tls", "certs/client"),
        "stop with a client's identity": at.refused("coordinator", "stop", "--all"),
    }


class _At:
    """Commands in the lab, each in the directory of its machine."""

    def __init__(self, lab: Lab, folder: Path, tell: Tell, files: ExitStack) -> None:
        self._lab, self._folder, self._tell, self._files = lab, folder, tell, files

    def run(self, machine: str, *words: object) -> str:
        """What it said on stdout. Raises WalkError."""
        done = self._done(machine, words)
        if done.returncode:
            raise WalkError(
                f"{machine}$ {_typed(words)}: exit code {done.returncode}: {done.stderr.strip()}{self.logs()}"
            )
        return done.stdout

    def refused(self, *words: object) -> str:
        """The stranger's last line on stderr. Raises WalkError where the command succeeds."""
        done = self._done(STRANGER, words)
        if done.returncode not in (1, 2):
            raise WalkError(f"{STRANGER}$ {_typed(words)}: was not refused: exit code {done.returncode}: {done.stdout}")
        return done.stderr.strip().splitlines()[-1]

    def start(self, machine: str, *words: object) -> None:
        """Begin it; it ends with the lab."""
        self._tell(f"{machine}$ {_typed(words)} &")
        out = self._files.enter_context((self._folder / f"{machine}.log").open("w"))
        self._lab.start(machine, _program(words), out, folder=self._folder / machine)

    @contextmanager
    def listening(self, output: str, node: str, count: int) -> Iterator[Callable[[], list[Json]]]:
        """Listen at the desk from now on; the function waits for so many results. Raises WalkError."""
        words = (
            "node-agent", "listen", output, "--from", node, "--addresses", "addresses.json", "--tls", "certs/client",
            "--count", count, "--timeout", QUIET_S,
        )  # fmt: skip
        self._tell(f"{DESK}$ {_typed(words)} &")
        with subprocess.Popen(
            self._lab.command(DESK, _program(words)), cwd=self._folder / DESK, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
        ) as process:  # fmt: skip
            assert process.stderr is not None
            first = process.stderr.readline()  # from then on it misses nothing
            if "results from now on" not in first:
                process.kill()
                raise WalkError(f"{DESK}$ {_typed(words)}: {first.strip()}{self.logs()}")

            def results() -> list[Json]:
                out, err = process.communicate()
                if process.returncode:
                    raise WalkError(f"{DESK}$ {_typed(words)}: exit code {process.returncode}: {err}{self.logs()}")
                return [json.loads(line) for line in out.splitlines()]

            try:
                yield results
            finally:
                process.kill()

    def logs(self) -> str:
        """The end of what the agents said, for a failure."""
        time.sleep(0.1)
        parts = [(path.stem, path.read_text().splitlines()[-5:]) for path in sorted(self._folder.glob("*.log"))]
        return "".join(f"\n{name}: {line}" for name, lines in parts for line in lines)

    def _done(self, machine: str, words: Sequence[object]) -> subprocess.CompletedProcess[str]:
        self._tell(f"{machine}$ {_typed(words)}")
        done = self._lab.run(machine, _program(words), cwd=self._folder / machine)
        for line in (*done.stdout.splitlines(), *done.stderr.splitlines()) if len(done.stdout) < 4000 else ():
            self._tell(f"  {line}")
        return done


def _typed(words: Sequence[object]) -> str:
    return " ".join(map(str, words))


def _program(words: Sequence[object]) -> list[str]:
    """Command line of a program, run by this Python from this source and not from an installed package."""
    module = {"coordinator": "coordinator", "node-agent": "node_agent"}[str(words[0])]
    return ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", module, *map(str, words[1:])]
