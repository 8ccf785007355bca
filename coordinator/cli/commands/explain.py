"""`coordinator explain`: where each deadline goes, what binds, and what would mend a plan or a query without one."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from coordinator.cli import query_files
from coordinator.cli.lines import say
from coordinator.cli.planning import search_progress, searching

if TYPE_CHECKING:
    from coordinator.solve.repair.what_if_runs import Case, Outcome
    from protos.plan_document import Plan

EPILOG = """Examples:

  coordinator explain plan.json

  coordinator explain plan.json -v                  (sub-deadlines, places, units, nodes as well)

  coordinator explain query.yaml cluster.yaml       (also where there is no plan, and of several queries)"""


SUMMARY = 0.25  # of the time limit: for what a summary has to try


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def explain(
        files: Annotated[
            list[Path], typer.Argument(metavar="PLAN | QUERY... CLUSTER", help="plan.json, or query.yaml cluster.yaml")
        ],
        verbose: Annotated[bool, typer.Option("--verbose", "-v", help="How and why of everything else, too.")] = False,
        time_limit: Annotated[
            float,
            typer.Option(min=0, help="Seconds, of a query for its plan too; 0: do not look for what would mend it."),
        ] = 30.0,
        model: Annotated[
            Literal["sound", "paper"] | None, typer.Option(help="Of a query: as of 'coordinator plan'.")
        ] = None,
        units: Annotated[
            Literal["path", "operator"], typer.Option(help="Of a query: as of 'coordinator plan'.")
        ] = "path",
        policy: Annotated[
            str | None, typer.Option(help="Of a query: as of 'coordinator plan', like bts:phi=100ms,k=5.")
        ] = None,
        place: Annotated[list[str] | None, typer.Option(help="Of a query: as of 'coordinator plan'.")] = None,
        overhead: Annotated[
            Literal["measured", "none"], typer.Option(help="Of a query: as of 'coordinator plan'.")
        ] = "measured",
        installed: query_files.InstalledOption = None,
        no_sharing: Annotated[bool, typer.Option("--no-sharing", help="Of queries: as of 'coordinator plan'.")] = False,
        costs: query_files.CostsOption = None,
        costs_of: query_files.CostsOfOption = query_files.WORST,
        margin: query_files.MarginOption = query_files.MARGIN,
        as_json: Annotated[
            bool,
            typer.Option(
                "--json",
                help="JSON: outputs with the parts of each deadline, queries, mends, text as sections.",
            ),
        ] = False,
    ) -> None:
        """Say where every millisecond of each deadline goes, what binds, and the smallest changes that mend what is
        not guaranteed, each found by planning again."""
        from coordinator.cli.commands.plan import pair
        from coordinator.explain import cost_lines, explanation, repair_lines, sharing_lines
        from coordinator.model.choices import Choices
        from coordinator.model.limits import Limits
        from coordinator.plan import deadline_breakdown, plan_file, reopen
        from coordinator.solve.repair import repair_search
        from coordinator.solve.repair.what_if_runs import Case, promised_outcome
        from coordinator.spec import runtime_charges
        from protos import json_shape

        began_s, limits = time.monotonic(), Limits()
        made: Plan | None = None
        if len(files) == 1:
            query_files.refuse_costs(costs)
            query_files.refuse_installed(installed)
            made = plan_file.read(files[0])
            case, now = Case(*reopen.inputs(made, files[0])), promised_outcome(made)
        else:
            query, cluster, types = query_files.load(
                *query_files.split(files), not no_sharing, query_files.costs(costs, costs_of, margin), installed
            )
            assert cluster is not None  # a path was given
            choices = Choices(
                model=model or Choices().model,
                units=units,
                policy=policy,
                place=dict(pair(text) for text in place or []),
                limits=replace(limits, seconds=min(limits.seconds, time_limit or limits.seconds)),
                charges=runtime_charges.MEASURED if overhead == "measured" else runtime_charges.NOTHING,
            )
            case = Case(query, cluster, types, choices)
            now = _planned(case, as_json)
            made = now.plan
        found, summary = repair_search.Findings(now), dict[str, list[str]]()
        if made is not None:
            summary_until_s = time.monotonic() + (time_limit or math.inf) * SUMMARY
            summary = explanation.short(made, lambda: time.monotonic() > summary_until_s)
        if time_limit:
            found = _look(case, now, max(0.0, time_limit - (time.monotonic() - began_s)), as_json)
        sections: dict[str, list[str]] = {}
        if made is None:
            guesses = [told for told in (cost_lines.guesses(case.query),) if told]
            sections[f"Query {case.query.name} {'has no plan yet' if now.undecided else 'is infeasible'}"] = [
                *map(str, now.reasons),
                *guesses,
            ]
            if case.query.members:
                sections[explanation.SEVERAL] = sharing_lines.planned_sentences(case.query, case.cluster)
        else:
            sections |= summary
        if time_limit:
            sections |= repair_lines.sections(found, case)
        if made is not None and verbose:
            sections |= explanation.explain(made)
        if as_json:
            outputs = {name: deadline_breakdown.document(made, name) for name in made.guarantee} if made else {}
            queries = {"queries": json_shape.write(case.query.parts)}
            typer.echo(json.dumps({"outputs": outputs, **queries, "mends": found.document(), "sections": sections}))
            return
        for title, lines in sections.items():
            say("\n".join([title, *(f"  {line}" for line in lines)]))


def _planned(case: Case, quiet: bool) -> Outcome:
    """The plan of a query, with progress on stderr, or why there is none."""
    from coordinator.errors import InfeasibleError, OutOfTimeError
    from coordinator.solve import planner
    from coordinator.solve.repair.what_if_runs import Outcome, promised_outcome

    try:
        with search_progress(quiet) as watch:
            return promised_outcome(planner.plan(case.query, case.cluster, case.types, case.choices, watch))
    except InfeasibleError as error:
        return Outcome(None, tuple(error.reasons))
    except OutOfTimeError as error:
        return Outcome(None, tuple(error.mistakes), undecided=True)


def _look(case: Case, now: Any, seconds: float, quiet: bool) -> Any:
    """Mends, with progress on stderr."""
    from coordinator.solve.repair import repair_search

    with searching("looking for what mends it", quiet) as tell:
        return repair_search.find(case, seconds, lambda what: tell(f"looking for what mends it: {what}"), now)
