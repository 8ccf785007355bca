"""`make demo`: a blind crossing, two nodes, two ways to run the collision warning on them; who stops, and where.

Each way is replayed once into live agents, in real time, at one burst phase; and in virtual time at several burst
phases. Everything goes through the commands that a user would type, and each is printed before it runs. The exit code
is that of the first command that fails: a miss ratio never is a failure, and a crash is a result. With `--case paper`
(`make demo CASE=paper`) it is the placement paper's case; with `--policy` that case under each policy that is named.
"""

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from rich import box
from rich.console import Console
from rich.table import Table

from protos.policies import HELP, refused
from sim_vehicles.closed_loop.closed_loop import Verdict
from sim_vehicles.closed_loop.crossing_messages import CrossingMessages
from sim_vehicles.encounter.judgement import CRASH, Judgement
from sim_vehicles.encounter.outcome import length
from sim_vehicles.replay.replay_document import ReplaySummary, from_document

ROOT = Path(__file__).resolve().parent.parent
QUERIES = ROOT / "sim_vehicles" / "queries"
CLUSTER = QUERIES / "cluster_paper.yaml"
SCENARIO = "crossing_50"
BAD_INPUT = 2
CRASHED = 3  # exit code of a replay that ends in a crash
END_S = 30.0  # time for a command to clean up
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Way:
    """One way to place and schedule the query. all_in: without the query's limit."""

    name: str
    allocator: str
    policy: str
    model: str = "paper"
    all_in: bool = False

    @property
    def folder(self) -> str:
        """A name for its directory."""
        return re.sub(r"[^\w.%-]+", "-", f"{self.allocator}-{self.policy}")


@dataclass(frozen=True)
class Case:
    """A query, the ways to run it, and an encounter. replay: its options; live_phase: which of `phases` is live."""

    query: Path
    variants: tuple[Way, ...]
    replay: tuple[str, ...]
    phases: int
    live_phase: int


CITY = ("--messages", "etsi", "--around", "streets_50", "--channel", "loss=0.1,delay=5ms,jitter=2ms,half=150m")
STREETS = Case(
    QUERIES / "collision_streets.yaml",
    (Way("guaranteed plan", "deadline", "edf", "sound"), Way("SQPR placement + FIFO", "sqpr", "fifo", all_in=True)),
    (*CITY, "--start", "5s", "--until", "13s"),
    phases=5,
    live_phase=2,
)
PAPER = Case(
    QUERIES / "collision_warning.yaml",
    (Way("deadline placement + EDF", "deadline", "edf"), Way("SQPR placement + FIFO", "sqpr", "fifo")),
    ("--until", "14s"),
    phases=20,
    live_phase=16,
)
CASES = {"streets": STREETS, "paper": PAPER}


def under(policies: Sequence[str]) -> Case:
    """The paper's case, the deadline placement under each of these. Raises ValueError where no agent runs one."""
    for policy in policies:
        if reason := refused(policy.partition(":")[0]):
            raise ValueError(reason)
    return replace(PAPER, variants=tuple(Way(f"deadline placement + {one}", "deadline", one) for one in policies))


def all_in(query: str) -> str:
    """The query of the streets without what its source does under overload; old messages come in as well, as in
    `collision_warning.yaml`. It declares 20 messages in 100 ms: with them both nodes are busy for four fifths of the
    time, and with more than `cpu` allows there is no placement."""
    left = re.sub(r"^    (max_rate|value): .*\n", "", query, flags=re.MULTILINE)
    left = re.sub(r"^    max_age: .*$", "    max_age: 1 s", left, flags=re.MULTILINE)
    return re.sub(r"arrival: {burst: \d+, period: 100 ms}", "arrival: {burst: 20, period: 100 ms}", left)


class CommandFailedError(Exception):
    """A command of the demo ended badly."""

    def __init__(self, command: str, code: int) -> None:
        super().__init__(f"`{command}` ended with exit code {code}")
        self.code = code


@dataclass(frozen=True)
class Played:
    """What one way came to: the live run's directory, and the replay.json of the live and of the virtual runs."""

    way: Way
    run: Path
    live: ReplaySummary
    virtual: ReplaySummary


