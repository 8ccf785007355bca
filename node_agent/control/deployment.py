"""The deployment machine's data: the plans on this node, and the commands to its driver."""

from dataclasses import dataclass, replace
from enum import IntEnum


class State(IntEnum):
    """As agent.proto's PlanState."""

    NONE = 0
    PREPARED = 1
    COMMITTED = 2
    DRAINING = 3
    ENDED = 4


Route = tuple[int, str, str]  # node number, node, host:port


@dataclass(frozen=True, slots=True)
class Deployment:
    """One plan on this node. hash: 64 hex digits; epoch: its records have it, and it stays while the plan admits."""

    hash: str
    epoch: int
    state: State
    query: str
    routes: tuple[Route, ...] = ()
    places: tuple[int, ...] = (0,)  # cores of this node that it has a part for
    bytes: int = 0  # of the whole plan's file
    again: int = 0  # the last epoch in which it was committed once more while it admitted
    moved: int = 0  # the epoch of the later deployment that its routes are of; 0: they are of its own

    @property
    def latest(self) -> int:
        """The epoch of the last decision for it."""
        return max(self.epoch, self.again)

    @property
    def routed(self) -> int:
        """The epoch of the deployment that its routes are of."""
        return max(self.latest, self.moved)

    @property
    def decided(self) -> tuple[int, bool]:
        """Of two that are committed, the later one admits. Two coordinators may use one epoch: what one of them has
        newly made is later then than what the other one has deployed once more."""
        return self.latest, self.epoch == self.latest


@dataclass(frozen=True, slots=True, order=True)
class Ran:
    """A plan that has admitted tuples here since the last collection: its trace is read by it. bytes: of its file."""

    hash: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Durable:
    """What is on disk. seen: the highest epoch that was accepted; fence: the highest of those in which nothing is
    prepared any more, as they were aborted or what was made in them has ended; ran: the plans that no collection has
    yet, in the order in which they were first committed."""

    seen: int = 0
    fence: int = 0
    deployments: tuple[Deployment, ...] = ()
    ran: tuple[Ran, ...] = ()

    def get(self, hash_: str) -> Deployment | None:
        """The deployment of this plan, if it is here."""
        return next((each for each in self.deployments if each.hash == hash_), None)

    def put(self, deployment: Deployment) -> "Durable":
        """With this deployment in place of the one of the same hash."""
        others = tuple(each for each in self.deployments if each.hash != deployment.hash)
        return replace(self, deployments=(*others, deployment)).with_seen(deployment.epoch)

    def with_seen(self, epoch: int) -> "Durable":
        """With that epoch among those that were accepted."""
        return replace(self, seen=max(self.seen, epoch))

    def without(self, hash_: str) -> "Durable":
        """Without the deployment of this hash."""
        return replace(self, deployments=tuple(each for each in self.deployments if each.hash != hash_))

    def ended(self, deployment: Deployment) -> "Durable":
        """Without this deployment, which has drained. Records tell plans apart by their epochs, so nothing else is made
        under its epoch, as a coordinator might that was told of it before."""
        return replace(self.without(deployment.hash), fence=max(self.fence, deployment.epoch))

    def with_ran(self) -> "Durable":
        """With every plan that admits or drains among those that ran."""
        known = {each.hash for each in self.ran}
        running = (each for each in self.deployments if each.state in (State.COMMITTED, State.DRAINING))
        new = tuple(Ran(each.hash, each.bytes) for each in running if each.hash not in known)
        return replace(self, ran=self.ran + new)

    def collected(self, hashes: frozenset[str]) -> "Durable":
        """Without those of `hashes` among the plans that ran; a plan that is still here stays."""
        kept = tuple(each for each in self.ran if each.hash not in hashes or self.get(each.hash) is not None)
        return replace(self, ran=kept)

    def one_admits(self) -> "Durable":
        """With one committed plan at most, the one that was decided last, under any names of its queries; others
        drain."""
        committed = [each for each in self.deployments if each.state is State.COMMITTED]
        last = max((each.decided for each in committed), default=(0, False))
        durable = self
        for each in committed:
            if each.decided < last:
                durable = durable.put(replace(each, state=State.DRAINING))
        return durable


# -- commands


@dataclass(frozen=True, slots=True)
class WriteDurably:
    """Write this state, all or nothing, then call `wrote`. Plan files without a deployment may go afterwards."""

    durable: Durable


@dataclass(frozen=True, slots=True)
class LoadInRuntime:
    """Load the plan in the runtime of that place; then call `loaded`, except where `again`."""

    deployment: Deployment
    again: bool = False  # the runtime had it, or has it on disk: nobody waits for the answer
    place: int = 0


@dataclass(frozen=True, slots=True)
class CommitInRuntime:
    """Admit under this plan from now on."""

    hash: str
    epoch: int
    place: int = 0


@dataclass(frozen=True, slots=True)
class DrainInRuntime:
    """Admit no more under this plan, run what comes from peers; `drained` follows when it is empty."""

    hash: str
    place: int = 0


@dataclass(frozen=True, slots=True)
class UnloadInRuntime:
    """Forget this plan, which was only prepared."""

    hash: str
    place: int = 0


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """Answer to the request that came with this token."""

    token: int
    accepted: bool
    why: str
    state: State


Command = WriteDurably | LoadInRuntime | CommitInRuntime | DrainInRuntime | UnloadInRuntime | AnswerRequest
Commands = list[Command]
