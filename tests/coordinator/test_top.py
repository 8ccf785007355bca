"""`coordinator top` and `coordinator status` before real agents: live, sorted, in full, as text, on a real terminal."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Awaitable, Callable, Iterator
from fcntl import ioctl
from pathlib import Path
from typing import Any

import psutil
import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from coordinator import deploy
from coordinator.watching.app import Help, Main, Sorted, Top
from coordinator.watching.details import NodeDetails, OutputDetails
from coordinator.watching.watcher import Watcher
from node_agent.sdk import Admitted, Sink, Source
from tests.coordinator.test_deploy_live import Street, cli, wait_for

COMMAND = [sys.executable, "-m", "coordinator", "top"]
Act = Callable[[Top, Pilot[int]], Awaitable[None]]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Street]:
    """Two agents with a plan; results have come, of which some were late."""
    street = Street(tmp_path_factory.mktemp("watched"))
    try:
        with street.connect() as agents:
            deploy.deploy(street.plan, agents)
        feed(street, 20)
        feed(street, 5, age_ms=3000)
        yield street
    finally:
        street.close()


def feed(street: Street, tuples: int, age_ms: float = 0) -> None:
    """Until as many results have come."""
    address = street.addresses.nodes["a"].data
    with Sink(address, "out", timeout=30) as results, Source(address, "s", timeout=20) as source:
        for number in range(tuples):
            assert isinstance(source.send({"n": number}, age_ms=age_ms), Admitted)
        for _ in range(tuples):
            next(iter(results))


def drive(street: Street, act: Act, interval: float = 0.2) -> int | None:
    """Run the application as on a terminal of 80 times 24; returns its exit code."""

    async def run() -> int | None:
        with Watcher(street.addresses.path, street.root / "plan.json") as watcher:
            app = Top(watcher, interval)
            async with app.run_test(size=(80, 24)) as pilot:
                await until(pilot, lambda: app.looks >= 2)
                await act(app, pilot)
            return app.return_value

    return asyncio.run(run())


async def until(pilot: Pilot[int], condition: Callable[[], Any]) -> None:
    """While the application goes on."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it never came"
        await pilot.pause(0.02)


def names(app: Top, table: str) -> list[str]:
    """Of its rows, from the top."""
    return [str(key.value) for key in app.query_one(f"#{table}", Sorted).rows]


def cells(app: Top, table: str, row: str) -> dict[str, str]:
    """By column."""
    found = app.query_one(f"#{table}", Sorted)
    return {column.title: str(cell) for column, cell in zip(found.told, found.get_row(row), strict=True)}


def written(app: Top) -> str:
    """What a screen with details says."""
    return str(app.screen.query_one("#text", Static).render())


def test_tables_are_sorted_and_opened_by_keys(watched: Street) -> None:
    async def act(app: Top, pilot: Pilot[int]) -> None:
        assert names(app, "nodes") == ["a", "b"] and names(app, "outputs") == ["out"]
        assert cells(app, "nodes", "b")["plan"] == "committed"
        await pilot.press("r")
        assert names(app, "nodes") == ["b", "a"]
        nodes = app.query_one("#nodes", Sorted)
        await pilot.press("s")
        assert (nodes.by, nodes.most_first) == (1, False)
        nodes.sort_by(4)
        assert nodes.most_first, "figures with the most first"
        assert nodes.chosen == "a", "whoever was chosen stays chosen"
        await pilot.press("enter")
        assert isinstance(app.screen, NodeDetails)
        await until(pilot, lambda: "CPU time of a call" in written(app))
        assert "node a, version" in written(app)
        assert re.findall(r"^ +\d+  (\w+) ", written(app), re.MULTILINE) == ["here", "back"], "not the other node's"
        assert all(len(line) <= 80 for line in written(app).splitlines() if line.startswith(("unit", " ")))
        await pilot.press("escape", "tab", "enter")
        assert isinstance(app.screen, OutputDetails)
        await until(pilot, lambda: "output out" in written(app))
        told = written(app)
        assert "20 met, 5 late, 0 undecidable" in told and "query there_and_back" in told
        assert re.findall(r"^(\w+) +[ab] ", told, re.MULTILINE) == ["here", "there", "back"], "in the path's order"
        await pilot.press("escape", "question_mark")
        assert isinstance(app.screen, Help)
        await pilot.press("escape")
        assert isinstance(app.screen, Main)
        await pilot.press("q")

    drive(watched, act)


