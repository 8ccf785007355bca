"""`coordinator plan`: place operators, divide deadlines, write plan.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from coordinator.cli import completion, lines, query_files
from coordinator.cli.planning import hinting, search_progress
from coordinator.model.progress import Watch, relative_gap
from protos.policies import HELP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coordinator.model.choices import Choices
    from coordinator.spec.cluster import Cluster
    from coordinator.spec.costs import Costs
    from coordinator.spec.query import Query
    from protos.plan_document import Objective, Plan

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


TOLD = (
    "hash", "queries", "status", "allocator", "model", "units", "solver", "objective", "placement", "sub_deadlines_ns",
    "guarantee", "tasks",
)  # of the plan, for --json  # fmt: skip


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
            typer.Option("--json", help="JSON: the file as plan, hash, placement, guarantee and what else it holds."),
        ] = False,
    ) -> None:
        """Decide where each operator runs and how much of each deadline it gets, and write plan.json."""
        from coordinator.cli.lines import tell
        from coordinator.fleet.deployment import previous_plan
        from coordinator.model.choices import Choices
        from coordinator.model.limits import Limits
        from coordinator.plan import plan_file
        from coordinator.solve import sharing_choice
        from coordinator.spec import runtime_charges

        queries, cluster = query_files.split(files)
        measured = query_files.costs(costs, costs_of, margin)
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
            given = output if came_from is not None and came_from.name != "DEFAULT" else None
            _what_if((queries, cluster), choices, what_if, given, as_json, not no_sharing, measured, installed)
            return
        loaded, known, types = query_files.load(queries, cluster, not no_sharing, measured, installed)
        assert known is not None  # a path was given
        also = [
            *query_files.installed_options(installed),
            *(["--no-sharing"] if no_sharing else []),
            *query_files.costs_options(costs, costs_of, margin),
        ]

        def apart() -> sharing_choice.Asked:
            query, there, every = query_files.load(queries, cluster, False, measured, installed)
            assert there is not None  # a path was given
            return sharing_choice.Asked(query, there, every)

        with search_progress(as_json) as watch, hinting([*files, *also], choices, loaded):
            made = sharing_choice.planned(sharing_choice.Asked(loaded, known, types), apart, choices, watch)
        kept = previous_plan.keep(output, made.hash)
        plan_file.write(made, output)
        if as_json:
            written = made.to_json()
            told = {key: written[key] for key in (*TOLD, *(["failover"] if survive else []))}
            typer.echo(json.dumps({"plan": str(output), **told, "costs": written.get("costs", {})}))
        else:
            _show(made, output, verbose)
        if kept is not None:
            tell(kept.sentence())
        _conclude(made, best_effort)


def _conclude(made: Plan, best_effort: bool) -> None:
    """Raises UnprovenError where a plan leaves open what it was made for, unless that was accepted."""
    from coordinator.errors import Mistake, UnprovenError
    from coordinator.plan.deadline_breakdown import unproven

    if not best_effort and (said := unproven(made)):
        raise UnprovenError(Mistake.of("unproven", said))


def _what_if(
    files: tuple[list[Path], Path],
    choices: Choices,
    options: list[str],
    output: Path | None,
    as_json: bool,
    share: bool,
    measured: Costs | None,
    installed: Path | None,
) -> None:
    """Plans as it is and with the changes, and tells what differs; writes the changed plan where `output` is given."""
    from rich.console import Console
    from rich.table import Table

    from coordinator.cli.lines import tell
    from coordinator.errors import InfeasibleError
    from coordinator.explain import comparison
    from coordinator.fleet.deployment import previous_plan
    from coordinator.plan import plan_file
    from coordinator.solve import planner, what_if

    def side(loaded: tuple[Query, Cluster | None, dict[str, str]], watch: Watch) -> comparison.Side:
        query, cluster, types = loaded
        assert cluster is not None  # a path was given
        try:
            return comparison.Side(planner.plan(query, cluster, types, choices, watch))
        except InfeasibleError as error:
            return comparison.Side(None, tuple(error.reasons))

    now = query_files.load(*files, share, measured, installed)
    then = what_if.load(*files, options, share, measured, query_files.edited(installed))
    with search_progress(as_json) as watch:
        before, after = side(now, watch), side(then, watch)
    if output is not None and after.plan is not None:
        kept = previous_plan.keep(output, after.plan.hash)
        plan_file.write(after.plan, output)
        if kept is not None:
            tell(kept.sentence())
    if as_json:
        typer.echo(json.dumps({"what_if": options, **comparison.document(before, after)}))
    else:
        console = Console()
        table = Table(title=f"{then[0].name}: what if {', '.join(options)}", title_justify="left")
        for heading in ("output", "deadline", "bound", "promise"):
            table.add_column(heading)
        for row in comparison.rows(before, after):
            table.add_row(*row)
        console.print(table)
        for line in comparison.lines(before, after):
            console.print(line, soft_wrap=True, highlight=False)
        if output is not None and after.plan is not None:
            console.print(f"plan {after.plan.hash[:8]} written to {output}", soft_wrap=True)
        elif output is None:
            console.print("nothing was written; '-o plan.json' writes the changed plan", soft_wrap=True)
    if after.plan is None:
        raise typer.Exit(InfeasibleError.exit_code)
    _conclude(after.plan, choices.best_effort)


def pair(text: str) -> tuple[str, str]:
    """Reads OP=NODE as operator and node. Raises typer.BadParameter."""
    operator, equals, node = text.partition("=")
    if not operator or not equals or not node:
        raise typer.BadParameter(f"'{text}' is not OP=NODE, like O3=a", param_hint="--place")
    return operator, node


def _at_least(objective: Objective) -> str:
    """What the traffic is at least, where that is not proven the least."""
    if objective.traffic_bound is None:
        return ""
    least = objective.traffic_bound
    return f" (bound {least:g}, gap {relative_gap(objective.traffic, least):.2%})"


def _outcome(plan: Plan) -> list[str]:
    """What the search of model sound ended with."""
    from coordinator.plan.deadline_breakdown import ADMITTED, beyond_caps, giving_way, guarantee_status
    from coordinator.plan.policy_choice import covered, of_node
    from coordinator.units import counted

    solver, claims = plan.solver, plan.guarantee.values()
    said = solver.outcome
    if said == "guaranteed" and not all(claim.guaranteed for claim in claims):
        other = not all(covered(of_node(node)) for node in plan.cluster.nodes.values())
        old = any(guarantee_status(claim) == ADMITTED for claim in claims)
        where = (["every node ran edf"] if other else []) + (["tuples came in without age"] if old else [])
        said = f"guaranteed{' if ' if where else ''}{' and '.join(where)}"
        if not all(claim.is_fresh for claim in claims):
            said += ", but for an age or a reaction, which it does not look for"
    lines = [
        f"model sound: {said}; looked at {counted(solver.placements or 0, 'placement')} and "
        f"{counted(solver.analyses or 0, 'choice')} of sub-deadlines"
    ]
    over = beyond_caps(plan)
    within = "within the caps " if over else ""
    return lines + [f"  {within}not possible: {why}" for why in solver.why or ()] + over + giving_way(plan)


def _show(plan: Plan, path: Path, verbose: bool) -> None:
    """In brief what is guaranteed and what runs where; else all of it."""
    from coordinator.plan.deadline_breakdown import MISSED, guarantee_status

    if verbose:
        _show_all(plan)
    else:
        _show_brief(plan)
    typer.echo(f"plan {plan.hash[:8]} written to {path}{'' if verbose else '; -v tells more'}")
    if any(guarantee_status(claim) == MISSED for claim in plan.guarantee.values()):
        typer.echo(f"what would mend it: coordinator explain {path}")


def _show_brief(plan: Plan) -> None:
    """What is not guaranteed first."""
    from coordinator.explain import age_lines, cost_lines, failover_lines, sharing_lines, source_lines
    from coordinator.plan import confidence_lines, policy_choice
    from coordinator.plan.deadline_breakdown import beyond_caps, giving_way, verdict
    from coordinator.spec.costs import MEASURED
    from coordinator.spec.query import GUESSED

    typer.secho(verdict(plan.guarantee) + cost_lines.on_guesses(plan), bold=True)
    whys: dict[str, list[str]] = {}
    for name, claim in sorted(plan.guarantee.items(), key=lambda each: each[1].holds):
        typer.echo(_claimed(plan, name))
        if not claim.holds:
            whys.setdefault(claim.why, []).append(name)
    sound = plan.model == "sound"
    known = {MEASURED, GUESSED} & {one.kind for one in (plan.costs or {}).values()}
    for line in (
        *(f"why not {', '.join(names)}: {why}" for why, names in whys.items()),
        *(line for claim in plan.guarantee.values() for line in confidence_lines.lines(claim)),
        *(f"not possible: {why}" for why in (plan.solver.why or ()) if sound),
        *(beyond_caps(plan) + giving_way(plan) if sound else [_objective(plan)]),
        *_placement(plan),
        *(cost_lines.lines(plan) if known else ()),
        *source_lines.lines(plan), *policy_choice.sentences(plan), *age_lines.lines(plan),
        *sharing_lines.sentences(plan), *failover_lines.summary(plan),
    ):  # fmt: skip
        typer.echo(line)


def _claimed(plan: Plan, name: str) -> str:
    """An output's deadline and bound, and whether that is guaranteed."""
    from coordinator.spec.sharing import owners
    from coordinator.units import show_ns

    claim = plan.guarantee[name]
    bound = "no bound" if claim.bound_ns is None else f"bound {show_ns(claim.bound_ns)}"
    said = "guaranteed" if claim.guaranteed else "not guaranteed for every result" if claim.holds else "not guaranteed"
    return f"{name}{owners.whose(plan, name)}: deadline {show_ns(claim.deadline_ns)}, {bound}, {said}"


