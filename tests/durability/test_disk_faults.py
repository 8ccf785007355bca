"""An agent on a disk that fails for a while, is full, read-only or loses its power, in any order.

When the disk is well again what was acknowledged is there, and no number of a start was given out twice.
"""

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from node_agent.control.deployment import Deployment, Durable, State
from node_agent.control.plan_store import PlanStore
from node_agent.control.spool import spool_protocol
from node_agent.control.spool.spool_files import SpoolFiles
from node_agent.host.files.durable_files import SCARCE
from node_agent.virtual.random_draws import Draws
from node_agent.virtual.simulated.simulated_disk import Faults, SimulatedDisk
from node_agent.virtual.simulated.simulated_rings import SimulatedRings
from node_agent.virtual.simulated.unsynced import Fate
from protos.records import STATE_CRASHED, STATE_ENDED
from tests.durability.power_cuts import Node

SEEDS, BATCH, STEPS = 80, 20, 60
FIRED = {"power_cut", "full", "read_only", "io_error", "content_torn", "content_reordered", "entries_reordered"}


class Life:
    """A node, what happens to it, and what it has acknowledged."""

    def __init__(self, seed: int) -> None:
        self.draws = Draws(seed)
        self.disk, self.rings = SimulatedDisk(Draws(seed + 1)), SimulatedRings(64)
        self.node = Node(self.disk, self.rings)
        self.starts = list[int]()
        self.plans = [Durable()]  # the last one that was acknowledged, and those that were not, since
        self.synced = dict[int, set[int]]()
        self.epoch = 0

    def step(self) -> None:
        ways = (self.start, self.write, self.write, self.sync, self.deploy, self.fail, self.heal, self.kill, self.cut)
        ways[self.draws.below(len(ways))]()

    def start(self) -> None:
        if self.node.started is not None:
            self.node.end((STATE_ENDED, STATE_CRASHED)[self.draws.below(2)])
            self.node.started = None
        try:
            self.node.start()
        except OSError:
            return
        self.starts.append(self.node.state.starts.count)

    def write(self) -> None:
        if self.node.started is not None:
            self.node.write(self.draws.below(50))

    def sync(self) -> None:
        paths = self.node.spool.unsynced()
        try:
            self.disk.sync(paths)
        except OSError as error:
            self.node.spool.failed_to_sync(paths, error)
            return
        faults, self.disk.faults = self.disk.faults, Faults()
        self.synced = {boot: set(self.node.numbers(boot)) for boot in self.node.spool.spool.incarnations}
        self.disk.faults = faults

    def deploy(self) -> None:
        self.epoch += 1
        whole = f"plan {self.epoch}".encode() * (1 + self.draws.below(300))
        hash_ = hashlib.sha256(whole).hexdigest()
        durable = Durable(self.epoch, 0, (Deployment(hash_, self.epoch, State.COMMITTED, "q", (), (0,), len(whole)),))
        try:
            self.node.plans.put_plan(hash_, whole, {0: whole})
            self.plans.append(durable)
            self.node.plans.write(durable)
        except OSError:
            return
        self.plans = [durable]

    def fail(self) -> None:
        self.disk.faults = (Faults(read_only=True), Faults(error_share=0.3), Faults(room_bytes=self.draws.below(9000)))[
            self.draws.below(3)
        ]

    def heal(self) -> None:
        self.disk.faults = Faults()

    def kill(self) -> None:
        self.heal()
        self.again()

    def cut(self) -> None:
        self.heal()
        self.disk.lose_power()
        self.rings.lose_power()
        self.again()

    def again(self) -> None:
        """The agent starts."""
        self.node = node = Node(self.disk, self.rings)
        assert node.problems == []
        assert node.durable in self.plans, node.durable
        self.plans = [node.durable]
        assert not self.starts or node.state.starts.count >= max(self.starts)
        for boot, numbers in self.synced.items():
            assert numbers <= set(node.numbers(boot)), boot


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_what_was_acknowledged_survives_every_fault(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_protocol, "SEGMENT_RECORDS", 40)
    fired = Counter[str]()
    for seed in range(first, first + BATCH):
        life = Life(seed)
        try:
            for _ in range(STEPS):
                life.step()
            life.cut()
            assert len(life.starts) == len(set(life.starts)), life.starts
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        fired += life.disk.fired
    assert set(fired) >= FIRED, fired


def test_a_bit_that_rots_costs_at_most_its_file_and_no_number_of_a_start() -> None:
    for seed in range(60):
        life = Life(seed)
        for _ in range(3):
            life.deploy()
            life.start()
            life.write()
            life.sync()
        rotten = life.disk.rot()
        assert rotten is not None
        life.node = Node(life.disk, life.rings)
        assert life.node.state.starts.count == max(life.starts), (seed, rotten)
        life.start()
        assert len(life.starts) == len(set(life.starts))
        (whole,), found = life.plans, life.node.durable
        if rotten.name == "state.json":
            assert [each.hash for each in found.ran] == [whole.deployments[0].hash], "its run can be collected"
        else:
            resumed = rotten.parent.name != "plans" or rotten.name == "reserve"
            assert found == (whole if resumed else replace(whole, deployments=())), (seed, rotten)
        again = Node(life.disk, life.rings)
        assert again.problems == [] or rotten.parent.name == "plans", (seed, again.problems)


@pytest.mark.parametrize("code", sorted(SCARCE))
def test_what_cannot_be_opened_for_want_of_descriptors_is_not_damaged(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(1)
    for action in (life.deploy, life.start, life.write, life.sync):
        action()

    def scarce(disk: SimulatedDisk, path: Path, most: int | None = None) -> bytes:
        raise OSError(code, "not now")

    with monkeypatch.context() as patch:
        patch.setattr(SimulatedDisk, "read", scarce)
        with pytest.raises(OSError):
            SpoolFiles(life.node.state.spool, life.rings, disk=life.disk)
        with pytest.raises(OSError):
            PlanStore(life.node.state.plans, disk=life.disk).load()
    life.again()
    assert life.node.spool.problems == []


def test_a_start_that_the_disk_does_not_take_is_not_looked_for_later() -> None:
    life = Life(1)
    life.start()
    life.disk.faults.read_only = True
    life.start()
    life.heal()
    life.start()
    life.again()
    assert life.starts == [1, 3] and life.node.spool.problems == []


def test_what_could_not_be_synced_is_synced_the_next_time() -> None:
    life = Life(1)
    life.start()
    life.node.write(20)
    life.disk.faults.error_share = 1.0
    life.sync()
    assert life.synced == {}
    life.heal()
    life.sync()
    assert life.synced == {101: set(range(20))}
    life.disk.lose_power(Fate.LOST, Fate.LOST)
    life.rings.lose_power()
    life.again()
