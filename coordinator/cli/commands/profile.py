"""`coordinator profile`: what operators and sources really cost on their nodes, in costs.yaml, which `plan --costs`
takes; and how old tuples were as they came."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coordinator.cli.commands.up import DEFAULT_ADDRESSES, AddressesOption
from coordinator.cli.lines import is_quiet, say
from coordinator.errors import CoordinatorError, Mistake

if TYPE_CHECKING:
    from coordinator.fleet.agents import Agents
    from coordinator.fleet.profile.profiling import Counts, Profiled
    from protos import agent_pb2
    from protos.plan_document import Plan

EPILOG = """Examples:

  coordinator profile                              (plan.json, since it was deployed; writes costs.yaml)

  coordinator profile --seconds 30                 (only the next 30 seconds: without the first, slow calls)

  coordinator profile plan.json -o costs.yaml --merge

  coordinator plan query.yaml cluster.yaml --costs costs.yaml"""

DEFAULT_PLAN, DEFAULT_OUTPUT = Path("plan.json"), Path("costs.yaml")
CALL_S = 5.0


class NothingMeasuredError(CoordinatorError):
    """No agent has measured any call of the plan's operators."""


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def profile(
        plan: Annotated[Path, typer.Argument(help="The plan that runs.")] = DEFAULT_PLAN,
        addresses: AddressesOption = DEFAULT_ADDRESSES,
        output: Annotated[
            Path, typer.Option("--out", "-o", help="Where the costs are written, over what is there.")
        ] = DEFAULT_OUTPUT,
        merge: Annotated[
            bool, typer.Option("--merge", help="Keep what the file has, and take calls of the same operator together.")
        ] = False,
        seconds: Annotated[
            float | None,
            typer.Option(min=0.1, max=86400.0, help="Measure from now on for so long; else since it was deployed."),
        ] = None,
        as_json: Annotated[
            bool,
            typer.Option(
                "--json",
                help="JSON: figures of each operator by node, in ns; ages, what raised, what was not measured, doubts.",
            ),
        ] = False,
    ) -> None:
        """Ask the agents what each operator of the plan that runs has cost on its node, and write costs.yaml; and how
        old tuples were as they came, for 'max_age:'.

        Measured is the CPU time of calls, at most one instance in a millisecond, while tuples flow. It has to run:
        'coordinator collect' and 'stop' end a plan, and what was measured goes with it.
        """
        from coordinator.fleet import addresses as address_file
        from coordinator.fleet.addresses import host_of
        from coordinator.fleet.agents import Agents
        from coordinator.fleet.profile import profile_file, profiling, seen_ages
        from coordinator.plan import plan_file
        from coordinator.spec import costs

        made = plan_file.read(plan)
        old = costs.load(output).queries if merge and output.exists() else {}
        with Agents(address_file.load(addresses).of_plan(made)) as agents:
            _check_loaded(made, plan, agents)
            rt = {host_of(name): agent.rt for name, agent in agents.places.items()}
            before: Counts = {}
            ages_before: Counts = {}
            errors: dict[tuple[str, str], int] = {}
            if seconds is not None:
                first = _replies(made, agents)
                before, ages_before = profiling.counts(made, first), seen_ages.counts(made, first)
                errors = profiling.raised(made, agents.status(CALL_S))
                _wait(seconds, as_json or is_quiet())
            last = _replies(made, agents)
            found = profiling.since(before, profiling.counts(made, last))
            ages = seen_ages.since(ages_before, seen_ages.counts(made, last))
            raised = profiling.raised_since(errors, profiling.raised(made, agents.status(CALL_S)))
        missing = profiling.unmeasured(made, found)
        if not found:
            why = next(iter(profiling.raising(raised)), "feed tuples while it runs, then profile again")
            text = f"no call of any operator of {plan} was measured: {why}"
            raise NothingMeasuredError(Mistake("nothing_measured", text, f"{output} was not written", str(plan)))
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")
        profile_file.write(profile_file.merged(old, profile_file.measured(made, found, rt, at)), output)
        told = [*profiling.raising(raised), *profiling.doubts(made, found, rt), *profiling.emulated(made)]
        told += seen_ages.lines(made, ages)
        if as_json:
            by_name: dict[str, Any] = {}
            for (name, node), one in found.items():
                by_name.setdefault(name, {})[node] = one.document()
            values = {"plan_hash": made.hash, "costs": str(output), "seconds": seconds, "operators": by_name}
            values["ages"] = {name: one.document() for name, one in ages.items()}
            typer.echo(json.dumps({**values, "raised": _by_name(raised), "unmeasured": missing, "doubts": told}))
            return
        _show(made, found)
        if idle := [name for name in missing if name not in {each for each, _ in raised}]:
            told.append(
                f"no call was measured of {', '.join(idle)}: did any tuple reach {'it' if len(idle) == 1 else 'them'}?"
            )
        for line in told:
            say(line)
        say(f"written to {output}; to plan with it: coordinator plan QUERY... CLUSTER --costs {output}")


