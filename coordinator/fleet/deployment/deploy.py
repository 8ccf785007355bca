"""Deploy a plan on its agents, and stop it: drivers of the two-phase machine and of draining."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from coordinator import signals
from coordinator.errors import CoordinatorError, Mistake
from coordinator.fleet.addresses import AgentAddress
from coordinator.fleet.agents import AgentError, Agents, AgentsError
from coordinator.fleet.deployment.two_phase import Answer, Result, TwoPhase, Verb
from protos import agent_pb2
from protos.plan_document import Plan

PREPARE_S, COMMIT_S, ABORT_S, STOP_S = 60.0, 10.0, 5.0, 5.0
POLL_S, RETRY_S = 0.1, 0.5
MOST_PLAN_BYTES = 16 << 20

Progress = Callable[[str], None]
METHOD = {Verb.PREPARE: "Prepare", Verb.COMMIT: "Commit", Verb.ABORT: "Abort"}
SECONDS = {Verb.PREPARE: PREPARE_S, Verb.COMMIT: COMMIT_S, Verb.ABORT: ABORT_S}


class DeployError(CoordinatorError):
    """The plan is not committed on all nodes; the lines say why and what is left where."""

    def __init__(self, headline: Mistake, reasons: Mapping[str, Mistake]) -> None:
        self.reasons = dict(reasons)
        super().__init__(headline, *(_of_node(node, why) for node, why in self.reasons.items()))


def _of_node(node: str, why: Mistake) -> Mistake:
    named = why if why.text.startswith("node ") else why.within(f"node {node}")
    return replace(named, subject=node)


@dataclass(frozen=True)
class Deployed:
    """A plan that is committed on all its nodes. nodes: places; changed: False where it had been before; edited: by
    node, operators of it whose files have changed since the agent loaded them."""

    plan_hash: str
    epoch: int
    nodes: tuple[str, ...]
    changed: bool
    edited: Mapping[str, tuple[str, ...]]


def deploy(
    plan: Plan,
    agents: Agents,
    progress: Progress = lambda _: None,
    check: Callable[[Mapping[str, agent_pb2.StatusReply]], None] = lambda _: None,
    decided: Callable[[], None] = lambda: None,
) -> Deployed:
    """Prepare on all nodes of the plan, then commit on all. `agents` are exactly the plan's nodes. `check` is given
    what the agents run, before anything is asked of them, and may raise; `decided` is called once, before the first
    commit.

    Raises DeployError or AgentsError; nothing is half deployed then, nor after Ctrl-C.
    """
    hash_, nodes = bytes.fromhex(plan.hash), tuple(agents.addresses)  # an agent answers for all its places
    before = agents.status()
    _check_names(before, agents.addresses)
    check(before)
    epoch = _next_epoch(max(_highest_epoch(status) for status in before.values()))
    running = {name for name, status in before.items() if _state(status, hash_) == agent_pb2.COMMITTED}
    requests = _requests(plan, hash_, epoch, agents.places)
    machine = TwoPhase(nodes)
    _drive(machine, agents, requests, progress, decided)
    if machine.result is Result.ABORTED:
        head = Mistake(
            "not_deployed", "not deployed: what had been prepared was given up everywhere", subject=plan.hash
        )
        raise DeployError(head, machine.reasons)
    if machine.result is Result.DECIDED:
        mend = "each starts with the plan's first tuple, or deploy again"
        head = Mistake("not_confirmed", "deployed, but not every node has confirmed it", mend, plan.hash)
        raise DeployError(head, machine.reasons)
    return Deployed(plan.hash, epoch, tuple(agents.places), running != set(nodes), _edited(plan, agents))


def _edited(plan: Plan, agents: Agents) -> dict[str, tuple[str, ...]]:
    statuses = agents.try_all("Status", dict.fromkeys(agents.addresses, agent_pb2.StatusRequest()), STOP_S)
    named = {each.run for local in plan.nodes.values() for each in local.installed}
    found = {
        node: tuple(each.run for each in status.operators if each.edited and each.run in named)
        for node, status in statuses.items()
        if not isinstance(status, AgentError)
    }
    return {node: runs for node, runs in found.items() if runs}


def _drive(
    machine: TwoPhase,
    agents: Agents,
    requests: Mapping[Verb, Any],
    progress: Progress,
    tell_decided: Callable[[], None],
) -> None:
    """Make the machine's calls until it has a result. Interrupted before the decision, what was prepared is given up;
    after it, the nodes go on by themselves."""
    calls, before, decided = machine.begin(), Verb.PREPARE, False
    try:
        while calls:
            verb = calls[0][0]
            if verb is Verb.COMMIT and before is Verb.COMMIT:
                agents.sleep(RETRY_S)
            before = verb
            progress(f"{verb.value} on {', '.join(node for _, node in calls)}")
            if not decided:
                signals.check()
            if verb is Verb.COMMIT and not decided:
                decided = True
                tell_decided()
            replies = agents.try_all(METHOD[verb], {node: requests[verb] for _, node in calls}, SECONDS[verb])
            calls = [call for node, reply in replies.items() for call in machine.answer(verb, node, _answer(reply))]
    except (KeyboardInterrupt, SystemExit):
        if not decided:
            agents.try_all(METHOD[Verb.ABORT], dict.fromkeys(machine.nodes, requests[Verb.ABORT]), ABORT_S)
        raise


def stop(hashes: set[bytes] | None, agents: Agents, seconds: float, progress: Progress = lambda _: None) -> list[str]:
    """Stop admission under these plans (None: all) and wait until no node has them any more.

    Returns one line for each node on which a plan is left after `seconds`; none: all have drained. Raises AgentsError
    where a node cannot be reached, after the others were told, and DeployError where one refuses.
    """
    progress("stopping admission")
    replies = agents.try_all("Status", dict.fromkeys(agents.addresses, agent_pb2.StatusRequest()), STOP_S)
    errors = [reply for reply in replies.values() if isinstance(reply, AgentError)]
    refused = {}
    told = set[tuple[bytes, int]]()
    for name, status in replies.items():
        for plan in _plans(status, hashes):
            reply = _stop_on(name, plan, agents)
            told.add((plan.hash, plan.epoch))
            if isinstance(reply, AgentError):
                errors.append(reply)
            elif not reply.accepted:
                refused[name] = _refused(reply.why)
    if errors:
        raise AgentsError(errors)
    if not any(_plans(status, hashes) for status in replies.values()):
        progress("no node has it: nothing to stop")
    if refused:
        raise DeployError(Mistake("not_stopped", "not stopped everywhere"), refused)
    return _await_drained(hashes, told, agents, seconds, progress)


def holders(hashes: set[bytes] | None, agents: Agents) -> dict[str, list[str]]:
    """The nodes that have these plans (None: any plan), by `4338e9cc of q`; those that do not answer are left out."""
    found: dict[str, list[str]] = {}
    replies = agents.try_all("Status", dict.fromkeys(agents.addresses, agent_pb2.StatusRequest()), STOP_S)
    for name, status in replies.items():
        if not isinstance(status, AgentError):
            for plan in _plans(status, hashes):
                found.setdefault(f"{plan.hash.hex()[:8]} of {plan.query}", []).append(name)
    return found


def end(hashes: set[bytes], agents: Agents) -> None:
    """Stop admission under these plans where they run, and wait for nothing: for nodes that a new plan does not have.
    Nodes that cannot be reached are left alone."""
    replies = agents.try_all("Status", dict.fromkeys(agents.addresses, agent_pb2.StatusRequest()), STOP_S)
    for name, status in replies.items():
        for plan in _plans(status, hashes):
            _stop_on(name, plan, agents)


def _stop_on(name: str, plan: agent_pb2.PlanStatus, agents: Agents) -> Any:
    request = agent_pb2.StopRequest(hash=plan.hash, epoch=plan.epoch)
    return agents.try_all("Stop", {name: request}, STOP_S)[name]


def give_up(hashes: set[str], agents: Agents) -> None:
    """Abort these plans where they are only prepared, which bars their epochs: what was left by a coordinator that was
    killed between its phases. Raises AgentsError, and DeployError where one of them is committed by now."""
    refused = {}
    for name, status in agents.status().items():
        for plan in status.plans:
            if plan.hash.hex() in hashes and plan.state == agent_pb2.PREPARED:
                request = agent_pb2.AbortRequest(hash=plan.hash, epoch=plan.epoch)
                reply = agents.all("Abort", {name: request}, ABORT_S)[name]
                if not reply.accepted:
                    refused[name] = _refused(reply.why)
    if refused:
        raise DeployError(Mistake("not_given_up", "not given up everywhere", "nothing else was changed"), refused)


def _await_drained(
    hashes: set[bytes] | None, told: set[tuple[bytes, int]], agents: Agents, seconds: float, progress: Progress
) -> list[str]:
    """told: hash and epoch of deployments that were stopped where they were. One that another coordinator was carrying
    out meanwhile may be committed on a node only now, and is stopped there as well."""
    end = agents.monotonic() + seconds
    while True:
        statuses = agents.status()
        left = [
            f"node {name}: plan {plan.hash.hex()[:8]} {_left(plan)}"
            for status in statuses.values()
            for name, plan in _plans_by_place(status, hashes)
        ]
        if not left or agents.monotonic() >= end:
            return left
        for name, status in statuses.items():
            for plan in _plans(status, hashes):
                if plan.state == agent_pb2.COMMITTED and (plan.hash, plan.epoch) in told:
                    _stop_on(name, plan, agents)
        progress(f"draining: {left[0]}")
        agents.sleep(POLL_S)


def _left(plan: agent_pb2.PlanStatus) -> str:
    if not (plan.ready or plan.waiting or plan.unacknowledged):
        return "is empty and waits as long as its peers may still send"
    return (
        f"has {plan.ready} task instances ready, {plan.waiting} join entries waiting,"
        f" {plan.unacknowledged} tuples unacknowledged"
    )


def _plans(status: Any, hashes: set[bytes] | None) -> list[agent_pb2.PlanStatus]:
    if isinstance(status, AgentError):
        return []
    return [plan for plan in status.plans if hashes is None or plan.hash in hashes]


def _plans_by_place(status: Any, hashes: set[bytes] | None) -> list[tuple[str, agent_pb2.PlanStatus]]:
    """As `_plans`, of every place of the agent by itself."""
    return [(place.node, plan) for place in (status.places or (status,)) for plan in _plans(place, hashes)]


def _requests(plan: Plan, hash_: bytes, epoch: int, places: Mapping[str, AgentAddress]) -> dict[Verb, Any]:
    whole = plan.canonical()
    if len(whole) > MOST_PLAN_BYTES:
        text = f"the plan has {len(whole)} bytes, agents take at most {MOST_PLAN_BYTES}"
        raise CoordinatorError(Mistake("plan_too_large", text, subject=plan.hash))
    routes = [
        agent_pb2.Route(index=plan.cluster.nodes[name].index, node=name, address=agent.data)
        for name, agent in places.items()
    ]
    return {
        Verb.PREPARE: agent_pb2.PrepareRequest(plan=whole, hash=hash_, epoch=epoch, routes=routes),
        Verb.COMMIT: agent_pb2.CommitRequest(hash=hash_, epoch=epoch),
        Verb.ABORT: agent_pb2.AbortRequest(hash=hash_, epoch=epoch),
    }


def _answer(reply: Any) -> Answer:
    if isinstance(reply, AgentError):
        return Answer(False, reply.mistake, answered=False)
    return Answer(reply.accepted, _refused(reply.why))


def _refused(why: str) -> Mistake:
    """An agent's own words."""
    return Mistake.of("refused_by_agent", why)


def _check_names(statuses: Mapping[str, agent_pb2.StatusReply], addresses: Mapping[str, AgentAddress]) -> None:
    wrong = [
        AgentError(
            name, "other_node", f"the agent at {addresses[name].control} is node {status.node}", "correct the addresses"
        )
        for name, status in statuses.items()
        if status.node != name
    ]
    if wrong:
        raise AgentsError(wrong)


def _next_epoch(highest: int) -> int:
    """Trace records carry the epoch modulo 128, and 0 there means no plan."""
    return highest + 2 if (highest + 1) % 128 == 0 else highest + 1


def _highest_epoch(status: agent_pb2.StatusReply) -> int:
    seen = [counter.value for counter in status.counters if counter.name == "highest_epoch"]
    return max([0, *seen, *(plan.epoch for plan in status.plans)])


def _state(status: agent_pb2.StatusReply, hash_: bytes) -> int:
    return next((plan.state for plan in status.plans if plan.hash == hash_), agent_pb2.NONE)
