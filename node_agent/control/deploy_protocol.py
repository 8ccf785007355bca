"""Deployments of one node as a state machine: requests and answers in, commands out; no I/O, no clock.

A deployment is prepared on every node and then committed on every node. What the machine promises:

- An accepted answer is given only when what it promises is on disk, so it survives any crash.
- A lower epoch than one that was seen is refused; an aborted epoch is never prepared again, even where the abort
  overtakes its prepare.
- The same request again does nothing and gets the same answer.
- One committed plan at a time: committing a plan makes the one before it drain, under any names of their queries.
  Commits stand: nothing else but a stop ends a committed plan.
- A tuple stamped with a prepared plan proves that the coordinator decided; the plan is committed without its message.
  Where the disk refuses that, it is written as soon as it can be, and nothing that is asked meanwhile is accepted.
- A plan that was committed is kept until a coordinator holds its run. Where there is no room for more of them, further
  plans are refused; none is forgotten.
- A node with several cores has a runtime in each place. A plan is prepared in all places that it has a part for or in
  none, committed in all, and gone when all have drained.

One thing is done at a time (a write, or a load in the runtime); requests that come meanwhile wait in line. The shape is
that of dask's worker state machine: `handle_stimulus` there, one method per event here.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from node_agent.control.deployment import (
    AnswerRequest,
    Commands,
    CommitInRuntime,
    Deployment,
    DrainInRuntime,
    Durable,
    LoadInRuntime,
    State,
    UnloadInRuntime,
    WriteDurably,
)

MOST_DEPLOYMENTS = 8
MOST_RAN = 64  # fewer than there are plan epochs in trace records, so that each names one plan
MOST_RAN_BYTES = 64 << 20
MOST_WAITING = 64
BEING_STOPPED = "this plan is being stopped here; wait until it has drained; if it never does, 'coordinator stop' again"


@dataclass(slots=True)
class _Loading:
    """A plan on its way into the runtimes."""

    hash: str
    places: tuple[int, ...]
    waiting: set[int]  # places that have not answered
    then: Callable[[str], Commands]
    why: str = ""  # the first refusal


class Deployments:
    """The machine. Every method is one event and returns the commands that follow from it, in order."""

    def __init__(self, durable: Durable | None = None) -> None:
        # An earlier release had a committed plan per query, and kept none that had ended.
        self.durable = (durable or Durable()).one_admits().with_ran()
        self._up: set[int] = set()  # places whose runtime is running
        self._failed: dict[tuple[str, int], str] = {}  # plan, place: why the runtime could not load it again
        self._drained_at: dict[str, set[int]] = {}  # plan that drains: places that have nothing left of it
        self._proofs: dict[str, None] = {}  # plans that tuples have proven, where the disk refused that
        self._waiting: deque[Callable[[], Commands]] = deque()
        self._writing: tuple[Durable, Callable[[str], Commands]] | None = None
        self._loading: _Loading | None = None

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

    def collected(self, token: int, hashes: frozenset[str]) -> Commands:
        """A coordinator holds all that these plans have left here."""
        return self._enter(token, "", lambda: self._collected(token, hashes))

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

    def loaded(self, hash_: str, why: str = "", place: int = 0) -> Commands:
        """The runtime of that place has loaded the plan, or says why it cannot."""
        loading = self._loading
        if loading is None or loading.hash != hash_ or place not in loading.waiting:
            self._note(hash_, place, why)
            known = self.durable.get(hash_)
            return [] if why or known is None else _state(known, place)
        loading.waiting.discard(place)
        loading.why = loading.why or why
        if loading.waiting:
            return []  # all are heard before anything is undone
        self._loading = None
        return loading.then(loading.why) + self._go_on()

    def proven(self, hash_: str) -> Commands:
        """A verified tuple came stamped with this prepared plan: it was committed, the message has not come yet."""
        return self._line_up(lambda: self._proven(hash_, lambda _: []))

    def drained(self, hash_: str, place: int = 0) -> Commands:
        """The runtime of that place has nothing left of a draining plan and unloaded it."""
        return self._line_up(lambda: self._drained(hash_, place))

    def try_again(self) -> Commands:
        """A write has failed a while ago: proofs and ends of plans that could not be stored are written now."""
        commands = [command for hash_ in list(self._proofs) for command in self.proven(hash_)]
        for hash_, places in list(self._drained_at.items()):
            for place in sorted(places)[:1]:
                commands += self.drained(hash_, place)
        return commands

    def runtime_up(self, place: int = 0) -> Commands:
        """A new incarnation of that place's runtime: all that is on disk is told again, all of it idempotent. What has
        become of a plan is told when it is loaded: before that a runtime knows it only if it could read it itself."""
        self._up.add(place)
        for hash_, _ in [key for key in self._failed if key[1] == place]:
            del self._failed[hash_, place]
        for places in self._drained_at.values():
            places.discard(place)
        commands: Commands = []
        for each in self.durable.deployments:
            if place not in each.places:
                continue
            commands.append(LoadInRuntime(each, True, place))
        return commands

    def load_again(self, hash_: str, place: int, over: bool = False) -> Commands:
        """A plan's file could not be read a while ago; its disk may be sound again. over: that is so for longer than
        peers send under a plan that drains: of such a one nothing is left here, and nothing comes."""
        known = self.durable.get(hash_)
        if known is None or place not in self._up or (hash_, place) not in self._failed:
            return []
        if over and known.state is State.DRAINING:
            return self.drained(hash_, place)
        return [LoadInRuntime(known, True, place)]

    def runtime_down(self, place: int = 0) -> Commands:
        """That place's runtime has ended. A load that was under way fails; the request may come again."""
        self._up.discard(place)
        loading = self._loading
        if loading is None or place not in loading.places:
            return []
        why = "the runtime ended while it loaded the plan; deploy again"
        if place in loading.waiting:
            return self.loaded(loading.hash, why, place)
        loading.why = loading.why or why  # it had the plan, and its successor has not
        return []

    @property
    def failed(self) -> dict[str, str]:
        """Plans that a runtime could not load again, and why."""
        found: dict[str, str] = {}
        for (hash_, _), why in sorted(self._failed.items()):
            if self.durable.get(hash_) is None:
                continue  # it was stopped, or another one has followed it
            found[hash_] = f"{found[hash_]}; {why}" if hash_ in found else why
        return found

    @property
    def busy(self) -> bool:
        """A write or a load is under way."""
        return self._writing is not None or self._loading is not None

    # -- one at a time

    def _enter(self, token: int, hash_: str, event: Callable[[], Commands]) -> Commands:
        if len(self._waiting) >= MOST_WAITING:
            return self._answer(token, hash_, f"{MOST_WAITING} requests wait already; try again")
        return self._line_up(lambda: self._after_proofs(token, hash_, event))

    def _line_up(self, event: Callable[[], Commands]) -> Commands:
        self._waiting.append(event)
        return self._go_on()

    def _go_on(self) -> Commands:
        commands: Commands = []
        while self._waiting and not self.busy:
            commands += self._waiting.popleft()()
        return commands

    def _after_proofs(self, token: int, hash_: str, event: Callable[[], Commands]) -> Commands:
        """Proofs that could not be stored come first: until then, what is stored is not what runs."""
        if not self._proofs:
            return event()

        def go_on(why: str) -> Commands:
            return self._answer(token, hash_, why) if why else self._after_proofs(token, hash_, event)

        return self._proven(next(iter(self._proofs)), go_on)

    def _write(self, durable: Durable, then: Callable[[str], Commands]) -> Commands:
        self._writing = (durable, then)
        return [WriteDurably(durable)]

    def _answer(self, token: int, hash_: str, why: str = "") -> Commands:
        known = self.durable.get(hash_)
        return [AnswerRequest(token, not why, why, known.state if known else State.NONE)]

    # -- the events, when their turn has come

    def _prepare(self, token: int, wanted: Deployment) -> Commands:
        known = self.durable.get(wanted.hash)
        if why := self._objection(wanted, known):
            return self._answer(token, wanted.hash, why)
        new = replace(wanted, state=State.PREPARED)
        if known:
            epoch = known.epoch if known.state is State.COMMITTED else wanted.epoch
            moved = known.moved if wanted.routes == known.routes else wanted.epoch
            new = replace(known, epoch=epoch, routes=wanted.routes, moved=moved)
            if new == known and wanted.hash not in self.failed:
                return self._prepared_again(token, wanted)
        if not self._up.issuperset(new.places):
            return self._answer(token, wanted.hash, "the runtime is not running; see `node-agent`'s log")
        self._loading = _Loading(
            new.hash,
            new.places,
            set(new.places),
            lambda why: self._prepare_loaded(token, new, known, wanted.epoch, why),
        )
        return [LoadInRuntime(new, False, place) for place in new.places]

    def _objection(self, wanted: Deployment, known: Deployment | None) -> str:  # noqa: PLR0911 - a list of rules
        if known and known.state is State.DRAINING:
            return BEING_STOPPED
        if wanted.epoch <= self.durable.fence:
            return f"epoch {wanted.epoch} is over: it was aborted, or what was made in it has ended; deploy again"
        if known and known.state is State.COMMITTED:
            return ""
        if wanted.epoch < self.durable.seen:
            return f"epoch {wanted.epoch} is older than {self.durable.seen}, which this node has seen; deploy again"
        if any(each.epoch == wanted.epoch and each.hash != wanted.hash for each in self.durable.deployments):
            return f"epoch {wanted.epoch} is that of another plan; deploy again"
        if known is None and len(self.durable.deployments) >= MOST_DEPLOYMENTS:
            return f"{MOST_DEPLOYMENTS} plans are here already; stop one"
        return self._full(wanted)

    def _full(self, wanted: Deployment) -> str:
        ran = self.durable.ran
        if any(each.hash == wanted.hash for each in ran):
            return ""
        room = len(ran) < MOST_RAN and sum(each.bytes for each in ran) + wanted.bytes <= MOST_RAN_BYTES
        return "" if room else f"{len(ran)} plans have run here since the last collection; 'coordinator collect' first"

    def _prepared_again(self, token: int, wanted: Deployment) -> Commands:
        """It is here as it is wanted. A plan that admits keeps its epoch, and the new one fences older deployments."""
        if wanted.epoch <= self.durable.seen:
            return self._answer(token, wanted.hash)
        durable = self.durable.with_seen(wanted.epoch)
        return self._write(durable, lambda why: self._answer(token, wanted.hash, why))

    def _prepare_loaded(self, token: int, new: Deployment, known: Deployment | None, epoch: int, why: str) -> Commands:
        undone: Commands = [] if known else [UnloadInRuntime(new.hash, place) for place in new.places]
        if why:
            return undone + self._answer(token, new.hash, why)
        mended = [place for place in new.places if self._failed.pop((new.hash, place), None)]
        # A runtime that could not load what is committed here has it now, and was told of the commit in vain.
        again: Commands = [
            CommitInRuntime(new.hash, new.latest, place) for place in mended if new.state is State.COMMITTED
        ]

        def written(why: str) -> Commands:
            return again + (undone if why else []) + self._answer(token, new.hash, why)

        return self._write(self.durable.put(new).with_seen(epoch), written)

    def _commit(self, token: int, hash_: str, epoch: int) -> Commands:
        known = self.durable.get(hash_)
        if known is None:
            return self._answer(token, hash_, "this plan is not prepared here; deploy again")
        if known.state is State.COMMITTED:
            return self._committed_again(token, known, epoch)
        if known.state is State.DRAINING:
            return self._answer(token, hash_, BEING_STOPPED)
        if known.epoch != epoch:
            return self._answer(token, hash_, f"prepared in epoch {known.epoch}, not {epoch}; deploy again")
        return self._commit_durably(known, lambda why: self._answer(token, hash_, why))

    def _committed_again(self, token: int, known: Deployment, epoch: int) -> Commands:
        """It admits and goes on. What was prepared between the two deployments is older from now on: a commit of it
        that comes late, or a tuple that proves one, does not end this plan."""
        if epoch <= known.latest:
            return self._answer(token, known.hash)
        told = [CommitInRuntime(known.hash, epoch, place) for place in known.places]

        def written(why: str) -> Commands:
            return ([] if why else [*told]) + self._answer(token, known.hash, why)

        return self._write(self.durable.put(replace(known, again=epoch)).with_seen(epoch), written)

    def _proven(self, hash_: str, then: Callable[[str], Commands]) -> Commands:
        """then: called when it is stored, or with why it is not; `try_again` and the next request store it then."""
        self._proofs.pop(hash_, None)
        known = self.durable.get(hash_)
        if known is None or known.state is not State.PREPARED:
            return then("")

        def written(why: str) -> Commands:
            if why:
                self._proofs[hash_] = None
            return then(why)

        return self._commit_durably(known, written)

    def _commit_durably(self, known: Deployment, answer: Callable[[str], Commands]) -> Commands:
        # Even a commit that comes late runs what is under way, since other nodes may have stamped tuples with it.
        durable = self.durable.put(replace(known, state=State.COMMITTED)).one_admits().with_ran()
        admits = durable.get(known.hash) == replace(known, state=State.COMMITTED)
        committed = {each.hash for each in self.durable.deployments if each.state is State.COMMITTED} | {known.hash}
        older = [each for each in durable.deployments if each.hash in committed and each.state is State.DRAINING]

        def written(why: str) -> Commands:
            done: Commands = []
            if not why and admits:
                done += [CommitInRuntime(known.hash, known.latest, place) for place in known.places]
            if not why:
                done += _drain(*older)
            return done + answer(why)

        return self._write(durable, written)

    def _abort(self, token: int, hash_: str, epoch: int) -> Commands:
        known = self.durable.get(hash_)
        prepared = known is not None and known.state is State.PREPARED
        if known and not prepared and known.latest >= epoch:
            return self._answer(token, hash_, f"this plan is committed here in epoch {known.latest}; stop it instead")
        if known and prepared and known.epoch > epoch:
            return self._answer(token, hash_, f"this plan is prepared in epoch {known.epoch}, later than {epoch}")
        if not prepared and epoch <= self.durable.fence:
            return self._answer(token, hash_)
        fenced = self.durable.without(hash_) if prepared else self.durable
        fenced = replace(fenced, fence=max(fenced.fence, epoch), seen=max(fenced.seen, epoch))

        def written(why: str) -> Commands:
            undone: Commands = []
            if known and prepared and not why:
                undone = [UnloadInRuntime(hash_, place) for place in known.places]
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
            drains: Commands = [] if why else _drain(known)
            return drains + self._answer(token, hash_, why)

        return self._write(self.durable.put(replace(known, state=State.DRAINING)).with_ran(), written)

    def _collected(self, token: int, hashes: frozenset[str]) -> Commands:
        left = self.durable.collected(hashes)
        if left == self.durable:
            return self._answer(token, "")
        return self._write(left, lambda why: self._answer(token, "", why))

    def _drained(self, hash_: str, place: int) -> Commands:
        known = self.durable.get(hash_)
        if known is None or known.state is not State.DRAINING:
            return []
        empty = self._drained_at.setdefault(hash_, set())
        empty.add(place)
        if not empty.issuperset(known.places):
            return []

        def written(why: str) -> Commands:
            if not why:
                del self._drained_at[hash_]
            return []  # else it is here until `try_again`: no runtime tells a second time that it has drained

        return self._write(self.durable.ended(known), written)

    def _note(self, hash_: str, place: int, why: str) -> None:
        if why and self.durable.get(hash_):
            self._failed[hash_, place] = why
        else:
            self._failed.pop((hash_, place), None)


def _state(known: Deployment, place: int) -> Commands:
    """What a runtime is told of a plan that it has loaded."""
    if known.state is State.COMMITTED:
        return [CommitInRuntime(known.hash, known.latest, place)]
    return [DrainInRuntime(known.hash, place)] if known.state is State.DRAINING else []


def _drain(*deployments: Deployment) -> Commands:
    return [DrainInRuntime(each.hash, place) for each in deployments for place in each.places]
