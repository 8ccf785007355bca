"""Plans on disk: what is written comes back; what is damaged is named and not resumed."""

import errno
import hashlib
from pathlib import Path

import pytest

from node_agent.control.deployment import Deployment, Durable, Ran, State
from node_agent.control.plan_store import PlanStore
from node_agent.host.files.plan_files import read_state
from node_agent.host.system_disk import SystemDisk

WHOLE, LOCAL = b'{"plan":1}', b"\x08\x01"
HASH = hashlib.sha256(WHOLE).hexdigest()
ENTRY = Deployment(HASH, 4, State.COMMITTED, "q", ((1, "b", "127.0.0.1:7711"),))


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    store = PlanStore(tmp_path)
    store.put_plan(HASH, WHOLE, {0: LOCAL})
    store.write(Durable(5, 3, (ENTRY,)))
    return tmp_path


def test_what_is_written_comes_back(stored: Path) -> None:
    store = PlanStore(stored)
    assert store.load() == Durable(5, 3, (ENTRY,))
    assert store.problems == []


def test_the_runtime_reads_the_same_file(stored: Path) -> None:
    state = read_state(stored)
    assert state.epoch == 5
    assert [(each.hash, each.epoch, each.state, each.routes) for each in state.plans] == [
        (HASH, 4, int(State.COMMITTED), ENTRY.routes)
    ]


def test_nothing_stored_is_an_empty_state(tmp_path: Path) -> None:
    assert PlanStore(tmp_path).load() == Durable()


@pytest.mark.parametrize("name", [f"{HASH}.json", f"{HASH}.local"])
def test_a_damaged_plan_is_set_aside_and_not_resumed(stored: Path, name: str) -> None:
    data = bytearray((stored / name).read_bytes())
    data[-1] ^= 1
    (stored / name).write_bytes(data)
    store = PlanStore(stored)
    assert store.load() == Durable(5, 3)
    assert len(store.problems) == 1 and f"{name} is damaged" in store.problems[0]
    assert (stored / f"{name}.damaged").read_bytes() == data


def test_a_damaged_state_is_set_aside(stored: Path) -> None:
    path = stored / "state.json"
    path.write_text(path.read_text().replace('"state": 2', '"state": 1'))
    store = PlanStore(stored, epochs_in_spool=lambda: {HASH[:16]: 4, "0" * 16: 3})
    assert store.load() == Durable(seen=4, ran=(Ran(HASH, len(WHOLE)),)), "its run can still be collected"
    assert "deploy again" in store.problems[0]
    assert not path.exists() and (stored / "state.json.damaged").exists()
    again = PlanStore(stored, epochs_in_spool=lambda: {HASH[:16]: 4})
    assert again.load().ran and "is missing" in again.problems[0], "until it is collected, or another plan is deployed"
    assert PlanStore(stored).load() == Durable(), "a plan that was about to be stored as the agent was killed"


def test_of_documents_those_that_are_what_their_names_say_are_kept_in_the_order_in_which_they_ran(
    stored: Path,
) -> None:
    store = PlanStore(stored)
    later, damaged = (hashlib.sha256(each).hexdigest() for each in (b"later", b"damaged"))
    (stored / f"{later}.json").write_bytes(b"later")
    (stored / f"{damaged}.json").write_bytes(b"damaget")
    (stored / "state.json").write_bytes(b"")
    store = PlanStore(stored, epochs_in_spool=lambda: {later[:16]: 7, HASH[:16]: 6})
    assert store.load() == Durable(seen=7, ran=(Ran(HASH, len(WHOLE)), Ran(later, 5)))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"epoch": 1}', "\xff"])
def test_a_state_that_is_none_is_set_aside(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    store = PlanStore(tmp_path)
    assert store.load() == Durable() and len(store.problems) == 1


def test_left_overs_go_but_not_those_of_a_request_under_way(stored: Path) -> None:
    store = PlanStore(stored)
    store.load()
    other = hashlib.sha256(b"other").hexdigest()
    store.put_plan(other, b"other", {0: LOCAL})
    store.write(Durable(5, 3, (ENTRY,)), keep=frozenset({other}))
    assert (stored / f"{other}.local").exists()
    store.write(Durable(5, 3, (ENTRY,)))
    assert sorted(path.name for path in stored.iterdir()) == sorted(
        [f"{HASH}.json", f"{HASH}.local", "reserve", "state.json"]
    )


class Clinging(SystemDisk):
    """Nothing can be removed."""

    def remove(self, path: Path) -> None:
        raise OSError(errno.EIO, "input/output error")


def test_a_state_is_written_also_where_a_left_over_cannot_be_removed(stored: Path) -> None:
    """It is on the disk: a request that was refused for that would be there after the next start."""
    store = PlanStore(stored, disk=Clinging())
    store.load()
    store.write(Durable(6, 5, ()))
    assert (stored / f"{HASH}.local").exists()
    store = PlanStore(stored)
    assert store.load() == Durable(6, 5, ()) and store.problems == []
    store.write(Durable(6, 5, ()))
    assert not (stored / f"{HASH}.local").exists()
