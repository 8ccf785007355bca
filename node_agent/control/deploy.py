"""Deployments of one node as a state machine: requests and answers in, commands out; no I/O, no clock.

A deployment is prepared on every node and then committed on every node. What the machine promises:

- An accepted answer is given only when what it promises is on disk, so it survives any crash.
- A lower epoch than one that was seen is refused; an aborted epoch is never prepared again, even where the abort
  overtakes its prepare.
- The same request again does nothing and gets the same answer.
- Commits stand: only a stop ends a committed plan. Committing a plan makes earlier plans of the same query drain.
- A tuple stamped with a prepared plan proves that the coordinator decided; the plan is committed without its message.

One thing is done at a time (a write, or a load in the runtime); requests that come meanwhile wait in line. The shape is
that of dask's worker state machine: `handle_stimulus` there, one method per event here.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from node_agent.control.deployment import (
    Commands,
    CommitInRuntime,
    Deployment,
    DrainInRuntime,
    Durable,
    LoadInRuntime,
    Reply,
    State,
    UnloadInRuntime,
    WriteDurably,
)

MOST_DEPLOYMENTS = 8
MOST_WAITING = 64


class Deployments:
    """The machine. Every method is one event and returns the commands that follow from it, in order."""

    def __init__(self, durable: Durable | None = None) -> None:
        self.durable = durable or Durable()
        self.runtime_is_up = False
        self.failed: dict[str, str] = {}  # plans that the runtime could not load again, and why
        self._waiting: deque[Callable[[], Commands]] = deque()
        self._writing: tuple[Durable, Callable[[str], Commands]] | None = None
        self._loading: tuple[str, Callable[[str], Commands]] | None = None

    # -- requests of the coordinator

    def prepare(self, token: int, wanted: Deployment) -> Commands:
        """A plan that was checked; its file is on disk. `wanted.state` does not count."""
        return self._enter(token, wanted.hash, lambda: self._prepare(token, wanted))

    def commit(self, token: int, hash_: str, epoch: int) -> Commands:
        """The coordinator decided: every node has prepared."""
        return self._enter(token, hash_, lambda: self._commit(token, hash_, epoch))

    def abort(self, token: int, hash_: str, epoch: int) -> Commands:
        """The coordinator gave this epoch up."""
        return self._enter(token, hash_, lambda: self._abort(token, hash_, epoch))

    def stop(self, token: int, hash_: str, epoch: int) -> Commands:
        """Admit no more, drain, forget. The answer comes when admission has ended, not when the plan is empty."""
        return self._enter(token, hash_, lambda: self._stop(token, hash_, epoch))

    # -- what disk and runtime say

    def wrote(self, why: str = "") -> Commands:
        """The last WriteDurably has ended; why: of a failure."""
        if self._writing is None:
            return []
        written, then = self._writing
        self._writing = None
        if not why:
            self.durable = written
        return then(why) + self._go_on()

    def loaded(self, hash_: str, why: str = "") -> Commands:
        """The runtime has loaded the plan, or says why it cannot."""
        if self._loading is None or self._loading[0] != hash_:
            self._note(hash_, why)
            return []
        _, then = self._loading
        self._loading = None
        return then(why) + self._go_on()

    def proven(self, hash_: str) -> Commands:
        """A verified tuple came stamped with this prepared plan: it was committed, the message has not come yet."""
        return self._line_up(lambda: self._proven(hash_))

    def drained(self, hash_: str) -> Commands:
        """The runtime has nothing left of a draining plan and unloaded it."""
        return self._line_up(lambda: self._drained(hash_))

    def runtime_up(self) -> Commands:
        """A new incarnation of the runtime: whatever is on disk is told again, all of it idempotent."""
        self.runtime_is_up = True
        self.failed.clear()
        commands: Commands = []
        for each in self.durable.deployments:
            commands.append(LoadInRuntime(each, again=True))
            if each.state is State.COMMITTED:
                commands.append(CommitInRuntime(each.hash, each.epoch))
            elif each.state is State.DRAINING:
                commands.append(DrainInRuntime(each.hash))
        return commands

    def runtime_down(self) -> Commands:
        """The runtime has ended. A load that was under way fails; the request may come again."""
        self.runtime_is_up = False
        if self._loading is None:
            return []
        return self.loaded(self._loading[0], "the runtime ended while it loaded the plan; deploy again")

    @property
    def busy(self) -> bool:
        """A write or a load is under way."""
        return self._writing is not None or self._loading is not None

    # -- one at a time

    def _enter(self, token: int, hash_: str, event: Callable[[], Commands]) -> Commands:
        if len(self._waiting) >= MOST_WAITING:
            return self._answer(token, hash_, f"{MOST_WAITING} requests wait already; try again")
        return self._line_up(event)

    def _line_up(self, event: Callable[[], Commands]) -> Commands:
        self._waiting.append(event)
        return self._go_on()

    def _go_on(self) -> Commands:
        commands: Commands = []
        while self._waiting and not self.busy:
            commands += self._waiting.popleft()()
        return commands

    def _write(self, durable: Durable, then: Callable[[str], Commands]) -> Commands:
        self._writing = (durable, then)
        return [WriteDurably(durable)]

    def _answer(self, token: int, hash_: str, why: str = "") -> Commands:
        known = self.durable.get(hash_)
        return [Reply(token, not why, why, known.state if known else State.NONE)]

    # -- the events, when their turn has come

    def _prepare(self, token: int, wanted: Deployment) -> Commands:
        known = self.durable.get(wanted.hash)
        if why := self._objection(wanted, known):
            return self._answer(token, wanted.hash, why)
        new = replace(wanted, state=State.PREPARED)
        if known:
            epoch = known.epoch if known.state is State.COMMITTED else wanted.epoch
            new = replace(known, epoch=epoch, routes=wanted.routes)
            if new == known and wanted.hash not in self.failed:
                return self._answer(token, wanted.hash)
        if not self.runtime_is_up:
            return self._answer(token, wanted.hash, "the runtime is not running; see `node-agent`'s log")
        self._loading = (wanted.hash, lambda why: self._prepare_loaded(token, new, known, why))
        return [LoadInRuntime(new)]

    def _objection(self, wanted: Deployment, known: Deployment | None) -> str:  # noqa: PLR0911 - a list of rules
        if known and known.state is State.DRAINING:
            return "this plan is being stopped here; wait until it has drained"
        if wanted.epoch <= self.durable.fence:
            return f"epoch {wanted.epoch} was aborted; deploy again"
        if known and known.state is State.COMMITTED:
            return ""
        if wanted.epoch < self.durable.seen:
            return f"epoch {wanted.epoch} is older than {self.durable.seen}, which this node has seen; deploy again"
        if any(each.epoch == wanted.epoch and each.hash != wanted.hash for each in self.durable.deployments):
            return f"epoch {wanted.epoch} is that of another plan; deploy again"
        if known is None and len(self.durable.deployments) >= MOST_DEPLOYMENTS:
            return f"{MOST_DEPLOYMENTS} plans are here already; stop one"
        return ""

    def _prepare_loaded(self, token: int, new: Deployment, known: Deployment | None, why: str) -> Commands:
        undone: Commands = [] if known else [UnloadInRuntime(new.hash)]
        if why:
            return undone + self._answer(token, new.hash, why)
        self.failed.pop(new.hash, None)

        def written(why: str) -> Commands:
            return (undone if why else []) + self._answer(token, new.hash, why)

        return self._write(self.durable.put(new), written)

    def _commit(self, token: int, hash_: str, epoch: int) -> Commands:
        known = self.durable.get(hash_)
        if known is None:
            return self._answer(token, hash_, "this plan is not prepared here; deploy again")
        if known.state is State.COMMITTED:
            return self._answer(token, hash_)
        if known.state is State.DRAINING:
            return self._answer(token, hash_, "this plan is being stopped here; wait until it has drained")
        if known.epoch != epoch:
            return self._answer(token, hash_, f"prepared in epoch {known.epoch}, not {epoch}; deploy again")
        return self._commit_durably(known, lambda why: self._answer(token, hash_, why))

    def _proven(self, hash_: str) -> Commands:
        known = self.durable.get(hash_)
        if known is None or known.state is not State.PREPARED:
            return []
        return self._commit_durably(known, lambda why: [])

    def _commit_durably(self, known: Deployment, answer: Callable[[str], Commands]) -> Commands:
        # Of a query's committed versions the one of the highest epoch stays; even a commit that comes late runs what is
        # under way, since other nodes may have stamped tuples with it.
        committed = (each for each in self.durable.deployments if each.state is State.COMMITTED)
        same = [each for each in committed if each.query == known.query]
        versions = [*same, replace(known, state=State.COMMITTED)]
        latest = max(versions, key=lambda each: each.epoch)
        older = [replace(each, state=State.DRAINING) for each in versions if each is not latest]
        durable = self.durable
        for each in (*older, latest):
            durable = durable.put(each)

        def written(why: str) -> Commands:
            done: Commands = []
            if not why and latest.hash == known.hash:
                done.append(CommitInRuntime(known.hash, known.epoch))
            if not why:
                done += [DrainInRuntime(each.hash) for each in older]
            return done + answer(why)

        return self._write(durable, written)

    def _abort(self, token: int, hash_: str, epoch: int) -> Commands:
        known = self.durable.get(hash_)
        prepared = known is not None and known.state is State.PREPARED
        if known and not prepared and known.epoch >= epoch:
            return self._answer(token, hash_, f"this plan is committed here in epoch {known.epoch}; stop it instead")
        if known and prepared and known.epoch > epoch:
            return self._answer(token, hash_, f"this plan is prepared in epoch {known.epoch}, later than {epoch}")
        if not prepared and epoch <= self.durable.fence:
            return self._answer(token, hash_)
        fenced = self.durable.without(hash_) if prepared else self.durable
        fenced = replace(fenced, fence=max(fenced.fence, epoch), seen=max(fenced.seen, epoch))

        def written(why: str) -> Commands:
            undone: Commands = [UnloadInRuntime(hash_)] if prepared and not why else []
            return undone + self._answer(token, hash_, why)

        return self._write(fenced, written)

    def _stop(self, token: int, hash_: str, epoch: int) -> Commands:
        known = self.durable.get(hash_)
        if known is None or known.state is State.DRAINING:
            return self._answer(token, hash_)
        if epoch < known.epoch:
            return self._answer(token, hash_, f"this plan is here in epoch {known.epoch}, later than {epoch}")

        def written(why: str) -> Commands:
            # A plan that is only prepared here may be committed elsewhere: what is under way to this node still runs.
            told: Commands = [] if why else [DrainInRuntime(hash_)]
            return told + self._answer(token, hash_, why)

        return self._write(self.durable.put(replace(known, state=State.DRAINING)), written)

    def _drained(self, hash_: str) -> Commands:
        known = self.durable.get(hash_)
        if known is None or known.state is not State.DRAINING:
            return []
        return self._write(self.durable.without(hash_), lambda why: [])

    def _note(self, hash_: str, why: str) -> None:
        if why and self.durable.get(hash_):
            self.failed[hash_] = why
        else:
            self.failed.pop(hash_, None)