def _placement(plan: Plan) -> Iterator[str]:
    """What each node runs; names are left out where a node has many."""
    from protos.plan_document import ADD

    for node, tasks in plan.tasks.items():
        names = list(dict.fromkeys(name.removesuffix(ADD) for task in tasks for name in task.operators))
        yield f"node {node} runs {_some(names) or 'nothing'}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:6])}, ..., {names[-1]} ({len(names)})"


def _objective(plan: Plan) -> str:
    """What the search looked for and how far it got."""
    objective, solver = plan.objective, plan.solver
    source = {
        "model": "of the deadline model",
        "sound": "by their bounds",
        "deadline": "of the deadline allocator's own placement",
        "proportional": "in proportion to cost (1): no demand check holds",
        "kept": "kept of what runs already, the others of the deadline model",
    }[solver.sub_deadlines]
    best = f"{plan.status}: NLR {objective.nlr:g} (bound {objective.bound:g}, gap {solver.gap:g}), "
    least = ", the least of any guaranteed plan" if plan.status == "optimal" else _at_least(objective)
    sound = plan.model == "sound"
    return (
        f"{'' if sound else best}traffic {objective.traffic:g} tuples per burst"
        f"{least if sound else _at_least(objective)}, solver {solver.name}, sub-deadlines {source}"
    )


