"""Status responses of agents, place by place. `coordinator status --json` prints their documents.

Nothing of plans is imported at the top: agents are asked first, and reading plans is loaded while they answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from coordinator.errors import BadInputError
from coordinator.fleet.addresses import AgentAddress, host_of
from coordinator.fleet.agents import AgentError, Agents
from protos import agent_pb2, json_shape
from protos.json_shape import Json

if TYPE_CHECKING:
    from protos.plan_document import Plan

ANSWER_S = 2.0  # an agent that has not answered by then is unknown; a look at why is part of it


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """Of a source of one plan: tuples, since it was loaded."""

    admitted: int
    refused: int
    shed: int
    policed: int  # of the shed
    lost: int


@dataclass(frozen=True, slots=True)
class UnitStatus:
    """Of a task unit of one plan. recent_ns, worst_ns: 0 where no instance was timed. unfused: of the shed, those that
    a fusion left out."""

    id: int
    operators: tuple[str, ...]
    sub_deadline_ns: int
    queued: int
    runs: int
    shed: int
    lost: int
    timed: int
    timed_ns: int
    worst_ns: int
    recent_ns: int
    unfused: int


@dataclass(frozen=True, slots=True)
class PlanStatus:
    """Of one plan at a place. hash: in hex."""

    hash: str
    epoch: int
    state: str
    query: str
    queries: tuple[str, ...]
    ready: int
    waiting: int
    unacknowledged: int
    sources: Mapping[str, SourceStatus]
    units: tuple[UnitStatus, ...]


class LatencyCount(NamedTuple):
    """Results that took at most so long, and longer than those of the count before."""

    most_ns: int
    results: int


@dataclass(frozen=True, slots=True)
class OutputStatus:
    """Of what a place delivered of one output."""

    deadline_ns: int
    met: int
    late: int
    undecidable: int
    worst_ns: int
    latencies: tuple[LatencyCount, ...]


@dataclass(frozen=True, slots=True)
class SpoolStatus:
    """Of trace records that nobody has collected. full_in_ns: None where it does not fill."""

    bytes: int
    limit_bytes: int
    oldest_ns: int
    dropped: int
    full_in_ns: int | None


@dataclass(frozen=True, slots=True)
class OperatorStatus:
    """Of an installed operator that is loaded."""

    version: str
    code: str
    edited: bool


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    """Of a source (direction: from) or output (to) that is connected to another system. was_connected: since the
    process of the connectors began; apart_ns: for how long it has not been connected; why: it is not."""

    stream: str
    direction: str
    kind: str
    connected: bool
    was_connected: bool
    apart_ns: int
    why: str


@dataclass(frozen=True, slots=True)
class PlaceStatus:
    """Of one place. Where its agent does not answer, `why` alone says something."""

    reachable: bool = True
    version: str = ""
    rt: bool = False
    boot: str = ""
    runtime_alive: bool = False
    uptime_ns: int = 0
    busy_ns: int = 0
    overhead_ns: int = 0
    utilisation: float | None = None
    queue_bytes: int = 0
    queue_limit_bytes: int | None = None
    records_written: int = 0
    restarts: int = 0
    spool: SpoolStatus | None = None
    plans: tuple[PlanStatus, ...] = ()
    outputs: Mapping[str, OutputStatus] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    operators: Mapping[str, OperatorStatus] = field(default_factory=dict)
    connectors: tuple[ConnectorStatus, ...] = ()
    serving: bool = False
    why: str = ""

    @property
    def is_well(self) -> bool:
        """Whether the place answers and all that is committed on its agent runs."""
        return self.reachable and self.serving

    def document(self) -> Json:
        """For --json."""
        if not self.reachable:
            return {"reachable": False, "state": "unknown", "why": self.why}
        return json_shape.write(self)


def unreachable(why: str) -> PlaceStatus:
    """Of a place whose agent does not answer."""
    return PlaceStatus(reachable=False, why=why)


def ask(agents: Agents, seconds: float) -> dict[str, PlaceStatus]:
    """Of every place."""
    asked = {"Status": agent_pb2.StatusRequest(), "Health": agent_pb2.HealthRequest()}
    answers = agents.try_several(
        {method: dict.fromkeys(agents.addresses, each) for method, each in asked.items()}, seconds
    )
    replies, health = answers["Status"], answers["Health"]
    return {
        place: status
        for name in replies
        for place, status in by_place(replies[name], health[name], agents.places_of(name)).items()
    }


def by_place(
    reply: agent_pb2.StatusReply | AgentError, health: agent_pb2.HealthReply | AgentError, places: Sequence[str]
) -> dict[str, PlaceStatus]:
    """What one agent says of each of its places; where it says nothing, that of the places it should have."""
    if isinstance(reply, AgentError):
        return {place: of(reply, health) for place in places}
    if not reply.places:
        return {places[0]: of(reply, health)}
    return {place.node: of(place, health) for place in reply.places}


def of(reply: agent_pb2.StatusReply | AgentError, health: agent_pb2.HealthReply | AgentError) -> PlaceStatus:
    """Of one place."""
    if isinstance(reply, AgentError):
        return unreachable(str(reply))
    serving, why = (False, str(health)) if isinstance(health, AgentError) else (health.serving, health.why)
    return PlaceStatus(
        version=reply.version,
        rt=reply.rt,
        boot=f"{reply.boot:016x}",
        runtime_alive=reply.runtime_alive,
        uptime_ns=reply.uptime_ns,
        busy_ns=reply.busy_ns,
        overhead_ns=reply.overhead_ns,
        utilisation=(reply.busy_ns + reply.overhead_ns) / reply.uptime_ns if reply.uptime_ns else None,
        queue_bytes=reply.queue_bytes,
        queue_limit_bytes=reply.queue_limit_bytes or None,
        records_written=reply.records_written,
        restarts=reply.restarts,
        spool=_spool(reply.spool) if reply.HasField("spool") else None,
        plans=tuple(_plan(plan) for plan in reply.plans),
        outputs={output.name: _output(output) for output in reply.outputs},
        counters={counter.name: counter.value for counter in reply.counters},
        operators={each.run: OperatorStatus(each.version, each.code, each.edited) for each in reply.operators},
        connectors=tuple(_connector(each) for each in reply.connectors),
        serving=serving,
        why=why,
    )


def _connector(found: agent_pb2.ConnectorStatus) -> ConnectorStatus:
    return ConnectorStatus(
        found.stream, found.direction, found.kind, found.connected, found.was_connected, found.apart_ns, found.why
    )


def _spool(spool: agent_pb2.SpoolStatus) -> SpoolStatus:
    full_in_ns = spool.full_in_ns if spool.HasField("full_in_ns") else None
    return SpoolStatus(spool.bytes, spool.limit_bytes, spool.oldest_ns, spool.dropped, full_in_ns)


def _plan(plan: agent_pb2.PlanStatus) -> PlanStatus:
    from coordinator.fleet.deployment import deployed_plans

    return PlanStatus(
        hash=plan.hash.hex(),
        epoch=plan.epoch,
        state=agent_pb2.PlanState.Name(plan.state).lower(),
        query=plan.query,
        queries=tuple(deployed_plans.queries(plan)),
        ready=plan.ready,
        waiting=plan.waiting,
        unacknowledged=plan.unacknowledged,
        sources={
            each.name: SourceStatus(each.admitted, each.refused, each.shed, each.policed, each.lost)
            for each in plan.sources
        },
        units=tuple(
            UnitStatus(
                each.id, tuple(each.operators), each.sub_deadline_ns, each.queued, each.runs, each.shed, each.lost,
                each.timed, each.timed_ns, each.worst_ns, each.recent_ns, each.unfused,
            )
            for each in plan.units
        ),
    )  # fmt: skip


def _output(output: agent_pb2.OutputStatus) -> OutputStatus:
    latencies = tuple(LatencyCount(each.most_ns, each.results) for each in output.latencies)
    return OutputStatus(output.deadline_ns, output.met, output.late, output.undecidable, output.worst_ns, latencies)


def known_plans(path: Path, places: Mapping[str, PlaceStatus], agents: Agents) -> dict[str, Plan]:
    """By hash: the plan of that file, and of those that nodes have what is kept beside it, or what they hand over
    themselves; a file that is none is no matter here. places: as of `ask`: agents that gave no answer are not asked."""
    from coordinator.fleet.collection import run_plans
    from coordinator.fleet.deployment import deployed_plans
    from coordinator.plan import plan_file

    silent = {host_of(place): found.why for place, found in places.items() if not found.reachable}
    hashes = {plan.hash for status in places.values() for plan in status.plans}
    found: dict[str, Plan] = {}
    for each in [path, *(deployed_plans.beside(path, hash_) for hash_ in sorted(hashes))]:
        try:
            made = plan_file.read(each)
        except BadInputError:
            continue
        found[made.hash] = made
    if lacking := hashes - found.keys():
        found |= run_plans.fetch(agents, (), silent, lacking)[0]
    return found


def log_of(agent: AgentAddress | None) -> str:
    """Where an agent of addresses.json writes what it says: in its state directory, if `coordinator up` started it."""
    from coordinator.fleet.local.local_agents import LOG

    if agent is not None and agent.state is not None and (log := Path(agent.state) / LOG).is_file():
        return str(log.relative_to(Path.cwd()) if log.is_relative_to(Path.cwd()) else log)
    name = host_of(agent.name) if agent is not None else "NODE"
    return f"the agent's log (as a service: journalctl -u shimekiri-agent@{name})"
