"""Does what the deployment machine commands: writes to the store, talks to the runtime, answers requests."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from node_agent.control.connector_plans import Connect, ConnectorPlans
from node_agent.control.deploy_protocol import Deployments
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
from node_agent.control.plan_check import Checked
from node_agent.control.plan_store import PlanStore
from node_agent.control.runtime_channel import RuntimeLink
from node_agent.host import ipc
from node_agent.host.channel_end import ChannelEnd
from node_agent.host.log import WARNING, Log

LOAD_S = 30.0  # operators may read models from disk
AGAIN_S = 1.0  # after a write or a read that failed
REFUSED_S = 60.0  # at most, after a runtime refused a plan that it once had
DRAINED_S = 10.0  # after the end of admission no peer sends for longer
TELL_S = 2.0  # the runtime answers between two task instances

Answered = asyncio.Future[ipc.Message | None]


class DeployDriver:
    """One node's deployments on its disk and in its runtime."""

    def __init__(self, store: PlanStore, log: Log | None = None, connect: Connect | None = None) -> None:
        """connect: tells the supervisor which plans have connectors; False where it does not take it."""
        self.store, self.log = store, log or Log("", "control")
        self.connector_plans = ConnectorPlans(store, connect or (lambda plans: True))
        self.machine = Deployments(store.load())
        self.unresumed = list(store.problems)  # why what ran does not run, until another plan does or it is collected
        self._logged: dict[str, Deployment] = {}  # as the log last had them
        self._tell_changes(self.machine.durable, "on disk: ")
        self.links: dict[int, RuntimeLink] = {}  # by place: the runtimes that are running
        self.restarts: dict[int, int] = {}  # by place: runtimes beyond the first, since this process began
        self._refused: dict[tuple[int, str], float] = {}  # by place and plan: the last pause before it is tried again
        self._failing_s: dict[tuple[int, str], float] = {}  # by place and plan: since when it cannot be loaded
        self._requests: dict[int, asyncio.Future[AnswerRequest]] = {}
        self._tokens = 0
        self._preparing: dict[int, str] = {}  # plans whose files are there before a state names them
        self._tasks: set[asyncio.Task[None]] = set()
        self._waits_to_write = False

    # -- requests

    async def prepare(self, plan: Checked) -> AnswerRequest:
        """Store the plan's files, then let the machine decide."""
        token = self._token()
        self._preparing[token] = plan.hash
        try:
            self.store.put_plan(plan.hash, plan.whole, plan.local_plans)
        except OSError as error:
            del self._preparing[token]
            return AnswerRequest(token, False, f"the plan cannot be stored ({error.strerror}); make room", State.NONE)
        places, size = tuple(sorted(plan.local_plans)), len(plan.whole)
        wanted = Deployment(plan.hash, plan.epoch, State.NONE, plan.query, plan.routes, places, size)
        try:
            return await self._request(token, lambda: self.machine.prepare(token, wanted))
        finally:
            del self._preparing[token]
            self.store.remove_left_overs(self.machine.durable, frozenset(self._preparing.values()))

    async def commit(self, hash_: str, epoch: int) -> AnswerRequest:
        """Commit; the answer comes when the runtime admits, or after a while without it."""
        token = self._token()
        return await self._request(token, lambda: self.machine.commit(token, hash_, epoch))

    async def abort(self, hash_: str, epoch: int) -> AnswerRequest:
        """Give a prepared plan up."""
        token = self._token()
        return await self._request(token, lambda: self.machine.abort(token, hash_, epoch))

    async def stop(self, hash_: str, epoch: int) -> AnswerRequest:
        """Admit no more, drain, forget."""
        token = self._token()
        return await self._request(token, lambda: self.machine.stop(token, hash_, epoch))

    async def collected(self, hashes: frozenset[str]) -> AnswerRequest:
        """A coordinator holds all that these plans have left here: they may go where they run no more."""
        token = self._token()
        self.unresumed.clear()
        return await self._request(token, lambda: self.machine.collected(token, hashes))

    # -- the runtime

    def runtime_started(self, place: int, boot: int, channel: ChannelEnd) -> None:
        """A new incarnation: tell it all that is stored."""
        self.restarts[place] = self.restarts.get(place, -1) + 1
        self._forget(place)
        self._refused = {key: pause_s for key, pause_s in self._refused.items() if key[0] != place}
        self._failing_s = {key: since_s for key, since_s in self._failing_s.items() if key[0] != place}
        self.links[place] = RuntimeLink(boot, channel, partial(self._changed, place))
        self._do(self.machine.runtime_up(place))

    def runtime_ended(self, boot: int) -> None:
        """It is gone; what it was asked has no answer."""
        for place in [place for place, link in self.links.items() if link.boot == boot]:
            self._forget(place)

    def _forget(self, place: int) -> None:
        link = self.links.pop(place, None)
        if link is not None:
            link.close()
            self._do(self.machine.runtime_down(place))

    def _changed(self, place: int, message: ipc.PlanChanged) -> None:
        if message.state == State.COMMITTED:
            self._do(self.machine.proven(message.hash))
        elif message.state == State.ENDED:
            self._do(self.machine.drained(message.hash, place))

    # -- commands

    def _token(self) -> int:
        self._tokens += 1
        return self._tokens

    async def _request(self, token: int, event: Callable[[], Commands]) -> AnswerRequest:
        answer: asyncio.Future[AnswerRequest] = asyncio.get_running_loop().create_future()
        self._requests[token] = answer
        self._do(event())
        return await answer

    def _do(self, commands: Commands) -> None:
        queue, answers = deque(commands), list[Answered]()
        while queue:
            match queue.popleft():
                case WriteDurably(durable):
                    queue.extend(self.machine.wrote(self._write(durable)))
                case LoadInRuntime(deployment, again, place):
                    self._start(self._load(place, deployment, again))
                case CommitInRuntime(hash_, epoch, place):
                    answers.append(self._tell(place, partial(ipc.Commit, hash=hash_, epoch=epoch)))
                case DrainInRuntime(hash_, place):
                    answers.append(self._tell(place, partial(ipc.Drain, hash=hash_)))
                case UnloadInRuntime(hash_, place):
                    answers.append(self._tell(place, partial(ipc.Abort, hash=hash_)))
                case AnswerRequest() as reply:
                    self._start(self._answer_request(reply, tuple(answers)))

    def _write(self, durable: Durable) -> str:
        try:
            self.store.write(durable, frozenset(self._preparing.values()))
        except OSError as error:
            why = f"the decision cannot be stored ({error.strerror}); make room and try again"
            self.log.say("plan_not_stored", why, WARNING, "plan_not_stored")
            if not self._waits_to_write:  # one at a time, or each of several plans would start further ones
                self._waits_to_write = True
                self._start(self._try_again())
            return why
        self._tell_changes(durable)
        return ""

    async def _try_again(self) -> None:
        await asyncio.sleep(AGAIN_S)
        self._waits_to_write = False
        self._do(self.machine.try_again())

    def _tell_changes(self, durable: Durable, before: str = "") -> None:
        now = {each.hash: each for each in durable.deployments}
        for hash_, each in (self._logged | now).items():
            known, state = self._logged.get(hash_), each.state if hash_ in now else State.ENDED
            if known is None or known.state != state:
                text = f"{before}plan {hash_[:8]} of {each.query} is {state.name.lower()}"
                self.log.say(f"plan_{state.name.lower()}", text, plan=hash_, query=each.query, epoch=each.epoch)
            if state is State.COMMITTED:
                self.unresumed.clear()
        self._logged = now
        self.connector_plans.look(durable)

    def _tell(self, place: int, question: Callable[[int], ipc.Message]) -> Answered:
        if (link := self.links.get(place)) is not None:
            return link.ask(question)
        nobody: Answered = asyncio.get_running_loop().create_future()
        nobody.set_result(None)
        return nobody

    async def _answer_request(self, reply: AnswerRequest, answers: tuple[Answered, ...]) -> None:
        """Answer when the runtime has obeyed: who hears of a commit may send tuples at once."""
        if answers:
            await asyncio.wait(answers, timeout=TELL_S)
        answer = self._requests.pop(reply.token)
        if not answer.done():
            answer.set_result(reply)

    async def _load(self, place: int, deployment: Deployment, again: bool) -> None:
        link = self.links.get(place)
        if link is None:
            return
        hash_ = deployment.hash
        if again and (why := self.store.damage(hash_, place)):  # a bit of it may read as another plan
            self._do(self.machine.loaded(hash_, why, place))
            await self._load_again(place, hash_, AGAIN_S)
            return
        question = partial(
            ipc.Prepare, hash=hash_, epoch=deployment.epoch, routes=deployment.routes, routed=deployment.routed
        )
        answer = await link.ask_within(question, LOAD_S)
        if link is not self.links.get(place):
            return  # runtime_down has spoken for it
        if isinstance(answer, ipc.PlanAnswer):
            self._do(self.machine.loaded(hash_, "" if answer.accepted else answer.why, place))
            if again and not answer.accepted:  # its own read may have failed, or what the plan needs is not there
                self._refused[place, hash_] = pause_s = min(
                    2 * self._refused.get((place, hash_), AGAIN_S / 2), REFUSED_S
                )
                await self._load_again(place, hash_, pause_s)
            elif again and answer.state == State.COMMITTED:  # a tuple may have proven it while nobody was there to hear
                self._do(self.machine.proven(hash_))
        elif not again:
            self._do(self.machine.loaded(hash_, f"the runtime has not loaded the plan within {LOAD_S:.0f} s", place))

    async def _load_again(self, place: int, hash_: str, pause_s: float) -> None:
        link, clock = self.links.get(place), asyncio.get_running_loop().time
        since_s = self._failing_s.setdefault((place, hash_), clock())
        await asyncio.sleep(pause_s)
        if link is self.links.get(place):
            self._do(self.machine.load_again(hash_, place, over=clock() - since_s >= DRAINED_S))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
