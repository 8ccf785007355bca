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

from coordinator.__main__ import main
from coordinator.fleet.deployment import deploy
from coordinator.monitoring import status_response
from coordinator.monitoring.details import NodeDetails, OutputDetails
from coordinator.monitoring.live_app import Help, Main, Sorted, Top
from coordinator.monitoring.monitor import Monitor
from node_agent.sdk import Admitted, Sink, Source
from tests.coordinator.fleet.deployment.test_deploy_live import Street, wait_for

COMMAND = [sys.executable, "-m", "coordinator", "top"]
Act = Callable[[Top, Pilot[None]], Awaitable[None]]


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


def drive(street: Street, act: Act, interval: float = 0.2) -> None:
    """Run the application as on a terminal of 80 times 24."""

    async def run() -> None:
        with Monitor(street.addresses.path, street.root / "plan.json") as watcher:
            app = Top(watcher, interval)
            async with app.run_test(size=(80, 24)) as pilot:
                await until(pilot, lambda: app.looks >= 2)
                await act(app, pilot)

    asyncio.run(run())


async def until(pilot: Pilot[None], condition: Callable[[], Any]) -> None:
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
    async def act(app: Top, pilot: Pilot[None]) -> None:
        assert names(app, "nodes") == ["a", "b"] and names(app, "outputs") == ["out"]
        assert cells(app, "nodes", "b")["plan"] == "committed"
        await pilot.press("r")
        assert names(app, "nodes") == ["b", "a"]
        nodes = app.query_one("#nodes", Sorted)
        await pilot.press("s")
        assert (nodes.by, nodes.most_first) == (1, False)
        nodes.sort_by(4)
        assert nodes.most_first, "figures with the most first"
        assert nodes.chosen == "a", "the chosen node stays chosen"
        await pilot.press("enter")
        assert isinstance(app.screen, NodeDetails)
        await until(pilot, lambda: "CPU time of a call" in written(app))
        assert "node a, version" in written(app)
        assert re.findall(r"^ +\d+  (\w+) ", written(app), re.MULTILINE) == ["here", "back"], "not the other node's"
        assert all(len(line) <= 80 for line in written(app).splitlines() if line.startswith(("unit", " ")))
        await pilot.press("escape", "tab", "enter")
        assert isinstance(app.screen, OutputDetails)
        await until(pilot, lambda: "output out" in written(app))
        said = written(app)
        assert "20 met, 5 late, 0 undecidable" in said and "query there_and_back" in said
        assert re.findall(r"^(\w+) +[ab] ", said, re.MULTILINE) == ["here", "there", "back"], "in the path's order"
        await pilot.press("escape", "question_mark")
        assert isinstance(app.screen, Help)
        await pilot.press("escape")
        assert isinstance(app.screen, Main)
        await pilot.press("q")

    drive(watched, act)


def test_misses_are_of_the_last_interval(watched: Street) -> None:
    async def act(app: Top, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: cells(app, "outputs", "out")["missed"] == "–")
        feeding = asyncio.create_task(asyncio.to_thread(feed, watched, 10, 2500))
        await until(pilot, lambda: cells(app, "outputs", "out")["missed"] == "100 %!")
        slack = cells(app, "outputs", "out")["slack"]
        assert slack.startswith("-") and slack.endswith("!")
        await feeding

    drive(watched, act, interval=0.5)


def test_a_node_that_does_not_answer_stays_in_view_and_comes_back(watched: Street) -> None:
    async def act(app: Top, pilot: Pilot[None]) -> None:
        await asyncio.to_thread(watched.kill, "b")
        await until(pilot, lambda: cells(app, "nodes", "b")["plan"] == "unknown!")
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


