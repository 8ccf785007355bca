"""A node loses its power: what it did last is unknown, which is neither lost nor complete."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from coordinator.fleet.collection import collect
from coordinator.fleet.deployment import deploy
from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from node_agent.host.files.state_dir import StateDir
from node_agent.sdk import Sink, Source
from protos.records import HEADER_BYTES, unpack_header
from protos.segments import Block, scan
from tests.coordinator.fleet.deployment.test_deploy_live import Street
from tests.node_agent.live import until

SENT = 40


@pytest.fixture
def street(tmp_path: Path) -> Iterator[Street]:
    street = Street(tmp_path)
    yield street
    street.close()


def deliver(street: Street) -> None:
    """As many results as tuples."""
    address = street.addresses.nodes["a"].data
    with Sink(address, "out", timeout=60) as sink, Source(address, "s", timeout=60) as source:
        source.send_many([{"n": n} for n in range(SENT)])
        for _ in range(SENT):
            sink.get(60)


def power_off(street: Street) -> None:
    """Of node a: nothing is written any more, and what was in memory is gone."""
    street.kill("a")
    for path in StateDir(street.root / "state/a").rings.paths():
        path.unlink()


def spooled(street: Street, starts: int) -> list[Path]:
    """What the spool of node a has of an incarnation."""
    files = StateDir(street.root / "state/a").spool.glob("*/*.rec")
    return [path for path in files if path.stat().st_size > HEADER_BYTES and _starts(path) == starts]


def _starts(path: Path) -> int:
    return unpack_header(path.read_bytes()).starts


def control_of(street: Street) -> psutil.Process:
    """The process that drains the rings."""
    children = psutil.Process(street.agents["a"].process.pid).children()
    return next(each for each in children if Path(f"/proc/{each.pid}/comm").read_text().startswith("control"))


def cut_in_half(path: Path) -> None:
    """At a block's end."""
    data = path.read_bytes()
    ends = [at + block.size for at, block in scan(data) if isinstance(block, Block)]
    os.truncate(path, max([HEADER_BYTES, *(end for end in ends if end <= len(data) // 2)]))


def test_what_was_delivered_before_a_loss_of_power_is_unknown_not_lost(street: Street) -> None:
    with street.connect() as agents:
        done = deploy.deploy(street.plan, agents)
        control_of(street).send_signal(signal.SIGSTOP)
        deliver(street)
        power_off(street)  # with only the ring lost
        street.restart("a")
        deliver(street)
        until(lambda: len(spooled(street, starts=2)) == 1)  # control drains the ring now and then
        power_off(street)  # and with half of what was not synced
        (last,) = spooled(street, starts=2)
        cut_in_half(last)
        street.restart("a")
        deliver(street)
    with street.connect() as agents:
        assert deploy.stop({bytes.fromhex(done.plan_hash)}, agents, 60) == []
        status = agents.status()["a"]
        assert {each.name: each.value for each in status.counters}["trace_problems"] == 1
        run = collect.new_run(street.root / "runs", street.plan, street.root / "plan.json", street.addresses.path)
        assert collect.collect(run, street.plan, agents).problems == []
    report = verdict(read_run(run)).document()
    kept = [each for each in report["completeness"]["incarnations"] if each["node"] == "a"]
    assert sorted(each["status"] for each in kept) == ["clean", "unknown", "unknown"]
    assert sum("lost power" in why for each in kept for why in each["why"]) == 2
    assert not report["completeness"]["complete"]
    assert report["outputs"]["out"]["lost"] == 0 and report["outputs"]["out"]["met"] >= SENT
    assert report["conservation"]["balanced"], report["conservation"]["problems"]
