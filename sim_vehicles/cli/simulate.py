"""`sim-vehicles simulate`: runs a plan in virtual time, many trials of it if need be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protos.policies import HELP
from sim_vehicles.cli.exit_code import ended_by
from sim_vehicles.cli.simulation_tables import compare, progress, say

if TYPE_CHECKING:
    from node_agent.virtual.change_schedule import Change

EXAMPLES = """Runs a plan in virtual time: same engine, same operators, same trace, no waiting.

Each trial admits the plan's bursts into empty queues. The same seed gives the same trace, and the same cost for the
same tuple at the same operator under every policy. With --out the run can be reported like a live one.

A source admits what its --tuples file holds, one tuple in JSON per line, over and over; without one, {"seq", "source"}
or an empty message, which operators that look at their input cannot use.

Where the plan has windows, it is also told how many of them gave a result.

Examples:

  sim-vehicles simulate plan.json --operators operators.py --tuples radio=radio.jsonl

  sim-vehicles simulate plan.json --age v2v=100ms

  sim-vehicles simulate plan.json --policy fifo --trials 50 --jitter lognormal:cv=1 --cost-scale 1.2

  sim-vehicles simulate plan.json --latency 0 --batch barrier --burst v2v=15 --json

  sim-vehicles simulate plan.json --policy bts:phi=10ms,k=5 --decision-cost 50us

  sim-vehicles simulate plan.json --trials 50 --jitter exp --out runs/exp && coordinator report runs/exp

  sim-vehicles simulate plan.json --trials 50 --jitter exp --regret

  sim-vehicles simulate windows.json --bursts 2000 --cost-scale 1.3 --out runs/overload

  sim-vehicles simulate plan.json --then next.json --at 5s --spread 20ms --bursts 20 --out runs/change
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(help=EXAMPLES)(simulate)


