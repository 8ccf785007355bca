"""`coordinator run --local`: from two files to a verdict on this machine, in one command."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli import completion, lines, query_files
from coordinator.cli.commands.report import Engine
from coordinator.cli.commands.up import DEFAULT_ADDRESSES, AddressesOption
from coordinator.cli.stage_lines import StageLines
from coordinator.errors import CoordinatorError, Mistake

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from coordinator.local_run.files import Feed
    from coordinator.local_run.stages import Ran
    from coordinator.spec.files.yaml_source import Edit
    from protos.plan_document import Plan

EPILOG = """Examples:

  coordinator run --local                                       (query.yaml and cluster.yaml here)

  coordinator run --local pumps                                 (those of a directory)

  coordinator run --local query.yaml cluster.yaml --feed radio=drive.csv --by radio=t --for 10s

  coordinator run --local --plan plan.json --rate radio=50 --json

What stands beside the query is taken: operators.py for the agents (an operators.json that is there and says something
else is brought up to date), and for each source SOURCE.jsonl, SOURCE.csv or SOURCE.mcap, or feed.jsonl for the only one
that has none. Tuples are sent at the rate that the query declares, at most at its 'max_rate', and wait while a node is
behind. With --rate they do not wait, like those of a sensor: so overload shows. The agents take free ports of this
machine instead of those in the cluster file, and speak without TLS.

