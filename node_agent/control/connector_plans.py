"""Which plans here have connectors: the supervisor runs a process for them beside the runtimes."""

from collections.abc import Callable
from contextlib import suppress

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
        self._running: list[Deployment] = []
        self._has: dict[str, bool] = {}  # by hash; those that cannot be read now are not in it
        self._said: ipc.Connect | None = None  # a new control does not know what the supervisor has

    def look(self, durable: Durable) -> None:
        """What runs here may have changed."""
        self._running = [each for each in durable.deployments if each.state in {State.COMMITTED, State.DRAINING}]
        self._has = {each.hash: self._has[each.hash] for each in self._running if each.hash in self._has}
        self._tell(nothing=self._said is not None)

    def tell(self) -> None:
        """Once it has changed, or again where it was not taken, or a plan could not be read. A control that is new
        says here, when it is ready, also that there is nothing."""
        self._tell(nothing=True)

    def _tell(self, nothing: bool) -> None:
        for each in self._running:
            if each.hash not in self._has:
                with suppress(OSError):  # the runtime says so
                    self._has[each.hash] = any(self._reads(each.hash, core) for core in each.places)
        wanted = ipc.Connect(
            tuple((each.hash, each.state is State.COMMITTED) for each in self._running if self._has.get(each.hash))
        )
        if wanted != self._said and (nothing or wanted.plans) and self._connect(wanted):
            self._said = wanted

    def _reads(self, hash_: str, core: int) -> bool:
        data = self._store.disk.read(local_path(self._store.directory, hash_, core))
        try:
            local = plan_pb2.LocalPlan.FromString(data)
        except DecodeError:  # the runtime says so
            return False
        return any(each.HasField("connector") for each in (*local.sources, *local.outputs))
