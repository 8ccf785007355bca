"""Tables of `sim-vehicles simulate`: outputs, windows, policies against the bound; a bar while it runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from node_agent.operators.registry import Registry
    from node_agent.virtual.run import Simulation
    from node_agent.virtual.scenario import Scenario
    from protos.plan_document import Plan


@contextmanager
def progress(told: Console, trials: int) -> Iterator[Callable[[], None] | None]:
    """On a terminal a bar of the trials, with the time; gives what to call after each trial. A single trial takes long
    where operators do: it has a sign of life."""
    if not told.is_terminal:
        yield None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bar = Progress.get_default_columns() if trials > 1 else (TextColumn("{task.description}"),)
    with Progress(SpinnerColumn(), *bar, TimeElapsedColumn(), console=told, transient=True) as progress:
        task = progress.add_task("trials" if trials > 1 else "running the plan in virtual time", total=trials)
        yield lambda: progress.advance(task)


def compare(made: Plan, scenario: Scenario, registry: Registry, told: Console, as_json: bool) -> None:
    """`--regret`: every policy's misses, and their distance to the bound."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from node_agent.virtual.optimum.regret import regret

    with progress(told, scenario.trials) as advance:
        policies = None if scenario.policy is None else [scenario.policy]
        found = regret(made, scenario, registry, policies, progress=advance)
    if as_json:
        typer.echo(json.dumps(found.document()))
        return
    title = f"{made.query}: {scenario.trials} trials, seed {scenario.seed}, {found.results} results"
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("policy", no_wrap=True)
    for heading in ("missed", "of all", "above the bound"):
        table.add_column(heading, justify="right", no_wrap=True)
    ratio = found.bound_ratio or 0.0
    table.add_row("bound", str(found.bound), f"{ratio:.2%}", "")
    above = 100 * ((found.found_ratio or 0.0) - ratio)
    table.add_row("best schedule found", str(found.found), f"{found.found_ratio or 0.0:.2%}", f"{above:.2f} points")
    for name, missed in sorted(found.missed.items(), key=lambda each: each[1]):
        table.add_row(name, str(missed), f"{found.ratio(name) or 0.0:.2%}", f"{found.points(name) or 0.0:.2f} points")
    Console(highlight=False).print(table)
    Console(highlight=False).print(
        "No schedule misses less than the bound. The best one found is a policy's, or knows all costs beforehand; in "
        f"{found.closed} of {scenario.trials} trials it misses no more than the bound, which is then the optimum."
    )


def say(done: Simulation, scenario: Scenario, out: Path | None, told: Console, as_json: bool) -> None:
    """Prints the result of a simulation, as tables or as one JSON object. out: the run directory."""
    from rich.markup import escape

    if as_json:
        typer.echo(json.dumps({**done.document(), "run": None if out is None else str(out)}))
    else:
        from rich.console import Console

        Console(highlight=False).print(_table(done, scenario))
        for line in (*_shed(done), *_windows(done)):
            Console(highlight=False).print(line, soft_wrap=True)
    if done.refused:
        why = "came while no plan had their source, or were too old for its windows"
        told.print(f"{done.refused} tuples {why}, and were refused", soft_wrap=True)
    for unused in _too_late(done, scenario):
        told.print(f"[yellow]{unused}[/yellow]", soft_wrap=True)
    for failure in done.failures:
        told.print(f"[yellow]{escape(failure)}[/yellow]", soft_wrap=True)
    if done.failures and not scenario.tuples:
        told.print("the sources admit made-up tuples; give real ones with --tuples SOURCE=FILE", soft_wrap=True)
    if out is not None and not as_json:
        told.print(f"run written to {out}; `coordinator report {out}` gives the verdict", soft_wrap=True)


def _too_late(done: Simulation, scenario: Scenario) -> list[str]:
    """Plans that are committed when the sources have admitted everything, in the first trial: nothing runs under
    them."""
    from node_agent.virtual.arrivals import bursts

    if len(done.schedule.plans) == 1:
        return []
    last_ns = max((burst.at_ns for burst in bursts(done.schedule, scenario, 1)), default=0)
    return [
        f"--at {_ms(at_ns)}ms: the last burst comes at {_ms(last_ns)} ms, so nothing runs under plan {plan.hash[:8]}; "
        "change earlier, or simulate more --bursts"
        for plan, at_ns in zip(done.schedule.plans[1:], done.schedule.at_ns[1:], strict=True)
        if at_ns > last_ns
    ]


def _table(done: Simulation, scenario: Scenario) -> Any:
    from rich import box
    from rich.table import Table

    query, policy = done.plan.made.query, scenario.policy or "policies of the plan"
    title = f"{query}: {policy}, {scenario.trials} trials, {done.instances} task instances; times in ms"
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("output", no_wrap=True)
    for heading in ("deadline", "met", "late", "late share", "p50", "p95", "p99", "max"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, output in done.outputs.items():
        row = output.document()
        ratio = "-" if row["miss_ratio"] is None else f"{row['miss_ratio']:.1%}"
        latencies = [_ms(row["latency_ns"][each]) for each in ("p50", "p95", "p99", "max")]
        table.add_row(name, _ms(row["deadline_ns"]), str(row["met"]), str(row["late"]), ratio, *latencies)
    return table


def _shed(done: Simulation) -> list[str]:
    """The table counts results that came: what was shed or refused is in none of its columns."""
    if not done.shed:
        return []
    found = ", ".join(f"{tuples} {policy}" for policy, tuples in sorted(done.shed.items()))
    return [f"shed, and in no column above: {found}"]


def _windows(done: Simulation) -> list[str]:
    """Per window operator, how many windows gave a result."""
    found = []
    for name, windows in done.windows.items():
        share = f" ({windows.closed / windows.all:.1%})" if windows.all else ""
        without = f"; {windows.abandoned} abandoned, {windows.skipped} skipped" if windows.closed < windows.all else ""
        found.append(f"windows of {name}: {windows.closed} of {windows.all} gave a result{share}{without}")
    return found


def _ms(ns: int | None) -> str:
    if ns is None:
        return "-"
    return f"{ns / 1e6:.3f}".rstrip("0").rstrip(".")