def run(program: str, *arguments: str | Path, fine: tuple[int, ...] = (0,)) -> str:
    """Run one of the product's commands, its progress visible; returns what it printed.

    Raises CommandFailedError for any exit code that is not `fine`.
    """
    words = [program, *(_short(each) for each in arguments)]
    print(f"\033[1m$ {' '.join(words)}\033[0m" if sys.stdout.isatty() else f"$ {' '.join(words)}", flush=True)
    binary = str(Path(sys.executable).with_name(program))
    with subprocess.Popen([binary, *map(str, arguments)], stdout=subprocess.PIPE, text=True) as process:
        try:
            said, _ = process.communicate()
        except KeyboardInterrupt:
            process.terminate()  # it cleans up behind itself; `communicate` alone would kill it
            with suppress(subprocess.TimeoutExpired):
                process.wait(END_S)
            process.kill()
            raise
    print(said, end="", flush=True)
    if process.returncode not in fine:
        raise CommandFailedError(" ".join(words), process.returncode)
    return said


def play(case: Case, way: Way, folder: Path) -> Played:
    """Plan; every phase in virtual time; one phase live: start, deploy, replay, collect, stop."""
    print(f"\n== {way.name} ==", flush=True)
    folder.mkdir(parents=True)
    plan, virtual = planned(case, way, folder), folder / "virtual"
    run(
        "sim-vehicles", "replay", SCENARIO, "--virtual", plan, *case.replay, "--phases", str(case.phases),
        "--out", virtual, fine=(0, CRASHED),
    )  # fmt: skip
    if way.model == "sound":
        run("coordinator", "report", virtual, "-o", folder / "virtual-report")
    collected = live(case, plan, folder)
    run("sim-vehicles", "judge", collected)
    return Played(way, collected, _replay(collected), _replay(virtual))


def planned(case: Case, way: Way, folder: Path) -> Path:
    """The plan of a way, in a folder that is there."""
    query, plan = case.query, folder / "plan.json"
    if way.all_in:
        query = folder / "query.yaml"
        query.write_text(all_in(case.query.read_text(encoding="utf-8")), encoding="utf-8")
        print(f"{_short(query)}: {_short(case.query)} without its limit", flush=True)
    how = ("--allocator", way.allocator, "--model", way.model, "--policy", way.policy)
    run("coordinator", "plan", query, CLUSTER, *how, "-o", plan)
    return plan


def live(case: Case, plan: Path, folder: Path) -> Path:
    """One phase in real time, into agents as processes of this machine; returns the run's directory."""
    addresses = folder / "addresses.json"
    try:
        run(
            "coordinator", "up", CLUSTER, "--any-port",
            "--state", folder / "state", "--addresses", addresses, "--detach",
        )  # fmt: skip
        run("coordinator", "deploy", plan, "--addresses", addresses)
        run(
            "sim-vehicles", "replay", SCENARIO, "--to", addresses, "--plan", plan, *case.replay,
            "--phase", f"{case.live_phase}/{case.phases}", "--out", folder, fine=(0, CRASHED),
        )  # fmt: skip
        run("coordinator", "collect", "--addresses", addresses, "--plan", plan, "-o", folder / "collected")
    finally:
        if addresses.exists():
            down(addresses)
    (collected,) = (each for each in (folder / "collected").iterdir() if each.is_dir())
    print(f"$ cp {_short(folder / 'replay.json')} {_short(collected)}", flush=True)
    shutil.copy(folder / "replay.json", collected / "replay.json")
    return collected


def _replay(folder: Path) -> ReplaySummary:
    return from_document(json.loads((folder / "replay.json").read_text(encoding="utf-8")))


def down(addresses: Path) -> None:
    """Stop the agents; again if that is interrupted, since nothing interrupts it twice."""
    try:
        run("coordinator", "down", "--addresses", addresses)
    except KeyboardInterrupt:
        run("coordinator", "down", "--addresses", addresses)
        raise