Ctrl-C ends the feeds; what came until then is collected and reported (exit code 130). A deadline that was missed is no
failure. Exit codes: 0 done; 2 bad input, also in a feed; 3 infeasible, or a ledger that does not balance; 4 not drained
in time; 1 anything else."""

NOT_LOCAL = (
    "coordinator run works with --local only, which starts an agent for every node on this machine.\n"
    "On real nodes: start 'node-agent run' there, then 'coordinator addresses CLUSTER', plan, deploy, collect, report,"
    " with 'node-agent feed' before collect"
)
INTERRUPTED = 130
SOURCES = completion.sources_with_equals


class NotLocalError(CoordinatorError):
    """The command was called without --local."""

    exit_code = 2


class IncompleteError(CoordinatorError):
    """Something went wrong on the way, so that the account is of what came until then."""

    def lines(self) -> list[str]:
        """What it was, one line each."""
        return ["not all went well; what came is below", *super().lines()]


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def run(
        files: Annotated[
            list[Path] | None,
            typer.Argument(metavar="QUERY... CLUSTER", help=f"{query_files.HELP} Or a directory with both."),
        ] = None,
        local: Annotated[bool, typer.Option("--local", help="On this machine, an agent per node. Required.")] = False,
        plan: Annotated[Path | None, typer.Option(help="Run this plan.json instead of planning.")] = None,
        feed: Annotated[
            list[str] | None,
            typer.Option(metavar="SOURCE=FILE", autocompletion=SOURCES, help="JSON lines, CSV or MCAP."),
        ] = None,
        rate: Annotated[
            list[str] | None,
            typer.Option(metavar="SOURCE=N", autocompletion=SOURCES, help="Tuples per second, instead of as declared."),
        ] = None,
        by: Annotated[
            list[str] | None,
            typer.Option(
                metavar="SOURCE=FIELD[:UNIT]",
                autocompletion=SOURCES,
                help="The gaps of this field, a time in s, ms, us or ns.",
            ),
        ] = None,
        topic: Annotated[
            list[str] | None, typer.Option(metavar="SOURCE=T", autocompletion=SOURCES, help="Of an MCAP file.")
        ] = None,
        for_: Annotated[
            str | None, typer.Option("--for", metavar="TIME", help="Feed so long, files again and again: 10s.")
        ] = None,
        operators: Annotated[
            list[Path] | None, typer.Option(help="FILE.py for the agents; else operators.py beside the query.")
        ] = None,
        output: Annotated[Path, typer.Option("--out", "-o", help="Where the run's directory is made.")] = Path("runs"),
        engine: Annotated[Engine, typer.Option(help="What judges; both say the same.")] = Engine.python,
        costs: query_files.CostsOption = None,
        best_effort: Annotated[
            bool, typer.Option("--best-effort", help="Also where it is proven that no plan is guaranteed.")
        ] = False,
        keep: Annotated[
            bool,
            typer.Option("--keep", help="Where all went well, leave the agents up, with the plan deployed; end: down."),
        ] = False,
        check_operators: Annotated[
            bool,
            typer.Option(
                help="Encode and decode each result, as between nodes, and find operators that change inputs."
            ),
        ] = True,
        addresses: AddressesOption = DEFAULT_ADDRESSES,
        verbose: lines.VerboseOption = False,
        as_json: Annotated[
            bool,
            typer.Option(
                "--json",
                help="JSON: placement, outputs, ledger, feeds, what was shed and lost, report and page.",
            ),
        ] = False,
    ) -> None:
        """Try a query on this machine: plan, start agents, deploy, feed, collect, report, and say what came of it."""
        from coordinator.local_run import files as conventions
        from coordinator.local_run import stages

        if not local:
            raise NotLocalError(Mistake("not_local", NOT_LOCAL, subject="--local"))
        pairs = conventions.pairs
        wishes = conventions.Wishes(
            pairs("feed", feed or []), pairs("rate", rate or []), pairs("by", by or []), pairs("topic", topic or [])
        )
        seconds = conventions.seconds(for_)
        if keep:
            from coordinator.fleet.local.restart import refuse_running

            refuse_running(addresses)
        with StageLines(verbose) as tell:
            made, code, beside = _plan(files or [], plan, operators or [], (costs, best_effort), tell)
            feeds, unfed = conventions.feeds(made, wishes, beside)
            _room(output)
            for line in _feed_lines(feeds, unfed, seconds):
                tell.say(line)
            wish = stages.Wish(
                made, feeds, code, seconds, output, engine.value, addresses if keep else None, check_operators
            )
            ran = stages.run(wish, tell)
        if (failure := _failure(ran)) is not None:
            lines.complain(failure)
        if as_json:
            from coordinator.local_run import run_summary

            typer.echo(json.dumps(run_summary.document(made, ran), allow_nan=False))
        else:
            _show(made, ran, verbose)
        if failure is not None:
            raise typer.Exit(failure.exit_code)
        if ran.interrupted:
            raise typer.Exit(INTERRUPTED)


def _plan(
    files: Sequence[Path], plan: Path | None, given: Sequence[Path], how: tuple[Path | None, bool], tell: StageLines
) -> tuple[Plan, list[Path], list[Path]]:
    """The plan, the files with operators, and the folders in which more may stand. how: measured costs, and whether a
    plan is made where none is guaranteed."""
    from coordinator.local_run import files as conventions
    from coordinator.local_run import installed
    from coordinator.plan import plan_file

    tell.begin("plan")
    if plan is not None:
        if files:
            raise typer.BadParameter("a plan has its query and its cluster in it; leave those out", param_hint="--plan")
        query_files.refuse_costs(how[0])
        made = plan_file.read(plan)
        tell.done(f"{plan}, {_promised(made)}")
        return made, conventions.operators(given, [plan.parent]), [plan.parent]
    queries, cluster = conventions.inputs(files)
    beside = list(dict.fromkeys([*(path.parent for path in queries), cluster.parent]))
    code = conventions.operators(given, beside)
    query_files.check_order(queries, cluster)
    with installed.listed(queries, cluster, code) as found:
        if found.written:
            tell.say(f"{found.written} is brought up to date with {', '.join(map(str, code))}")
        made = _made(queries, cluster, how, found.edit, tell)
    tell.done(_promised(made))
    return made, code, beside


def _made(
    queries: list[Path], cluster: Path, how: tuple[Path | None, bool], edit: Edit | None, tell: StageLines
) -> Plan:
    from coordinator.cli.planning import hinting
    from coordinator.model.choices import Choices
    from coordinator.solve.sharing_choice import Asked, planned
    from coordinator.spec import input_files

    costs, best_effort = how
    measured = query_files.costs(costs, query_files.WORST, query_files.MARGIN)
    choices = Choices(best_effort=best_effort)

    def asked(share: bool) -> Asked:
        query, known, types = input_files.read_files(queries, cluster, (None, edit), share, measured)
        assert known is not None  # a path was given
        return Asked(query, known, types)

    shared = asked(True)
    also = query_files.costs_options(costs, query_files.WORST, query_files.MARGIN)
    with hinting([*queries, cluster, *also], choices, shared.query):
        return planned(shared, lambda: asked(False), choices, lambda now: tell.now(now.sentence()))


def _promised(made: Plan) -> str:
    from coordinator.explain import cost_lines
    from coordinator.plan.deadline_breakdown import verdict

    return verdict(made.guarantee) + cost_lines.on_guesses(made)


def _room(output: Path) -> None:
    """Raises BadInputError where the run could not be written in the end."""
    from coordinator.errors import bad_file

    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise bad_file(output, "unwritable", f"cannot be made: {error.strerror or error}") from error


def _feed_lines(feeds: Sequence[Feed], unfed: Sequence[str], seconds: float | None) -> list[str]:
    how = "" if seconds is None else f", for {seconds:g} s"
    return [
        *(f"source {each.source}: {each.path} {each.pace.wording}{how}" for each in feeds),
        *(f"source {name}: nothing feeds it; --feed {name}=FILE would" for name in unfed),
    ]


def _show(made: Plan, ran: Ran, verbose: bool) -> None:
    from rich.console import Console

    from coordinator.local_run import run_summary

    console = Console(highlight=False)

    def write(told: Iterable[str]) -> None:
        for line in told:
            lines.say(line)

    console.print()
    if wrong := list(run_summary.problems(made, ran)):
        write([*wrong, ""])
    console.print(run_summary.outputs(made, ran.report))
    write(["", *run_summary.results_and_balance(ran)])
    if verbose:
        write(["", *run_summary.details(made, ran), ""])
    write(_next(made, ran, verbose))


def _next(made: Plan, ran: Ran, verbose: bool) -> list[str]:
    said = [f"page: {ran.page}"]
    if verbose:
        said += [
            f"for programs: report.json in {ran.run}, and the first results of each output in results/",
            f"where every millisecond of a deadline goes: coordinator explain {ran.run / 'plan.json'}",
        ]
    if ran.agents_left is None:
        more = "" if verbose else "-v tells more, "
        return [*said, f"next: change the files and run again; {more}--keep leaves the agents up"]
    where = "" if ran.agents_left == DEFAULT_ADDRESSES else f" --addresses {shlex.quote(str(ran.agents_left))}"
    plan = shlex.quote(str(ran.run / "plan.json"))
    again = [
        f"  {shlex.join(['node-agent', 'feed', feed.source, str(feed.path), '--to', node, *feed.pace.options])}{where}"
        for feed in (fed.feed for fed in ran.fed)
        for node in [made.graph.sources[feed.source].at]
    ]
    said += [
        "it still runs; to feed it again:",
        *again,
        "to look at it, to measure what its operators cost as it is fed again, and to end it:",
        f"  coordinator top{where} --plan {plan}    (or status)",
        f"  coordinator profile {plan}{where}",
        f"  coordinator down{where}",
    ]
    return said


def _failure(ran: Ran) -> CoordinatorError | None:
    """What did not go as it should, so that the account is of a part."""
    from coordinator.cli.commands.report import UnbalancedError, refuse_unbalanced
    from coordinator.errors import OutOfTimeError

    try:
        refuse_unbalanced([ran.report])
    except UnbalancedError as unbalanced:
        return unbalanced
    if not ran.missing and not ran.left:
        return None
    error = IncompleteError(*(Mistake("incomplete", text) for text in (*ran.missing, *ran.left)))
    if any(fed.code == 2 for fed in ran.fed):
        error.exit_code = 2
    elif not ran.missing:
        error.exit_code = OutOfTimeError.exit_code
    return error
