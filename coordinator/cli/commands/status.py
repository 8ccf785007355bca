"""`coordinator status`: what every agent runs and how it is."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli import lines
from coordinator.cli.commands.up import DEFAULT_ADDRESSES, AddressesOption

if TYPE_CHECKING:
    from rich.table import Column, Table

    from coordinator.monitoring.metrics import Frame
    from coordinator.monitoring.overload_status import OverloadStatus
    from coordinator.monitoring.query_status import QueryStatus
    from coordinator.monitoring.status_response import PlaceStatus

EPILOG = """Examples:

  coordinator status

  coordinator status --addresses run/addresses.json --json

What 'missed' says is an indication while things run, of what was offered: from what came late to all that may be
missing because it was refused, policed, shed or lost. Windows that nothing was fed into, as before a feed and after
it, are no part of it. The verdict is the report's. 'coordinator top' shows the same
live."""

READING = (
    "coordinator.fleet.collection.run_plans",
    "coordinator.monitoring.overload_status",
    "coordinator.monitoring.query_status",
)
SHOWING = ("coordinator.monitoring.explained", "coordinator.monitoring.tables", "rich.console", "rich.table")
DEFAULT_PLAN = Path("plan.json")
STATE_LOST = "state_lost."
LONG_NAME = 20  # columns
NARROWEST = {"node": 6, "query": 6, "output": 6, "promise": 10}  # columns of what may go on below
PlanOption = Annotated[Path, typer.Option("--plan", help="A plan that runs and that no agent hands over.")]


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def status(
        addresses: AddressesOption = DEFAULT_ADDRESSES,
        plan: PlanOption = DEFAULT_PLAN,
        verbose: lines.VerboseOption = False,
        as_json: Annotated[bool, typer.Option("--json", help="JSON: nodes and queries, with every counter.")] = False,
    ) -> None:
        """Show what every agent runs and how it is, and what each query delivers. Exit code 1 where one does not answer
        or is not well."""
        from concurrent.futures import ThreadPoolExecutor

        from coordinator.fleet import addresses as address_file
        from coordinator.fleet.agents import Agents
        from coordinator.monitoring import status_response

        places = address_file.load(addresses).nodes
        with Agents(places) as agents, ThreadPoolExecutor(1) as pool:
            loading = pool.submit(_load, READING if as_json else READING + SHOWING)
            statuses = status_response.ask(agents, status_response.ANSWER_S)
            loading.result()
            known = status_response.known_plans(plan, statuses, agents)
        from coordinator.monitoring import metrics, overload_status, query_status

        frame = metrics.between(None, metrics.Look(0.0, statuses), known)
        queries = query_status.queries(statuses, frame, known)
        overloads = {
            place: overload_status.overload(found, place, known) for place, found in statuses.items() if found.reachable
        }
        if as_json:
            nodes = {
                place: found.document() | (overloads[place].document() if place in overloads else {})
                for place, found in statuses.items()
            }
            typer.echo(json.dumps({"nodes": nodes, "queries": query_status.document(queries)}))
        else:
            _show(
                statuses,
                overloads,
                frame,
                queries,
                {name: status_response.log_of(places.get(name)) for name in statuses},
                verbose,
            )
        if not all(found.is_well for found in statuses.values()):
            raise typer.Exit(1)


def _load(names: Iterable[str]) -> None:
    """Imports what is needed once the agents have answered: that takes no time of its own while they are waited for."""
    for name in names:
        importlib.import_module(name)


# -- for people


def _show(
    nodes: Mapping[str, PlaceStatus],
    overloads: Mapping[str, OverloadStatus],
    frame: Frame,
    queries: Mapping[str, Mapping[str, QueryStatus]],
    logs: Mapping[str, str],
    verbose: bool = False,
) -> None:
    """What is not well first."""
    from rich.console import Console

    from coordinator.monitoring import explained, overload_status

    console = Console()
    wrong = list(_wrong(frame))
    for line in wrong:
        lines.say(line)
    if wrong:
        typer.echo()
    console.print(_nodes(frame, verbose))
    for name, node in nodes.items():
        if node.reachable:
            said = [
                *_under_way(node),
                *(explained.operators(node) if verbose else ()),
                *explained.edited_operators(node),
                *overload_status.lines(overloads[name]),
                *explained.others(node, logs[name]),
            ]
            for line in (f"node {name}:", *(f"  {line}" for line in said)) if said else ():
                lines.say(line)
    if queries:
        typer.echo()
        console.print(_outputs(queries, {output.name for output in frame.outputs if output.silent}))


def _table(*headings: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False)
    for heading in headings:
        least = NARROWEST.get(heading)
        table.add_column(heading, overflow="fold", no_wrap=least is None, min_width=least)
    return table


def _nodes(frame: Frame, verbose: bool) -> Table:
    """A row per place; `use` is since its runtime began. In brief without the version and the number of records."""
    from coordinator.monitoring.tables import count, percent, size

    table = _table("node", "rt", "plan", "use", "queue", "restarts", *(("version", "records") if verbose else ()))
    for node in frame.nodes:
        if not node.reachable:
            table.add_row(node.name, "", "unknown")
            continue
        hashes = [status.hash[:8] for status in node.values.plans if status.state == node.state]
        limit = f" of {size(node.queue_limit_bytes)}" if node.queue_limit_bytes else ""
        more = (node.version, count(node.values.records_written)) if verbose else ()
        table.add_row(
            node.name, "yes" if node.rt else "no", " ".join((node.state, *hashes[:1])),
            percent(node.utilisation), f"{size(node.queue_bytes)}{limit}", str(node.restarts), *more,
        )  # fmt: skip
    return table


def _under_way(node: PlaceStatus) -> Iterator[str]:
    """Plans of which something waits, or that are not simply committed."""
    for plan in node.plans:
        counts = {"ready": plan.ready, "waiting": plan.waiting, "unacknowledged": plan.unacknowledged}
        waits = "".join(f", {n} {name}" for name, n in counts.items() if n)
        if waits or plan.state != "committed":
            yield f"plan {plan.hash[:8]} of {plan.query}: {plan.state}{waits}"


def _outputs(queries: Mapping[str, Mapping[str, QueryStatus]], silent: set[str]) -> Table:
    """By query; what came is since the runtime began. silent: outputs whose node does not answer. The state of a plan
    is told where not all are committed, under its name, since nine columns do not fit beside each other."""
    from coordinator.monitoring.tables import count, duration
    from coordinator.report import missed_share
    from coordinator.units import show_ns

    states = {state for plans in queries.values() for entry in plans.values() for state in entry.nodes.values()}
    table = _table("query", "output", "deadline", "bound", "promise", "results", "missed", "longest")
    for name, plans in queries.items():
        for entry in plans.values():
            state = ", ".join(dict.fromkeys(entry.nodes.values()))
            called = f"{name}\n{state}" if states != {"committed"} else name
            if entry.outputs is None:
                table.add_row(called, "give --plan")
            for output, claim in (entry.outputs or {}).items():
                ns = claim.from_admission_ns if claim.bound_ns is None else claim.bound_ns
                bound = "none" if ns is None else show_ns(ns)
                cells = ["no answer" if output in silent else "", "", ""]
                if (came := claim.delivered) is not None:
                    results = came.met + came.late + came.undecidable
                    longest = duration(came.worst_ns or None)
                    cells = [count(results), _two_lines(missed_share.markup(came.missed_of_offered)), longest]
                row = called, output, show_ns(claim.deadline_ns), bound, claim.promise
                table.add_row(*row, *cells)
    for column in table.columns:
        if column.header in ("query", "output"):  # a long promise goes on below, a name is not cut for it
            column.min_width = min(LONG_NAME, max(map(len, _lines(column)), default=0))
    return table


def _two_lines(interval: str) -> str:
    """Both ends under each other: beside each other they are the widest column."""
    return interval.replace(" to ", " to\n")


def _lines(column: Column) -> Iterator[str]:
    for cell in column.cells:
        yield from str(cell).splitlines()


def _wrong(frame: Frame) -> Iterator[str]:
    """What is not well, once each."""
    from coordinator.report import missed_share

    said = dict[str, None]()
    for node in frame.nodes:
        if node.why:
            known = node.well or not node.reachable
            said[node.why if known else f"node {node.name} is not well: {node.why}"] = None
        if lost := [name.partition(".")[2] for name in node.values.counters if name.startswith(STATE_LOST)]:
            since = f"{node.values.uptime_ns / 1e9:.0f} s ago"
            said[f"node {node.name}: {', '.join(lost)} began anew without state {since}, as the runtime did"] = None
        if node.restarts:
            times = "once" if node.restarts == 1 else f"{node.restarts} times"
            said[f"node {node.name}: its runtime was started again {times}; the agent's log says why"] = None
    for output in frame.outputs:
        if output.late:
            late = f"{output.late:,} of {output.results:,} results were late"
            said[f"output {output.name}: {late}; 'coordinator top' shows where the time goes"] = None
        unheard = f"what {', '.join(output.unheard)} would say, which does not answer" if output.unheard else ""
        if parts := ", ".join(filter(None, (missed_share.reasons(output.between), unheard))):
            missed = missed_share.text(output.missed_of_offered)
            said[f"output {output.name}: missed {missed} of what was offered: between lie {parts}"] = None
        if idle := missed_share.idle(output.missed_of_offered, output.met_idle):
            said[f"output {output.name}: {idle}"] = None
    yield from said
