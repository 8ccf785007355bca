"""`coordinator collect`: what ran on some nodes into a run directory."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coordinator.cli.commands.stop import DRAIN_S
from coordinator.cli.commands.up import DEFAULT_ADDRESSES, AddressesOption
from coordinator.cli.lines import LineProgress, tell

STATUS_S = 5.0

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator.fleet.addresses import Addresses, AgentAddress
    from coordinator.fleet.collection.collect import Collected
    from coordinator.fleet.collection.run_plans import DeployedPlans, Ran
    from protos.plan_document import Plan

EPILOG = """Examples:

  coordinator collect

  coordinator collect --addresses run/addresses.json --no-drain --json

  coordinator collect --resume runs/20260101T120000Z-0a1b2c3d

  coordinator collect --plan before.json        (what ran until that plan ended; the one that runs now goes on)"""


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def collect(
        plan: Annotated[
            Path | None, typer.Option(help="The plan to end; what runs otherwise goes on. Else all that runs ends.")
        ] = None,
        addresses: AddressesOption = DEFAULT_ADDRESSES,
        output: Annotated[Path, typer.Option("--out", "-o", help="Where the run's directory is made.")] = Path("runs"),
        resume: Annotated[Path | None, typer.Option(help="Go on with this run directory instead.")] = None,
        drain: Annotated[
            bool, typer.Option("--drain/--no-drain", help="First stop what runs and wait until it has drained.")
        ] = True,
        timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait until it has drained.")] = DRAIN_S,
        earlier: Annotated[
            list[Path] | None,
            typer.Option(help="A plan that ran and that no agent has any more; may be repeated."),
        ] = None,
        drop_raw: Annotated[
            bool,
            typer.Option(
                help="Remove the raw segments once they are Parquet, which then is all there is of the traces; the run"
                " cannot be gone on with. Only where all was collected."
            ),
        ] = False,
        as_json: Annotated[
            bool, typer.Option("--json", help="JSON: the directory as run, records, traces, problems, drained.")
        ] = False,
    ) -> None:
        """Stop what runs, wait until it has drained, and pull every node's trace. Prints the run's directory.

        The traces are there as the agents wrote them (trace/raw), and as Parquet with named columns (trace/parquet).
        All that ran since the last collection is one run, with every plan: the agents hand these over as well. While a
        plan goes on, they keep their traces for its run.
        What cannot be reached is named and the rest collected: exit code 1. Not drained in time: exit code 4.
        """
        from coordinator.errors import CoordinatorError, Mistake, OutOfTimeError
        from coordinator.fleet import addresses as address_file
        from coordinator.fleet.agents import Agents
        from coordinator.fleet.collection import collect as collection
        from coordinator.fleet.collection import run_plans
        from coordinator.report import report_extra

        if drop_raw:
            report_extra.require("pyarrow", "--drop-raw")
        progress, file = LineProgress(), address_file.load(addresses)
        _check(output, resume)
        given = _given(plan, resume)
        wanted = _Wanted(given, given is not None and plan is not None, _files(plan, given, earlier or []))
        with Agents(file.nodes) as agents:
            running = run_plans.deployed(agents, STATUS_S)
            made = wanted.last(running)
            if made is None:
                ran = run_plans.traced(agents, [node for node in agents.addresses if node not in running.silent])
                made = wanted.named(ran)
        if made is None:
            said = [*running.silent.values(), *_unknown(ran)]
            raise CoordinatorError(*(Mistake("nothing_to_collect", text) for text in said))
        going_on = running.committed - {made.hash} if wanted.alone else frozenset()
        places, absent = _places(file, [made, *running.documents.values()], running)
        with Agents(places) as agents:
            left = _stop(agents, running, {made.hash} if wanted.alone else None, timeout, progress) if drain else []
            if going_on:
                runs = ", ".join(sorted(hash_[:8] for hash_ in going_on))
                progress(f"plan {runs} runs: the nodes keep their traces for it")
            over = drain and not left and not going_on
            run = resume or collection.new_run(output, made, plan, addresses)
            more = wanted.files | running.documents
            try:
                done = collection.collect(run, made, agents, progress, over=over, plans=more, going_on=going_on)
            except KeyboardInterrupt:
                tell(f"interrupted; the same command with --resume {run} goes on")
                raise
        problems = done.problems + absent
        _land(done, drop_raw, over and not problems, progress)
        _tell(done, problems, drain and not left, as_json)
        if not done.ran and not problems:
            why = "it has not run there, or another run has its trace, with which nodes free it"
            progress(f"no node has any record of plan {made.hash[:8]}: {why}")
        if problems:
            raise CoordinatorError(*(Mistake("not_collected", text) for text in problems))
        if left:
            raise OutOfTimeError(Mistake("not_drained", f"not drained within {timeout:g} s"), details=left)


def _check(output: Path, resume: Path | None) -> None:
    """Raises BadInputError where nothing could be collected, before anything is stopped for it."""
    from coordinator.errors import bad_file
    from coordinator.fleet.collection import collect as collection

    if resume is None:
        collection.check_out(output)
    elif (resume / "trace" / "parquet").is_dir() and not (resume / "trace" / "raw").is_dir():
        text = "has no raw segments any more, so it cannot be gone on with"
        raise bad_file(resume, "no_trace", text, "collect into a new directory")


def _land(done: Collected, drop: bool, whole: bool, progress: LineProgress) -> None:
    """The traces as Parquet; where there is no room, a report makes up for it. drop: raw ones go, if it is whole."""
    from coordinator.report import report_extra
    from coordinator.report.landing import landed_run

    if not report_extra.has("pyarrow"):
        progress(f"the traces are not Parquet: {report_extra.missing('pyarrow', 'it')}")
        return
    firsts = {(str(each["node"]), str(each["boot"])): int(each["first"]) for each in done.traces}
    progress("traces to Parquet")
    try:
        landed_run.land(done.run, firsts)
        if drop and not (whole and landed_run.drop_raw(done.run, firsts)):
            progress("the raw segments are kept: not all was collected, or not all of it is Parquet")
    except OSError as error:
        progress(f"the traces are not Parquet yet, a large report makes them so: {error.strerror or error}")


def _tell(done: Collected, problems: list[str], drained: bool, as_json: bool) -> None:
    """The result on stdout."""
    if as_json:
        values = {"run": str(done.run), "records": done.records, "traces": done.traces, "problems": problems}
        typer.echo(json.dumps(values | {"drained": drained}))
    else:
        typer.echo(str(done.run))


@dataclass(frozen=True)
class _Wanted:
    """What is asked for. given: the plan of a file, or of the run that is gone on with; alone: it ends, and what runs
    otherwise does not; files: more plans, by hash."""

    given: Plan | None
    alone: bool
    files: dict[str, Plan]

    def last(self, running: DeployedPlans) -> Plan | None:
        """The plan that the run is named after: the given one, else that which runs or ran last."""
        if self.given is not None:
            return self.given
        known = self.files | running.documents
        return next((known[hash_] for hash_ in running.latest_first if hash_ in known), None)

    def named(self, ran: Sequence[Ran]) -> Plan | None:
        """The latest of the given ones that traces name."""
        from protos.records import STAMP

        known = {hash_[:STAMP]: made for hash_, made in self.files.items()}
        return next((known[each.stamp] for each in ran if each.stamp in known), None)


def _unknown(ran: Sequence[Ran]) -> list[str]:
    """Why nothing can be collected, one line each."""
    if not ran:
        return ["nothing has run on these nodes"]
    lines = (f"plan {each.stamp[:8]} ran on {', '.join(each.nodes)}, and no agent has its document" for each in ran)
    return [*lines, "its trace stays there; collect it with the plan's file: --plan plan.json"]


def _given(plan: Path | None, resume: Path | None) -> Plan | None:
    from coordinator.fleet.collection import collect as collection
    from coordinator.plan import plan_file

    if plan is not None:
        return plan_file.read(plan)
    return None if resume is None else collection.last_plan(resume)


def _files(plan: Path | None, made: Plan | None, given: Sequence[Path]) -> dict[str, Plan]:
    """Plans that may have run, by hash: those given, and those beside the plan that it was made from, step by step,
    under any name, and what was kept as it was replaced. Agents of before they kept plans do not have them."""
    from coordinator.fleet.deployment import deployed_plans
    from coordinator.plan import plan_file

    kept = set(given)
    if plan is not None:
        kept |= set(plan.parent.glob(f"{plan.stem}-{'[0-9a-f]' * 8}{plan.suffix}"))
        last = made
        while last and last.kept and (file := deployed_plans.file_of(plan, last.kept.of)) is not None:
            kept.add(file)
            last = plan_file.read(file)
    found = [plan_file.read(path) for path in sorted(kept)]
    return {each.hash: each for each in found if made is None or each.hash != made.hash}


def _places(
    file: Addresses, plans: Sequence[Plan], running: DeployedPlans
) -> tuple[dict[str, AgentAddress], list[str]]:
    """The places that any of the plans has; and a line for each that addresses.json lacks, and for agents that do not
    answer and may have run another plan, since none that is known has them."""
    named = {name for plan in plans for name in plan.nodes}
    absent = [
        f"node {name}: plan {plan.hash[:8]} ran on it and {file.path} does not have it"
        for name, plan in sorted({name: plan for plan in plans for name in plan.nodes}.items())
        if name not in file.nodes and _runs_there(plan, name)
    ]
    return {name: agent for name, agent in file.nodes.items() if name in named}, absent


def _runs_there(plan: Plan, name: str) -> bool:
    local = plan.nodes[name]
    return bool(local.sources or local.units or local.outputs)


def _stop(
    agents: Any, running: DeployedPlans, hashes: set[str] | None, timeout: float, progress: LineProgress
) -> list[str]:
    """End them on the nodes that answer; what is left there, one line each."""
    from coordinator.fleet.addresses import host_of
    from coordinator.fleet.agents import Agents, AgentsError
    from coordinator.fleet.deployment import deploy

    there = {name: agent for name, agent in agents.places.items() if host_of(name) not in running.silent}
    if not there:
        return []
    with Agents(there) as answering:
        try:
            stamps = None if hashes is None else {bytes.fromhex(hash_) for hash_ in hashes}
            return deploy.stop(stamps, answering, timeout, progress)
        except (AgentsError, deploy.DeployError) as error:
            progress(f"not drained: {error}")
            return [str(error)]
