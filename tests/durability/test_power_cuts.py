"""Before every step that the disk takes the power goes: what was acknowledged is there, and nothing is torn."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from node_agent.control.deployment import Deployment, Durable, Ran, State
from node_agent.control.plan_store import PlanStore
from node_agent.control.spool import spool_protocol
from node_agent.host.files.state_dir import StateDir
from node_agent.virtual.random_draws import Draws
from node_agent.virtual.simulated.simulated_disk import SimulatedDisk
from node_agent.virtual.simulated.simulated_rings import SimulatedRings
from node_agent.virtual.simulated.unsynced import Fate
from protos.records import STATE_CRASHED, STATE_ENDED
from tests.durability.power_cuts import ROOT, Node, PowerCuts, copied
from tests.sampling import sample

ONE, TWO = b'{"plan":1}' * 300, b'{"plan":2}' * 300
HASHES = {whole: hashlib.sha256(whole).hexdigest() for whole in (ONE, TWO)}


def deployed(whole: bytes, epoch: int, state: State) -> Deployment:
    return Deployment(HASHES[whole], epoch, state, "q", ((1, "b", "127.0.0.1:7711"),), (0, 1), len(whole))


# What control brings to the disk one after the other, as two plans come and go.
STATES = [
    Durable(1, 0, (deployed(ONE, 1, State.PREPARED),)),
    Durable(1, 0, (deployed(ONE, 1, State.COMMITTED),)),
    Durable(2, 0, (deployed(ONE, 1, State.COMMITTED), deployed(TWO, 2, State.PREPARED))),
    Durable(2, 0, (deployed(ONE, 1, State.DRAINING), deployed(TWO, 2, State.COMMITTED))),
    Durable(2, 0, (deployed(TWO, 2, State.COMMITTED),), (Ran(HASHES[ONE], len(ONE)),)),
    Durable(2, 2, (deployed(TWO, 2, State.COMMITTED),)),
    Durable(2, 2, (), (Ran(HASHES[TWO], len(TWO)),)),
]


def same(found: Durable, wanted: Durable) -> bool:
    """In any order of the plans."""
    return (
        (found.seen, found.fence, found.ran) == (wanted.seen, wanted.fence, wanted.ran)
        and sorted(found.deployments, key=lambda each: each.hash)
        == sorted(wanted.deployments, key=lambda each: each.hash)
    )  # fmt: skip


def test_plans_are_those_that_were_acknowledged_or_those_that_were_about_to_be() -> None:
    possible: Sequence[Durable] = [Durable()]

    def check(disk: SimulatedDisk) -> None:
        node = Node(disk)
        assert any(same(node.durable, each) for each in possible), node.durable
        assert node.problems == []
        for each in (*node.durable.deployments, *node.durable.ran):
            assert hashlib.sha256(node.plans.whole(each.hash)).hexdigest() == each.hash

    cuts = PowerCuts(check)
    node, stored = Node(cuts.disk), set[str]()
    for state in STATES:
        for whole, hash_ in HASHES.items():
            if hash_ not in stored and any(each.hash == hash_ for each in state.deployments):
                node.plans.put_plan(hash_, whole, {0: whole[:700], 1: whole[700:]})
                stored.add(hash_)
        possible = [possible[-1], state]
        node.plans.write(state)
        possible = [state]
        cuts.cut()
    assert cuts.count > 50
    assert sorted(path.name for path in cuts.disk.entries(node.state.plans)) == sorted(
        [f"{HASHES[TWO]}.json", "reserve", "state.json"]
    )


def test_no_start_is_counted_twice_and_the_headers_of_those_that_were_counted_are_known() -> None:
    counted = 0

    def check(disk: SimulatedDisk) -> None:
        node = Node(disk)
        assert counted <= node.state.starts.count <= counted + 1
        assert set(node.state.starts.headers) >= {101 + each for each in range(counted)}
        assert node.problems == []
        node.start()
        assert node.state.starts.count > counted
        again = Node(disk)
        assert again.state.starts.count == node.state.starts.count and again.problems == []

    cuts = PowerCuts(check)
    node = Node(cuts.disk)
    for _ in range(3):
        node.start()
        counted += 1
        cuts.cut()


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_protocol, "SEGMENT_RECORDS", 40)


class Spooled:
    """Two runtimes, one after the other, whose records control drains, syncs and hands over; and what has to be in the
    spool at each instant: of each incarnation the records that were synced and are not held."""

    def __init__(self) -> None:
        self.synced, self.held, self.ended = dict[int, int](), dict[int, int](), dict[int, int]()
        self.quiet = False  # nothing has changed since the last sync

    def live(self, node: Node, cut: Callable[[], None]) -> None:
        for start, state in ((1, STATE_ENDED), (2, STATE_CRASHED)):
            boot = node.start().header.boot
            for upto in (0, 3, 38, 100, 130):
                node.write(upto - node.written[boot])
                if upto == 130:
                    node.end(state)
                node.sync()
                self.synced[boot] = upto
                if upto == 130:
                    self.ended[boot] = state
                self.quiet = True
                cut()
                if upto == 100 and start == 1:
                    self.held[boot] = 90
                    node.spool.hold(self.held)
                    cut()
                self.quiet = False
        self.held = {boot: node.spool.spool.incarnations[boot].total for boot in self.synced}
        node.spool.hold(self.held)
        cut()

    def check(self, node: Node) -> None:
        assert node.problems == []
        for boot, count in self.synced.items():
            numbers, incarnation = node.numbers(boot), node.spool.spool.incarnations[boot]
            assert numbers == sorted(set(numbers)), "none is there twice"
            assert set(range(self.held.get(boot, 0), count)) <= set(numbers), boot
            assert incarnation.ended in ({self.ended[boot]} if boot in self.ended else {STATE_CRASHED, STATE_ENDED})
            *_, last = (each for each in node.spool.chunks(self.held) if each.boot == boot)
            assert last.ended and last.written == incarnation.total
        if self.quiet:
            assert all("has neither an end nor its ring" in each for each in node.spool.problems), node.spool.problems


@pytest.mark.usefixtures("small_segments")
@pytest.mark.parametrize("drawn", sample([2, 8], 2))
def test_records_that_were_synced_are_in_the_spool_in_order_and_what_is_missing_is_told(drawn: int) -> None:
    spooled = Spooled()

    def check(disk: SimulatedDisk) -> None:
        spooled.check(Node(disk))
        again = Node(disk)
        spooled.check(again)
        assert again.spool.problems == [], "it was mended"

    cuts = PowerCuts(check, drawn=drawn)
    spooled.live(Node(cuts.disk), cuts.cut)
    assert cuts.count > 50


@pytest.mark.usefixtures("small_segments")
@pytest.mark.parametrize("fates", sample([1, 2], 2))
def test_the_power_may_go_again_while_an_agent_mends_what_it_lost_before(fates: int) -> None:
    spooled = Spooled()

    def check(disk: SimulatedDisk) -> None:
        spooled.quiet = False
        cuts = PowerCuts(lambda again: spooled.check(Node(again)), drawn=1)
        cuts.fates, cuts.disk = cuts.fates[-1:], disk
        cuts.attach()
        spooled.check(Node(disk))

    cuts = PowerCuts(check, drawn=2)
    cuts.fates = cuts.fates[-fates:]
    spooled.live(Node(cuts.disk), cuts.cut)


@pytest.mark.usefixtures("small_segments")
def test_an_agent_that_is_killed_loses_nothing_that_was_published() -> None:
    spooled, rings = Spooled(), SimulatedRings(64)
    node: Node | None = None

    def check(disk: SimulatedDisk) -> None:
        after = Node(disk, copied(rings))
        spooled.check(after)
        if node is not None and node.started is not None:
            boot = node.started
            taken = set(after.numbers(boot)) | set(range(spooled.held.get(boot, 0)))
            assert taken == set(range(node.written[boot])), "all that the runtime published"

    cuts = PowerCuts(check)
    cuts.fates = [None]
    node = Node(cuts.disk, rings)
    spooled.live(node, cuts.cut)


def test_a_state_of_plans_that_was_read_after_a_kill_is_not_taken_back_by_a_loss_of_power() -> None:
    def check(disk: SimulatedDisk) -> None:
        found = Node(disk).durable
        disk.lose_power(Fate.LOST, Fate.LOST)
        assert same(Node(disk).durable, found)

    cuts = PowerCuts(check)
    cuts.fates = [None]
    node = Node(cuts.disk)
    node.plans.put_plan(HASHES[ONE], ONE, {0: ONE[:700], 1: ONE[700:]})
    for state in STATES[:2]:
        node.plans.write(state)
    cuts.cut()


@pytest.mark.usefixtures("small_segments")
def test_what_a_killed_control_process_had_not_synced_the_next_one_does() -> None:
    rings = SimulatedRings(64)

    def check(disk: SimulatedDisk) -> None:
        after = Node(disk, copied(rings))
        after.sync()
        found = {boot: after.numbers(boot) for boot in after.spool.spool.incarnations}
        disk.lose_power(Fate.LOST, Fate.LOST)
        again = Node(disk)
        assert {boot: again.numbers(boot) for boot in found} == found

    cuts = PowerCuts(check)
    cuts.fates = [None]
    Spooled().live(Node(cuts.disk, rings), cuts.cut)


def test_the_folders_of_a_new_agent_are_there_after_a_loss_of_power() -> None:
    disk = SimulatedDisk(Draws(1))
    state = StateDir(ROOT, disk, SimulatedRings())
    state.lock()
    disk.lose_power(Fate.LOST, Fate.LOST)
    assert disk.exists(state.plans) and disk.exists(state.spool)


class _KilledError(Exception):
    """Of a process."""


def test_a_state_that_a_killed_process_had_renamed_is_on_the_disk_once_it_was_loaded() -> None:
    disk, after = SimulatedDisk(Draws(1)), Durable(5)
    disk.make_folder(ROOT)
    disk.sync(ROOT.parents)

    def killed_before_the_name_is_synced(step: str, path: Path) -> None:
        if step == "sync" and path == ROOT:
            raise _KilledError

    disk.before_step = killed_before_the_name_is_synced
    with pytest.raises(_KilledError):
        PlanStore(ROOT, disk=disk).write(after)
    disk.before_step = lambda step, path: None
    assert PlanStore(ROOT, disk=disk).load() == after
    disk.lose_power(Fate.LOST, Fate.LOST)
    assert PlanStore(ROOT, disk=disk).load() == after
