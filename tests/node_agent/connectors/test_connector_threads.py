"""The process of the connectors, in a thread: what it says of those that run, and what costs it none of them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from node_agent.connectors.connection_state import ConnectionState
from node_agent.connectors.connector_threads import MOST_ROWS, main
from node_agent.connectors.counts import IN
from node_agent.host import ipc
from node_agent.host.files.plan_files import local_path
from node_agent.host.files.state_dir import StateDir
from node_agent.host.settings import Settings
from tests.node_agent.live import chain_plan, until

HASH = "ab" * 32
PLANS = ipc.Connect(((HASH, True),))


class Supervisor:
    """The other end of the channel. rows: of the newest report."""

    def __init__(self, channel: ipc.Channel) -> None:
        self.channel = channel
        self.reports: list[ipc.Connectors] = []

    def reported(self, more: int = 1) -> ipc.Connectors:
        """The newest of so many more."""
        upto = len(self.reports) + more

        def enough() -> bool:
            self.reports += [each for each, _ in self.channel.receive() if isinstance(each, ipc.Connectors)]
            return len(self.reports) >= upto

        until(enough)
        return self.reports[-1]


def state_of(tmp_path: Path, codec: str = "json") -> Settings:
    """A plan whose source reads from a broker, and whose output goes to one; nobody is there, nor an agent."""
    place = {"kind": "mqtt", "url": "mqtt://127.0.0.1:1/t"}
    plan = chain_plan(sources=[{"id": 1, "name": "in", "stream": 1, "connector": place}])
    for stream in plan.streams:
        stream.codec = codec
    state = StateDir(tmp_path)
    path = local_path(state.plans, HASH)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(plan.SerializeToString())
    nowhere = ("127.0.0.1", 1)
    return Settings("a", nowhere, nowhere, state, places=(("a", nowhere),))


@contextmanager
def running(settings: Settings) -> Iterator[Supervisor]:
    ours, theirs = ipc.Channel.pair()
    process = threading.Thread(target=main, args=(settings, theirs, PLANS))
    process.start()
    supervisor = Supervisor(ours)
    try:
        yield supervisor
    finally:
        supervisor.channel.send(ipc.Stop())
        process.join(30)
    assert not process.is_alive()


def test_a_file_of_operators_that_is_broken_costs_the_process_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "operators.py"
    broken.write_text("raise RuntimeError('not yet')\n")
    settings = replace(state_of(tmp_path / "state", "some.Message"), operators=(broken,))
    with running(settings) as supervisor:
        assert [row[0] for row in supervisor.reported().rows] == ["in"]


def test_a_connector_says_why_it_is_not_connected(tmp_path: Path) -> None:
    """Here no agent answers."""
    with running(state_of(tmp_path)) as supervisor:
        until(lambda: supervisor.reported().rows[0][-1])
        (_, _, _, connected, _, was_connected, apart_ns, why), *_ = supervisor.reported().rows
        assert not connected and not was_connected and apart_ns > 0 and "127.0.0.1:1" in why


def test_a_report_has_room_for_every_reason() -> None:
    state = ConnectionState()
    state.begin()
    state.end("\x1b" * 1000)
    events = tuple((event, 2**63) for event in IN)
    row = ("s" * 64, "from", "rosbag", False, events, True, 2**63, state.why)
    assert state.why and len(ipc.encode(ipc.Connectors((row,) * MOST_ROWS, 1 << 22, 1 << 32))) <= ipc.MOST_BYTES


def test_a_plan_that_cannot_be_read_now_goes_on_as_it_was(tmp_path: Path) -> None:
    settings = state_of(tmp_path / "state")
    path = local_path(settings.state.plans, HASH)
    with running(settings) as supervisor:
        assert [row[0] for row in supervisor.reported().rows] == ["in"]
        plan = path.read_bytes()
        path.unlink()
        path.mkdir()  # cannot be read
        supervisor.channel.send(PLANS)
        assert [row[0] for row in supervisor.reported(3).rows] == ["in"]
        path.rmdir()
        path.write_bytes(plan.replace(b"\x02in", b"\x02on"))
        until(lambda: [row[0] for row in supervisor.reported().rows] == ["on"])
