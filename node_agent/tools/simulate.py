"""`node-agent simulate`: a plan in virtual time, in a process of its own; what another program starts and reads."""

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from node_agent.virtual.run import Simulation

EXAMPLES = """examples:
  node-agent simulate plan.json --operators operators.py
  node-agent simulate plan.json --scenario scenario.json --out runs/virtual --json

The scenario is JSON with the keys that run.json has under `scenario`, each optional: trials, seed, policy, batch,
jitter, cost_scale, bursts, ages_ns, burst, phase_ns, latency_ns, loss, tuples, decision_ns, spread_ns, then, ...

With --json, each line is an object: {"event": "trial", "trial": 3, "of": 50} after each trial, and at the end
{"event": "done", "result": {...}} or {"event": "failed", "why": ...}. `coordinator simulate` reads these.

Exit codes: 0 done; 2 bad input; 130 Ctrl-C; 1 anything else.
"""
BAD_INPUT, INTERRUPTED = 2, 130


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`node-agent simulate`."""
    parser = commands.add_parser(
        "simulate", help="run a plan in virtual time, without agents", epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("plan", type=Path, metavar="FILE.json", help="made by `coordinator plan`")
    parser.add_argument(
        "--scenario", type=Path, metavar="FILE.json", help="what varies; default: one trial, exact costs"
    )
    parser.add_argument(
        "--out", "-o", type=Path, metavar="DIR", help="write a run directory, which must be new or empty"
    )
    parser.add_argument(
        "--operators", type=Path, action="append", default=[], metavar="FILE.py", help="may be repeated"
    )
    parser.add_argument(
        "--no-check-operators", action="store_true", help="do not look for operators that change their inputs"
    )
    parser.add_argument("--json", action="store_true", help="progress and the result as JSON lines")


def run(parsed: argparse.Namespace) -> int:
    """The command; returns the exit code."""
    from node_agent.virtual.errors import BadInputError

    out = sys.stdout

    def tell(values: dict[str, Any]) -> None:
        if parsed.json:
            print(json.dumps(values, separators=(",", ":")), file=out, flush=True)

    try:
        with redirect_stdout(sys.stderr):  # what operators print
            done = _simulated(parsed, tell)
    except BadInputError as error:
        tell({"event": "failed", "why": str(error)})
        print(error, file=sys.stderr)  # noqa: T201
        return BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    result = {**done.document(), "run": None if parsed.out is None else str(parsed.out)}
    tell({"event": "done", "result": result})
    if not parsed.json:
        _show(done)
    return 0


def _simulated(parsed: argparse.Namespace, tell: Callable[[dict[str, Any]], None]) -> "Simulation":
    from node_agent.virtual import run as runs
    from node_agent.virtual.plan_file import read_plan
    from node_agent.virtual.scenario import Scenario
    from node_agent.virtual.scenario_file import read_scenario

    scenario, changes = (Scenario(), []) if parsed.scenario is None else read_scenario(parsed.scenario)
    if parsed.out is not None:
        runs.check_out(parsed.out)
    plan = read_plan(parsed.plan)
    registry = runs.operators_here(parsed.operators, not parsed.no_check_operators)
    trials = iter(range(1, scenario.trials + 1))

    def ended() -> None:
        tell({"event": "trial", "trial": next(trials), "of": scenario.trials})

    done = runs.simulate(plan, scenario, registry, trace=parsed.out is not None, progress=ended, then=changes)
    if parsed.out is not None:
        runs.write_run(done, parsed.out)
    return done


def _show(done: "Simulation") -> None:
    for name, output in done.outputs.items():
        print(f"{name}: {output.met} met, {output.late} late")  # noqa: T201
    for failure in done.failures:
        print(failure, file=sys.stderr)  # noqa: T201
