"""An output into a recording while writing or syncing fails: each result is in one file, once."""

import errno
import os
import random
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from node_agent.client.client import Admitted, Source
from node_agent.connectors.connector_ports import ConnectionLostError, Connector, Credentials, Message
from node_agent.connectors.counts import OUT, Counts
from node_agent.connectors.flow import Flow
from node_agent.connectors.kinds import kind
from node_agent.connectors.recordings import recording_writer
from node_agent.connectors.result_delivery import Delivery
from node_agent.connectors.surroundings import RECORDINGS, Surroundings
from node_agent.host.files.state_dir import StateDir
from node_agent.host.log import Log
from node_agent.host.settings import Settings
from node_agent.operators.codecs import Codecs
from tests.node_agent.connectors.test_recording_connectors import recovered
from tests.node_agent.live import chain_plan, until
from tests.node_agent.tools.test_feed_listen import running
from tests.seeds import seeds

OUTPUT = Connector("out", "mcap", "o.mcap", "", "json", "", "", "", 0, "robot")
COUNT = 40


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The system writes no file beyond that size: a part of what is too much, then an error."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def in_files(folder: Path) -> list[list[int]]:
    """The messages of each file, in the order in which the files were begun."""
    return [recovered(each) for each in sorted(folder.glob("*.mcap"), key=lambda path: int(path.stem[2:] or 1))]


def put_all(folder: Path, payloads: list[bytes]) -> None:
    """As the connector does: what is not taken is put into another file."""
    opened = kind("mcap").writer(OUTPUT, Credentials(recordings=folder))
    for payload in payloads:
        for _ in range(3):
            try:
                opened.put(Message(payload, ""))
                break
            except ConnectionLostError as error:
                opened.close()
                opened = kind("mcap").writer(OUTPUT, Credentials(recordings=folder))
                if error.taken:
                    break
    opened.close()


@pytest.mark.parametrize("seed", seeds([1, 2, 3]))
def test_a_message_that_the_system_writes_in_part_is_in_the_next_file_alone(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    payloads = [b"%d" % i + b" " * draw.randrange(400) for i in range(200)]
    with largest_file(draw.randrange(2000, 6000)):
        put_all(tmp_path, payloads)
    files = in_files(tmp_path)
    assert len(files) > 3
    assert [each for file in files for each in file] == list(range(200))


class FailingSync:
    """`os.fdatasync` that fails now and then, as on a disk that has errors."""

    def __init__(self, draw: random.Random, share: float) -> None:
        self._draw, self._share, self._true = draw, share, os.fdatasync
        self.failed = 0

    def __call__(self, number: int) -> None:
        if self._draw.random() < self._share:
            self.failed += 1
            raise OSError(errno.EIO, "Input/output error")
        self._true(number)


def test_what_cannot_be_synced_is_taken_and_the_doubt_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = kind("mcap").writer(OUTPUT, Credentials(recordings=tmp_path))
    for i in range(3):
        writer.put(Message(b"%d" % i, ""))
    monkeypatch.setattr(recording_writer, "SYNCED_S", 0.0)
    monkeypatch.setattr(os, "fdatasync", FailingSync(random.Random(1), 1.0))
    with pytest.raises(ConnectionLostError) as told:
        writer.put(Message(b"3", ""))
    assert told.value.taken
    assert "Input/output error; its last 4 messages may not be on the disk" in str(told.value)
    writer.close()
    assert recovered(tmp_path / "o.mcap") == [0, 1, 2, 3]


def test_the_last_message_is_synced_though_no_other_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = kind("mcap").writer(OUTPUT, Credentials(recordings=tmp_path))
    writer.put(Message(b"0", ""))
    monkeypatch.setattr(recording_writer, "SYNCED_S", 0.0)
    failing = FailingSync(random.Random(1), 1.0)
    monkeypatch.setattr(os, "fdatasync", failing)
    with pytest.raises(ConnectionLostError) as told:
        writer.look()
    assert "its last 1 messages may not be on the disk" in str(told.value)
    monkeypatch.undo()
    writer.close()


def test_a_file_of_which_all_is_on_the_disk_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = kind("mcap").writer(OUTPUT, Credentials(recordings=tmp_path))
    monkeypatch.setattr(recording_writer, "SYNCED_S", 0.0)
    writer.put(Message(b"0", ""))
    monkeypatch.setattr(os, "fdatasync", FailingSync(random.Random(1), 1.0))
    writer.look()
    monkeypatch.undo()
    writer.close()
    writer.look()


@pytest.mark.parametrize("seed", seeds([1]))
def test_results_are_delivered_once_while_the_disk_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], seed: int
) -> None:
    monkeypatch.setattr(recording_writer, "SYNCED_S", 0.0)
    failing = FailingSync(random.Random(seed), 0.2)
    monkeypatch.setattr(os, "fdatasync", failing)
    state, long_ns = StateDir(tmp_path / "state"), 60 * 10**9
    folder = state.root / RECORDINGS
    folder.mkdir(parents=True)
    with running(tmp_path / "ring", chain_plan()) as address, largest_file(1 << 20):
        flow = Flow("to", OUTPUT, address, long_ns)
        settings = Settings("a", ("127.0.0.1", 1), ("127.0.0.1", 1), state)
        around = Surroundings(flow, Counts(OUT), settings, Codecs, Log("a", "connectors"))
        delivery = Delivery(around)
        thread = threading.Thread(target=delivery.run)
        thread.start()
        until(lambda: around.connection.up)
        with Source(address, "in") as source:
            assert all(isinstance(source.send(i), Admitted) for i in range(COUNT))
        until(lambda: dict(around.counts.rows())["delivered"] == COUNT)
        delivery.stop()
        thread.join(20)
    counted = dict(around.counts.rows())
    assert failing.failed, f"seed {seed}"
    assert counted["received"] == COUNT and counted["lost"] == 0
    assert counted["connections_lost"] > 0
    assert [each for file in in_files(folder) for each in file] == list(range(COUNT))
    assert "may not be on the disk" in capfd.readouterr().err