def test_outputs_stay_in_view_while_their_node_does_not_answer(
    watched: Street, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def act(app: Top, pilot: Pilot[None]) -> None:
        await asyncio.to_thread(watched.kill, "a")
        await until(pilot, lambda: cells(app, "outputs", "out")["results/s"] == "no answer!")
        assert "coordinator deploy" not in str(app.query_one("#said", Static).render())
        await pilot.press("tab", "enter")
        await until(pilot, lambda: "node a does not answer" in written(app) and "there_and_back" in written(app))

    try:
        drive(watched, act)
        monkeypatch.chdir(watched.root)
        monkeypatch.setattr(sys, "argv", ["coordinator", "status"])
        with pytest.raises(SystemExit):
            main()
    finally:
        watched.restart("a")  # the other tests go on with it
    assert re.search(r"out +\S+ \S+ .* no answer *$", capsys.readouterr().out, re.MULTILINE)
    with watched.connect() as agents:
        wait_for(lambda: status_response.ask(agents, 5)["a"].outputs)
        wait_for(lambda: all(found.is_well for found in status_response.ask(agents, 5).values()))


def test_figures_that_come_as_it_ends_are_not_shown(watched: Street) -> None:
    app: Top | None = None

    async def run() -> None:
        nonlocal app
        with Monitor(watched.addresses.path, watched.root / "plan.json") as watcher:
            app = Top(watcher, 60)
            async with app.run_test(size=(80, 24)) as pilot:
                await until(pilot, lambda: app.frame is not None)
                frame = app.frame
                assert frame is not None
                await app.screen.query("*").remove()
                app.show(frame)

    asyncio.run(run())
    assert app is not None and app.looks == 2


@pytest.mark.parametrize("keys", [("question_mark",), ("enter",), ("tab", "enter"), ("enter", "question_mark")])
def test_q_leaves_from_every_screen(watched: Street, keys: tuple[str, ...]) -> None:
    async def act(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press(*keys)
        assert not isinstance(app.screen, Main) and app.return_code is None
        await pilot.press("q")
        assert app.return_code == 0

    drive(watched, act)


def told(street: Street, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command that ends well says, where nothing is a terminal."""
    monkeypatch.chdir(street.root)
    monkeypatch.setattr(sys, "argv", ["coordinator", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert ended.value.code == 0 and said.err == "" and "\x1b" not in said.out
    return said.out


@pytest.mark.parametrize("words", [("top", "--once"), ("top",)], ids=" ".join)
def test_one_frame_as_text(
    watched: Street, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = told(watched, monkeypatch, capsys, *words, "--interval", "0.2")
    assert said.startswith("2 nodes; 1 output; the last 0.2 s\n") and said.count("committed") == 2


def test_a_status_in_words(
    watched: Street, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    children = [each.pid for each in psutil.Process(watched.agents["a"].process.pid).children()]
    (runtime,) = (pid for pid in children if Path(f"/proc/{pid}/comm").read_text().startswith("runtime"))
    os.kill(runtime, signal.SIGKILL)
    with watched.connect() as agents:
        again = wait_for(lambda: (now := status_response.ask(agents, 5)["a"]).restarts and now.outputs and now)
    assert again.restarts == 1 and again.queue_limit_bytes
    feed(watched, 3)
    feed(watched, 1, age_ms=3000)
    queries = json.loads(told(watched, monkeypatch, capsys, "status", "--json"))["queries"]
    delivered = queries["there_and_back"][watched.plan.hash]["outputs"]["out"]["delivered"]
    assert (delivered["met"], delivered["late"], delivered["miss_ratio"], delivered["shed_before"]) == (3, 1, 0.25, 0)
    said = told(watched, monkeypatch, capsys, "status")
    assert "there_and_back" in said and "25 %" in said
    assert "node a: its runtime was started again once; the agent's log says why" in said
    assert "output out: 1 of 4 results were late; 'coordinator top' shows where the time goes" in said


BROKEN = """
import sys
from coordinator.__main__ import main
from coordinator.monitoring.monitor import Monitor
look = Monitor.look
def breaks(self, *given):
    Monitor.look = lambda *_: 1 / 0
    return look(self, *given)
Monitor.look = breaks
sys.argv = ["coordinator", "top", "--interval", "0.3"]
main()
"""


@pytest.mark.parametrize(
    ("end", "code"),
    [(b"q", 0), (b"\x03", 0), (signal.SIGTERM, 143), (None, 1)],
    ids=["q", "ctrl-c", "SIGTERM", "broken"],
)
def test_on_a_terminal_it_leaves_everything_as_it_was(watched: Street, end: bytes | int | None, code: int) -> None:
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(theirs)
    command = [sys.executable, "-c", BROKEN] if end is None else [*COMMAND, "--interval", "0.3"]
    process = subprocess.Popen(
        command, cwd=watched.root, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env=os.environ | {"TERM": "xterm-256color", "NO_COLOR": "1"},
    )  # fmt: skip
    seen = b""
    try:
        for _ in range(200):  # a line of the screen at a time
            seen += read(ours)
            if b"committed" in seen:
                break
        assert b"committed" in seen, seen[-4000:]
        if end is not None:
            assert termios.tcgetattr(theirs) != before, "keys are read one by one"
        if isinstance(end, bytes):
            os.write(ours, end)
        elif end is not None:
            process.send_signal(end)
        while process.poll() is None:
            seen += read(ours, 0.05)
        while more := read(ours, 0.05):
            seen += more
    finally:
        process.kill()
        process.wait()
    assert process.returncode == code
    assert termios.tcgetattr(theirs) == before
    assert seen.rindex(b"\x1b[?1049l") > seen.rindex(b"\x1b[?1049h") and b"\x1b[?25h" in seen, "screen and cursor"
    os.close(ours)
    os.close(theirs)


def read(terminal: int, seconds: float = 60) -> bytes:
    """What comes within that time; fails loudly where a minute is not enough."""
    ready, _, _ = select.select([terminal], [], [], seconds)
    assert ready or seconds < 60, "nothing was drawn"
    return os.read(terminal, 65536) if ready else b""
