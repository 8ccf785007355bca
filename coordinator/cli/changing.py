"""Parts of `add` and `remove`: shows the change, applies it or refuses it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coordinator.cli.lines import LineProgress, say, tell
from coordinator.errors import CoordinatorError, Mistake

if TYPE_CHECKING:
    from coordinator.change.next_plan import Change
    from protos.plan_document import Plan

PlanOption = Annotated[Path, typer.Option("--plan", help="The plan that runs.")]
OutputOption = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Where the next plan is written; else it takes the old one's place."),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Tell what would change; deploy nothing.")]
LoadingOption = Annotated[
    str,
    typer.Option(help="The longest that loading a plan keeps a node's thread at once; its agent tells what it had."),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="JSON: what changes, the next plan's hash and guarantee, or why it is refused.")
]
DEFAULT_PLAN = Path("plan.json")
DEFAULT_LOADING = "1 ms"


class RefusedError(CoordinatorError):
    """A change that is not admitted: no agent was told of it."""

    exit_code = 3

    def __init__(self, head: str, change: Change, remedies_found: Iterable[str]) -> None:
        """head: what was refused; remedies_found: what would make room."""
        names = ", ".join((*change.added, *change.removed))
        self.reasons = change.verdict.reasons
        told = [f"infeasible: {reason}" for reason in self.reasons]
        super().__init__(Mistake("not_admitted", head, subject=names), details=[*told, *remedies_found])


@contextmanager
def untold() -> Iterator[None]:
    """What is done before any agent is told of a change; interrupted, that is said."""
    try:
        yield
    except KeyboardInterrupt:
        tell("interrupted: nothing has changed")
        raise


def finish(plan: Path, addresses: Path) -> frozenset[str]:
    """Finishes a change of that plan file whose command was killed, where the agents have decided it. Returns the
    queries that it has ended."""
    from coordinator.change import unfinished

    return unfinished.finish(plan, addresses, tell, LineProgress())


def removed_already(names: Iterable[str], as_json: bool) -> None:
    """A command before has ended these queries, and was killed before it could say so."""
    if as_json:
        typer.echo(json.dumps({"removed": list(names), "dry_run": False, "deployed": True}))
    else:
        say(f"{', '.join(names)}: removed already, by the command that was broken off")


def check_running(made: Plan, plan: Path, addresses: Path, dry_run: bool) -> None:
    """Whether the agents run that plan, before anything is planned; deploying asks again. Not of a dry run, which needs
    no agents."""
    from coordinator.fleet import addresses as address_file
    from coordinator.fleet.agents import Agents
    from coordinator.fleet.deployment import deployed_plans

    if not dry_run:
        with Agents(address_file.load(addresses).of_plan(made)) as agents:
            deployed_plans.expect(made, plan, agents.status())


def loading_ns(text: str) -> int:
    """A duration as of an option."""
    from coordinator.units import duration_ns

    try:
        return duration_ns(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--loading") from error


def conclude(change: Change, plan: Path, addresses: Path, output: Path | None, dry_run: bool, as_json: bool) -> None:
    """Carries a change out, or tells it only. Raises RefusedError, or what deploying raises."""
    from coordinator.change import apply_change, change_summary
    from coordinator.explain import cost_lines, link_lines
    from coordinator.fleet import addresses as address_file
    from coordinator.fleet.agents import Agents
    from coordinator.plan import plan_file

    if not change.verdict.admitted:
        with untold():
            _refuse(change, plan, as_json)
    assert change.after is not None  # it is admitted
    told: dict[str, Any] = change_summary.document(change) | {"dry_run": dry_run, "deployed": False}
    said = change_summary.lines(change)
    if change.added:
        said += [*cost_lines.lines(change.after), *link_lines.lines(change.after)]
    if dry_run:
        if output is not None:
            if output.resolve() == plan.resolve():
                raise typer.BadParameter(
                    "is the plan that runs, which the next one replaces once it is deployed only", param_hint="-o"
                )
            plan_file.write(change.after, output)
            told["plan"] = str(output)
        said.append(
            "nothing was deployed" + (f"; the next plan {change.after.hash[:8]} is in {output}" if output else "")
        )
    else:
        nodes = dict.fromkeys([*change.before.nodes, *change.after.nodes])
        with Agents(address_file.load(addresses).of(nodes)) as agents:
            done = apply_change.apply(change.before, change.after, plan, agents, output, LineProgress())
        told |= {
            "deployed": True,
            "epoch": done.deployed.epoch,
            "nodes": list(done.deployed.nodes),
            "plan": str(done.path),
            "plan_before": str(done.old),
            "longest_hold_ns": dict(done.held_ns),
        }
        on, now, then = ", ".join(done.deployed.nodes), change.before.hash[:8], change.after.hash[:8]
        said.append(f"plan {then} of {', '.join(change.after.queries)} is deployed on {on}; it is in {done.path}")
        said.append(f"plan {now} drains; its run is there for 'coordinator collect --plan {done.old}'")
        said += change_summary.held(change, done.held_ns)
    if as_json:
        typer.echo(json.dumps(told))
    else:
        for line in said:
            say(line)


def _refuse(change: Change, plan: Path, as_json: bool) -> None:
    """Says why, and what would make room. Raises RefusedError."""
    from coordinator.change import change_summary, remedies

    if change.verdict.only_during:
        _refuse_way(change, plan, as_json)
    with _looking() as tell:
        found = remedies.remediation_options(change, tell)
    file = _written(found.replacement, plan)
    head = f"{', '.join(change.added)} is not added to what runs: no node was told of it"
    lines = list(found.lines(str(file)))
    if found.replacement is None and all(row.query in change.added for row in change.verdict.rows if row.why):
        lines.append("'--best-effort' adds it without a guarantee of its own, where that harms nobody else's")
    if as_json:
        typer.echo(
            json.dumps(change_summary.document(change) | found.document() | {"replacement_file": str(file or "")})
        )
    raise RefusedError(head, change, lines)


@contextmanager
def _looking() -> Iterator[Callable[[str], None]]:
    """Progress of the search for what would make room: one line on stderr, which changes where that is a terminal."""
    from rich.console import Console

    told, what = Console(stderr=True, highlight=False), "looking for what would make room"
    if not told.is_terminal:
        told.print(what)
    with told.status(what) as line:
        yield lambda text: line.update(f"{what}: {text}")


def _refuse_way(change: Change, plan: Path, as_json: bool) -> None:
    """Where all is well after the change, and only the change itself takes too long. Raises RefusedError."""
    from coordinator.change import change_summary
    from coordinator.units import show_ns

    file = _written(change.after, plan)
    done, assumed = "added" if change.added else "removed", show_ns(change.verdict.loading_ns)
    head = f"{', '.join((*change.added, *change.removed))} is not {done}: no node was told of it"
    lines = [
        f"only the change is in the way: stretches of loading a plan are assumed to take {assumed}; where the agents "
        "had less, say so with --loading",
        f"the next plan is {file}; 'coordinator deploy {file} --replace' changes to it all the same: nothing that runs "
        "is moved, and nothing is promised while it changes",
    ]
    if as_json:
        typer.echo(json.dumps(change_summary.document(change) | {"replacement_file": str(file or "")}))
    raise RefusedError(head, change, lines)


def _written(made: Plan | None, plan: Path) -> Path | None:
    """Where the plan that could be deployed instead is written, beside the one that runs."""
    from coordinator.plan import plan_file

    if made is None:
        return None
    path = plan.with_name(f"{plan.stem}-replacing{plan.suffix}")
    plan_file.write(made, path)
    return path
