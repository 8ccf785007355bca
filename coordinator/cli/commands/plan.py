"""`coordinator plan`: place operators, divide deadlines, write plan.json."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from coordinator.cli import completion, lines, query_files
from coordinator.cli.planning import hinting, search_progress
from protos.policies import HELP

if TYPE_CHECKING:
    from coordinator.explain.comparison import Side
    from coordinator.model.choices import Choices
    from coordinator.model.progress import Watch
    from coordinator.solve.sharing_choice import Asked
    from coordinator.spec.costs import Costs
    from protos.plan_document import Plan

EPILOG = """Examples:

  coordinator plan query.yaml cluster.yaml -o plan.json

  coordinator plan query.yaml cluster.yaml -o base.json --allocator sqpr --policy fifo

  coordinator plan query.yaml cluster.yaml --place O3=a --place O4=a --json

  coordinator plan query.yaml other.yaml cluster.yaml                 (two queries; what they share runs once)

  coordinator plan query.yaml cluster.yaml --costs costs.yaml         (measured by 'coordinator profile')

  coordinator plan query.yaml cluster.yaml --installed operators.json (of 'node-agent operators --json')

  coordinator plan query.yaml cluster.yaml --what-if 'v2v.burst=20' --what-if 'b.speed=2'

Exit codes of model sound: 0 every output is guaranteed, 3 it is proven that one cannot be (no plan is written), 4
neither (the plan is written; 'coordinator explain' tells what would mend it). '--best-effort' accepts both: 0. Plans of
model paper, and of sqpr, claim nothing: 0."""


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def plan(
        context: typer.Context,
        files: Annotated[list[Path], typer.Argument(metavar="QUERY... CLUSTER", help=query_files.HELP)],
        output: Annotated[Path, typer.Option("--out", "-o", help="Where the plan is written.")] = Path("plan.json"),
        allocator: Annotated[
            Literal["deadline", "sqpr"],
            typer.Option(help="deadline: by sub-deadlines; sqpr: by CPU, network and balance."),
        ] = "deadline",
        model: Annotated[
            Literal["sound", "paper"],
            typer.Option(help="sound: every output guaranteed, then least traffic; paper: as printed, NLR first."),
        ] = "sound",
        tighten: Annotated[
            str | None,
            typer.Option(
                help="OUTPUT: the least bound for it that leaves the others guaranteed.",
                autocompletion=completion.outputs,
            ),
        ] = None,
        best_effort: Annotated[
            bool,
            typer.Option("--best-effort", help="Done, too, where not every output is guaranteed, or none can be."),
        ] = False,
        survive: Annotated[
            int, typer.Option(metavar="[0|1]", help="1: any one node may fail; with a plan for each to deploy then.")
        ] = 0,
        units: Annotated[
            Literal["path", "operator"], typer.Option(help="Task units: merged paths, or every operator its own.")
        ] = "path",
        policy: Annotated[
            str | None,
            typer.Option(
                help=f"On every node; else as in the cluster file. {HELP}", autocompletion=completion.policies
            ),
        ] = None,
        place: Annotated[
            list[str] | None,
            typer.Option(help="OP=NODE: hold an operator to a node.", autocompletion=completion.operators_with_equals),
        ] = None,
        sub_deadlines: Annotated[
            Literal["model", "deadline", "proportional"],
            typer.Option(
                help="With sqpr: of its own placement, of the deadline allocator's, or in proportion to cost."
            ),
        ] = "model",
        time_limit: Annotated[float, typer.Option(min=0.1, help="Seconds for the solver.")] = 60.0,
        seed: Annotated[int, typer.Option(min=0, help="The solver's seed.")] = 0,
        solver: Annotated[Literal["highs", "gscip"], typer.Option(help="gscip is a cross-check.")] = "highs",
        overhead: Annotated[
            Literal["measured", "none"],
            typer.Option(help="What bounds charge for decisions, sockets and side inputs: none is for virtual time."),
        ] = "measured",
        what_if: Annotated[
            list[str] | None,
            typer.Option(
                "--what-if",
                help="NAME.FIELD=VALUE of a source, operator, output, node or link (a-b): tell what it changes.",
            ),
        ] = None,
        installed: query_files.InstalledOption = None,
        no_sharing: Annotated[bool, typer.Option("--no-sharing", help=query_files.SHARING)] = False,
        costs: query_files.CostsOption = None,
        costs_of: query_files.CostsOfOption = query_files.WORST,
        margin: query_files.MarginOption = query_files.MARGIN,
        verbose: lines.VerboseOption = False,
        as_json: Annotated[
            bool,
            typer.Option(
                "--json", help="JSON: the file as plan, hash, placement, guarantee, what else it holds, notes."
            ),
        ] = False,
    ) -> None:
        """Decide where each operator runs and how much of each deadline it gets, and write plan.json."""
        from coordinator.explain import plan_lines
        from coordinator.model.choices import Choices
        from coordinator.model.limits import Limits
        from coordinator.solve import sharing_choice
        from coordinator.spec import runtime_charges

        queries, cluster = query_files.split(files)
        measured = query_files.costs(costs, costs_of, margin)
        given = _Given(queries, cluster, not no_sharing, measured, installed)
        held = dict(pair(text) for text in place or [])
        limits = Limits(seconds=time_limit, seed=seed, solver=solver)
        charged = runtime_charges.MEASURED if overhead == "measured" else runtime_charges.NOTHING
        choices = Choices(
            allocator,
            model,
            units,
            policy,
            held,
            sub_deadlines,
            limits,
            charged,
            tighten=tighten,
            survive=survive,
            best_effort=best_effort,
        )
        if what_if:
            came_from = context.get_parameter_source("output")
            wanted = output if came_from is not None and came_from.name != "DEFAULT" else None
            _what_if(given, choices, what_if, wanted, as_json)
            return
        also = [
            *query_files.installed_options(installed),
            *(["--no-sharing"] if no_sharing else []),
            *query_files.costs_options(costs, costs_of, margin),
        ]
        asked = given.asked(given.share)
        with search_progress(as_json) as watch, hinting([*files, *also], choices, asked.query):
            made = sharing_choice.planned(asked, lambda: given.asked(share=False), choices, watch)
        replaced = _write(made, output)
        if as_json:
            typer.echo(json.dumps({"plan": str(output), **plan_lines.document(made)}))
        else:
            _show(made, output, verbose)
        if replaced:
            lines.tell(replaced)
        _conclude(made, best_effort)


@dataclass(frozen=True, slots=True)
class _Given:
    """What a plan is made of. share: whether queries share operators; installed: as of `--installed`."""

    queries: list[Path]
    cluster: Path
    share: bool
    measured: Costs | None
    installed: Path | None

    def asked(self, share: bool) -> Asked:
        """The files as they are. Raises BadInputError."""
        from coordinator.solve.sharing_choice import Asked

        query, cluster, types = query_files.load(self.queries, self.cluster, share, self.measured, self.installed)
        assert cluster is not None  # a path was given
        return Asked(query, cluster, types)

    def changed(self, options: list[str]) -> Asked:
        """The files with the changes of `--what-if`. Raises BadInputError."""
        from coordinator.solve import what_if
        from coordinator.solve.sharing_choice import Asked

        edit = query_files.edited(self.installed)
        query, cluster, types = what_if.load(self.queries, self.cluster, options, self.share, self.measured, edit)
        assert cluster is not None  # a path was given
        return Asked(query, cluster, types)


def _write(made: Plan, output: Path) -> str:
    """Writes plan.json. Returns what became of another plan that stood there and that agents run; else nothing."""
    from coordinator.fleet.deployment import previous_plan
    from coordinator.plan import plan_file

    kept = previous_plan.keep(output, made.hash)
    plan_file.write(made, output)
    return kept.sentence() if kept is not None else ""


def _conclude(made: Plan, best_effort: bool) -> None:
    """Raises UnprovenError where a plan leaves open what it was made for, unless that was accepted."""
    from coordinator.errors import Mistake, UnprovenError
    from coordinator.plan.deadline_breakdown import unproven

    if not best_effort and (said := unproven(made)):
        raise UnprovenError(Mistake.of("unproven", said))


def _what_if(given: _Given, choices: Choices, options: list[str], output: Path | None, as_json: bool) -> None:
    """Plans as it is and with the changes, and tells what differs; writes the changed plan where `output` is given."""
    from coordinator.errors import InfeasibleError
    from coordinator.explain import comparison

    now, then = given.asked(given.share), given.changed(options)
    with search_progress(as_json) as watch:
        before, after = _side(now, choices, watch), _side(then, choices, watch)
    if output is not None and after.plan is not None and (replaced := _write(after.plan, output)):
        lines.tell(replaced)
    if as_json:
        typer.echo(json.dumps({"what_if": options, **comparison.document(before, after)}))
    else:
        _show_what_if(f"{then.query.name}: what if {', '.join(options)}", before, after, output)
    if after.plan is None:
        raise typer.Exit(InfeasibleError.exit_code)
    _conclude(after.plan, choices.best_effort)


def _side(asked: Asked, choices: Choices, watch: Watch) -> Side:
    """A plan, or why there is none."""
    from coordinator.errors import InfeasibleError
    from coordinator.explain.comparison import Side
    from coordinator.solve import planner

    try:
        return Side(planner.plan(asked.query, asked.cluster, asked.types, choices, watch))
    except InfeasibleError as error:
        return Side(None, tuple(error.reasons))


def _show_what_if(title: str, before: Side, after: Side, output: Path | None) -> None:
    from rich.console import Console

    from coordinator.explain import comparison

    Console().print(comparison.table(title, before, after))
    for line in comparison.lines(before, after):
        lines.say(line)
    if output is None:
        lines.say("nothing was written; '-o plan.json' writes the changed plan")
    elif after.plan is not None:
        lines.say(f"plan {after.plan.hash[:8]} written to {output}")


def _show(plan: Plan, path: Path, verbose: bool) -> None:
    """In brief what is guaranteed and what runs where; else all of it."""
    from coordinator.explain import plan_lines

    if verbose:
        _show_task_units(plan)
    first, *others = plan_lines.whole(plan) if verbose else plan_lines.brief(plan)
    lines.say(first, bold=True)
    for line in others:
        lines.say(line)
    lines.say(f"plan {plan.hash[:8]} written to {path}{'' if verbose else '; -v tells more'}")
    if plan_lines.is_missed(plan):
        lines.say(f"what would mend it: coordinator explain {path}")


def _show_task_units(plan: Plan) -> None:
    from rich.console import Console

    from coordinator.explain import plan_lines

    Console().print(plan_lines.task_units(plan))


def pair(text: str) -> tuple[str, str]:
    """Reads OP=NODE as operator and node. Raises typer.BadParameter."""
    operator, equals, node = text.partition("=")
    if not operator or not equals or not node:
        raise typer.BadParameter(f"'{text}' is not OP=NODE, like O3=a", param_hint="--place")
    return operator, node
