"""`coordinator status`: what every agent runs and how it is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coordinator.commands.status_overload import lines, overload, told_here
from coordinator.commands.up import DEFAULT_ADDRESSES, AddressesOption
from coordinator.deadline_parts import ADMITTED, MISSED, standing

if TYPE_CHECKING:
    from protos import agent_pb2

EPILOG = """Examples:

  coordinator status

  coordinator status --addresses run/addresses.json --plan next.json --json"""

DEFAULT_PLAN = Path("plan.json")
CLAIMED = ("deadline_ns", "bound_ns", "from_admission_ns", "guaranteed")
PROMISE = {"guaranteed": "guaranteed", ADMITTED: "from admission", MISSED: "not guaranteed"}

BOOKKEEPING = frozenset({"highest_epoch", "policing_told"})  # counters that say nothing to people


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def status(
        addresses: AddressesOption = DEFAULT_ADDRESSES,
        plan: Annotated[
            Path, typer.Option("--plan", help="The plan that runs: what its queries deliver is told from it.")
        ] = DEFAULT_PLAN,
        as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON.")] = False,
    ) -> None:
        """Show what every agent runs and how it is, and what each query delivers. Exit code 1 where one does not answer
        or is not well."""
        from coordinator import addresses as address_file
        from coordinator.agents import AgentError, Agents
        from protos import agent_pb2

        with Agents(address_file.load(addresses).nodes) as agents:
            everyone = dict.fromkeys(agents.addresses, agent_pb2.StatusRequest())
            replies = agents.try_all("Status", everyone, 5.0)
            health = agents.try_all("Health", dict.fromkeys(agents.addresses, agent_pb2.HealthRequest()), 5.0)
            values = {
                place: told
                for name in replies
                for place, told in _by_place(replies[name], health[name], agents.places_of(name)).items()
            }
        well = not any(isinstance(reply, AgentError) for reply in (*replies.values(), *health.values()))
        well = well and all(value.get("serving") for value in values.values())
        known = _known(plan, values)
        queries = _queries(values, known)
        for place, node in values.items():
            if node["reachable"]:
                node.update(overload(node, place, known))
        if as_json:
            typer.echo(json.dumps({"nodes": values, "queries": queries}))
        else:
            _show(values)
            _show_queries(queries)
        if not well:
            raise typer.Exit(1)


def _by_place(reply: Any, health: Any, places: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What one agent says of each of its places; where it says nothing, that of the places it should have."""
    from coordinator.agents import AgentError

    if isinstance(reply, AgentError):
        return {place: _values(reply, health) for place in places}
    if not reply.places:
        return {places[0]: _values(reply, health)}
    return {place.node: _values(place, health) for place in reply.places}


def _values(reply: Any, health: Any) -> dict[str, Any]:
    from coordinator.agents import AgentError

    if isinstance(reply, AgentError):
        return {"reachable": False, "why": str(reply)}
    values = {
        "reachable": True,
        "boot": f"{reply.boot:016x}",
        "runtime_alive": reply.runtime_alive,
        "uptime_ns": reply.uptime_ns,
        "busy_ns": reply.busy_ns,
        "overhead_ns": reply.overhead_ns,
        "queue_bytes": reply.queue_bytes,
        "records_written": reply.records_written,
        "plans": [_plan(plan) for plan in reply.plans],
        "counters": {counter.name: counter.value for counter in reply.counters},
    }
    if isinstance(health, AgentError):
        return values | {"serving": False, "why": str(health)}
    return values | {"serving": health.serving, "why": health.why}


def _plan(plan: agent_pb2.PlanStatus) -> dict[str, Any]:
    from coordinator.change import running
    from protos import agent_pb2

    return {
        "hash": plan.hash.hex(),
        "epoch": plan.epoch,
        "state": agent_pb2.PlanState.Name(plan.state).lower(),
        "query": plan.query,
        "queries": list(running.queries(plan)),
        "ready": plan.ready,
        "waiting": plan.waiting,
        "unacknowledged": plan.unacknowledged,
    }


