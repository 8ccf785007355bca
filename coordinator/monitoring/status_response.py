"""Status responses of agents as values, place by place. `coordinator status --json` prints them as they are.

Nothing of plans is imported at the top: agents are asked first, and reading plans is loaded while they answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coordinator.errors import BadInputError
from coordinator.fleet.addresses import AgentAddress, host_of
from coordinator.fleet.agents import AgentError, Agents
from protos import agent_pb2

if TYPE_CHECKING:
    from protos.plan_document import Plan

ANSWER_S = 2.0  # an agent that has not answered by then is unknown; a look at why is part of it
Values = dict[str, Any]


def ask(agents: Agents, seconds: float) -> dict[str, Values]:
    """Of every place. Where an agent does not answer: `reachable` false, `state` unknown, and `why`."""
    asked = {"Status": agent_pb2.StatusRequest(), "Health": agent_pb2.HealthRequest()}
    answers = agents.try_several(
        {method: dict.fromkeys(agents.addresses, each) for method, each in asked.items()}, seconds
    )
    replies, health = answers["Status"], answers["Health"]
    return {
        place: values
        for name in replies
        for place, values in by_place(replies[name], health[name], agents.places_of(name)).items()
    }


def well(values: Mapping[str, Any]) -> bool:
    """Whether a place answers and all that is committed on its agent runs."""
    return bool(values["reachable"] and values.get("serving"))


def by_place(reply: Any, health: Any, places: Sequence[str]) -> dict[str, Values]:
    """What one agent says of each of its places; where it says nothing, that of the places it should have."""
    if isinstance(reply, AgentError):
        return {place: of(reply, health) for place in places}
    if not reply.places:
        return {places[0]: of(reply, health)}
    return {place.node: of(place, health) for place in reply.places}


def of(reply: Any, health: Any) -> Values:
    """Of one place."""
    if isinstance(reply, AgentError):
        return {"reachable": False, "state": "unknown", "why": str(reply)}
    values = {
        "reachable": True,
        "version": reply.version,
        "rt": reply.rt,
        "boot": f"{reply.boot:016x}",
        "runtime_alive": reply.runtime_alive,
        "uptime_ns": reply.uptime_ns,
        "busy_ns": reply.busy_ns,
        "overhead_ns": reply.overhead_ns,
        "utilisation": (reply.busy_ns + reply.overhead_ns) / reply.uptime_ns if reply.uptime_ns else None,
        "queue_bytes": reply.queue_bytes,
        "queue_limit_bytes": reply.queue_limit_bytes or None,
        "records_written": reply.records_written,
        "restarts": reply.restarts,
        "spool": _spool(reply.spool) if reply.HasField("spool") else None,
        "plans": [_plan(plan) for plan in reply.plans],
        "outputs": {output.name: _output(output) for output in reply.outputs},
        "counters": {counter.name: counter.value for counter in reply.counters},
        "operators": {
            each.run: {"version": each.version, "code": each.code, "edited": each.edited} for each in reply.operators
        },
    }
    if isinstance(health, AgentError):
        return values | {"serving": False, "why": str(health)}
    return values | {"serving": health.serving, "why": health.why}


def _spool(spool: agent_pb2.SpoolStatus) -> Values:
    """`full_in_ns`: None where it does not fill."""
    fields = {key: getattr(spool, key) for key in ("bytes", "limit_bytes", "oldest_ns", "dropped")}
    return fields | {"full_in_ns": spool.full_in_ns if spool.HasField("full_in_ns") else None}


def _plan(plan: agent_pb2.PlanStatus) -> Values:
    from coordinator.fleet.deployment import deployed_plans

    return {
        "hash": plan.hash.hex(),
        "epoch": plan.epoch,
        "state": agent_pb2.PlanState.Name(plan.state).lower(),
        "query": plan.query,
        "queries": list(deployed_plans.queries(plan)),
        "ready": plan.ready,
        "waiting": plan.waiting,
        "unacknowledged": plan.unacknowledged,
        "sources": {each.name: {key: getattr(each, key) for key in SOURCE} for each in plan.sources},
        "units": [
            {"id": unit.id, "operators": list(unit.operators)} | {key: getattr(unit, key) for key in UNIT}
            for unit in plan.units
        ],
    }


SOURCE = ("admitted", "refused", "shed", "policed", "lost")
UNIT = ("sub_deadline_ns", "queued", "runs", "shed", "lost", "timed", "timed_ns", "worst_ns", "recent_ns")
OUTPUT = ("deadline_ns", "met", "late", "undecidable", "worst_ns")


def _output(output: agent_pb2.OutputStatus) -> Values:
    return {key: getattr(output, key) for key in OUTPUT} | {
        "latencies": [[each.most_ns, each.results] for each in output.latencies]
    }


def known_plans(path: Path, places: Mapping[str, Mapping[str, Any]], agents: Agents) -> dict[str, Plan]:
    """By hash: the plan of that file, and of those that nodes have what is kept beside it, or what they hand over
    themselves; a file that is none is no matter here. places: as of `ask`: agents that gave no answer are not asked."""
    from coordinator.fleet.collection import run_plans
    from coordinator.fleet.deployment import deployed_plans
    from coordinator.plan import plan_file

    silent = {host_of(place): str(values["why"]) for place, values in places.items() if not values["reachable"]}
    hashes = {status["hash"] for values in places.values() for status in values.get("plans", [])}
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
