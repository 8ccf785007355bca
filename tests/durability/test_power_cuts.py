"""Before every step that the disk takes the power goes: what was acknowledged is there, and nothing is torn."""

import hashlib
from collections.abc import Sequence

import pytest

from node_agent.control.deployment import Deployment, Durable, Ran, State
from node_agent.control.spool import spool_protocol
from node_agent.virtual.simulated.simulated_disk import SimulatedDisk
from protos.records import STATE_CRASHED, STATE_ENDED
from tests.durability.power_cuts import Node, PowerCuts

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
        again = Node(disk.copy(disk._draws))
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


@pytest.mark.usefixtures("small_segments")
def test_records_that_were_synced_are_in_the_spool_in_order_and_what_is_missing_is_told() -> None:
    synced, held, ended = dict[int, int](), dict[int, int](), dict[int, int]()

    def check(disk: SimulatedDisk) -> None:
        node = Node(disk)
        for boot, count in synced.items():
            numbers = node.numbers(boot)
            assert numbers == sorted(set(numbers))
            assert set(range(held.get(boot, 0), count)) <= set(numbers), boot
            incarnation = node.spool.spool.incarnations[boot]
            assert incarnation.ended in ({ended[boot]} if boot in ended else {STATE_CRASHED, STATE_ENDED})
            chunks = list(node.spool.chunks({boot: held.get(boot, 0)}))
            assert chunks[-1].ended and chunks[-1].boot == max(node.spool.spool.incarnations)
        again = Node(disk.copy(disk._draws))
        assert again.spool.problems == [], "it was mended"

    cuts = PowerCuts(check, drawn=8)
    node = Node(cuts.disk)
    for start in (1, 2):
        boot = node.start().header.boot
        for upto in (0, 3, 38, 100, 130):
            node.write(upto - node.written[boot])
            if upto == 130:
                node.end(STATE_ENDED if start == 1 else STATE_CRASHED)
            node.sync()
            synced[boot] = upto
            if upto == 130:
                ended[boot] = STATE_ENDED if start == 1 else STATE_CRASHED
            cuts.cut()
            if upto == 100:
                held[boot] = 90
                node.spool.hold(held)
                cuts.cut()
    for each in synced:
        held[each] = node.spool.spool.incarnations[each].total
    node.spool.hold(held)
    cuts.cut()
    assert cuts.count > 50
