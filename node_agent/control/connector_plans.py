"""Which plans here have connectors: the supervisor runs a process for them beside the runtimes."""

from collections.abc import Callable

from google.protobuf.message import DecodeError

from node_agent.control.deployment import Deployment, Durable, State
from node_agent.control.plan_store import PlanStore
from node_agent.host import ipc
from node_agent.host.files.plan_files import local_path
from protos import plan_pb2

Connect = Callable[[ipc.Connect], bool]


class ConnectorPlans:
    """connect: tells the supervisor; False: not now. Committed plans read and write, those that drain still write."""

    def __init__(self, store: PlanStore, connect: Connect) -> None:
        self._store, self._connect = store, connect
        self._has: dict[str, bool] = {}  # by hash
        self._wanted = self._told = ipc.Connect(())

    def look(self, durable: Durable) -> None:
        """What runs here may have changed."""
        running = [each for each in durable.deployments if each.state in {State.COMMITTED, State.DRAINING}]
        self._has = {each.hash: self._has_any(each) for each in running}
        self._wanted = ipc.Connect(
            tuple((each.hash, each.state is State.COMMITTED) for each in running if self._has[each.hash])
        )
        self.tell()

    def tell(self) -> None:
        """Once it has changed, or again where it was not taken."""
        if self._wanted != self._told and self._connect(self._wanted):
            self._told = self._wanted

    def _has_any(self, plan: Deployment) -> bool:
        known = self._has.get(plan.hash)
        return any(self._reads(plan.hash, core) for core in plan.places) if known is None else known

    def _reads(self, hash_: str, core: int) -> bool:
        try:
            data = self._store.disk.read(local_path(self._store.directory, hash_, core))
            local = plan_pb2.LocalPlan.FromString(data)
        except (OSError, DecodeError):  # the runtime says so
            return False
        return any(each.HasField("connector") for each in (*local.sources, *local.outputs))