def _show_all(plan: Plan) -> None:
    """A table of task units, and all that is known of the plan in short."""
    from rich.console import Console
    from rich.table import Table

    from coordinator.explain import age_lines, cost_lines, failover_lines, sharing_lines, source_lines, window_lines
    from coordinator.guarantee import bounds
    from coordinator.plan import confidence_lines, policy_choice
    from coordinator.plan.deadline_breakdown import (
        asked,
        left_out,
        left_out_of_several,
        verdict,
    )
    from coordinator.units import show_ns

    console = Console()
    table = Table(title=f"{plan.query}: {plan.allocator} placement", title_justify="left")
    for heading in ("node", "policy", "unit", "operators", "sub-deadline"):
        table.add_column(heading, justify="right" if heading in ("unit", "sub-deadline") else "left")
    for node, tasks in plan.tasks.items():
        policy = policy_choice.of_node(plan.cluster.nodes[node]).name
        for task in tasks:
            names = task.operators
            text = ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])}, ..., {names[-1]} ({len(names)})"
            table.add_row(node, policy, str(task.id), text, show_ns(task.sub_deadline_ns))
    console.print(table)
    told = verdict(plan.guarantee) + cost_lines.on_guesses(plan)
    console.print(told, style="bold", soft_wrap=True, highlight=False)
    for line in (*cost_lines.lines(plan), *source_lines.lines(plan), *policy_choice.sentences(plan)):
        console.print(line, soft_wrap=True, highlight=False)
    if plan.model == "sound":
        for line in _outcome(plan):
            console.print(line, soft_wrap=True, highlight=False)
    console.print(_objective(plan), soft_wrap=True, highlight=False)
    several = left_out_of_several(plan.guarantee)
    for name, claim in plan.guarantee.items():
        text = f"output {_claimed(plan, name)}: {claim.why}"
        for line in (
            text,
            *(f"  {line}" for line in (*confidence_lines.lines(claim), *left_out(claim, several), *asked(claim))),
        ):
            console.print(line, soft_wrap=True, highlight=False)
    for line in (
        *age_lines.lines(plan),
        *several.values(),
        *window_lines.of_plan(plan),
        *sharing_lines.sentences(plan),
    ):
        console.print(line, soft_wrap=True, highlight=False)
    if assumed := bounds.assumed(plan):
        console.print(assumed, soft_wrap=True, highlight=False)
    for line in failover_lines.summary(plan):
        console.print(line, soft_wrap=True, highlight=False)
