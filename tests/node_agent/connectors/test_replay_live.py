"""A replay by a real agent while one of its processes crashes."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcap.writer import Writer

from protos import plan_pb2, records
from tests.node_agent.live import Agent, chain_plan, listening, spooled, store, until

MS = 1_000_000
LONG_NS = 60 * 10**9
COUNT, GAP_MS, BEFORE = 120, 10, 30  # messages; BEFORE: of them, before the crash

OPERATORS = """
from node_agent.sdk import operator

@operator("t.note", inputs={"a": "json"}, output="json")
def note(a):
    with open(SEEN, "a") as file:
        file.write(f"{a}\\n")
    return a
"""


class Replay:
    """An agent that replays numbered messages, one every GAP_MS. seen: those that its operator has run with."""

    def __init__(self, folder: Path) -> None:
        self.state, self._file, operators = folder / "s", folder / "seen", folder / "ops.py"
        operators.write_text(OPERATORS.replace("SEEN", repr(str(self._file))))
        (self.state / "recordings").mkdir(parents=True)
        with (self.state / "recordings" / "run1.mcap").open("wb") as stream:
            file = Writer(stream)
            file.start()
            channel = file.register_channel("/x", "json", 0)
            for i in range(COUNT):
                at_ns = 1_700_000_000 * 10**9 + i * GAP_MS * MS
                file.add_message(channel, at_ns, str(i).encode(), at_ns)
            file.finish()
        store(self.state, _plan())
        self.agent = Agent(self.state, "--operators", str(operators))

    def seen(self) -> list[int]:
        return [int(line) for line in self._file.read_text().split()] if self._file.exists() else []

    def log(self) -> list[str]:
        """What the log has of the source."""
        return [line for line in self.agent.log.read_text().splitlines() if "source in" in line]

    def kill(self, runtime: bool) -> int:
        """The runtime, or the process of the connectors, once some messages came. The last number before."""
        until(lambda: len(self.seen()) >= BEFORE)
        port = int(self.agent.data.rpartition(":")[2])
        of_runtime = [pid for pid in self.agent.children() if port in listening(pid)]
        named = {pid: Path(f"/proc/{pid}/comm").read_text() for pid in self.agent.children()}
        (victim,) = of_runtime if runtime else [pid for pid in named if named[pid].startswith("connectors")]
        os.kill(victim, signal.SIGKILL)
        return self.seen()[-1]

    def end(self) -> int:
        """Once there is no more to read: how many messages were admitted."""
        until(lambda: any("there is no more to read" in line for line in self.log()))
        until(lambda: self.seen()[-1] == COUNT - 1)
        assert self.agent.stop() == 0
        return sum(isinstance(each, records.Admitted) for each in spooled(self.state))


def _plan() -> plan_pb2.LocalPlan:
    names = ("in", "O1")
    return chain_plan(
        streams=[{"id": i, "name": name, "codec": "json", "deadline_ns": LONG_NS} for i, name in enumerate(names, 1)],
        sources=[
            {"id": 1, "name": "in", "stream": 1, "connector": {"kind": "mcap", "url": "run1.mcap", "topic": "/x"}}
        ],
        operators=[{"id": 1, "name": "O1", "run": "t.note", "inputs": [1], "output": 2, "hang_ns": 5 * 10**9}],
        units=[{"id": 1, "operators": [1], "sub_deadline_ns": 10**9, "deadline_ns": LONG_NS, "exits": [2]}],
        outputs=[{"id": 1, "name": "out", "stream": 2, "deadline_ns": LONG_NS}],
    )


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[Replay]:
    made = Replay(tmp_path)
    with made.agent:
        yield made


def test_a_replay_goes_on_where_it_was_when_the_runtime_crashes(replay: Replay) -> None:
    """The message under way may be lost with the runtime, or come once more: its answer never came."""
    last = replay.kill(runtime=True)
    admitted = replay.end()
    seen = replay.seen()
    assert last < COUNT - 1, "it was killed in the middle"
    assert seen == sorted(seen)
    assert len(set(seen)) >= COUNT - 1
    assert len(seen) <= COUNT + 1
    assert COUNT <= admitted <= COUNT + 1
    assert sum(": connected" in line for line in replay.log()) == 1


def test_a_replay_whose_own_process_crashes_begins_anew_and_the_log_says_so(replay: Replay) -> None:
    last = replay.kill(runtime=False)
    replay.end()
    seen = replay.seen()
    again = seen.index(0, 1)
    assert seen[again:] == list(range(COUNT))
    assert seen[:again] == list(range(again)) and again > last
    assert "connectors crashed: " in replay.agent.log.read_text()
    assert sum(": connected" in line for line in replay.log()) == 2
