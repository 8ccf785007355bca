"""Which plans the supervisor hears of: those that read and write, also where a disk fails for a while."""

import errno
from pathlib import Path

import pytest

from node_agent.control.connector_plans import ConnectorPlans
from node_agent.control.deployment import Deployment, Durable, State
from node_agent.control.plan_store import PlanStore
from node_agent.host import ipc
from node_agent.host.system_disk import SystemDisk
from tests.node_agent.live import chain_plan

HASH = "ab" * 32
CONNECTOR = {"kind": "mqtt", "url": "mqtt://b:1883/t"}
RUNS = Durable(1, 0, (Deployment(HASH, 1, State.COMMITTED, "q"),))


class FailingDisk(SystemDisk):
    """Reads nothing while it fails."""

    fails = False

    def read(self, path: Path) -> bytes:
        if self.fails:
            raise OSError(errno.EMFILE, "Too many open files")
        return super().read(path)


@pytest.fixture
def disk() -> FailingDisk:
    return FailingDisk()


@pytest.fixture
def store(tmp_path: Path, disk: FailingDisk) -> PlanStore:
    store = PlanStore(tmp_path, disk=disk)
    plan = chain_plan(sources=[{"id": 1, "name": "in", "stream": 1, "connector": CONNECTOR}])
    store.put_plan(HASH, b"{}", {0: plan.SerializeToString()})
    return store


def test_a_new_control_says_what_there_is_also_where_that_is_nothing(store: PlanStore) -> None:
    said: list[ipc.Connect] = []
    plans = ConnectorPlans(store, lambda wanted: said.append(wanted) is None)
    plans.look(Durable())
    plans.tell()
    plans.look(RUNS)
    plans.look(Durable(2, 0, (Deployment(HASH, 1, State.DRAINING, "q"),)))
    assert said == [ipc.Connect(()), ipc.Connect(((HASH, True),)), ipc.Connect(((HASH, False),))]


def test_a_plan_that_cannot_be_read_now_is_read_later(store: PlanStore, disk: FailingDisk) -> None:
    said: list[ipc.Connect] = []
    plans = ConnectorPlans(store, lambda wanted: said.append(wanted) is None)
    disk.fails = True
    plans.look(RUNS)
    disk.fails = False
    plans.tell()
    assert said[-1] == ipc.Connect(((HASH, True),))
