"""What `add` and `remove` have in common: the change told, carried out or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coordinator.commands.lines import Lines
from coordinator.errors import CoordinatorError

if TYPE_CHECKING:
    from coordinator.change.next_plan import Change
    from coordinator.change.ways import Ways

PlanOption = Annotated[Path, typer.Option("--plan", help="The plan that runs.")]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Where the next plan is written; else it takes the old one's place."),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Tell what would change; deploy nothing.")]
JsonOption = Annotated[bool, typer.Option("--json", help="The result as JSON.")]
DEFAULT_PLAN = Path("plan.json")


class RefusedError(CoordinatorError):
    """A change that is not admitted: no agent was told of it."""

    exit_code = 3

    def __init__(self, said: list[str]) -> None:
        self.said = said
        super().__init__("\n".join(said))

    def lines(self) -> list[str]:
        """What was refused, why, and what would make room."""
        return self.said


def check_running(made: dict[str, Any], plan: Path, addresses: Path, dry_run: bool) -> None:
    """Whether the agents run that plan, before anything is planned; deploying asks again. Not of a dry run, which needs
    no agents."""
    from coordinator import addresses as address_file
    from coordinator.agents import Agents
    from coordinator.change import running

    if not dry_run:
        with Agents(address_file.load(addresses).of_plan(made)) as agents:
            running.expect(made, plan, agents.status())


def conclude(change: Change, plan: Path, addresses: Path, output: Path | None, dry_run: bool, as_json: bool) -> None:
    """Carries a change out, or tells it only. Raises RefusedError, or what deploying raises."""
    from coordinator import addresses as address_file
    from coordinator import plan_file
    from coordinator.change import account, carry

    if not change.verdict.admitted:
        _refuse(change, plan, as_json)
    assert change.after is not None  # it is admitted
    told: dict[str, Any] = account.document(change) | {"dry_run": dry_run, "deployed": False}
    said = account.lines(change)
    if dry_run:
        if output is not None:
            plan_file.write(change.after, output)
            told["plan"] = str(output)
        said.append(
            "nothing was deployed" + (f"; the next plan {change.after['hash'][:8]} is in {output}" if output else "")
        )
    else:
        before = dict(change.before)
        done = carry.out(before, change.after, plan, address_file.load(addresses), output, Lines())
        told |= {
            "deployed": True,
            "epoch": done.deployed.epoch,
            "nodes": list(done.deployed.nodes),
            "plan": str(done.path),
            "plan_before": str(done.old),
            "longest_hold_ns": dict(done.held_ns),
        }
        on, now, then = ", ".join(done.deployed.nodes), change.before["hash"][:8], change.after["hash"][:8]
        said.append(f"plan {then} of {', '.join(change.after['queries'])} is deployed on {on}; it is in {done.path}")
        said.append(f"plan {now} drains; its run is there for 'coordinator collect --plan {done.old}'")
        said += account.held(change, done.held_ns)
    if as_json:
        typer.echo(json.dumps(told))
    else:
        for line in said:
            typer.echo(line)


def _refuse(change: Change, plan: Path, as_json: bool) -> None:
    """Says why, and what would make room. Raises RefusedError."""
    from coordinator.change import account, ways

    found = ways.ways(change, Lines())
    file = _written(found, plan)
    name = ", ".join((*change.added, *change.removed))
    what = "is not added" if change.added else "is not removed"
    head = f"{name} {what} to what runs: no node was told of it" if change.added else f"{name} {what}: no node was told"
    lines = [head, *(f"infeasible: {reason}" for reason in change.verdict.reasons), *found.lines(str(file))]
    if change.added and found.replacement is None:
        lines.append("'--best-effort' adds it without a guarantee of its own, where that harms nobody else's")
    if as_json:
        typer.echo(json.dumps(account.document(change) | found.document() | {"replacement_file": str(file or "")}))
    raise RefusedError(lines)


def _written(found: Ways, plan: Path) -> Path | None:
    """Where the plan that would fit is written, beside the one that runs."""
    from coordinator import plan_file

    if found.replacement is None:
        return None
    path = plan.with_name(f"{plan.stem}-replacing{plan.suffix}")
    plan_file.write(found.replacement, path)
    return path