def interrupt(number: int, frame: object) -> None:
    """Ctrl-C, SIGTERM or a closed terminal end the demo once; what still runs then inherits that they are ignored."""
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the ways and compare them."""
    options = argparse.ArgumentParser(prog="demo", description=(__doc__ or "").partition("\n")[0])
    options.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="POLICY",
        help=f"On both nodes; may be repeated. {HELP}".replace("%", "%%"),
    )
    options.add_argument("--case", choices=CASES, default="streets", help="Default: streets; with --policy: paper.")
    given = options.parse_args(arguments)
    try:
        case = under(given.policy) if given.policy else CASES[given.case]
    except ValueError as error:
        print(f"demo: {error}", file=sys.stderr)
        return BAD_INPUT
    for number in ENDING:
        signal.signal(number, interrupt)
    began = time.monotonic()
    folder = ROOT / "runs" / f"demo-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    try:
        played = [play(case, way, folder / way.folder) for way in case.variants]
        beside = ", side by side" if len(played) > 1 else ""
        print("\n== side by side ==" if beside else "\n== report ==", flush=True)
        said = run("coordinator", "report", *(each.run for each in played), "-o", folder)
        scene = run("sim-vehicles", "page", *(each.run for each in played), "-o", folder)
    except CommandFailedError as error:
        print(f"demo: {error}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        print("demo: stopped; the agents are down", file=sys.stderr)
        return 130
    Console(highlight=False).print(outcomes(case, played), *([decided(case, played)] if len(played) > 1 else []))
    print(f"\nDone in {time.monotonic() - began:.0f} s. In a browser:")
    print(f"  {_short(_page(scene))}: what happened{beside}")
    print(f"  {_short(_page(said))}: deadlines and latencies{beside}")
    return 0


def _page(said: str) -> str:
    """The path that a command has printed last."""
    return said.rpartition("page: ")[2].strip()


def outcomes(case: Case, played: list[Played]) -> Table:
    """Table of the outcomes: one line per way of running."""
    table = Table(
        title=f"{SCENARIO}: does A stop for X, whom it cannot see?", box=box.SIMPLE_HEAD, title_justify="left"
    )
    for heading in (
        "",
        f"live, burst phase {case.live_phase} of {case.phases}",
        "A knew, metres left",
        "about X, left out",
        f"virtual, {case.phases} phases",
    ):
        table.add_column(heading)
    for each in played:
        assert each.live.verdict is not None, "`sim-vehicles judge` refuses a replay without a verdict"
        found = each.live.verdict.found
        table.add_row(
            each.way.name,
            _outcome(found),
            "never" if found.knew is None else f"{found.knew.left_m:.1f} m",
            _left_out(each.live.verdict.crossing_messages),
            _crashes(each.virtual.laps),
        )
    return table


def decided(case: Case, played: list[Played]) -> str:
    """In how many phases the ways differ, so that nobody takes the one live phase for all of them."""
    outcomes = [[lap.found.outcome for lap in each.virtual.laps] for each in played]
    differ = [len(set(phase)) > 1 for phase in zip(*outcomes, strict=True)]
    live = "one of them" if differ[case.live_phase] else "none of them"
    return f"The plan decides in {sum(differ)} of {case.phases} burst phases; the live one is {live}."


def _left_out(messages: CrossingMessages | None) -> str:
    return "-" if messages is None else f"{messages.left_out} of {messages.offered}"


def _outcome(found: Judgement) -> str:
    if found.outcome == CRASH:
        return f"CRASH at {found.impact_kmh:.0f} km/h"
    return "AVOIDED" if found.gap_m is None else f"AVOIDED, {length(found.gap_m)} apart"


def _crashes(laps: Sequence[Verdict]) -> str:
    speeds = sorted(lap.found.impact_kmh or 0.0 for lap in laps if lap.crashed)
    if not speeds:
        nearest = min((lap.found.gap_m for lap in laps if lap.found.gap_m is not None), default=None)
        return f"0 crashes of {len(laps)}" + ("" if nearest is None else f", at least {length(nearest)} apart")
    spread = f"{speeds[0]:.0f} to {speeds[-1]:.0f} km/h, median {median(speeds):.0f}"
    return f"{len(speeds)} crashes of {len(laps)}, at {spread}"


def _short(path: str | Path) -> str:
    text = str(path)
    return text.removeprefix(f"{ROOT}/")


if __name__ == "__main__":
    sys.exit(main())
