"""`coordinator remove`: queries less on a cluster that runs, without disturbing the others."""

from __future__ import annotations

from typing import Annotated

import typer

from coordinator.cli import changing, completion
from coordinator.cli.commands.up import DEFAULT_ADDRESSES, AddressesOption

EPILOG = """Examples:

  coordinator remove fleet

  coordinator remove fleet --plan plan.json -o next.json --dry-run --json"""


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def remove(
        names: Annotated[
            list[str],
            typer.Argument(
                metavar="NAME...", help="Queries, as 'query:' in their files.", autocompletion=completion.queries
            ),
        ],
        plan: changing.PlanOption = changing.DEFAULT_PLAN,
        addresses: AddressesOption = DEFAULT_ADDRESSES,
        output: changing.OutputOption = None,
        loading: changing.LoadingOption = changing.DEFAULT_LOADING,
        dry_run: changing.DryRunOption = False,
        as_json: changing.JsonOption = False,
    ) -> None:
        """End queries that run with others. What the others need stays as it is, with its state and its tuples; what
        was admitted for the queries that end is worked off first."""
        from coordinator.change import next_plan
        from coordinator.plan import plan_file

        longest_ns = changing.loading_ns(loading)
        ended = frozenset[str]() if dry_run else changing.settle(plan, addresses)
        made = plan_file.read(plan)
        ended = ended.difference(made.queries)
        if ended.issuperset(names):
            changing.removed_already(names, as_json)
            return
        names = [each for each in names if each not in ended]
        with changing.untold():
            changing.check_running(made, plan, addresses, dry_run)
            change = next_plan.removed(made, plan, names, longest_ns)
        changing.conclude(change, plan, addresses, output, dry_run, as_json)