def _by_name(raised: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    """By operator, by node."""
    found: dict[str, dict[str, int]] = {}
    for (name, node), n in raised.items():
        found.setdefault(name, {})[node] = n
    return found


def _check_loaded(made: Plan, path: Path, agents: Agents) -> None:
    """Raises OtherPlanError where no agent has the plan, or another one admits tuples."""
    from coordinator.fleet.deployment import deployed_plans

    statuses = agents.status(CALL_S)
    wanted = bytes.fromhex(made.hash)
    if any(plan.hash == wanted for status in statuses.values() for plan in status.plans):
        return
    runs = {one.hash.hex() for status in statuses.values() if (one := deployed_plans.committed(status)) is not None}
    if not runs:
        text, mend = f"no node has plan {made.hash[:8]} of {path}", "deploy it, feed tuples, and profile while it runs"
        raise deployed_plans.OtherPlanError(Mistake("not_running", text, mend, made.hash))
    there = next((found for hash_ in sorted(runs) if (found := deployed_plans.file_of(path, hash_)) is not None), None)
    mend = f"coordinator profile {there}" if there is not None else "give the file of that plan"
    other = ", ".join(sorted(hash_[:8] for hash_ in runs))
    text = f"the nodes run plan {other}, {path} is plan {made.hash[:8]}"
    raise deployed_plans.OtherPlanError(Mistake("other_plan_runs", text, mend, other))


def _replies(made: Plan, agents: Agents) -> Mapping[str, agent_pb2.ProfileReply]:
    from protos import agent_pb2

    request = agent_pb2.ProfileRequest(hash=bytes.fromhex(made.hash))
    return agents.all("Profile", dict.fromkeys(agents.addresses, request), CALL_S)


def _wait(seconds: float, quiet: bool) -> None:
    """Lets time pass, and tells how much is left on stderr, where that is a terminal."""
    from rich.console import Console

    end = time.monotonic() + seconds
    with Console(stderr=True, quiet=quiet).status("measuring") as line:
        while (left := end - time.monotonic()) > 0:
            line.update(f"measuring: {left:.0f} s left")
            time.sleep(min(left, 0.5))


def _show(made: Plan, found: Mapping[tuple[str, str], Profiled]) -> None:
    """A row per operator and node."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from coordinator.fleet.profile.profiling import declared_ns
    from coordinator.spec.files.costs_file import DEGRADED
    from coordinator.units import show_ns

    several = len(made.queries) > 1
    say(f"{made.query}: CPU time of a call, on its node; planned: what the plan has, at speed 1")
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False)
    for heading in ("operator", *(["of query"] if several else []), "node"):
        table.add_column(heading, overflow="fold")
    for heading in ("calls", "mean", "p99 <=", "worst", "cv", "planned"):
        table.add_column(heading, justify="right", no_wrap=True)
    order = [*made.graph.sources, *made.graph.operators]
    for (name, node), one in sorted(found.items(), key=lambda each: order.index(each[0][0].removesuffix(DEGRADED))):
        base = name.removesuffix(DEGRADED)
        of = [", ".join(q for q, member in made.queries.items() if base in (*member.operators, *member.sources))]
        times = (show_ns(round(ns, -1)) for ns in (one.mean_ns, one.p99_ns, one.worst_ns))
        planned = show_ns(declared_ns(made, name))
        table.add_row(name, *of[:several], node, str(one.samples), *times, f"{one.cv:.2f}", planned)
    Console().print(table)
