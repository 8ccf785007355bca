"""The plans of a run: every one that admitted tuples since the collection before, as the agents hand them over.

    runs/<utc>-<plan8>/  plan.json               the last of them
                         earlier/<hash>.json     the others

Agents keep a plan from its commit until a collection holds its run, so neither a plan file nor the machine that
deployed it is needed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from coordinator.errors import BadInputError
from coordinator.fleet.agents import AgentError, Agents
from coordinator.plan import plan_file
from protos import agent_pb2, plan_document
from protos.plan_document import Plan
from protos.records import HEADER_BYTES, plans_in, stamp_of
from protos.segments import records_in

FETCH_S, TRACE_S = 30.0, 120.0


@dataclass(frozen=True)
class DeployedPlans:
    """What agents say before a collection. committed: hashes of plans that admit tuples somewhere; latest_first: of all
    plans there, by their epoch, then of those that are kept; documents: by hash; silent: why nodes do not
    answer."""

    committed: frozenset[str]
    latest_first: tuple[str, ...]
    documents: dict[str, Plan]
    silent: dict[str, str]


def deployed(agents: Agents, seconds: float) -> DeployedPlans:
    """Ask every agent which plans it has and which it keeps."""
    replies = agents.try_all("Status", dict.fromkeys(agents.addresses, agent_pb2.StatusRequest()), seconds)
    silent = {node: str(reply) for node, reply in replies.items() if isinstance(reply, AgentError)}
    here = [plan for reply in replies.values() if not isinstance(reply, AgentError) for plan in reply.plans]
    documents, silent = fetch(agents, (), silent)
    here.sort(key=lambda plan: -plan.epoch)
    committed = frozenset(plan.hash.hex() for plan in here if plan.state == agent_pb2.COMMITTED)
    latest = dict.fromkeys([*(plan.hash.hex() for plan in here), *reversed(documents)])
    return DeployedPlans(committed, tuple(latest), documents, silent)


def fetch(
    agents: Agents, held: Iterable[str] = (), silent: Mapping[str, str] | None = None, wanted: Collection[str] = ()
) -> tuple[dict[str, Plan], dict[str, str]]:
    """The plans that ran on these agents, by hash, without those that are `held`; and why nodes did not answer. silent:
    nodes that are not asked again, and why; wanted: only these, none: all."""
    found: dict[str, Plan] = {}
    silent = dict(silent or {})
    for node in [node for node in agents.addresses if node not in silent]:
        try:
            documents = agents.plans(node, FETCH_S, held={*held, *found}, wanted=wanted)
        except AgentError as error:
            silent[node] = str(error)
            continue
        for each in documents:
            plan = _parsed(each.plan)
            if plan is not None and plan.hash == each.hash.hex():
                found[plan.hash] = plan
    return found, silent


@dataclass(frozen=True)
class Ran:
    """What traces say of a plan. stamp: the start of its hash; epoch: the latest; nodes: agents that tell of it."""

    stamp: str
    epoch: int
    nodes: tuple[str, ...]


def traced(agents: Agents, nodes: Iterable[str]) -> list[Ran]:
    """The plans that these agents' traces tell of, the latest first. Nothing is freed. It reads all that is there."""
    found: dict[str, Ran] = {}
    for node in nodes:
        for stamp, epoch in _plan_records(agents, node):
            before = found.get(stamp, Ran(stamp, 0, ()))
            found[stamp] = Ran(stamp, max(before.epoch, epoch), tuple(dict.fromkeys([*before.nodes, node])))
    return sorted(found.values(), key=lambda ran: -ran.epoch)


def _plan_records(agents: Agents, node: str) -> Iterator[tuple[str, int]]:
    try:
        for chunk in agents.trace(node, {}, TRACE_S):
            for record in plans_in(records_in(bytes(HEADER_BYTES) + chunk.blocks)):
                yield f"{record.stamp:016x}", record.plan_epoch
    except AgentError:
        return


def forget(agents: Agents, held: Iterable[str], nodes: Iterable[str]) -> None:
    """These nodes may forget the plans that are held with their runs. One that cannot be told keeps them."""
    for node in nodes:
        try:
            agents.plans(node, FETCH_S, held=held, forget=True)
        except AgentError:
            continue


def _parsed(canonical: bytes) -> Plan | None:
    """As of Prepare: canonical JSON without its hash."""
    try:
        values = json.loads(canonical)
        return plan_document.shaped({**values, "hash": plan_document.digest(values)})
    except (TypeError, ValueError, RecursionError):
        return None


class RunPlans:
    """The plans in a run directory. last: that of plan.json."""

    def __init__(self, run: Path, last: Plan) -> None:
        self.run, self.last, self._written = run, last, last.hash
        self.known: dict[str, Plan] = {last.hash: last}
        for path in sorted((run / "earlier").glob("*.json")):
            try:
                plan = plan_file.read(path)
            except BadInputError:
                continue
            self.known[plan.hash] = plan

    def add(self, plans: Mapping[str, Plan]) -> None:
        """More that may have run."""
        self.known |= {hash_: plan for hash_, plan in plans.items() if hash_ not in self.known}

    def settle(self, ran: Mapping[int, int], going_on: frozenset[str]) -> tuple[list[str], list[str]]:
        """Put those that ran into the directory, but for the latest, which is `last` then. ran: the latest epoch by the
        start of a hash; going_on: plans whose run is another. Returns the earlier ones' hashes in their order, and the
        starts of those that no document is there of. Raises OSError and BadInputError."""
        by_stamp = {stamp_of(hash_): plan for hash_, plan in self.known.items()}
        wanted = {stamp: epoch for stamp, epoch in ran.items() if f"{stamp:016x}" not in going_on}
        latest_first = sorted(wanted, key=lambda stamp: -wanted[stamp])
        plans = [by_stamp[stamp] for stamp in latest_first if stamp in by_stamp] or [self.last]
        self.last = plans[0]
        for plan in plans[1:]:
            path = self.run / "earlier" / f"{plan.hash}.json"
            if not path.exists():
                plan_file.write(plan, path)
        unknown = [f"{stamp:016x}" for stamp in latest_first if stamp not in by_stamp]
        return [plan.hash for plan in plans[:0:-1]], unknown

    def write_last(self) -> None:
        """As plan.json, when run.json has its hash: killed in between, that one names the plan of before as well.
        Raises BadInputError."""
        if self.last.hash != self._written:
            plan_file.write(self.last, self.run / "plan.json")
            self._written = self.last.hash
