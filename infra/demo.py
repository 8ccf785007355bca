"""`make demo`: one query, two nodes, two ways to run it; the deadline miss ratio of each, side by side.

Everything goes through the commands that a user would type, and each is printed before it runs. The exit code is that
of the first command that fails: a miss ratio never is a failure, an unbalanced ledger is.
"""

import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
QUERIES = ROOT / "sim_vehicles" / "queries"
QUERY, CLUSTER = QUERIES / "collision_paper.yaml", QUERIES / "cluster_paper.yaml"
SCENARIO, DURATION, AGE = "crossing_50", "10s", "100ms"
END_S = 30.0  # time for a command to clean up
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Way:
    """One way to place and schedule the query."""

    name: str
    allocator: str
    policy: str


WAYS = (Way("deadline placement + EDF", "deadline", "edf"), Way("SQPR placement + FIFO", "sqpr", "fifo"))


class CommandFailedError(Exception):
    """A command of the demo ended badly."""

    def __init__(self, command: str, code: int) -> None:
        super().__init__(f"`{command}` ended with exit code {code}")
        self.code = code


def run(program: str, *arguments: str | Path) -> str:
    """Run one of the product's commands, its progress visible; returns what it printed. Raises CommandFailedError."""
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
    if process.returncode:
        raise CommandFailedError(" ".join(words), process.returncode)
    return said


def play(way: Way, folder: Path) -> Path:
    """Plan, start, deploy, replay, collect, stop; returns the run's directory."""
    print(f"\n== {way.name} ==", flush=True)
    folder.mkdir(parents=True)
    plan, addresses = folder / "plan.json", folder / "addresses.json"
    run("coordinator", "plan", QUERY, CLUSTER, "--allocator", way.allocator, "--policy", way.policy, "-o", plan)
    try:
        run(
            "coordinator", "up", CLUSTER, "--any-port",
            "--state", folder / "state", "--addresses", addresses, "--detach",
        )  # fmt: skip
        run("coordinator", "deploy", plan, "--addresses", addresses)
        run(
            "sim-vehicles", "replay", SCENARIO, "--plan", plan, "--to", addresses,
            "--duration", DURATION, "--age", AGE, "--out", folder,
        )  # fmt: skip
        run("coordinator", "collect", "--addresses", addresses, "--plan", plan, "-o", folder / "collected")
    finally:
        if addresses.exists():
            down(addresses)
    (collected,) = (each for each in (folder / "collected").iterdir() if each.is_dir())
    shutil.copy(folder / "replay.json", collected / "replay.json")
    return collected


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


def main() -> int:
    """Run both ways and compare them."""
    for each in ENDING:
        signal.signal(each, interrupt)
    began = time.monotonic()
    folder = ROOT / "runs" / f"demo-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    try:
        runs = [play(way, folder / f"{way.allocator}-{way.policy}") for way in WAYS]
        print("\n== side by side ==", flush=True)
        said = run("coordinator", "report", *runs, "-o", folder)
    except CommandFailedError as error:
        print(f"demo: {error}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        print("demo: stopped; the agents are down", file=sys.stderr)
        return 130
    page = said.rpartition("page: ")[2].strip()
    print(f"\nDone in {time.monotonic() - began:.0f} s. Open {_short(page)} in a browser.")
    return 0


def _short(path: str | Path) -> str:
    text = str(path)
    return text.removeprefix(f"{ROOT}/")


if __name__ == "__main__":
    sys.exit(main())