def _known(path: Path, nodes: Mapping[str, dict[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """By hash: the plan of that file, and of those that nodes have what is kept beside it; a file that is none is no
    matter here."""
    from coordinator import plan_file
    from coordinator.change.running import beside
    from coordinator.errors import BadInputError

    hashes = {plan["hash"] for values in nodes.values() for plan in values.get("plans", [])}
    found: dict[str, Mapping[str, Any]] = {}
    for each in [path, *(beside(path, hash_) for hash_ in sorted(hashes))]:
        try:
            made = plan_file.load(each)
        except BadInputError:
            continue
        found[made["hash"]] = made
    return found


def _queries(nodes: Mapping[str, dict[str, Any]], plans: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Per query and plan that any node has: its state on each, and, where the plan is known, its outputs."""
    found: dict[str, Any] = {}
    for node, values in nodes.items():
        for plan in values.get("plans", []):
            for name in plan["queries"]:
                entry = found.setdefault(name, {}).setdefault(plan["hash"], {"nodes": {}, "outputs": None})
                entry["nodes"][node] = plan["state"]
                made = plans.get(plan["hash"])
                if made is not None and name in made.get("queries", {}):
                    entry["outputs"] = {
                        output: {key: made["guarantee"][output][key] for key in CLAIMED}
                        | {"promise": PROMISE[standing(made["guarantee"][output])]}
                        for output in made["queries"][name]["outputs"]
                    }
    return found


def _show_queries(queries: Mapping[str, Any]) -> None:
    """A table of outputs by query."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from coordinator.units_of_measure import show_ns

    if not queries:
        return
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False)
    for heading in ("query", "plan", "state", "output", "deadline", "bound", "promise"):
        table.add_column(heading, overflow="fold", no_wrap=heading not in ("query", "output"))
    for name, plans in queries.items():
        for hash_, entry in plans.items():
            states = ", ".join(dict.fromkeys(entry["nodes"].values()))
            if entry["outputs"] is None:
                table.add_row(name, hash_[:8], states, "give --plan", "", "", "")
            for output, claim in (entry["outputs"] or {}).items():
                ns = claim["from_admission_ns"] if claim["bound_ns"] is None else claim["bound_ns"]
                bound = "none" if ns is None else show_ns(ns)
                table.add_row(name, hash_[:8], states, output, show_ns(claim["deadline_ns"]), bound, claim["promise"])
    Console().print(table)


def _queued(node: Mapping[str, Any]) -> str:
    limit = node["queue_limit_bytes"]
    return str(node["queue_bytes"]) if limit is None else f"{node['queue_bytes']} of {limit}"


def _show(nodes: Mapping[str, dict[str, Any]]) -> None:
    said = set[str]()  # what an agent says of all its places
    for name, node in nodes.items():
        if not node["reachable"]:
            if node["why"] not in said:
                typer.echo(node["why"])
            said.add(node["why"])
            continue
        share = 100 * node["busy_ns"] / node["uptime_ns"] if node["uptime_ns"] else 0.0
        typer.echo(
            f"node {name}: up {node['uptime_ns'] / 1e9:.1f} s, busy {share:.1f} %, {_queued(node)} bytes queued,"
            f" {node['records_written']} records written"
        )
        if not node["plans"]:
            typer.echo("  no plan")
        for plan in node["plans"]:
            typer.echo(
                f"  plan {plan['hash'][:8]} of {plan['query']}: {plan['state']}, epoch {plan['epoch']},"
                f" {plan['ready']} ready, {plan['waiting']} waiting, {plan['unacknowledged']} unacknowledged"
            )
        for line in lines(node):
            typer.echo(f"  {line}")
        told = {
            key: value
            for key, value in node["counters"].items()
            if value and key not in BOOKKEEPING and not told_here(key)
        }
        if told:
            typer.echo("  " + ", ".join(f"{key} {value}" for key, value in told.items()))
        if node["why"] and node["why"] not in said:
            said.add(node["why"])
            typer.echo(f"  {'not well: ' if not node['serving'] else ''}{node['why']}")