def simulate(
    plan: Annotated[Path, typer.Argument(help="plan.json")],
    policy: Annotated[
        str | None,
        typer.Option(help=f"On every node, not the plan's. {HELP}"),
    ] = None,
    trials: Annotated[int, typer.Option(help="How often, each time from empty queues.")] = 1,
    seed: Annotated[int, typer.Option(help="Of all random numbers.")] = 1,
    jitter: Annotated[str, typer.Option(help="Factor on costs: none, exp, lognormal:cv=1, uniform:0.5,1.5.")] = "none",
    cost_scale: Annotated[float, typer.Option(help="Multiplies every cost.")] = 1.0,
    bursts: Annotated[int, typer.Option(help="Bursts of each source per trial.")] = 1,
    age: Annotated[list[str] | None, typer.Option(help="SOURCE=DURATION: age of its tuples on admission.")] = None,
    burst: Annotated[list[str] | None, typer.Option(help="SOURCE=N: tuples per burst, not the plan's.")] = None,
    phase: Annotated[list[str] | None, typer.Option(help="SOURCE=DURATION: its first burst comes later.")] = None,
    latency: Annotated[
        str | None, typer.Option(help="Of every link, which then takes no time to send; 0: ideal links.")
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(
            help="tuple; burst: a whole burst is one instance; barrier: an operator waits for the whole burst."
        ),
    ] = None,
    tuples: Annotated[
        list[str] | None, typer.Option(help="SOURCE=FILE: what it admits, one tuple in JSON per line.")
    ] = None,
    decision_cost: Annotated[str, typer.Option(help="CPU time of a scheduling decision, like 50us.")] = "0",
    phi: Annotated[str | None, typer.Option(help="Length of a basic batch (bts, ats).")] = None,
    first_k: Annotated[int | None, typer.Option(help="Basic batches per decision, to begin with.")] = None,
    share: Annotated[
        float | None, typer.Option(help="Of the time that decisions may take, in percent (adaptive).")
    ] = None,
    loss: Annotated[float, typer.Option(help="Probability that a tuple is lost on a link.")] = 0.0,
    then: Annotated[
        list[Path] | None,
        typer.Option(help="A plan that is committed later in each trial; may be repeated, with as many --at."),
    ] = None,
    at: Annotated[list[str] | None, typer.Option(help="When, from the trial's start on, like 5s.")] = None,
    spread: Annotated[
        str, typer.Option(help="By how much later at most some node commits it, drawn per node, like 20ms.")
    ] = "0",
    operators: Annotated[list[Path] | None, typer.Option(help="FILE.py with operators; may be repeated.")] = None,
    check_operators: Annotated[
        bool,
        typer.Option(help="Encode and decode each result, as between nodes, and find operators that change inputs."),
    ] = True,
    regret: Annotated[
        bool,
        typer.Option(
            help="Run every policy (or only edf and --policy) on the same trials, and tell how far each is from what "
            "no schedule can beat."
        ),
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write a run directory.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The results as one JSON object.")] = False,
) -> None:
    """Runs a plan in virtual time."""
    from rich.console import Console

    from node_agent.virtual import run as runs
    from node_agent.virtual.cost_model import parse_jitter
    from node_agent.virtual.plan_file import read_plan
    from node_agent.virtual.scenario import Scenario
    from sim_vehicles.errors import bad_input
    from sim_vehicles.operators.installed import operators_of_vehicles

    told = Console(stderr=True, highlight=False)
    with ended_by(told):
        scenario = Scenario(
            trials=trials,
            seed=seed,
            policy=policy,
            batch=batch,
            jitter=parse_jitter(jitter),
            cost_scale=cost_scale,
            bursts=bursts,
            ages_ns=_durations(age, "--age"),
            burst=_counts(burst),
            phase_ns=_durations(phase, "--phase"),
            latency_ns=None if latency is None else _duration(latency, "--latency"),
            loss=loss,
            tuples=_pairs(tuples, "--tuples", "--tuples v2v=v2v.jsonl"),
            decision_ns=_duration(decision_cost, "--decision-cost"),
            phi_ns=None if phi is None else _duration(phi, "--phi"),
            first_k=first_k,
            share_ppm=None if share is None else round(share * 10_000),
            spread_ns=_duration(spread, "--spread"),
        )
        if regret and (out is not None or then):
            raise bad_input(
                "options_do_not_fit",
                "--regret: runs a plan under many policies and writes none of them",
                "leave out --out, --then",
                subject="--regret",
            )
        if out is not None:
            runs.check_out(out)
        made = read_plan(plan)
        changes = _changes(then or (), at or ())
        registry = operators_of_vehicles(operators or (), check_operators)
        if regret:
            compare(made, scenario, registry, told, as_json)
            return
        with progress(told, trials) as advance:
            done = runs.simulate(made, scenario, registry, trace=out is not None, progress=advance, then=changes)
        if out is not None:
            runs.write_run(done, out)
        say(done, scenario, out, told, as_json)


def _changes(then: Sequence[Path], at: Sequence[str]) -> list[Change]:
    """Each `--then` with its `--at`."""
    from node_agent.virtual.change_schedule import Change
    from node_agent.virtual.plan_file import read_plan
    from sim_vehicles.errors import bad_input

    if len(then) != len(at):
        text = f"--then {len(then)} times, --at {len(at)} times: each plan needs its instant"
        raise bad_input("options_do_not_fit", text, "write --then next.json --at 5s", subject="--then")
    return [Change(read_plan(plan), _duration(instant, "--at")) for plan, instant in zip(then, at, strict=True)]


def _pairs(given: list[str] | None, option: str, example: str) -> dict[str, str]:
    from sim_vehicles.errors import bad_input

    found = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise bad_input("wrong_form", f"{option}: {text!r} is not SOURCE=VALUE", f"write {example}", subject=option)
        found[name.strip()] = value.strip()
    return found


def _durations(given: list[str] | None, option: str) -> dict[str, int]:
    return {name: _duration(value, option) for name, value in _pairs(given, option, f"{option} v2v=100ms").items()}


def _duration(text: str, option: str) -> int:
    from node_agent.virtual.durations import duration_ns

    return 0 if text.strip() == "0" else duration_ns(text, option)


def _counts(given: list[str] | None) -> dict[str, int]:
    from sim_vehicles.errors import bad_input

    pairs = _pairs(given, "--burst", "--burst v2v=15")
    for name, value in pairs.items():
        if not value.isdecimal() or int(value) > 1_000_000:
            raise bad_input(
                "out_of_range", f"--burst: {name}={value}: must be a number of tuples, 0 to 1000000", subject="--burst"
            )
    return {name: int(value) for name, value in pairs.items()}