def test_misses_are_of_the_last_interval(watched: Street) -> None:
    async def act(app: Top, pilot: Pilot[int]) -> None:
        await until(pilot, lambda: cells(app, "outputs", "out")["missed"] == "-")
        feeding = asyncio.create_task(asyncio.to_thread(feed, watched, 10, 2500))
        await until(pilot, lambda: cells(app, "outputs", "out")["missed"] == "100%!")
        told = cells(app, "outputs", "out")
        assert told["slack"].startswith("-") and told["slack"].endswith("!")
        await feeding

    drive(watched, act, interval=0.5)


def test_a_node_that_does_not_answer_stays_in_view_and_comes_back(watched: Street) -> None:
    async def act(app: Top, pilot: Pilot[int]) -> None:
        await asyncio.to_thread(watched.kill, "b")
        await until(pilot, lambda: cells(app, "nodes", "b")["plan"] == "no answer!")
        assert cells(app, "nodes", "a")["plan"] == "committed"
        assert "node b: the agent at" in str(app.query_one("#said", Static).render())
        app.query_one("#nodes", Sorted).move_cursor(row=1)
        await pilot.press("enter")
        await until(pilot, lambda: "node b does not answer" in written(app))
        await pilot.press("escape")
        await asyncio.to_thread(watched.restart, "b")
        await until(pilot, lambda: cells(app, "nodes", "b")["plan"] == "committed")
        assert not str(app.query_one("#said", Static).render())

    drive(watched, act)


def test_one_frame_as_text_and_a_status_in_words(watched: Street) -> None:
    once = cli("top", "--once", "--interval", "0.2", cwd=watched.root)
    assert once.returncode == 0 and once.stderr == "" and "\x1b" not in once.stdout
    assert "2 nodes; 1 output; the last 0.2 s" in once.stdout and "committed" in once.stdout
    assert cli("top", "--interval", "0.2", cwd=watched.root).returncode == 0, "a pipe is no terminal"
    children = [each.pid for each in psutil.Process(watched.agents["a"].process.pid).children()]
    (runtime,) = (pid for pid in children if "grpc" not in Path(f"/proc/{pid}/maps").read_text())
    os.kill(runtime, signal.SIGKILL)
    values = wait_for(lambda: (found := status(watched))["nodes"]["a"]["restarts"] == 1 and found)
    assert values["nodes"]["b"]["version"] and values["nodes"]["a"]["queue_limit_bytes"] > 0
    wait_for(lambda: status(watched)["nodes"]["a"].get("outputs"))
    feed(watched, 3)
    feed(watched, 1, age_ms=3000)
    delivered = status(watched)["queries"]["there_and_back"][watched.plan["hash"]]["outputs"]["out"]["delivered"]
    assert (delivered["met"], delivered["late"], delivered["miss_ratio"], delivered["shed_before"]) == (3, 1, 0.25, 0)
    told = cli("status", cwd=watched.root)
    assert told.returncode == 0 and "there_and_back" in told.stdout and "25%" in told.stdout
    assert "node a: its runtime was started again once; the agent's log says why" in told.stdout
    assert "output out: 1 of 4 results were late; 'coordinator top' shows where the time goes" in told.stdout


def status(street: Street) -> dict[str, Any]:
    """As JSON."""
    told: dict[str, Any] = json.loads(cli("status", "--json", cwd=street.root).stdout)
    return told


@pytest.mark.parametrize(("end", "code"), [(b"q", 0), (b"\x03", 0), (signal.SIGTERM, 143)])
def test_on_a_terminal_it_leaves_everything_as_it_was(watched: Street, end: bytes | signal.Signals, code: int) -> None:
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(theirs)
    environment = os.environ | {"TERM": "xterm-256color", "NO_COLOR": "1"}
    process = subprocess.Popen(
        [*COMMAND, "--interval", "0.3"], cwd=watched.root, stdin=theirs, stdout=theirs, stderr=theirs, env=environment,
        start_new_session=True,
    )  # fmt: skip
    seen = b""
    try:
        while b"there" not in seen and b"committed" not in seen:
            seen += read(ours)
        assert termios.tcgetattr(theirs) != before, "keys are read one by one"
        if isinstance(end, bytes):
            os.write(ours, end)
        else:
            process.send_signal(end)
        while process.poll() is None:
            seen += read(ours, 0.05)
        seen += read(ours, 0.05)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == code
    assert termios.tcgetattr(theirs) == before
    assert seen.rindex(b"\x1b[?1049l") > seen.rindex(b"\x1b[?1049h") and b"\x1b[?25h" in seen, "screen and cursor"
    assert b"Traceback" not in seen
    os.close(ours)
    os.close(theirs)


def read(terminal: int, seconds: float = 60) -> bytes:
    """What comes within that time; fails loudly where a minute is not enough."""
    ready, _, _ = select.select([terminal], [], [], seconds)
    assert ready or seconds < 60, "nothing was drawn"
    return os.read(terminal, 65536) if ready else b""
