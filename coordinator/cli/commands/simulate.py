"""`coordinator simulate`: a plan in virtual time."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from coordinator.cli import lines

EPILOG = """Examples:

  coordinator simulate plan.json --operators operators.py --tuples readings=feed.jsonl

  coordinator simulate plan.json --trials 50 --jitter exp --out runs/exp && coordinator report runs/exp

  coordinator simulate plan.json --policy fifo --cost-scale 1.2 --age radio=100ms --json

  coordinator simulate plan.json --scenario scenario.json --seed 7"""


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def simulate(
        plan: Annotated[Path, typer.Argument(help="plan.json")],
        scenario: Annotated[
            Path | None, typer.Option(help="FILE.json as of `node-agent simulate`; options beside it go before it.")
        ] = None,
        trials: Annotated[int | None, typer.Option(help="How often, each time from empty queues.")] = None,
        seed: Annotated[int | None, typer.Option(help="Of all random numbers.")] = None,
        policy: Annotated[str | None, typer.Option(help="On every node, not the plan's.")] = None,
        batch: Annotated[str | None, typer.Option(help="tuple, burst or barrier.")] = None,
        jitter: Annotated[
            str | None, typer.Option(help="Factor on costs: none, exp, lognormal:cv=1, uniform:0.5,1.5.")
        ] = None,
        cost_scale: Annotated[float | None, typer.Option(help="Multiplies every cost.")] = None,
        bursts: Annotated[int | None, typer.Option(help="Bursts of each source per trial; 1 unless given.")] = None,
        burst: Annotated[list[str] | None, typer.Option(help="SOURCE=N: tuples per burst, not the plan's.")] = None,
        age: Annotated[list[str] | None, typer.Option(help="SOURCE=DURATION: age of its tuples on admission.")] = None,
        phase: Annotated[list[str] | None, typer.Option(help="SOURCE=DURATION: its first burst comes later.")] = None,
        latency: Annotated[str | None, typer.Option(help="Of every link, which then takes no time to send.")] = None,
        loss: Annotated[float | None, typer.Option(help="Probability that a tuple is lost on a link.")] = None,
        tuples: Annotated[
            list[str] | None, typer.Option(help="SOURCE=FILE: what it admits, one tuple in JSON per line.")
        ] = None,
        decision_cost: Annotated[str | None, typer.Option(help="CPU time of a scheduling decision, as 50us.")] = None,
        operators: Annotated[list[Path] | None, typer.Option(help="FILE.py with operators; may be repeated.")] = None,
        check_operators: Annotated[bool, typer.Option(help="Find operators that change their inputs.")] = True,
        out: Annotated[Path | None, typer.Option("--out", "-o", help="Write a run directory, for `report`.")] = None,
        as_json: Annotated[
            bool, typer.Option("--json", help="JSON: outputs, windows and failures of all trials.")
        ] = False,
    ) -> None:
        """Run a plan in virtual time: the agents' engine, operators and trace, in a process of its own; no waiting. The
        same seed gives the same trace."""
        from coordinator.local_run.simulation import Simulated
        from coordinator.local_run.simulation import simulate as simulated

        given = {
            "trials": trials, "seed": seed, "policy": policy, "batch": batch, "jitter": jitter, "loss": loss,
            "cost_scale": cost_scale, "bursts": bursts, "tuples": _pairs("--tuples", tuples, str),
            "burst": _pairs("--burst", burst, int), "ages_ns": _pairs("--age", age, _ns),
            "phase_ns": _pairs("--phase", phase, _ns), "latency_ns": _option("--latency", latency, _ns),
            "decision_ns": _option("--decision-cost", decision_cost, _ns),
        }  # fmt: skip
        asked = {**_read(scenario), **{name: value for name, value in given.items() if value is not None}}
        result = simulated(Simulated(plan, asked, operators or (), out, check_operators), _tell)
        typer.echo(json.dumps(result) if as_json else _table(result))
        for failure in result["failures"]:
            lines.tell(failure, "operator_failed")


def _read(scenario: Path | None) -> dict[str, Any]:
    """The file's object; paths of later plans from its own directory on."""
    from coordinator.errors import bad_file

    if scenario is None:
        return {}
    try:
        found = json.loads(scenario.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise bad_file(scenario, "unreadable", f"is no scenario: {error}", "write a JSON object") from None
    if not isinstance(found, dict):
        raise bad_file(scenario, "unreadable", "is no scenario", "write a JSON object")
    for each in found.get("then", ()):
        if isinstance(each, dict) and isinstance(each.get("plan"), str):
            each["plan"] = str((scenario.parent / each["plan"]).resolve())
    return found


def _pairs(option: str, given: Sequence[str] | None, read: Callable[[str], Any]) -> dict[str, Any] | None:
    found = {}
    for text in given or ():
        name, _, value = text.partition("=")
        found[name.strip()] = (
            _option(option, value.strip(), read) if name and value else _option(option, text, _no_pair)
        )
    return found or None


def _option(option: str, text: str | None, read: Callable[[str], Any]) -> Any:
    try:
        return None if text is None else read(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def _ns(text: str) -> int:
    from coordinator.units import duration_ns

    return 0 if text == "0" else duration_ns(text)


def _no_pair(text: str) -> Any:
    raise ValueError(f"{text!r} is not SOURCE=VALUE")


def _tell(trial: int, of: int) -> None:
    if of > 1:
        lines.tell(f"trial {trial} of {of}", "trial")


def _table(result: dict[str, Any]) -> str:
    rows = [("output", "deadline", "met", "late", "p50", "p95", "p99", "max")]
    for name, each in result["outputs"].items():
        latencies = [_ms(each["latency_ns"][key]) for key in ("p50", "p95", "p99", "max")]
        rows.append((name, _ms(each["deadline_ns"]), str(each["met"]), str(each["late"]), *latencies))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    shed = [f"shed: {count} {policy}" for policy, count in result.get("shed", {}).items()]
    windows = [
        f"windows of {name}: {each['given']} of {each['all']}" for name, each in result.get("windows", {}).items()
    ]
    return "\n".join(["times in ms", *table, *shed, *windows])


def _ms(ns: int | None) -> str:
    return "-" if ns is None else f"{ns / 1e6:g}"
