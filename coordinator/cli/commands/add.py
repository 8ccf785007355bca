"""`coordinator add`: one query more on a cluster that runs, without disturbing the others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coordinator.cli import changing, query_files
from coordinator.cli.commands.up import DEFAULT_ADDRESSES, AddressesOption

EPILOG = """Examples:

  coordinator add fleet.yaml                          (to what plan.json says runs here)

  coordinator add fleet.yaml --plan plan.json -o next.json --dry-run

  coordinator add fleet.yaml --best-effort --json"""


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def add(
        query: Annotated[Path, typer.Argument(help="The query to add: query.yaml.")],
        plan: changing.PlanOption = changing.DEFAULT_PLAN,
        addresses: AddressesOption = DEFAULT_ADDRESSES,
        output: changing.OutputOption = None,
        best_effort: Annotated[
            bool, typer.Option("--best-effort", help="Its own outputs need not be guaranteed; others are not harmed.")
        ] = False,
        no_sharing: Annotated[
            bool, typer.Option("--no-sharing", help="With operators of its own, also where others compute the same.")
        ] = False,
        time_limit: Annotated[float, typer.Option(min=0.1, help="Seconds for the search.")] = 60.0,
        loading: changing.LoadingOption = changing.DEFAULT_LOADING,
        costs: query_files.CostsOption = None,
        costs_of: query_files.CostsOfOption = query_files.WORST,
        margin: query_files.MarginOption = query_files.MARGIN,
        dry_run: changing.DryRunOption = False,
        as_json: changing.JsonOption = False,
    ) -> None:
        """Add a query to what runs: admitted where every output that is guaranteed stays so and its own are, too.

        What runs stays where it is, with its sub-deadlines, its state and its tuples. Else exit code 3, with the
        reason, and nothing has changed.
        """
        from coordinator.change import next_plan
        from coordinator.errors import BadInputError
        from coordinator.model.limits import Limits
        from coordinator.plan import plan_file

        longest_ns = changing.loading_ns(loading)
        if not dry_run:
            changing.finish(plan, addresses)
        made = plan_file.read(plan)
        measured = query_files.costs(costs, costs_of, margin)
        wish = next_plan.Wish(Limits(seconds=time_limit), best_effort, not no_sharing, longest_ns, measured)
        with changing.untold():
            changing.check_running(made, plan, addresses, dry_run)
            try:
                change = next_plan.added(made, plan, query, wish)
            except BadInputError as error:
                query_files.check_query(query)
                raise error
        changing.conclude(change, plan, addresses, output, dry_run, as_json)
