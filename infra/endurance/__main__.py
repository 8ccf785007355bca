"""`make endurance`: minutes at many times the load that two real agents can serve, then half of it again.

    .venv/bin/python -m infra.endurance --minutes 10 --load 10

Agents, sources and sinks are real processes and sockets of this machine. Afterwards every window that came is compared
with the exact one, the longest wait under `on_late: drop` is read from the traces, and the report balances all tuples.
Writes runs/endurance.json, and the run's directory beside it. Exit code 3: something was not as it has to be.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from coordinator.fleet import addresses as address_file
from coordinator.plan import plan_file
from coordinator.report.report_document import Report
from infra.endurance import run_summary
from infra.endurance.load import Feed
from infra.endurance.measurements import Measured, table
from infra.endurance.outside_measurements import OutsideMeasurements, Received
from node_agent.host.clock import now_ns

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BIN = Path(sys.executable).parent
CALM = 0.5  # load before and after
COLLECT_EVERY_S = 20.0
FAILED = 3
# Tuples a second with which each stream alone would take its part of one node: readings 16 ms each, all of b; alarms
# and orders 8 ms each, together all of a.
RATES = {"readings": 62.5, "alarms": 100.0, "orders": 25.0}
WINDOW_NS = (500_000_000, 400_000_000)  # length and hop in query.yaml


@dataclass(frozen=True)
class Phases:
    """How long each part takes, in seconds, and how heavy the middle one is."""

    before_s: float
    overload_s: float
    after_s: float
    load: float


def coordinator(*words: str | Path) -> str:
    """One of the product's commands; its output. Raises RuntimeError with what it said."""
    done = subprocess.run([BIN / "coordinator", *map(str, words)], check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"'coordinator {words[0]}' ended with exit code {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


@contextmanager
def deployed(folder: Path) -> Iterator[address_file.Addresses]:
    """The query on two agents of this machine, which are stopped at the end."""
    plan, addresses = folder / "plan.json", folder / "addresses.json"
    coordinator("plan", HERE / "query.yaml", HERE / "cluster.yaml", "--model", "paper", "-o", plan)
    try:
        coordinator(
            "up", HERE / "cluster.yaml", "--any-port", "--state", folder / "state", "--addresses", addresses, "--detach"
        )
        coordinator("deploy", plan, "--addresses", addresses)
        yield address_file.load(addresses)
    finally:
        if addresses.exists():
            coordinator("down", "--addresses", addresses)


class Collecting:
    """Pulls traces while it runs, as a centre does, so that no spool is full."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._stop = folder, threading.Event()
        self._words = ("collect", "--plan", folder / "plan.json", "--addresses", folder / "addresses.json")
        self.run = Path(coordinator(*self._words, "--no-drain", "-o", folder / "collected").strip().splitlines()[-1])
        self._thread = threading.Thread(target=self._go_on, name="collect", daemon=True)
        self._thread.start()

    def _go_on(self) -> None:
        while not self._stop.wait(COLLECT_EVERY_S):
            coordinator(*self._words, "--no-drain", "--resume", self.run)

    def end(self) -> None:
        """Drain, and pull the rest."""
        self._stop.set()
        self._thread.join()
        coordinator(*self._words, "--resume", self.run)


def go(folder: Path, phases: Phases, say: Console, engine: str = "python") -> Measured:
    """One run. engine: that writes the report; plain Python takes a minute for the millions of records of ten minutes,
    and needs no Java."""
    with deployed(folder) as addresses:
        plan = plan_file.read(folder / "plan.json")
        feeds = {name: Feed(name, addresses.nodes["a"].data, rate) for name, rate in RATES.items()}
        sinks = {
            name: Received(name, addresses.nodes[one.at].data, one.deadline_ns)
            for name, one in plan.graph.outputs.items()
        }
        outside = OutsideMeasurements(
            addresses.nodes, {name: one.pid for name, one in addresses.nodes.items() if one.pid}
        )
        collecting = Collecting(folder)
        outside.start()
        for sink in sinks.values():
            sink.start()
        for feed in feeds.values():
            feed.start()
        instants = [_phase(feeds, factor, seconds, say) for factor, seconds in _course(phases)]
        for feed in feeds.values():
            feed.stop()
        outside.stop()
        collecting.end()
        for sink in sinks.values():
            sink.stop()
    errors = [feed.error for feed in feeds.values()] + [sink.error for sink in sinks.values()]
    if errors := [error for error in errors if error]:
        raise RuntimeError(f"the load or a sink failed: {errors[0]}")
    say.print("computing every window again, and the books", highlight=False)
    run = collecting.run
    coordinator("report", run, "--engine", engine)
    report = Report.from_document(json.loads((run / "report.json").read_text(encoding="utf-8")))
    ended_ns = instants[1]
    return Measured(
        phases.load,
        phases.overload_s,
        outside.samples,
        {name: one.memory_bytes for name, one in plan.cluster.nodes.items()},
        run_summary.exact(run, plan, feeds["readings"], sinks["mean"].windows, WINDOW_NS),
        sinks["mean"].repeated,
        run_summary.waiting(run, plan, "alarms", "checked", "a"),
        plan.graph.outputs["alarm"].deadline_ns,
        run_summary.recovered_s(run, addresses.nodes, ended_ns),
        report,
        {name: (feed.offered, feed.refused, feed.behind_s) for name, feed in feeds.items()},
        str(run),
    )


def _course(phases: Phases) -> list[tuple[float, float]]:
    return [(CALM, phases.before_s), (phases.load, phases.overload_s), (CALM, phases.after_s)]


def _phase(feeds: dict[str, Feed], factor: float, seconds: float, say: Console) -> int:
    """Returns the instant at which it ended, on the agents' clock."""
    say.print(f"{datetime.now(UTC):%H:%M:%S} load {factor:g} for {seconds:g} s", highlight=False)
    for feed in feeds.values():
        feed.factor = factor
    time.sleep(seconds)
    return now_ns()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, tell, judge."""
    options = argparse.ArgumentParser(prog="endurance", description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--minutes", type=float, default=10.0, help="of overload")
    options.add_argument("--load", type=float, default=10.0, help="over what the nodes can serve")
    options.add_argument("--calm", type=float, default=30.0, help="seconds at half load before and after")
    options.add_argument("--out", type=Path, default=ROOT / "runs", help="where endurance.json is written")
    given = options.parse_args(arguments)
    folder = given.out / f"endurance-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    folder.mkdir(parents=True)
    say = Console()
    figures = go(folder, Phases(given.calm, 60 * given.minutes, given.calm, given.load), say)
    (given.out / "endurance.json").write_text(json.dumps(figures.document(), indent=1) + "\n", encoding="utf-8")
    say.print(table(figures), highlight=False)
    for text in figures.wrong():
        say.print(f"not as it has to be: {text}", highlight=False)
    return FAILED if figures.wrong() else 0


if __name__ == "__main__":
    sys.exit(main())
